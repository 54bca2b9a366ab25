"""The doctor: each trouble is found and named, what is safe is mended, and nothing that was said changes."""

from __future__ import annotations

import json
import os

import pytest
from clones import identify
from clones import run as git
from command_line import out, run, said, tree_of

from workspace_session import Workspace
from workspace_session.doctor import examine, treat
from workspace_session.git import Repository, install

SESSIONS = "agents/default/sessions"


@pytest.fixture
def workspace(root):
    with Workspace(root, durability="os") as opened:
        yield opened


@pytest.fixture
def sound(workspace):
    """A session of three messages in which nothing is wrong."""
    tree = workspace.agent("default").tree("s")
    tree.extend([said(f"text {number}", id=f"m{number}") for number in range(3)])
    workspace.agent("default").sessions()  # the index is there and up to date
    return tree


def log_of(root):
    return root / SESSIONS / "s.log.jsonl"


def working_set_of(root):
    return root / SESSIONS / "s.jsonl"


def whats(problems) -> list[str]:
    return [problem.what for problem in problems]


def texts(root) -> list[str]:
    return [entry.message["parts"][0]["text"] for entry in tree_of(root).path()]


def test_a_sound_workspace_is_well(root, sound):
    assert run("doctor") == (0, "all is well\n", "")
    assert run("doctor", "--fix") == (0, "all is well\n", "")
    assert json.loads(out("doctor", "--json")) == {"mended": [], "left": []}


# -- what it mends ---------------------------------------------------------------------------------


def torn_tail(root):
    log_of(root).write_bytes(log_of(root).read_bytes() + b'{"type":"message","id":"m9","times')


def short_batch(root):
    lines = log_of(root).read_bytes().splitlines(keepends=True)
    log_of(root).write_bytes(b"".join(lines[:-1]))
    working_set_of(root).write_bytes(b"".join(lines[:-1]))


def lost_working_set(root):
    working_set_of(root).unlink()


def lost_log(root):
    log_of(root).unlink()


def stale_working_set(root):
    lines = working_set_of(root).read_bytes().splitlines(keepends=True)
    working_set_of(root).write_bytes(b"".join(lines[:1]))


def conflict_in_the_working_set(root):
    path = working_set_of(root)
    path.write_bytes(path.read_bytes() + b"<<<<<<< ours\n")


def carriage_returns_in_the_working_set(root):
    path = working_set_of(root)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


def no_header(root):
    for path in (log_of(root), working_set_of(root)):
        path.write_bytes(path.read_bytes().split(b"\n", 1)[1])


def broken_index(root):
    (root / SESSIONS / "sessions.json").write_text("{")


def stale_index(root):
    other = Workspace(root, durability="os")
    other.agent("default").tree("s").append(said("more"))
    index = root / SESSIONS / "sessions.json"
    before = index.read_bytes()
    other.close()
    index.write_bytes(before)


MENDED = {
    torn_tail: "the last line is torn",
    short_batch: "a batch was cut short: 2 of 3 entries",
    lost_working_set: "the working set is missing",
    lost_log: "the log is missing",
    stale_working_set: "the working set lacks 3 of the log's entries, first 'm0'",
    conflict_in_the_working_set: "conflict marker",
    carriage_returns_in_the_working_set: "4 lines end in a carriage return",
    no_header: "there is no header",
    broken_index: "the index cannot be read",
    stale_index: "the index is behind, first for session 's'",
}


@pytest.mark.parametrize("harm", MENDED, ids=lambda harm: harm.__name__)
def test_it_is_found_and_mended_and_said(root, sound, harm):
    before = texts(root)
    harm(root)
    written = log_of(root).read_bytes() if log_of(root).exists() else b""
    with Workspace(root, durability="os") as workspace:
        found = examine(workspace)
        assert MENDED[harm] in whats(found)
        assert log_of(root).exists() is bool(written)  # nothing is changed by looking

        done = treat(workspace)

    assert MENDED[harm] in whats(done.mended)
    assert log_of(root).read_bytes().startswith(written)  # only appended to
    if harm is short_batch:
        assert texts(root) == []  # a batch is there as a whole or not at all
    else:
        assert texts(root)[: len(before)] == before
    if harm is torn_tail:  # the fragment stays, as a line that nobody reads
        assert whats(done.left) == ["not JSON (torn or edited)"]
    else:
        assert done.left == []


def test_the_command_says_what_it_mended_and_what_is_left(root, sound):
    torn_tail(root)

    assert run("doctor")[0] == 1
    code, printed, talk = run("doctor", "--fix")

    assert code == 1
    assert printed == (
        f"{SESSIONS}/s.log.jsonl:5\n  the last line is torn\n  → mended\n"
        f"{SESSIONS}/sessions.json\n  the index is behind, first for session 's'\n  → mended\n"
        f"{SESSIONS}/s.log.jsonl:5\n  not JSON (torn or edited)\n"
        "  → remove the line by hand; nothing reads it\n"
    )
    assert talk == "1 thing to see to\n"


