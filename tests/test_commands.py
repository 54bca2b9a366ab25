"""Commands about branches, names, the context, figures and tidying up; and what all commands share."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest
from command_line import out, run, said, tree_of
from make_commands import PAGE, page
from rich.cells import cell_len
from terminal import Terminal

from workspace_session import Retention, SessionInfo, Workspace
from workspace_session.cli import main
from workspace_session.cli.options import session_ids

SAMPLE = Path(__file__).parents[1] / "sample_workspace"


def commands(group: click.Group = main, *above: str):
    """Every command, subcommands too, with the words that call it."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, *above, name)
        else:
            yield (*above, name), command


ALL = dict(commands())
# Those that are no looking at a workspace: they make one, or need none.
WITHOUT_WORKSPACE = {
    ("init",), ("demo",), ("completion",), ("git", "merge-driver"), ("postgres-schema",),
}  # fmt: skip


def arguments(command: click.Command) -> dict[str, str]:
    """Something for each argument that has to be there."""
    some = {"words": "word", "old": "@", "new": "@", "name": "x", "message": "m", "entry": "e"}
    needed = [one for one in command.params if isinstance(one, click.Argument) and one.required]
    return {
        str(one.name): __file__
        if isinstance(one.type, click.Path) and one.type.exists
        else some.get(str(one.name), "nobody")
        for one in needed
    }


def required_options(command: click.Command) -> list[str]:
    return {
        "compact": ["--summary", "x"],
        "gc": ["--keep", "1"],
        "purge": ["--yes"],
        "branch": ["--at-start"],
    }.get(str(command.name), [])


def beginning_at(root, count=5, session="s"):
    """A session of so many messages, m0 and so on."""
    tree = tree_of(root, session)
    tree.extend([said(f"text {number}", id=f"m{number}") for number in range(count)])
    return tree


# -- all commands ----------------------------------------------------------------------------------


