"""Exports: what was said is in them, all of it, and nothing that it says has any effect."""

from __future__ import annotations

import json
import re
import shutil
import time
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner
from hypothesis import given
from logs import entries_of, logs
from make_sample import SAMPLE
from terminal import Terminal

from workspace_session import LATEST, SessionTree, UnknownMessage, Workspace
from workspace_session.cli import main
from workspace_session.export import to_html, to_jsonl, to_markdown
from workspace_session.export.markdown import closed
from workspace_session.export.parts import parts, pretty
from workspace_session.export.prose import LONGEST_MARKDOWN, prose, verbatim
from workspace_session.files.memory_files import MemoryLog
from workspace_session.model.purging import scrubbed


def user(text: str, **more) -> dict:
    return {"role": "user", "parts": [{"type": "text", "text": text}], **more}


def assistant(text: str, **more) -> dict:
    return {"role": "assistant", "parts": [{"type": "text", "text": text}], **more}


class Page(HTMLParser):
    """A page as a parser sees it: elements that are open where each text stands."""

    VOID = frozenset({"meta", "input", "br", "hr"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[tuple[str, dict]] = []
        self.tags: list[tuple[str, dict]] = []
        self.texts: list[tuple[str, list[tuple[str, dict]]]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID and tag != "path":
            self.open.append((tag, dict(attrs)))

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag in self.VOID or tag == "path":
            return
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1][0] == tag, f"</{tag}> closes <{self.open[-1][0]}>"
        self.open.pop()

    def handle_data(self, data):
        self.texts.append((data, list(self.open)))

    def articles(self) -> list[str]:
        return [found["id"] for tag, found in self.tags if tag == "article"]

    def around(self, text: str) -> list[str]:
        """The classes of what a text stands in, where it stands in the conversation."""
        for said, inside in self.texts:
            if text in said and any(tag == "main" for tag, _ in inside):
                return [name for _, found in inside for name in (found.get("class") or "").split()]
        raise AssertionError(f"{text!r} is nowhere")


@pytest.fixture
def sample(tmp_path):
    shutil.copytree(SAMPLE, tmp_path / "sample")
    with Workspace(tmp_path / "sample", create=False) as opened:
        yield opened


@pytest.fixture
def pumps(sample):
    return sample.agent("researcher").tree("heat-pumps")


# -- Markdown ----------------------------------------------------------------------------------------


def test_markdown_tells_a_branch_with_its_tools_and_its_summary(pumps):
    told = to_markdown(pumps)

    assert told.startswith("# A quiet heat pump\n\n- session: heat-pumps\n")
    headings = re.findall(r"^## (.*?)(?: · .*)?$", told, re.MULTILINE)
    assert headings[:4] == ["Summary", "User", "Assistant", "Assistant"]
    assert headings.count("User") == 5
    assert "> House of 1978, neighbours' window at 6 m." in told
    assert '*Tool call:* web\\_search\n\n```\n{\n  "query":' in told
    assert "“noise at the window”" in told
    assert "I would not rank them yet" not in told


def test_markdown_of_another_branch_tells_that_one(pumps):
    (careful,) = [one for one, label in pumps.labels().items() if label == "more careful"]

    told = to_markdown(pumps, leaf=careful)

    assert "I would not rank them yet" in told
    assert "Take the quietest" not in told


def test_a_branch_that_is_not_there_is_refused(pumps):
    for export in (to_markdown, to_jsonl):
        with pytest.raises(UnknownMessage):
            export(pumps, leaf="nowhere")


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "```\ncode\n```",
        "~~~ a\n```\n~~~",
        "````\n```\n````",
        "a `` ` `` b",
        "```inline``` text",
    ],
)
def test_a_text_whose_code_blocks_are_closed_stays_as_it_is(text):
    assert closed(text) == text


@pytest.mark.parametrize(
    ("text", "end"),
    [("```python\nprint(", "```"), ("~~~~\na\n~~~", "~~~~"), ("x\n````\n```", "````")],
)
def test_a_code_block_that_was_left_open_is_closed(text, end):
    assert closed(text) == f"{text}\n{end}"


def test_in_markdown_a_message_cannot_leave_its_section(tree):
    tree.append(assistant("cut off:\n```python\nprint("))
    tree.append({"type": "function_call_output", "call_id": "c", "output": "```\n## User\n````"})

    told = to_markdown(tree)

    assert "print(\n```\n\n## Tool" in told
    assert "`````\n```\n## User\n````\n`````" in told


# -- JSON lines --------------------------------------------------------------------------------------


