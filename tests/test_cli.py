"""The command line: what it prints, where it prints it, and how it fails.

Most tests run it in this process, for speed; those about pipes, terminals and two writers use real ones.
"""

from __future__ import annotations

import json
import math
import re

import pytest
from command_line import out, run, said, tree_of
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from terminal import Terminal

from workspace_session import Workspace
from workspace_session.cli import main
from workspace_session.cli.render import fit, inert
from workspace_session.cli.screen import Screen
from workspace_session.model.outline import outline, rows

HOSTILE = "\x1b[2J\x1b]0;title\x07 [red]not red[/red] \x9b31m \u202eback\u202c \u2028 \x00 日本語"
ACTIVE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


# -- the workspace ---------------------------------------------------------------------------------


class TestTheWorkspace:
    def test_init_makes_one_and_prints_where(self, tmp_path):
        assert out("init", str(tmp_path / "new")) == f"{tmp_path / 'new'}\n"
        assert (tmp_path / "new" / ".workspace").is_dir()

    def test_init_leaves_one_that_is_there_as_it_is(self, root):
        out("append", "s", "hi")

        out("init")

        assert len(tree_of(root)) == 1

    def test_without_one_the_error_names_init(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)

        code, printed, talk = run("list")

        assert (code, printed) == (1, "")
        assert talk == (
            f"Error: there is no workspace in {tmp_path} or above it"
            " (workspace-session init makes one)\n"
        )

    def test_a_directory_that_is_none_is_refused_and_left_alone(self, tmp_path):
        code, _printed, talk = run("-C", str(tmp_path), "append", "s", "hi")

        assert code == 1
        assert talk.count("\n") == 1
        assert "is not a workspace" in talk
        assert list(tmp_path.iterdir()) == []

    def test_it_is_found_from_a_directory_below(self, root, monkeypatch):
        out("append", "s", "hi")
        (root / "deep" / "er").mkdir(parents=True)
        monkeypatch.chdir(root / "deep" / "er")

        assert "hi" in out("show", "s")

    def test_the_option_stands_before_or_after_the_command_and_beats_the_environment(
        self, root, tmp_path, monkeypatch
    ):
        out("append", "s", "here")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("WORKSPACE_SESSION_ROOT", str(tmp_path / "elsewhere"))

        assert "here" in out("-C", str(root), "show", "s")
        assert "here" in out("show", "s", "--root", str(root))
        assert run("show", "s")[0] == 1

    def test_the_environment_names_one(self, root, tmp_path, monkeypatch):
        out("append", "s", "here")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("WORKSPACE_SESSION_ROOT", str(root))

        assert "here" in out("show", "s")

    def test_a_file_in_the_place_of_one_is_wrong_usage(self, tmp_path):
        (tmp_path / "file").touch()

        assert run("-C", str(tmp_path / "file"), "list")[0] == 2


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args",
    [
        ["--nonsense"],
        ["nonsense"],
        ["list", "--nonsense"],
        ["show"],
        ["show", "s", "--last", "many"],
        ["show", "s", "--last", "-1"],
        ["append", "s", ""],
        ["append", "s", "text", "too much"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(root, args):
    code, printed, talk = run(*args)

    assert (code, printed) == (2, "")
    assert talk.startswith("Error: ")
    assert talk.count("\n") == 1


@pytest.mark.parametrize("command", ["show", "tree", "log", "delete", "verify"])
def test_a_session_that_is_not_there_is_one_sentence_and_exit_code_1(root, command):
    assert run(command, "nobody") == (1, "", "Error: there is no session 'nobody'\n")


def test_an_error_of_the_system_is_one_sentence_with_the_path(root, monkeypatch):
    def denied(_self):
        raise PermissionError(13, "Permission denied", str(root / "agents"))

    monkeypatch.setattr(Workspace, "agents", denied)

    assert run("list") == (1, "", f"Error: {root / 'agents'}: Permission denied\n")


def test_an_error_does_not_repeat_hostile_text(root):
    _code, _printed, talk = run("show", f"no {HOSTILE}".replace("\0", ""))

    assert not ACTIVE.search(talk)


def test_without_a_command_there_is_help():
    code, printed, _talk = run()

    assert code == 0
    assert [name for name in main.commands if f"\n  {name} " not in printed] == []


@pytest.mark.parametrize("name", [None, *sorted(main.commands)])
def test_every_help_ends_in_an_example(name):
    printed = out("--help") if name is None else out(name, "--help")

    *_, lines = printed.rstrip().split("Example:\n")
    assert all("workspace-session" in line for line in lines.split("\n"))


# -- naming sessions -------------------------------------------------------------------------------


class TestNamingASession:
    def test_a_beginning_will_do_when_it_is_the_only_one(self, root):
        out("append", "trip-porto", "hi")

        code, printed, talk = run("show", "tri")

        assert code == 0
        assert "hi" in printed
        assert talk == "session trip-porto (agent default)\n"

    def test_the_whole_id_comes_before_a_beginning(self, root):
        out("append", "trip-2", "second")
        out("append", "trip", "first")

        assert "first" in out("show", "trip")

    def test_several_with_one_beginning_are_named(self, root):
        for number in range(7):
            out("append", f"trip-{number}", "hi")

        code, _printed, talk = run("show", "trip")

        assert code == 1
        assert talk.startswith("Error: 'trip' could be trip-0 (agent default), trip-1 ")
        assert talk.endswith(" and 2 more\n")

    def test_latest_is_the_one_written_to_last_of_all_agents(self, root):
        out("append", "b", "older")
        out("append", "a", "newer", "--agent", "other")

        assert "newer" in out("show", "@latest")
        assert "older" in out("show", "@latest", "--agent", "default")

    def test_latest_of_none_is_an_error(self, root):
        assert run("show", "@latest") == (1, "", "Error: there are no sessions yet\n")

    def test_the_agent_is_found_when_only_one_has_the_session(self, root):
        out("append", "s", "hi", "--agent", "scout", "--user", "anna")

        assert "hi" in out("show", "s")

    def test_two_agents_with_the_session_are_named(self, root):
        out("append", "s", "one", "--agent", "scout")
        out("append", "s", "two", "--agent", "critic", "--user", "anna")

        assert run("show", "s")[::2] == (
            1,
            "Error: 's' could be s (agent scout), s (agent critic of user anna);"
            " --agent or --user says which\n",
        )
        assert "one" in out("show", "s", "--agent", "scout")
        assert "two" in out("show", "s", "--user", "anna")

    def test_an_agent_that_is_not_there_is_named(self, root):
        assert run("list", "--agent", "x")[2] == "Error: there is no agent 'x'\n"
        assert run("list", "--user", "u")[2] == "Error: there is no agent of user 'u'\n"


# -- append ----------------------------------------------------------------------------------------


class TestAppend:
    def test_it_prints_the_id(self, root):
        printed = out("append", "s", "hi")

        assert printed == f"{tree_of(root).leaf}\n"

    def test_text_from_stdin_loses_only_its_last_newline(self, root):
        out("append", "s", given="  two\nlines \n")

        assert tree_of(root).path()[0].message == said("  two\nlines ")

    def test_a_json_object_is_stored_as_it_is(self, root):
        message = {"role": "assistant", "content": "hi", "extra": [1.5, 10**15, None]}

        out("append", "s", given=json.dumps(message))

        assert tree_of(root).path()[0].message == message

    def test_text_has_the_form_of_the_message_before_it(self, root):
        out("append", "s", '{"role":"user","content":"hi","id":"m1"}')
        out("append", "s", "as it is")
        out("append", "s", '{"role":"user","parts":[],"id":"m2"}')
        out("append", "s", "in parts", "--role", "assistant")
        out("append", "s", "once more", "--parent", "m1")

        said_so = {entry.message["role"]: entry.message for entry in tree_of(root).all_messages()}
        first = tree_of(root).children("m1")
        assert [one.message for one in first] == [
            {"role": "user", "content": "as it is"},
            {"role": "user", "content": "once more"},
        ]
        assert said_so["assistant"] == said("in parts", "assistant")

    @pytest.mark.parametrize("text", ["42", '["a"]', "null", '"text"'])
    def test_json_that_is_no_object_is_text(self, root, text):
        out("append", "s", given=text)

        assert tree_of(root).path()[0].message == said(text)

    def test_an_object_that_does_not_parse_is_text_and_that_is_said(self, root):
        code, _printed, talk = run("append", "s", given='{"role": "us')

        assert code == 0
        assert talk == "this is not a JSON object; it is stored as plain text\n"
        assert tree_of(root).path()[0].message == said('{"role": "us')

    def test_a_role_makes_everything_text(self, root):
        out("append", "s", '{"a":1}', "--role", "system")

        assert tree_of(root).path()[0].message == said('{"a":1}', "system")

    @pytest.mark.parametrize(
        "given", ["", "\n", b"\xff\xfe"], ids=["nothing", "blank", "not UTF-8"]
    )
    def test_no_message_is_wrong_usage_and_writes_nothing(self, root, given):
        assert run("append", "s", given=given)[0] == 2
        assert not tree_of(root).exists()

    def test_a_byte_order_mark_is_not_part_of_the_text(self, root):
        out("append", "s", given="\ufeffhi".encode())

        assert tree_of(root).path()[0].message == said("hi")

    def test_a_new_session_belongs_to_the_default_agent_or_the_one_named(self, root):
        out("append", "s", "hi")
        out("append", "t", "hi", "--agent", "scout", "--user", "anna")

        assert tree_of(root).exists()
        assert tree_of(root, "t", "scout", "anna").exists()

    def test_a_session_that_is_there_keeps_its_agent(self, root):
        out("append", "s", "one", "--agent", "scout")

        out("append", "s", "two")

        assert len(tree_of(root, agent="scout")) == 2

    def test_the_beginning_of_an_id_is_an_id_of_its_own(self, root):
        out("append", "trip-2", "hi")

        out("append", "trip", "hi")

        assert tree_of(root, "trip").exists()

    def test_latest_continues_the_last_session(self, root):
        out("append", "s", "one")

        out("append", "@latest", "two")

        assert len(tree_of(root)) == 2

    def test_a_parent_is_named_as_the_tree_shows_it(self, root):
        first = out("append", "s", "one").strip()
        out("append", "s", "two")

        branch = out("append", "s", "other", "--parent", first[-8:]).strip()

        assert tree_of(root).get(branch).parent_id == first

    def test_an_unknown_parent_writes_nothing(self, root):
        code, _printed, talk = run("append", "s", "hi", "--parent", "nobody")

        assert code == 1
        assert talk == "Error: session 's' has no message 'nobody' to be a parent\n"
        assert not tree_of(root).exists()

    def test_the_same_id_again_is_said_and_writes_nothing(self, root):
        message = json.dumps(said("hi", id="m1"))
        out("append", "s", message)

        code, printed, talk = run("append", "s", message)

        assert (code, printed) == (0, "m1\n")
        assert "nothing was written" in talk
        assert len(tree_of(root)) == 1

    def test_an_author_is_kept(self, root):
        out("append", "s", "hi", "--author", "anna")

        assert tree_of(root).path()[0].author == "anna"


# -- list, show, log -------------------------------------------------------------------------------


def test_list_is_a_table_with_the_newest_first(root):
    out("append", "a", "older")
    out("append", "b", "newer", "--agent", "scout", "--user", "anna")

    heading, first, second = out("list").splitlines()

    assert heading.split("  ")[0] == "session"
    assert re.fullmatch(r"b {8}scout of anna {9}1  \d{4}-\d\d-\d\d [\d:]{8}  newer", first)
    assert second.startswith("a ")


def test_list_as_json_holds_all_that_is_known(root):
    tree = tree_of(root)
    tree.append(said("hi"))
    tree.annotate(name="Trip", tags=["x"])

    (info,) = json.loads(out("list", "--json"))

    assert info["id"] == "s"
    assert (info["name"], info["tags"], info["messageCount"]) == ("Trip", ["x"], 1)
    assert info["updatedAt"].endswith("Z")


def test_an_empty_list_has_no_data(root):
    assert run("list") == (0, "", "there are no sessions yet\n")
    assert out("list", "--json") == "[]\n"


def test_ids_in_a_pipe_are_whole(root):
    name = "x" * 120
    out("append", name, "hi")

    assert name in out("list")


@pytest.fixture
def compacted(root):
    """Five messages, the second to the fourth behind a summary."""
    tree = tree_of(root)
    ids = [result.entry.id for result in tree.extend([said(f"m{n}", id=f"m{n}") for n in range(5)])]
    tree.compact("in short", ids[1], ids[3])
    return tree


def texts(printed):
    return [json.loads(line)["parts"][0]["text"] for line in printed.splitlines()]


def test_show_prints_what_the_model_sees(compacted):
    lines = out("show", "s").splitlines()

    assert [line for line in lines if line.startswith("  ")] == ["  m0", "  in short", "  m4"]
    assert any(line.startswith("summary of 3 messages  ") for line in lines)


def test_show_raw_prints_what_was_said(compacted):
    assert texts(out("show", "s", "--raw", "--json")) == ["m0", "m1", "m2", "m3", "m4"]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--last", "2"], ["in short", "m4"]),
        (["--last", "0"], []),
        (["--last", "9"], ["m0", "in short", "m4"]),
        (["--last", "2", "--raw"], ["m3", "m4"]),
        (["--last", "0", "--raw"], []),
        (["--leaf", "m2"], ["m0", "m1", "m2"]),
        (["--leaf", "m2", "--last", "1"], ["m2"]),
    ],
)
def test_show_may_be_cut_at_either_end(compacted, args, expected):
    assert texts(out("show", "s", "--json", *args)) == expected