@pytest.mark.parametrize("words", sorted(ALL.keys() - WITHOUT_WORKSPACE), ids=" ".join)
def test_without_a_workspace_every_command_says_so_in_one_sentence(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WORKSPACE_SESSION_ROOT", raising=False)
    command = ALL[words]
    given = list(arguments(command).values())

    code, printed, talk = run(*words, *required_options(command), *given, given="x")

    assert (code, printed) == (1, ""), talk
    assert talk.startswith("Error: there is no workspace in ")
    assert talk.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


WITH_SESSION = sorted(
    words
    for words, command in ALL.items()
    if "session" in {one.name for one in command.params if isinstance(one, click.Argument)}
    and words not in {("new",), ("append",)}  # which make the session they are given
)


@pytest.mark.parametrize("words", WITH_SESSION, ids=" ".join)
def test_a_session_that_is_not_there_is_one_sentence_for_every_command(root, words):
    before = sorted(root.rglob("*"))
    command = ALL[words]
    given = {**arguments(command), "session": "nobody"}.values()
    where = " in the trash" if words == ("restore",) else ""

    ended = run(*words, *required_options(command), *given)

    assert ended == (1, "", f"Error: there is no session 'nobody'{where}\n")
    assert sorted(root.rglob("*")) == before


@pytest.mark.parametrize("words", sorted(ALL), ids=" ".join)
def test_a_wrong_option_is_one_sentence_for_every_command(root, words):
    code, printed, talk = run(*words, "--nonsense")

    assert (code, printed) == (2, "")
    assert talk.startswith("Error: No such option")
    assert talk.count("\n") == 1


@pytest.mark.parametrize("group", ["export", "import", "git"])
def test_a_group_without_a_command_says_which_there_are(group):
    assert run(group) == (0, out(group, "--help"), "")


@pytest.mark.parametrize("words", sorted(ALL), ids=" ".join)
def test_every_help_ends_in_an_example_of_that_very_command(words):
    printed = out(*words, "--help")

    *_, examples = printed.rstrip().split("Example:\n")
    for line in examples.split("\n"):
        assert f"workspace-session {' '.join(words)}" in line


# Some need more than a workspace: a remote, two files, a file to read, a terminal to stay in, a database.
NOT_RUN = {
    ("git", "sync"), ("git", "merge-driver"), ("git", "after-merge"), ("tail",), ("demo",),
    ("push",), ("pull",), ("postgres-schema",),
}  # fmt: skip


def test_the_examples_of_all_commands_run_as_they_stand(root):
    subprocess.run(["git", "init", "-q"], check=True)
    last = [("delete",), ("restore",)]
    order = [words for words in ALL if words not in NOT_RUN and words not in last]
    order = [words for words in order if words[0] != "import"]
    order.sort(key=lambda words: words not in {("init",), ("new",), ("append",)})
    shell = Terminal(root / "elsewhere")
    for words in [*order, *last]:
        if words == ("undo",):
            out("branch", "@latest", "--at-start")
        examples = (ALL[words].epilog or "").split("Example:\n")[-1].split("\n")
        for line in filter(None, map(str.strip, examples)):
            program, *arguments = shlex.split(line)
            if program == "workspace-session":
                code, _printed, talk = run(*arguments)
            else:  # a pipe, or something that only a shell knows
                code, _printed, talk = shell.run(f"cd {root} && {line}")
            assert code == (words == ("doctor",)), (line, talk)  # git is not set up here


ODD_IDS = [
    "-x",
    "--help",
    "a/b/../c",
    "日本語のセッション",
    "Ünï cödé",
    "CON",
    "s.log",
    "..",
    "a:b*?",
    "'q' \"q\"",
]


@pytest.mark.parametrize("name", ODD_IDS)
def test_an_odd_session_id_works_everywhere(root, name):
    def do(*words):
        return out(*words[:1], *words[1:-1], "--", *words[-1])

    do("append", [name, "hello"])
    do("append", [name, "again"])
    assert "hello" in do("show", [name])
    assert "hello" in do("tree", [name])
    assert "hello" in do("log", [name])
    assert "again" in do("heads", [name])
    assert "hello" in do("history", [name])
    assert "hello" in do("context", [name])
    do("rename", [name, "a name"])
    do("tag", [name, "t"])
    do("label", [name, "@latest", "l"])
    do("branch", [name, "@latest"])
    do("switch", [name, "@latest"])
    do("compact", "--summary", "x", "--to", "@latest", [name])
    do("trim", [name])
    assert json.loads(out("stats", "--json", "--", name))["total"]["messages"] == 2
    do("purge", "--yes", [name, "@latest"])
    do("fork", [name, f"{name}+"])
    do("delete", [name])
    do("restore", [name])
    assert out("verify") == "all is well: 1 agent, 2 sessions\n"


# -- new, fork, branch, switch, heads --------------------------------------------------------------


class TestBranches:
    def test_new_makes_an_empty_session_with_facts(self, root):
        assert (
            out("new", "trip", "--name", "Porto", "--model", "m-1", "--tag", "b", "--tag", "a")
            == "trip\n"
        )

        info = tree_of(root, "trip").info()
        assert (info.name, info.model, info.tags, info.message_count) == (
            "Porto",
            "m-1",
            ("a", "b"),
            0,
        )

    def test_new_without_an_id_makes_one(self, root):
        first, second = out("new").strip(), out("new", "--agent", "scout").strip()

        assert first != second
        assert tree_of(root, second, "scout").exists()

    def test_new_refuses_an_id_that_is_taken(self, root):
        out("new", "trip")

        assert run("new", "trip") == (1, "", "Error: there already is a session 'trip'\n")

    def test_fork_copies_the_path_to_a_message(self, root):
        beginning_at(root)

        assert out("fork", "s", "t", "--at", "m2", "--name", "other way") == "t\n"

        info = tree_of(root, "t").info()
        assert [entry.id for entry in tree_of(root, "t").path()] == ["m0", "m1", "m2"]
        assert (info.parent_session_id, info.name) == ("s", "other way")

    def test_fork_goes_to_the_tip_and_makes_an_id(self, root):
        tree = beginning_at(root)
        tree.set_leaf("m1")

        new = out("fork", "s").strip()

        assert [entry.id for entry in tree_of(root, new).path()] == ["m0", "m1"]

    def test_fork_of_a_session_without_messages_is_one_without_messages(self, root):
        out("new", "empty")

        new = out("fork", "empty").strip()

        assert tree_of(root, new).info().parent_session_id == "empty"

    def test_fork_refuses_an_id_that_is_taken_and_a_message_that_is_not_there(self, root):
        beginning_at(root)

        assert run("fork", "s", "s")[2] == "Error: there already is a session 's'\n"
        assert run("fork", "s", "t", "--at", "x")[2] == "Error: session 's' has no message 'x'\n"
        assert not tree_of(root, "t").exists()

    def test_branch_moves_the_tip_and_what_comes_next_hangs_there(self, root):
        tree = beginning_at(root)

        assert out("branch", "s", "m1") == "m1\n"
        new = out("append", "s", "another way").strip()

        assert tree.get(new).parent_id == "m1"

    def test_branch_at_the_start_begins_a_new_tree(self, root):
        tree = beginning_at(root)

        assert out("branch", "s", "--at-start") == ""
        new = out("append", "s", "from scratch").strip()

        assert tree.get(new).parent_id is None

    def test_branch_wants_one_place(self, root):
        beginning_at(root)

        assert run("branch", "s")[0] == 2
        assert run("branch", "s", "m1", "--at-start")[0] == 2
        assert run("branch", "s", "zz") == (1, "", "Error: session 's' has no message 'zz'\n")

    def test_switch_goes_to_the_newest_end_of_a_branch(self, root):
        tree = beginning_at(root)
        tree.append(said("b", id="b1"), parent="m1")
        tree.append(said("b", id="b2"))
        tree.append(said("c", id="c1"), parent="b1")

        assert out("switch", "s", "m4") == "m4\n"
        assert out("switch", "s", "b1") == "c1\n"
        assert out("switch", "s", "b2") == "b2\n"
        assert out("switch", "s", "m0") == "c1\n"
        assert tree.leaf == "c1"

    def test_switch_finds_ends_that_were_trimmed(self, root):
        tree = beginning_at(root)
        tree.compact("short", "m0", "m4")
        tree.trim()

        assert out("switch", "s", "m2") == "m4\n"

    def test_undo_takes_moves_and_clears_back_until_something_is_appended(self, root):
        tree = beginning_at(root)
        out("branch", "s", "m1")
        out("branch", "s", "--at-start")

        assert out("undo", "s") == "m1\n"
        assert out("undo", "s") == "m4\n"
        assert run("undo", "s") == (1, "", "there is nothing to undo since the last message\n")
        tree.clear()
        assert out("undo", "s") == "m4\n"
        assert [entry.id for entry in tree.path()] == [f"m{number}" for number in range(5)]

        out("branch", "s", "m1")
        out("append", "s", "b")
        assert run("undo", "s")[0] == 1
        assert run("undo", "zz") == (1, "", "Error: there is no session 'zz'\n")

    def test_heads_lists_each_end_and_marks_the_tip(self, root):
        tree = beginning_at(root)
        tree.append(said("other", id="b1"), parent="m1")
        tree.set_leaf("m4")

        heading, first, second = out("heads", "s").splitlines()

        assert heading.split() == ["head", "messages", "written", "(UTC)", "says"]
        assert first.startswith("●  m4           5  ")
        assert second.startswith("○  b1           3  ")
        found = json.loads(out("heads", "s", "--json"))
        assert [(one["id"], one["tip"], one["messages"]) for one in found] == [
            ("m4", True, 5),
            ("b1", False, 3),
        ]

    def test_heads_of_nothing(self, root):
        out("new", "s")

        assert run("heads", "s") == (0, "", "there are no messages\n")
        assert out("heads", "s", "--json") == "[]\n"

    def test_a_message_may_be_named_by_either_end_or_as_the_latest(self, root):
        tree = tree_of(root)
        ids = [tree.append(said(str(number))).entry.id for number in range(3)]

        assert out("branch", "s", ids[0][-8:]).strip() == ids[0]
        assert out("switch", "s", "@latest").strip() == ids[2]
        code, _printed, talk = run("branch", "s", ids[0][:6])
        assert code == 1
        assert talk.startswith(f"Error: '{ids[0][:6]}' could be {ids[0]}, ")

    def test_the_latest_message_of_none_is_one_sentence(self, root):
        out("new", "s")

        assert run("branch", "s", "@latest") == (1, "", "Error: session 's' has no messages\n")


# -- rename, label, tag ----------------------------------------------------------------------------


class TestNames:
    def test_rename_changes_what_lists_show(self, root):
        beginning_at(root)

        out("rename", "s", "A weekend")

        assert "A weekend: text 0" in out("list")
        assert run("rename", "s", "A weekend")[2] == "that is its name already\n"
        out("rename", "s", "")
        assert tree_of(root).info().name == "s"

    def test_label_sets_lists_and_removes(self, root):
        beginning_at(root)

        out("label", "s", "m1", "here it was decided")
        assert json.loads(out("label", "s", "--json")) == {"m1": "here it was decided"}
        assert out("label", "s").splitlines()[1] == "m1       here it was decided"
        out("label", "s", "m1", "--remove")
        assert run("label", "s") == (0, "", "there are no labels\n")

    @pytest.mark.parametrize("given", [["m1"], ["m1", "x", "--remove"], ["--remove"]])
    def test_half_a_label_is_wrong_usage(self, root, given):
        beginning_at(root)

        assert run("label", "s", *given)[0] == 2

    def test_tags_are_added_listed_and_taken_away(self, root):
        beginning_at(root)

        assert out("tag", "s", "b", "a") == "a\nb\n"
        assert out("tag", "s", "c", "--json") == '[\n  "a",\n  "b",\n  "c"\n]\n'
        assert out("tag", "s", "b", "nothing", "--remove") == "a\nc\n"
        assert out("tag", "s") == "a\nc\n"
        assert out("tag", "s", "a", "c", "--remove") == ""
        assert tree_of(root).info().tags == ()
        assert run("tag", "s", "--remove")[0] == 2

    def test_two_who_tag_at_once_lose_nothing(self, root):
        tree, other = beginning_at(root), tree_of(root)
        other.facts()

        tree.tag(add=["a"])
        other.tag(add=["b"])

        assert tree.tag() == ["a", "b"]


# -- history, context ------------------------------------------------------------------------------


@pytest.fixture
def compacted(root):
    tree = beginning_at(root)
    tree.compact("in short", "m1", "m3")
    return tree


class TestWhatIsSeen:
    def test_history_tells_what_was_said_and_what_hides_it(self, compacted):
        compacted.update("m4", said("text four", id="m4"))
        compacted.label("m2", "middle")

        lines = out("history", "s").splitlines()

        assert [line[0] for line in lines] == ["●", "·", "·", "·", "●"]
        assert lines[2].endswith('("middle") text 2')
        assert lines[4].endswith("(tip, edited) text four")
        rows = [json.loads(line) for line in out("history", "s", "--json").splitlines()]
        overlay = compacted.compactions()[0].id
        assert [row["hiddenBy"] for row in rows] == [None, overlay, overlay, overlay, None]
        assert rows[4]["message"] == said("text four", id="m4")

    def test_history_may_be_cut_and_may_follow_another_branch(self, compacted):
        compacted.append(said("other", id="b1"), parent="m1")
        compacted.set_leaf("m4")

        assert (
            out("history", "s", "--last", "2").splitlines() == out("history", "s").splitlines()[-2:]
        )
        assert out("history", "s", "--last", "0") == ""
        printed = out("history", "s", "--leaf", "b1", "--json")
        assert [json.loads(line)["id"] for line in printed.splitlines()] == ["m0", "m1", "b1"]

    def test_history_of_a_message_is_every_version(self, root):
        tree = beginning_at(root)
        for text in ("second", "third"):
            tree.update("m1", said(text, id="m1"))
        tree.compact("short", "m0", "m3")
        tree.trim()

        rows = [json.loads(line) for line in out("history", "s", "m1", "--json").splitlines()]

        assert [row["message"]["parts"][0]["text"] for row in rows] == ["text 1", "second", "third"]
        assert [row["edited"] for row in rows] == [False, True, True]
        assert run("history", "s", "zz") == (1, "", "Error: session 's' has no message 'zz'\n")

    def test_context_counts_the_tokens_of_what_the_model_sees(self, compacted):
        found = json.loads(out("context", "s", "--json"))

        assert [item["type"] for item in found["items"]] == ["message", "compaction", "message"]
        assert found["tokens"] == sum(item["tokens"] for item in found["items"]) > 0
        assert found["items"][1]["covers"]["messages"] == 3
        lines = out("context", "s").splitlines()
        assert [line[0] for line in lines] == [" ", "●", "◆", "●", "a"]
        assert (
            lines[-1] == f"about {found['tokens']} tokens in 3 messages; summaries hide 3 messages"
        )

    def test_context_of_another_branch(self, compacted):
        found = json.loads(out("context", "s", "--leaf", "m2", "--json"))

        assert [item["id"] for item in found["items"]] == ["m0", "m1", "m2"]
        assert found["leaf"] == "m2"


# -- compact, trim ---------------------------------------------------------------------------------


class TestCompact:
    def shown(self, root):
        return [getattr(item, "summary", item.id) for item in tree_of(root).context()]

    def test_the_middle_gives_way_to_a_summary(self, root):
        beginning_at(root, 12)

        code, printed, talk = run("compact", "s", "--summary", "in short", "--keep-tokens", "0")

        assert code == 0
        assert talk == "the summary stands for 7 messages\n"
        assert printed.strip() == tree_of(root).compactions()[0].id
        assert self.shown(root) == ["m0", "m1", "m2", "in short", "m10", "m11"]

    def test_what_stays_can_be_chosen(self, root):
        beginning_at(root, 12)

        out(
            "compact",
            "s",
            "--summary",
            "x",
            "--keep-first",
            "0",
            "--keep-last",
            "4",
            "--keep-tokens",
            "0",
        )

        assert self.shown(root) == ["x", "m8", "m9", "m10", "m11"]

    def test_a_range_can_be_named_and_json_tells_it(self, root):
        beginning_at(root, 6)

        found = json.loads(
            out("compact", "s", "--summary", "x", "--from", "m1", "--to", "m2", "--json")
        )

        assert (found["fromId"], found["toId"], found["covers"]["messages"]) == ("m1", "m2", 2)
        assert self.shown(root) == ["m0", "x", "m3", "m4", "m5"]

    def test_a_second_summary_takes_in_the_one_before(self, root):
        beginning_at(root, 6)
        out("compact", "s", "--summary", "first", "--to", "m2")

        out("compact", "s", "--summary", "second", "--to", "m4")

        assert self.shown(root) == ["second", "m5"]

    def test_nothing_to_sum_up_is_one_sentence(self, root):
        beginning_at(root, 4)

        code, printed, talk = run("compact", "s", "--summary", "x")

        assert (code, printed) == (1, "")
        assert talk.startswith("Error: there is nothing to sum up")
        assert tree_of(root).compactions() == []

    @pytest.mark.parametrize(
        ("given", "sentence"),
        [
            (["--from", "zz"], "session 's' has no message 'zz'"),
            (
                ["--from", "m4", "--to", "m2"],
                "session 's' cannot compact 'm4'..'m2': the first comes after the last",
            ),
        ],
    )
    def test_a_range_that_is_none_is_one_sentence(self, root, given, sentence):
        beginning_at(root, 6)

        assert run("compact", "s", "--summary", "x", *given) == (1, "", f"Error: {sentence}\n")

    def test_what_a_summary_hides_is_no_end_of_a_range(self, root):
        beginning_at(root, 6)
        out("compact", "s", "--summary", "first", "--to", "m2")

        code, _printed, talk = run("compact", "s", "--summary", "second", "--to", "m1")

        assert code == 1
        assert talk.endswith("'m1' is hidden by a summary, or on another branch\n")

    @pytest.mark.parametrize(
        "given", [[], ["--summary", "x", "--command", "cat"], ["--summary", " "], ["--command", ""]]
    )
    def test_one_source_of_the_summary_is_wanted(self, root, given):
        beginning_at(root)

        assert run("compact", "s", *given)[0] == 2

    def test_a_command_gets_the_prompt_and_prints_the_summary(self, root):
        tree = tree_of(root)
        tree.append({"role": "user", "content": "Où est la gare ?"})
        tree.append(
            {"type": "function_call", "call_id": "c", "name": "map", "arguments": '{"q":1}'}
        )
        tree.append({"type": "function_call_output", "call_id": "c", "output": "left"})
        tree.append(said("À gauche.", "assistant"))

        out("compact", "s", "--command", "cat > prompt; echo ' résumé '", "--to", "@latest")

        prompt = (root / "prompt").read_text("utf-8")
        assert [item.summary for item in tree.context()] == ["résumé"]
        for piece in ("[user]\nOù est la gare ?", "[tool: map]", "output: left", "À gauche."):
            assert piece in prompt

    @pytest.mark.parametrize(
        ("command", "sentence"),
        [("exit 3", "'exit 3' ended with exit code 3"), ("true", "'true' printed no summary")],
    )
    def test_a_command_that_fails_changes_nothing(self, root, command, sentence):
        beginning_at(root)

        ended = run("compact", "s", "--command", command, "--to", "m2")

        assert ended == (1, "", f"Error: {sentence}\n")
        assert tree_of(root).compactions() == []

    def writing(self, root, code) -> str:
        """A command line that does something to the session and prints a summary."""
        script = root / "writer.py"
        script.write_text(
            "from workspace_session import Workspace\n"
            f'tree = Workspace(".", durability="os").agent("default").tree("s")\n{code}\nprint("sum")\n'
        )
        return f"{sys.executable} {script}"

    def test_no_lock_is_held_while_it_runs_and_what_is_added_is_not_hidden(self, root):
        beginning_at(root, 6)
        line = self.writing(root, 'tree.append({"id": "new", "role": "user", "content": "x"})')
        started = time.monotonic()

        out("compact", "s", "--command", line, "--to", "m4")

        assert time.monotonic() - started < 20  # a lock would be waited for longer
        assert self.shown(root) == ["sum", "m5", "new"]

    @pytest.mark.parametrize(
        "code",
        ['tree.delete(["m2"])', 'tree.compact("other", "m0", "m3")', "tree.clear()"],
    )
    def test_a_summary_of_what_is_there_no_more_is_not_stored(self, root, code):
        beginning_at(root, 6)

        ended = run("compact", "s", "--command", self.writing(root, code), "--to", "m4")

        assert ended == (
            1,
            "",
            "Error: session 's' changed meanwhile; the summary was not stored\n",
        )
        assert "sum" not in self.shown(root)

    def test_trim_says_what_it_saved(self, root):
        tree = beginning_at(root, 40)
        tree.compact("short", "m0", "m9")

        code, _printed, talk = run("trim", "s")

        assert code == 0
        assert (
            int(re.fullmatch(r"saved ([\d,]+) bytes in 1 session\n", talk)[1].replace(",", ""))
            > 300
        )
        assert run("trim")[2] == "saved 0 bytes in 1 session\n"
        assert out("verify").startswith("all is well")


# -- stats -----------------------------------------------------------------------------------------


class TestStats:
    @pytest.fixture
    def counted(self, root):
        tree = beginning_at(root, 3)
        tree.add_usage(input_tokens=100, output_tokens=20, cost=0.5)
        tree.append(said("other", id="b1"), parent="m0")
        beginning_at(root, 2, "t")
        tree_of(root, "s", "scout", "anna").append(said("hi"))
        return root

    def test_figures_of_sessions_agents_and_all(self, counted):
        found = json.loads(out("stats", "--json"))

        assert found["total"]["messages"] == 7
        assert found["total"]["sessions"] == 3
        (own,) = [
            one
            for one in found["sessions"]
            if (one["sessionId"], one["agentId"]) == ("s", "default")
        ]
        assert (
            own["messages"],
            own["heads"],
            own["inputTokens"],
            own["outputTokens"],
            own["cost"],
        ) == (4, 2, 100, 20, 0.5)
        assert (
            own["contextTokens"]
            == json.loads(out("context", "s", "--agent", "default", "--json"))["tokens"]
        )
        log = counted / "agents/default/sessions/s.log.jsonl"
        assert own["logBytes"] == log.stat().st_size
        assert own["workingSetBytes"] == log.with_name("s.jsonl").stat().st_size
        agents = {(one["agentId"], one["userId"]): one["messages"] for one in found["agents"]}
        assert agents == {("default", None): 6, ("scout", "anna"): 1}

    def test_the_table_sums_each_agent_and_all(self, counted):
        lines = [line.split("  ") for line in out("stats").splitlines()]

        agents = ["agent", "default", "default", "default", "scout of anna", "= all"]
        assert [line[0] for line in lines] == agents
        assert "= 2 sessions" in lines[3]
        assert any("0.5000" in figure for figure in lines[-1])

    def test_of_one_session(self, counted):
        (_heading, row) = out("stats", "t").splitlines()

        assert row.split()[:3] == ["default", "t", "2"]

    def test_of_nothing(self, root):
        assert run("stats") == (0, "", "there are no sessions yet\n")
        assert json.loads(out("stats", "--json"))["sessions"] == []


# -- gc --------------------------------------------------------------------------------------------

NOW = datetime(2026, 5, 15, tzinfo=UTC)


def info_of(name, days, **more):
    moment = (NOW - timedelta(days=days)).isoformat()
    return SessionInfo(id=name, updated_at=moment, **more)


INFOS = [
    info_of("a", 1),
    info_of("b", 2, labels={"m": "x"}),
    info_of("c", 40, tags=("t",)),
    info_of("d", 50),
    SessionInfo(id="state only"),
]


class TestRetention:
    @pytest.mark.parametrize(
        ("rule", "expected"),
        [
            (Retention(), ""),
            (Retention(older_than=timedelta(days=30)), "cd"),
            (Retention(keep=1), "bcd"),
            (Retention(keep=0), "abcd"),
            (Retention(keep=3, older_than=timedelta(days=45)), "d"),
            (Retention(keep=1, spare_labelled=True), "cd"),
            (Retention(keep=1, spare_labelled=True, spare_tagged=True), "d"),
            (Retention(older_than=timedelta(days=30), spare_tagged=True), "d"),
        ],
    )
    def test_by_age_by_count_and_what_is_spared(self, rule, expected):
        assert "".join(info.id for info, _why in rule.due(INFOS, NOW)) == expected


class TestGc:
    def test_nothing_is_done_without_yes(self, root):
        for name in "abc":
            beginning_at(root, 1, name)

        code, printed, talk = run("gc", "--keep", "1")

        assert code == 0
        assert [line.split()[:2] for line in printed.splitlines()[1:]] == [
            ["trash", "b"],
            ["trash", "a"],
        ]
        assert talk == "nothing was done yet: --yes does it to 2 sessions\n"
        assert len(json.loads(out("list", "--json"))) == 3

    def test_with_yes_they_go_to_the_trash_and_come_back(self, root):
        for name in "abc":
            beginning_at(root, 1, name)

        code, _printed, talk = run("gc", "--keep", "1", "--yes")

        assert (code, talk) == (0, "moved 2 to the trash, erased 0\n")
        assert [one["id"] for one in json.loads(out("list", "--json"))] == ["c"]
        out("restore", "a")
        assert "text 0" in out("show", "a")

    def test_labelled_and_tagged_sessions_stay_when_asked(self, root):
        for name in "abcd":
            beginning_at(root, 1, name)
        out("label", "a", "m0", "keep")
        out("tag", "b", "keep")

        found = json.loads(out("gc", "--keep", "0", "--keep-labelled", "--keep-tagged", "--json"))

        assert sorted(one["session"] for one in found) == ["c", "d"]

    def test_each_agent_is_counted_apart(self, root):
        beginning_at(root, 1, "a")
        tree_of(root, "b", "scout").append(said("hi"))

        assert run("gc", "--keep", "1") == (0, "", "nothing is due\n")

    def test_age_is_that_of_the_last_write(self, root):
        beginning_at(root, 1, "a")

        assert run("gc", "--older-than", "1h")[2] == "nothing is due\n"
        assert "not written to for 0 days" in out("gc", "--older-than", "0d")

    def test_the_trash_is_erased_only_when_asked_and_old_enough(self, root):
        beginning_at(root, 1, "a")
        out("delete", "a")
        assert run("gc", "--trash-older-than", "1d", "--yes")[2] == "nothing is due\n"
        (gone,) = Workspace(root).agent("default").trashed()
        gone.directory.rename(gone.directory.with_name("20200101T000000Z-0123abcd"))

        assert json.loads(out("gc", "--trash-older-than", "1d", "--json"))[0]["done"] == "erase"
        assert Workspace(root).agent("default").trashed() != []
        assert (
            run("gc", "--trash-older-than", "1d", "--yes")[2] == "moved 0 to the trash, erased 1\n"
        )
        assert Workspace(root).agent("default").trashed() == []
        assert run("restore", "a")[0] == 1

    @pytest.mark.parametrize(
        "given", [[], ["--older-than", "soon"], ["--keep", "-1"], ["--older-than", "3"]]
    )
    def test_wrong_rules_are_wrong_usage(self, root, given):
        code, _printed, talk = run("gc", *given)

        assert code == 2
        assert talk.count("\n") == 1

    def test_a_session_that_was_written_to_meanwhile_stays(self, root):
        agent = Workspace(root, durability="os").agent("default")
        agent.tree("a").append(said("hi"))
        (before,) = agent.sessions()
        agent.tree("a").append(said("again"))

        assert agent.retire(before) is False
        assert agent.tree("a").exists()


# -- purge -----------------------------------------------------------------------------------------


class TestPurge:
    def test_it_asks_and_does_nothing_without_an_answer(self, root):
        beginning_at(root)

        code, printed, talk = run("purge", "s", "m1", given="n\n")

        assert (code, printed) == (1, "")
        assert talk == "Take the text of m1 away for good? [y/N]: n\nError: nothing was purged\n"
        assert "text 1" in out("show", "s")

    def test_it_says_what_was_done_and_where_copies_are(self, root):
        tree = beginning_at(root)
        out("fork", "s", "t")
        overlay = tree.compact("short", "m0", "m2")

        code, printed, talk = run("purge", "s", "m1", "--yes", "--json")

        assert code == 0
        assert json.loads(printed) == {
            "entryId": "m1", "type": "message", "summaries": [overlay.id], "forks": ["t"], "inTrash": 0,
        }  # fmt: skip
        assert talk == (
            "purged the message m1; what git has committed still holds it\n"
            f"summaries may tell of it: {overlay.id}\n"
            "sessions that have a copy: t\n"
        )
        assert "text 1" not in (root / "agents/default/sessions/s.log.jsonl").read_text()

    def test_what_is_not_there_or_has_no_text_is_one_sentence(self, root):
        tree = beginning_at(root)
        tree.set_leaf("m1")
        leaf = next(entry.id for entry in tree.log() if entry.type == "leaf")

        assert run("purge", "s", "zz", "--yes")[::2] == (
            1,
            "Error: session 's' has no message 'zz'\n",
        )
        assert run("purge", "s", leaf, "--yes")[0] == 1
        assert f"the leaf '{leaf}' has no text" in run("purge", "s", leaf, "--yes")[2]


# -- completion ------------------------------------------------------------------------------------


class TestCompletion:
    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_each_shell_gets_a_script_of_its_own(self, shell):
        script = out("completion", shell)

        assert f"_WORKSPACE_SESSION_COMPLETE={shell}_complete" in script

    def test_another_shell_is_wrong_usage(self):
        assert run("completion", "csh")[0] == 2

    def test_bash_completes_commands_and_sessions(self, tmp_path):
        terminal = Terminal(tmp_path / "home")
        terminal.run("workspace-session init && workspace-session append trip-porto hi")
        asked = "_WORKSPACE_SESSION_COMPLETE=bash_complete"

        names = terminal.run(
            f'COMP_WORDS="workspace-session he" COMP_CWORD=1 {asked} workspace-session'
        )
        ids = terminal.run(
            f'COMP_WORDS="workspace-session show tr" COMP_CWORD=2 {asked} workspace-session'
        )

        assert names[1] == "plain,heads\n"
        assert ids[1] == "plain,trip-porto\n"

    @pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
    def test_the_script_is_one_that_bash_takes(self, tmp_path):
        terminal = Terminal(tmp_path / "home")

        code, printed, talk = terminal.run(
            'eval "$(workspace-session completion bash)" && complete -p workspace-session'
        )

        assert (code, talk) == (0, "")
        assert "workspace-session" in printed

    def test_without_a_workspace_no_session_is_offered(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with click.Context(main) as context:
            assert session_ids(context, main.params[0], "") == []


# -- on a screen -----------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_what_is_printed_fits_a_screen_and_has_colours(tmp_path, monkeypatch, columns):
    shutil.copytree(SAMPLE, tmp_path / "sample")
    monkeypatch.chdir(tmp_path / "sample")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(columns))
    for name in ("heads", "history", "context", "label", "tree", "log", "show"):
        for session in ("heat-pumps", "porto"):
            check([name, session], columns)
    for line in (["stats"], ["doctor"], ["gc", "--keep", "1"], ["list"]):
        check(line, columns)


def check(line: list[str], columns: int) -> None:
    _code, printed, talk = run(*line)
    plain = re.sub(r"\x1b\[[\d;]*m", "", printed)
    if talk == "there are no labels\n":
        return
    assert plain.strip() != "", line
    assert max(map(cell_len, plain.splitlines())) <= columns, line
    assert plain != printed, line


def test_hostile_text_is_printed_as_escapes_by_these_commands_too(root):
    hostile = "\x1b[2J\x1b]0;t\x07 [red]x[/red] \u202eback"
    tree = tree_of(root, f"s {hostile}", f"a {hostile}"[:20])
    first = tree.append({**said(hostile), "role": hostile}, author=hostile).entry.id
    tree.append(said(hostile, id=f"i {hostile}"))
    tree.label(first, hostile)
    tree.tag(add=[hostile])
    tree.append(
        {"role": "assistant", "parts": [{"type": "tool-x", "toolCallId": hostile, "input": {}}]}
    )
    for line in (
        ["heads"], ["history"], ["context"], ["label"], ["tag"], ["stats"], ["fork"], ["branch", "@latest"],
        ["switch", "@latest"], ["compact", "--summary", hostile, "--to", "@latest"], ["purge", "@latest", "--yes"],
    ):  # fmt: skip
        _code, printed, talk = run(line[0], "@latest", *line[1:])
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e]", printed + talk), line
    for line in (["doctor"], ["gc", "--keep", "0"]):
        _code, printed, talk = run(*line)
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e]", printed + talk), line


def test_the_page_of_commands_is_what_they_say_of_themselves():
    assert PAGE.read_text("utf-8") == page(), "run python tests/make_commands.py"