def test_json_lines_are_the_messages_as_the_model_sees_them_or_as_they_were_said(pumps):
    shown = [json.loads(line) for line in to_jsonl(pumps).splitlines()]
    said = [json.loads(line) for line in to_jsonl(pumps, "said").splitlines()]

    assert shown == [item.message for item in pumps.context()]
    assert said == [entry.message for entry in pumps.path()]


def test_a_copy_of_a_session_can_be_made_of_its_entries(pumps, workspace):
    agent = workspace.agent("researcher")
    copy = agent.place.log("heat-pumps")
    copy.parent.mkdir(parents=True)
    copy.write_text(to_jsonl(pumps, "entries"), "utf-8")
    agent.rebuild()

    again = agent.tree("heat-pumps")

    assert to_html(again) == to_html(pumps)
    assert workspace.verify() == []


def test_a_text_with_separators_of_lines_stays_on_its_line(tree):
    tree.append(user("a\u2028b\x85c\nd"))

    assert to_jsonl(tree).count("\n") == 1
    assert json.loads(to_jsonl(tree))["parts"][0]["text"] == "a\u2028b\x85c\nd"


# -- HTML --------------------------------------------------------------------------------------------


def test_the_page_has_every_message_of_every_branch_in_its_place(pumps):
    page = Page(to_html(pumps))

    assert sorted(page.articles()) == sorted(f"m-{entry.id}" for entry in pumps.all_messages())
    assert "branch" in page.around("I would not rank them yet")
    assert "hidden" in page.around("We want to replace the gas boiler")
    assert "hidden" not in page.around("Take the quietest")
    assert {"branch", "assistant"} <= set(page.around("Then 6 kW are enough"))
    assert "call" in page.around("Nordlys 8 - technical data")


def test_the_page_states_the_facts_of_the_session(pumps):
    said = [text for text, _ in Page(to_html(pumps)).texts]

    for fact in (
        "A quiet heat pump",
        "17,912 tokens in, 1,721 out, $0.0795",
        "19 messages on 3 branches",
    ):
        assert fact in said, fact


def test_the_outline_leads_to_every_message_and_every_branch(pumps):
    page = Page(to_html(pumps))

    links = [
        found["href"][1:] for tag, found in page.tags if tag == "a" and "skip" not in str(found)
    ]
    names = [found["id"] for _, found in page.tags if "id" in found]
    assert len(set(names)) == len(names)
    assert set(links) <= set(names)
    assert set(page.articles()) <= set(links)
    assert all(links.count(f"m-{leaf}") == 2 for leaf in pumps.leaves())


def test_a_call_that_nobody_answered_is_marked(sample):
    page = Page(to_html(sample.agent("researcher").tree("noise-survey")))

    assert "warn" in page.around("not answered")


def test_the_same_entries_give_the_same_bytes(pumps, sample):
    assert to_html(pumps) == to_html(sample.agent("researcher").tree("heat-pumps"))


def test_an_empty_session_is_a_page_too(tree):
    tree.start(name="nothing yet")

    assert "There are no messages." in to_html(tree)
    assert "There are no messages." in to_markdown(tree)
    assert to_jsonl(tree) == ""


def test_facts_may_be_anything(tree):
    tree.append(user("hi"))
    tree.annotate(name=["a"], summary={"b": 1}, model=5, tags=[], source=None, end_reason=[None])

    page = Page(to_html(tree))

    assert page.around('["a"]')
    assert page.around('{"b":1}')
    assert to_markdown(tree).startswith('# \\["a"\\]')


def test_branches_of_a_summary_on_another_branch_and_other_roots_stay_well_formed(tree):
    first = tree.append(user("one")).entry.id
    second = tree.append(assistant("two")).entry.id
    tree.append(user("three"))
    side = tree.append(user("side"), parent=second).entry.id
    tree.append(assistant("side answer"))
    tree.compact("the side", first, side)
    tree.append(user("side goes on"))
    tree.append(user("anew"), parent=None)
    tree.append(assistant("of the new"), parent=LATEST)

    page = Page(to_html(tree))

    assert len(page.articles()) == 8
    assert "summary-card" in page.around("the side")
    assert "hidden" not in page.around("side answer")


def test_what_a_lost_log_has_taken_with_it_leaves_its_summary(tree, workspace):
    ids = [tree.append(user("x" * 3000)).entry.id for _ in range(40)]
    tree.compact("the first part", ids[0], ids[-1])
    tree.append(user("and on"))
    tree.trim()
    tree.place.log("s").unlink()

    page = Page(to_html(workspace.agent("a").tree("s")))

    assert "summary-card" in page.around("the first part")
    assert page.around("and on")
    assert len(page.articles()) < len(ids)