def test_show_names_the_tool_of_a_result(root):
    tree = tree_of(root)
    call = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"}
    tree.extend([call, {"type": "function_call_output", "call_id": "c1", "output": "dry"}])

    assert "[tool_result weather] dry" in out("show", "s")


def test_log_tells_every_entry_in_order(root):
    tree = tree_of(root)
    first = tree.append(said("hi"), author="anna").entry
    tree.label(first.id, "good")
    tree.update(first.id, said("hello"))
    tree.add_custom("mine", {"a": 1})

    told = [line[21:] for line in out("log", "s").splitlines()]

    short = first.id[-8:]
    assert [line.split()[0] for line in told] == ["session", "message", "label", "update", "custom"]
    assert told[1] == f"message     {short}  user anna: hi"
    assert told[2].endswith(f"  targetId={short} label=good")
    assert told[3].endswith(f"  targetId={short} user: hello")
    assert told[4].endswith('  customType=mine data={"a":1}')


def test_log_as_json_is_the_file(root):
    out("append", "s", "日本語")
    out("append", "s", "more")

    log = (root / "agents/default/sessions/s.log.jsonl").read_text("utf-8")

    assert out("log", "s", "--json") == log
    assert out("log", "s", "--json", "--last", "1") == log.splitlines(keepends=True)[-1]