# -- what is left for a person ---------------------------------------------------------------------


def orphan(tree, root):
    line = (
        log_of(root).read_bytes().splitlines()[-1].replace(b'"parentId":"m1"', b'"parentId":"zz"')
    )
    line = line.replace(b'"id":"m2"', b'"id":"m3"').replace(
        line[line.find(b'"batch"') : line.find(b'"parentId"')], b""
    )
    log_of(root).write_bytes(log_of(root).read_bytes() + line + b"\n")


def cycle(tree, root):
    lines = log_of(root).read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"parentId":null', b'"parentId":"m2"')
    log_of(root).write_bytes(b"".join(lines))


def conflict_in_the_log(tree, root):
    log_of(root).write_bytes(log_of(root).read_bytes() + b"=======\n")


def carriage_returns_in_the_log(tree, root):
    log_of(root).write_bytes(log_of(root).read_bytes().replace(b"\n", b"\r\n"))


def call_without_answer(tree, root):
    tree.append(
        {
            "role": "assistant",
            "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": "{}"}}],
        }
    )


def summary_of_nothing(tree, root):
    tree.compact("short", "m1", "m2")
    tree.delete(["m1"])


LEFT = {
    orphan: "message 'm3' names a parent that is nowhere: 'zz'",
    cycle: "is its own ancestor",
    conflict_in_the_log: "conflict marker",
    carriage_returns_in_the_log: "4 lines end in a carriage return",
    call_without_answer: "nothing answers the tool call 'c1'",
    summary_of_nothing: "stands for nothing: an end of its range is gone",
}


@pytest.mark.parametrize("harm", LEFT, ids=lambda harm: harm.__name__)
def test_it_is_found_and_left_to_a_person(root, sound, harm):
    harm(sound, root)
    before = log_of(root).read_bytes()
    with Workspace(root, durability="os") as workspace:
        assert any(LEFT[harm] in what for what in whats(examine(workspace)))

        done = treat(workspace)

    assert any(LEFT[harm] in what for what in whats(done.left))
    assert log_of(root).read_bytes().startswith(before)


def test_a_call_is_missed_on_every_branch_it_ends(sound, workspace):
    call_without_answer(sound, None)
    sound.append(said("another way", id="b1"), parent="m1")

    workspace.agent("default").sessions()

    (problem,) = examine(workspace)

    assert problem.what.endswith("nothing answers the tool call 'c1'")


def test_a_very_large_file_is_named(workspace, sound):
    assert examine(workspace, large=10_000) == []

    found = examine(workspace, large=100)

    assert len(found) == 2
    assert all("MB is more than git hosts like" in what for what in whats(found))


def test_a_link_out_of_the_workspace_is_named_and_left_alone(workspace, sound, root, tmp_path):
    outside = tmp_path / "outside"
    os.rename(log_of(root), outside)
    before = outside.read_bytes()
    log_of(root).symlink_to(outside)

    done = treat(workspace)

    assert "this is a link that leads out of the workspace" in whats(done.left)
    assert outside.read_bytes() == before


def test_an_agent_that_is_named_is_the_only_one_looked_at(root, sound):
    torn_tail(root)
    Workspace(root, durability="os").agent("other").tree("t").append(said("hi"))

    assert run("doctor", "--agent", "other") == (0, "all is well\n", "")


# -- git -------------------------------------------------------------------------------------------


@pytest.fixture
def versioned(root, sound):
    git(root, "init", "-q")
    identify(root)
    return Repository(root)


def test_a_clone_that_is_not_set_up_is_told_of(versioned, workspace):
    (problem,) = examine(workspace)

    assert problem.what == (
        "git is not set up for this workspace: no ignore, no attributes, no driver, no hooks"
    )
    assert problem.mend == "workspace-session git install"
    install(versioned)
    assert examine(workspace) == []


def test_an_unset_driver_is_told_of_and_not_set_by_the_way(versioned, workspace):
    install(versioned)
    versioned.git("config", "--unset", "merge.union.driver")

    done = treat(workspace)

    assert whats(done.left) == ["git is not set up for this workspace: no driver"]
    assert versioned.config("merge.union.driver") is None


def test_a_merge_that_is_not_finished_is_told_of(versioned, workspace, root):
    install(versioned)
    (root / "notes.md").write_text("one\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "one")
    git(root, "switch", "-qc", "side")
    (root / "notes.md").write_text("two\n")
    git(root, "commit", "-qam", "two")
    git(root, "switch", "-q", "-")
    (root / "notes.md").write_text("three\n")
    git(root, "commit", "-qam", "three")
    git(root, "merge", "-q", "side", check=False)

    assert "a merge or rebase is not finished" in whats(examine(workspace))