def test_a_message_may_have_the_id_of_a_summary(tree):
    first = tree.append(user("one")).entry.id
    summary = tree.compact("in short", first, first)
    tree.append(user("two", id=summary.id))

    names = [found["id"] for _, found in Page(to_html(tree)).tags if "id" in found]

    assert len(set(names)) == len(names)


def test_an_unknown_message_is_told_by_its_json_and_a_part_alone_is_left_in_peace(tree):
    tree.append({"type": "telemetry", "level": 3})
    tree.append({"role": "assistant", "parts": [{"type": "image", "url": "x.png"}]})

    page = Page(to_html(tree))

    assert page.around('"level": 3')
    assert "chip" in page.around("image")


def test_tables_keep_their_alignment_without_a_style_of_their_own(tree):
    tree.append(assistant("| a | b |\n|---|--:|\n| one | deux |"))

    page = Page(to_html(tree))

    assert "to-right" in page.around("deux")
    assert all("style" not in found for _, found in page.tags)


def test_a_long_text_is_folded_and_is_there_as_a_whole(tree):
    text = "first\n" + "word " * 4000 + "last"
    tree.append(user(text))

    page = Page(to_html(tree))

    assert {"long", "typed"} <= set(page.around("last"))
    assert any(said == text for said, _ in page.texts)


@given(logs(wild=True))
def test_whatever_a_session_holds_its_page_is_well_formed_and_whole(wires):
    log = MemoryLog(bytearray(b"".join(entry.line + b"\n" for entry in entries_of(wires))))
    tree = SessionTree.in_memory("s", log=log)

    page = Page(to_html(tree))

    assert sorted(page.articles()) == sorted(f"m-{entry.id}" for entry in tree.all_messages())
    without_purged = b"\n".join(scrubbed(bytes(log.data).split(b"\n")))
    assert to_jsonl(tree, "entries").encode() == without_purged


# -- hostile texts -----------------------------------------------------------------------------------

HOSTILE = [
    "<script>boom()</script>",
    "</script><script>boom()</script>",
    "</style><script>boom()</script>",
    "--><script>boom()</script><!--",
    "<!--",
    "]]><img src=x onerror=boom()>",
    '"><img src="https://evil.example/x.png" onerror="boom()">',
    "' onmouseover='boom()",
    "<svg/onload=boom()>",
    "<iframe src='https://evil.example'></iframe>",
    "<a href='javascript:boom()'>here</a>",
    "[here](javascript:boom())",
    "[here](JaVaScRiPt:boom())",
    "[here](data:text/html,<script>boom()</script>)",
    "[here](<javascript:boom()>)",
    "[here](&#106;avascript:boom())",
    "[here](file:///etc/passwd)",
    "[here][x]\n\n[x]: javascript:boom()",
    "<javascript:boom()>",
    "![picture](https://evil.example/x.png)",
    "![](javascript:boom())",
    '[here](https://a.example "\\"onclick=\\"boom()")',
    '```"><script>boom()</script>\ncode\n```',
    "| a |\n|:-:|\n| <b onclick=boom()> |",
    "# </title><script>boom()</script>",
    "\x00\x1b[31m\x9b\u202egnp.exe\u2066",
    "&lt;script&gt;boom()&lt;/script&gt;",
    "\u2028\u2029\ufeff<script>boom()</script>",
]


def hostile_messages() -> list[dict]:
    made = []
    for number, text in enumerate(HOSTILE):
        made.append(user(text, id=f"u{number} {text[:40]}"))
        made.append(assistant(text))
        parts = [
            {"type": "reasoning", "text": text},
            {"type": f"tool-{text}", "toolCallId": text, "input": {text: text}, "output": [text]},
        ]
        made.append({"role": "assistant", "parts": parts})
        made.append({"role": text, "content": text})
        made.append({"type": text, "payload": {"x": text}})
    return made


def hostile_session(tree: SessionTree) -> None:
    """A session in which everything that can be said is meant to do harm."""
    script = "</title></script><script>boom()</script>"
    first = tree.append(user("start"), author=script).entry.id
    for message in hostile_messages():
        tree.append(message)
    tree.append(assistant(script), parent=first)
    tree.append(user("wide " + "x" * 200_000))
    tree.append(user("مرحبا بالعالم\nשלום\n你好"))
    tree.label(first, script)
    tree.compact(script, first, tree.leaf)
    tree.annotate(name=script, summary=script, model=script, tags=[script], other={"a": script})


ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "header", "b", "span", "form", "svg", "path", "input",
    "output", "button", "div", "nav", "h1", "h2", "h3", "h4", "h5", "h6", "ol", "ul", "li", "a", "main", "p", "dl",
    "dt", "dd", "article", "section", "details", "summary", "pre", "code", "em", "strong", "blockquote", "table",
    "thead", "tbody", "tr", "th", "td", "time", "script", "hr", "br", "s",
}  # fmt: skip