# -- tree ------------------------------------------------------------------------------------------


def drawn(*args):
    """The tree, with the ids cut out."""
    return [re.sub(r"([●○·◆]) \S+ +", r"\1 ", line) for line in out("tree", *args).splitlines()]


def test_a_conversation_runs_straight_down(root):
    tree_of(root).extend([said("one"), said("two", "assistant"), said("three")])

    assert drawn("s") == ["● user       one", "● assistant  two", "● user       (tip) three"]


def test_branches_hang_from_where_they_start_and_the_active_one_goes_on(root):
    tree = tree_of(root)
    tree.extend([said(text, id=text) for text in ("root", "a1", "a2")])
    tree.extend([said(text, id=text) for text in ("b1", "b2")], parent="root")
    tree.append(said("c1", id="c1"), parent="b1")
    tree.set_leaf("a2")

    assert drawn("s") == [
        "● user       root",
        "├─○ user       b1",
        "│ ├─○ user       b2",
        "│ ○ user       c1",
        "● user       a1",
        "● user       (tip) a2",
    ]


def test_labels_summaries_and_other_roots_are_marked(compacted):
    compacted.label("m4", "good")
    compacted.append(said("again", id="r"), parent=None)
    compacted.set_leaf("m4")

    assert drawn("s") == [
        "● user       m0",
        "◆ summary    (of 3 messages) in short",
        "· user       m1",
        "· user       m2",
        "· user       m3",
        '● user       (tip, "good") m4',
        "",
        "○ user       again",
    ]