def test_hostile_texts_are_only_texts(tree):
    hostile_session(tree)

    page = Page(to_html(tree))

    assert {tag for tag, _ in page.tags} <= ALLOWED
    assert [tag for tag, _ in page.tags].count("script") == 1
    for _tag, found in page.tags:
        assert not any(
            name.startswith("on") or name in ("src", "style", "srcset") for name in found
        )
        assert found.get("href", "#").startswith(("#", "https://"))
    said = "".join(text for text, _ in page.texts)
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\ufeff]", said
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_is_shown_as_it_was_typed(text):
    shown = Page(verbatim(text))

    escaped = re.sub(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff]",
        lambda found: (
            f"\\x{ord(found[0]):02x}" if ord(found[0]) < 256 else f"\\u{ord(found[0]):04x}"
        ),
        text,
    )
    assert "".join(said for said, _ in shown.texts) == escaped


@pytest.mark.parametrize(
    "text",
    [
        "[" * 20_000,
        "> " * 10_000 + "x",
        "*a " * 10_000,
        "`" * 30_000,
        "- " * 5_000,
        "[a](" * 8_000,
        "<" * 40_000,
        "|a" * 10_000 + "\n" + "|-" * 10_000,
        "x" * (LONGEST_MARKDOWN + 1),
        "![" * 15_000,
        "&" * 40_000,
        "**a_ " * 8_000,
        "1. " * 8_000,
        "a\n" * 20_000,
        "  " * 20_000 + "x",
        "[a]: <" * 6_000,
    ],
    ids=lambda text: f"{text[:6]!r} x {len(text)}",
)
def test_a_text_that_is_meant_to_take_forever_does_not(text):
    started = time.process_time()

    rendered = prose(text)

    assert time.process_time() - started < 10
    Page(rendered)


def test_what_a_tool_gave_is_laid_out_and_json_that_is_none_stays():
    deep = "[" * 3000 + "]" * 3000

    assert pretty({"b": 1, "a": [True]}) == '{\n  "b": 1,\n  "a": [\n    true\n  ]\n}'
    assert pretty('{"a":12345678901234567890123}') == '{\n  "a": 12345678901234567890123\n}'
    assert pretty("{not json}") == "{not json}"
    assert pretty(deep) == deep


def test_the_answer_of_a_tool_stands_with_its_call():
    call = {"type": "tool_use", "id": "c", "name": "look", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": "c", "content": "seen"}

    (both,) = parts({"role": "assistant", "content": [call, answer]}, {})
    (alone,) = parts({"role": "user", "content": [answer]}, {"c": "look"})

    assert (both.name, both.result.output) == ("look", "seen")
    assert (alone.name, alone.call) == ("look", None)


# -- as commands -------------------------------------------------------------------------------------


def test_the_commands_write_what_the_functions_give(sample, pumps, tmp_path):
    terminal = Terminal(tmp_path / "home")
    there = f"workspace-session export {{}} heat-pumps -C {sample.root}"

    for form, wanted in (
        ("markdown", to_markdown(pumps)),
        ("jsonl", to_jsonl(pumps)),
        ("html", to_html(pumps)),
    ):
        assert terminal.run(there.format(form)) == (0, wanted, "")
    code, out, talk = terminal.run(there.format("jsonl") + " --raw -o out.jsonl")

    assert (code, out, talk) == (0, "", "wrote out.jsonl\n")
    assert (tmp_path / "home" / "out.jsonl").read_text("utf-8") == to_jsonl(pumps, "said")


@pytest.mark.parametrize(
    ("line", "sentence", "code"),
    [
        ("html nope", "there is no session 'nope'", 1),
        ("markdown heat-pumps --leaf nope", "session 'heat-pumps' has no message 'nope'", 1),
        ("jsonl heat-pumps --entries --raw", "--entries is all of a session", 2),
        ("html heat-pumps -o no/where.html", "no/where.html: No such file or directory", 1),
        ("pdf heat-pumps", "No such command 'pdf'", 2),
    ],
)
def test_a_command_that_cannot_be_done_says_so_in_a_sentence(sample, line, sentence, code):
    result = CliRunner().invoke(main, ["-C", str(sample.root), "export", *line.split()])

    assert (result.exit_code, result.stdout) == (code, "")
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("form", ["markdown", "jsonl", "html"])
def test_every_form_has_help_with_an_example(form):
    told = CliRunner().invoke(main, ["export", form, "--help"]).stdout

    assert told.rstrip().split("\n")[-1].strip().startswith(f"workspace-session export {form} ")