def test_of_two_summaries_the_one_in_use_is_drawn(compacted):
    compacted.compact("shorter", "m0", "m3")

    assert sum("summary" in line for line in drawn("s")) == 1
    assert "shorter" in drawn("s")[0]


def test_the_tree_as_json_has_every_message_once(compacted):
    document = json.loads(out("tree", "s", "--json"))

    assert document["leaf"] == "m4"
    assert [node["id"] for node in document["messages"]] == ["m0", "m1", "m2", "m3", "m4"]
    assert [node["parentId"] for node in document["messages"]] == [None, "m0", "m1", "m2", "m3"]
    hidden = [node["hiddenBy"] is not None for node in document["messages"]]
    assert hidden == [False, True, True, True, False]
    assert document["summaries"][0]["summary"] == "in short"


def test_a_long_conversation_is_not_indented(root):
    tree_of(root).extend([said(str(number)) for number in range(20_000)])

    lines = out("tree", "s").splitlines()

    assert len(lines) == 20_000
    assert {line[:2] for line in lines} == {"● "}


@given(parents=st.lists(st.integers(0, 10**6), max_size=60), tip=st.integers(0, 10**6))
def test_every_message_is_drawn_once_below_its_parent_and_rails_are_few(
    tmp_path_factory, parents, tip
):
    tree = tree_of(tmp_path_factory.mktemp("w"))
    for number, choice in enumerate(parents):
        parent = None if number == 0 else str(choice % number)
        tree.append(said("x", id=str(number)), parent=parent)
    if parents:
        tree.set_leaf(str(tip % len(parents)))

    order = list(rows(tree.whole(outline)))

    place = {row.entry.id: position for position, row in enumerate(order)}
    assert sorted(place, key=int) == [str(number) for number in range(len(parents))]
    assert all(
        place[row.entry.parent_id] < place[row.entry.id] for row in order if row.entry.parent_id
    )
    rails = max((len(row.rail) // 2 for row in order), default=0)
    assert rails <= 1 + math.log2(max(len(parents), 1))


# -- verify, rebuild, delete, restore --------------------------------------------------------------


def test_verify_counts_what_is_well(root):
    out("append", "s", "hi")
    out("append", "t", "hi", "--agent", "scout")

    assert out("verify") == "all is well: 2 agents, 2 sessions\n"
    assert out("verify", "--agent", "scout") == "all is well: 1 agent, 1 session\n"
    assert out("verify", "s") == "all is well: session s (agent default)\n"
    assert out("verify", "--json") == "[]\n"


@pytest.fixture
def damaged(root):
    out("append", "s", "hi")
    log = root / "agents/default/sessions/s.log.jsonl"
    log.write_bytes(log.read_bytes() + b"<<<<<<< HEAD \x1b[31m\n")
    return root


def test_verify_ends_with_1_when_it_finds_something(damaged):
    code, printed, talk = run("verify")

    assert code == 1
    heading, line = printed.splitlines()
    assert heading.split("  ")[0] == "where"
    assert line.startswith("agents/default/sessions/s.log.jsonl:3  conflict marker  ")
    assert talk == "1 problem in 1 agent, 1 session\n"


def test_problems_as_json(damaged):
    code, printed, _talk = run("verify", "--json")

    (problem,) = json.loads(printed)
    assert code == 1
    assert (problem["line"], problem["what"]) == (3, "conflict marker")


def test_rebuild_brings_back_what_is_derived(root):
    out("append", "s", "hi")
    (root / "agents/default/sessions/s.jsonl").unlink()
    assert run("verify")[0] == 1

    assert run("rebuild") == (0, "", "rebuilt 1 session\n")
    assert run("verify")[0] == 0


def test_a_deleted_session_is_gone_listed_and_restored(root):
    out("append", "s", "hi")

    out("delete", "s")
    assert run("show", "s")[0] == 1
    assert out("list", "--deleted").splitlines()[1].startswith("s        default  20")
    (gone,) = json.loads(out("list", "--deleted", "--json"))
    assert (gone["sessionId"], gone["agentId"]) == ("s", "default")

    out("restore", "s")
    assert "hi" in out("show", "s")
    assert run("list", "--deleted") == (0, "", "the trash is empty\n")


def test_restoring_what_is_not_in_the_trash_is_an_error(root):
    assert run("restore", "s") == (1, "", "Error: there is no session 's' in the trash\n")


def test_restoring_over_a_session_is_an_error(root):
    out("append", "s", "old")
    out("delete", "s")
    out("append", "s", "new")

    assert run("restore", "s") == (1, "", "Error: there already is a session 's'\n")


# -- what is printed is harmless -------------------------------------------------------------------


@pytest.fixture
def hostile(root):
    """A session in which every text that can be is hostile."""
    name = HOSTILE.replace("\0", "")
    tree = tree_of(root, name, f"agent {name}"[:30], "user\x1b[1m")
    first = tree.append({**said(HOSTILE), "role": HOSTILE}, author=HOSTILE).entry
    tree.append(said(HOSTILE * 50, id=f"id {HOSTILE}"))
    tree.label(first.id, HOSTILE)
    tree.annotate(name=HOSTILE, mood=HOSTILE)
    tree.compact(HOSTILE, first.id, first.id)
    tree.add_custom(HOSTILE, HOSTILE)
    return root


@pytest.mark.parametrize(
    "args",
    [
        ["list"],
        ["list", "--json"],
        ["show", "@latest", "--raw"],
        ["show", "@latest", "--json"],
        ["tree", "@latest"],
        ["tree", "@latest", "--json"],
        ["log", "@latest"],
        ["log", "@latest", "--json"],
        ["verify", "@latest"],
        ["verify", "@latest", "--json"],
        ["delete", "@latest"],
    ],
    ids=" ".join,
)
def test_hostile_text_is_printed_as_escapes(hostile, args):
    _code, printed, talk = run(*args)

    assert not ACTIVE.search(printed)
    assert not ACTIVE.search(talk)


def test_markup_is_printed_as_it_is(hostile):
    assert "[red]not red[/red]" in out("show", "@latest")


@given(st.text())
def test_no_text_is_obeyed_by_a_terminal(text):
    assert not ACTIVE.search(inert(text))
    assert "\n" not in inert(text)


@given(st.text(), st.integers(1, 40))
def test_a_cut_text_is_never_wider_than_asked(text, width):
    assert cell_len(fit(inert(text), width)) <= width


# -- on a terminal, and in pipes -------------------------------------------------------------------


@pytest.fixture
def terminal(tmp_path):
    opened = Terminal(tmp_path / "home")
    opened.run("workspace-session init")
    return opened


def test_on_a_terminal_lines_are_coloured_and_fit(terminal):
    tree = tree_of(terminal.directory, "a-session-with-a-rather-long-name-" + "x" * 30)
    tree.append(said(f"{'wide 日本語 words ' * 30}\n{'x' * 300}"))
    tree.append(said(HOSTILE))
    (terminal.directory / "agents/default/sessions/not ours").touch()

    for command in ("list", "show @latest", "tree @latest", "log @latest", "verify"):
        shown = terminal.watch(f"workspace-session {command} 2>/dev/null")
        plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
        assert not ACTIVE.search(plain), command
        assert max(map(cell_len, plain.splitlines())) <= 80, command
        assert plain != shown, command


def test_no_color_is_respected_and_colours_can_be_forced(terminal):
    tree_of(terminal.directory).append(said("hi"))

    assert "\x1b" not in terminal.watch("NO_COLOR=1 workspace-session tree s")
    assert "\x1b" in terminal.run("FORCE_COLOR=1 workspace-session tree s")[1]
    assert "\x1b" not in terminal.run("workspace-session tree s")[1]


def test_two_terminals_lose_nothing(terminal):
    loops = [
        terminal.start(f"for n in 1 2 3; do workspace-session append s {name}-$n; done")
        for name in ("a", "b")
    ]
    for process in loops:
        process.communicate(timeout=60)

    path = tree_of(terminal.directory).path()

    found = sorted(entry.message["parts"][0]["text"] for entry in path)
    assert found == ["a-1", "a-2", "a-3", "b-1", "b-2", "b-3"]
    assert terminal.run("workspace-session verify")[0] == 0


def test_a_pipe_that_closes_early_is_no_error(terminal):
    tree_of(terminal.directory).extend([said("x" * 100) for _ in range(2000)])

    code, printed, talk = terminal.run("workspace-session tree s | head -n 1")

    assert (code, talk) == (0, "")
    assert printed.count("\n") == 1


def test_an_encoding_that_lacks_a_character_is_no_error(terminal):
    tree_of(terminal.directory).append(said("日本"))

    code, printed, _talk = terminal.run("PYTHONIOENCODING=latin-1 workspace-session tree s")

    assert code == 0
    assert "\\u65e5\\u672c" in printed


def test_a_closed_stdin_is_wrong_usage(terminal):
    code, _printed, talk = terminal.run("workspace-session append s <&-")

    assert code == 2
    assert talk.count("\n") == 1


def test_a_table_on_a_narrow_screen_narrows_fixed_columns_last(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")

    lines = list(Screen().table(["a", "b"], [["x" * 30, "y" * 20]], fixed=["b"]))

    assert lines[1] == f"{'x' * 17}…  {'y' * 20}"
