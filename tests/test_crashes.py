"""Crashes, full disks and files that others replace: what was acknowledged stays, nothing half counts."""

from __future__ import annotations

import errno
import json
import logging
import os
import random
import shutil
import stat
import subprocess
import sys
import textwrap

import pytest

from workspace_session import SessionDeleted, Workspace
from workspace_session.model.entries import Compaction


def said(text: str, **more) -> dict:
    return {"role": "user", "parts": [{"type": "text", "text": text}], **more}


def texts(tree) -> list[str]:
    return [
        item.summary if isinstance(item, Compaction) else item.message["parts"][0]["text"]
        for item in tree.context()
    ]


def log_of(agent, session="s"):
    return agent.place.log(session)


def tree_of(agent, session="s"):
    return agent.place.tree(session)


def whats(problems) -> list[tuple[str, int]]:
    return [(problem.path.rpartition("/")[2], problem.line) for problem in problems]


@pytest.fixture
def quiet(caplog):
    """Warnings are part of these tests; they need not be shown."""
    caplog.set_level(logging.CRITICAL, "workspace_session")


# -- a tail that is torn ------------------------------------------------------------------------------


@pytest.fixture
def three(agent):
    """Three messages, and the two files as they were before and after the last one."""
    tree = agent.tree("s")
    tree.extend([said("one"), said("two")])
    before = log_of(agent).read_bytes(), tree_of(agent).read_bytes()
    tree.append(said("three", id="third"))
    return before, (log_of(agent).read_bytes(), tree_of(agent).read_bytes())


def test_a_log_torn_at_any_byte_of_its_last_line_loses_that_message_alone(agent, three):
    (before, before_tree), (after, _) = three
    for length in range(len(before), len(after) - 1):
        log_of(agent).write_bytes(after[:length])
        tree_of(agent).write_bytes(before_tree)

        assert texts(agent.tree("s")) == ["one", "two"]
        agent.tree("s").append(said("next", id="next"))

        assert texts(agent.tree("s")) == ["one", "two", "next"], length
        torn = length > len(before)
        assert whats(agent.verify("s")) == [("s.log.jsonl", 4)] * torn, length


def test_a_line_that_lacks_only_its_end_counts_from_the_next_write_on(agent, three):
    (_, before_tree), (after, _) = three
    log_of(agent).write_bytes(after[:-1])
    tree_of(agent).write_bytes(before_tree)
    assert texts(agent.tree("s")) == ["one", "two"]

    agent.tree("s").append(said("next"))

    assert texts(agent.tree("s")) == ["one", "two", "three", "next"]
    assert agent.verify("s") == []


def test_the_message_whose_write_was_torn_can_be_sent_again(agent, three):
    (before, before_tree), (after, _) = three
    for length in range(len(before), len(after)):
        log_of(agent).write_bytes(after[:length])
        tree_of(agent).write_bytes(before_tree)

        agent.tree("s").append(said("three", id="third"))
        agent.tree("s").append(said("four"))

        assert texts(agent.tree("s")) == ["one", "two", "three", "four"], length
        torn = len(before) < length < len(after) - 1
        assert whats(agent.verify("s")) == [("s.log.jsonl", 4)] * torn, length


def test_a_handle_that_closes_a_torn_line_sees_what_a_new_one_sees(agent, three):
    (before, before_tree), (after, _) = three
    for length in range(len(before) + 1, len(after)):
        log_of(agent).write_bytes(after[:length])
        tree_of(agent).write_bytes(before_tree)
        closing, bystander = agent.tree("s"), agent.tree("s")
        bystander.context()

        closing.append(said("next"))

        assert texts(closing) == texts(agent.tree("s")) == texts(bystander), length
        assert len(closing) == len(agent.tree("s")) == len(bystander)
        assert [e.id for e in closing.log()] == [e.id for e in agent.tree("s").log()], length


def test_a_working_set_torn_at_any_byte_loses_nothing(agent, three):
    _, (after, after_tree) = three
    for length in range(len(after_tree)):
        log_of(agent).write_bytes(after)
        tree_of(agent).write_bytes(after_tree[:length])

        assert texts(agent.tree("s")) == ["one", "two", "three"], length
        assert [e.message["parts"][0]["text"] for e in agent.tree("s").tail(2)] == ["two", "three"]
        agent.tree("s").append(said("next"))

        assert texts(agent.tree("s")) == ["one", "two", "three", "next"], length
        assert agent.verify("s") == [], length


def test_of_a_batch_of_five_torn_at_any_byte_all_count_or_none(agent):
    tree = agent.tree("s")
    tree.append(said("first"))
    before, before_tree = log_of(agent).read_bytes(), tree_of(agent).read_bytes()
    tree.extend([said(f"batch {n}", id=f"b{n}") for n in range(5)])
    after, after_tree = log_of(agent).read_bytes(), tree_of(agent).read_bytes()
    batch = [f"batch {n}" for n in range(5)]
    for length in range(len(before), len(after) + 1, 3):
        log_of(agent).write_bytes(after[:length])
        tree_of(agent).write_bytes(after_tree if length == len(after) else before_tree)
        whole = ["first", *batch] if length == len(after) else ["first"]

        assert texts(agent.tree("s")) == whole, length
        agent.tree("s").append(said("next"))
        assert texts(agent.tree("s")) == [*whole, "next"], length
        agent.tree("s").append(said("last"))

        assert texts(agent.tree("s")) == [*whole, "next", "last"], length
        torn = [line for line in lines(log_of(agent)) if line and not is_json(line)]
        assert len(agent.verify("s")) == len(torn), length


def test_a_batch_that_was_cut_short_is_reported_until_the_next_write_sets_it_aside(agent):
    agent.tree("s").append(said("first"))
    before, before_tree = log_of(agent).read_bytes(), tree_of(agent).read_bytes()
    agent.tree("s").extend([said("a", id="a"), said("b", id="b"), said("c", id="c")])
    cut = b"".join(log_of(agent).read_bytes().splitlines(keepends=True)[:4])
    log_of(agent).write_bytes(cut)
    tree_of(agent).write_bytes(before_tree)

    assert whats(agent.verify("s")) == [("s.log.jsonl", 3)]
    agent.tree("s").append(said("b", id="b"))

    assert agent.verify("s") == []
    assert texts(agent.tree("s")) == ["first", "b"]
    assert log_of(agent).read_bytes().startswith(cut)
    assert len(before) < len(cut)


def test_a_batch_that_was_cut_short_stays_out_after_a_trim_and_a_rebuild(agent):
    agent.tree("s").extend([said("x" * 500, id=f"m{n}") for n in range(4)])
    _, *members = batch_lines(agent, [said("never", id="n0"), said("never", id="n1")])
    with log_of(agent).open("ab") as log:
        log.write(members[0] + b"\n")
    tree = agent.tree("s")

    tree.compact("summary", "m0", "m2")
    tree.trim()
    tree.rebuild()
    tree_of(agent).unlink()

    assert "never" not in texts(agent.tree("s"))
    assert "n0" not in [entry.id for entry in agent.tree("s").log()]


def batch_lines(agent, messages) -> list[bytes]:
    """The lines that a batch of these would have in a session of its own."""
    agent.tree("elsewhere").extend(messages)
    found = lines(log_of(agent, "elsewhere"))
    agent.delete("elsewhere")
    return found


def lines(path) -> list[bytes]:
    *found, _rest = path.read_bytes().split(b"\n")
    return found


def is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def test_a_crash_between_the_two_writes_is_made_good_by_replaying_the_log(agent):
    tree = agent.tree("s")
    tree.append(said("one"))
    behind = tree_of(agent).read_bytes()
    tree.append(said("two"))
    tree.annotate(name="Trip")
    tree_of(agent).write_bytes(behind)

    assert texts(agent.tree("s")) == ["one", "two"]
    assert agent.tree("s").facts() == {"name": "Trip"}
    assert [problem.line for problem in agent.verify("s")] == [0]
    agent.tree("s").append(said("three"))

    assert agent.verify("s") == []
    assert tree_of(agent).read_bytes() == log_of(agent).read_bytes()


def test_a_working_set_that_ends_in_an_id_that_was_used_again_is_still_known_to_lag(agent):
    tree = agent.tree("s")
    tree.append(said("old", id="m"))
    behind = tree_of(agent).read_bytes()
    tree.delete(["m"])
    tree.append(said("new", id="m"))
    tree_of(agent).write_bytes(behind)

    assert texts(agent.tree("s")) == ["new"]


# -- a file that is gone ------------------------------------------------------------------------------


def test_a_deleted_working_set_is_made_anew(agent, tree, check_clean):
    tree.extend([said("one"), said("two")])
    before = tree_of(agent).read_bytes()
    tree_of(agent).unlink()

    assert texts(tree) == texts(agent.tree("s")) == ["one", "two"]
    assert [problem.what for problem in agent.verify("s")] == ["the working set is missing"]
    agent.tree("s").rebuild()

    assert tree_of(agent).read_bytes() == before
    check_clean()


def test_a_deleted_log_is_made_anew_with_a_warning(agent, tree, check_clean, caplog):
    tree.extend([said("one"), said("two")])
    before = log_of(agent).read_bytes()
    log_of(agent).unlink()

    assert texts(tree) == texts(agent.tree("s")) == ["one", "two"]
    assert [problem.what for problem in agent.verify("s")] == ["the log is missing"]
    tree.append(said("three"))

    assert "s.log.jsonl was missing" in caplog.text
    assert log_of(agent).read_bytes().startswith(before)
    check_clean()


def test_trimming_without_a_log_makes_the_log_first(agent, quiet):
    tree = agent.tree("s")
    tree.extend([said("x" * 300, id=f"m{n}") for n in range(6)])
    tree.compact("summary", "m1", "m2")
    log_of(agent).unlink()

    agent.tree("s").trim()

    assert [entry.id for entry in agent.tree("s").path()] == [f"m{n}" for n in range(6)]
    assert agent.verify("s") == []


@pytest.mark.parametrize("mend", ["rebuild", "trim"])
def test_a_trimmed_session_whose_log_was_lost_can_be_mended(agent, quiet, mend):
    tree = agent.tree("s")
    tree.extend([said("x" * 300, id=f"m{n}") for n in range(6)])
    tree.append(said("side", id="side"), "m2")
    tree.set_leaf("m5")
    tree.compact("summary", "m1", "m4")
    tree.trim()
    before = [item.id for item in tree.context()], [item.id for item in tree.context("side")]
    log_of(agent).unlink()

    getattr(agent.tree("s"), mend)()
    tree_of(agent).unlink()

    fresh = agent.tree("s")
    assert (
        [item.id for item in fresh.context()],
        [item.id for item in fresh.context("side")],
    ) == before
    assert (len(fresh), fresh.leaves()) == (7, ["m5", "side"])
    fresh.rebuild()
    assert agent.verify("s") == []


def test_without_its_log_a_trimmed_session_still_shows_the_model_what_it_showed(agent, quiet):
    tree = agent.tree("s")
    tree.extend([said("x" * 300, id=f"m{n}") for n in range(6)])
    tree.compact("summary", "m1", "m3")
    tree.label("m5", "good")
    tree.annotate(name="Trip")
    tree.add_usage(input_tokens=5)
    tree.trim()
    before = [item.id for item in tree.context()], tree.leaf
    log_of(agent).unlink()

    after = agent.tree("s")

    assert ([item.id for item in after.context()], after.leaf) == before
    after.append(said("next", id="next"))
    assert [item.id for item in agent.tree("s").context()] == [*before[0], "next"]
    assert agent.tree("s").labels() == {"m5": "good"}
    assert agent.verify("s") == []


def test_with_both_files_gone_an_open_handle_says_that_the_session_was_deleted(agent, tree):
    tree.append(said("one"))
    log_of(agent).unlink()
    tree_of(agent).unlink()

    with pytest.raises(SessionDeleted):
        tree.context()
    with pytest.raises(SessionDeleted):
        tree.append(said("two"))
    assert not agent.tree("s").exists()


def test_without_the_hidden_directory_everything_works(workspace, agent, tree, check_clean):
    tree.append(said("one"))
    shutil.rmtree(workspace.root / ".workspace")

    tree.append(said("two"))

    assert texts(agent.tree("s")) == ["one", "two"]
    check_clean()


# -- a full disk --------------------------------------------------------------------------------------


LIMITED = """
import json, resource, signal, sys
from workspace_session import Workspace

root, operation, room = sys.argv[1], sys.argv[2], int(sys.argv[3])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
agent = Workspace(root, durability="os").agent("a")
tree = agent.tree("s")
known = tree.leaf is not None and len(tree)
files = agent.place.log("s"), agent.place.tree("s")
size = max(file.stat().st_size if file.exists() else 0 for file in files)
before = [file.read_bytes() if file.exists() else b"" for file in files]
unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (size + room, unlimited[1]))
said = lambda text: {"role": "user", "parts": [{"type": "text", "text": text}]}
try:
    if operation == "append":
        tree.append(said("does not fit " * 20))
    else:
        tree.extend([said(f"batch {n} " * 10) for n in range(5)])
    outcome = "stored"
except OSError as error:
    outcome = "refused"
after = [file.read_bytes() if file.exists() else b"" for file in files]
shown = [item.message["parts"][0]["text"] for item in tree.context()]
resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
tree.append(said("later"))
print(json.dumps({"outcome": outcome, "unchanged": before == after, "shown": shown}))
"""


def run_limited(root, operation: str, room: int) -> dict:
    script = textwrap.dedent(LIMITED)
    command = [sys.executable, "-c", script, str(root), operation, str(room)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("operation", ["append", "extend"])
@pytest.mark.parametrize("room", [0, 1, 100, 250])
def test_when_the_disk_is_full_nothing_is_half_written(workspace, agent, operation, room):
    agent.tree("s").extend([said("one"), said("two")])

    found = run_limited(workspace.root, operation, room)

    assert found == {"outcome": "refused", "unchanged": True, "shown": ["one", "two"]}
    assert texts(agent.tree("s")) == ["one", "two", "later"]
    assert workspace.verify() == []


@pytest.mark.parametrize("operation", ["append", "extend"])
def test_when_only_the_working_set_finds_no_room_the_log_is_taken_back(workspace, agent, operation):
    agent.tree("s").extend([said("one"), said("two")])
    longer = tree_of(agent).read_bytes().replace(b"\n", b" " * 900 + b"\n")
    tree_of(agent).write_bytes(longer)

    found = run_limited(workspace.root, operation, 100)

    assert found == {"outcome": "refused", "unchanged": True, "shown": ["one", "two"]}
    assert texts(agent.tree("s")) == ["one", "two", "later"]
    assert workspace.verify() == []


@pytest.mark.parametrize("operation", ["append", "extend"])
def test_a_session_that_found_no_room_at_all_leaves_no_trace(workspace, agent, operation):
    found = run_limited(workspace.root, operation, 50)

    assert found == {"outcome": "refused", "unchanged": True, "shown": []}
    assert texts(agent.tree("s")) == ["later"]
    assert workspace.verify() == []


def test_a_session_whose_name_cannot_be_put_on_disk_is_not_there(tmp_path, monkeypatch):
    agent = Workspace(tmp_path).agent("a")
    agent.tree("other").append(said("so that the directories are there"))
    real = os.fsync

    def fails_for_directories(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, "Input/output error")
        real(descriptor)

    tree = agent.tree("s")
    monkeypatch.setattr(os, "fsync", fails_for_directories)
    with pytest.raises(OSError, match="Input/output error"):
        tree.append(said("x"))
    monkeypatch.setattr(os, "fsync", real)

    assert not tree.exists()
    tree.append(said("x"))
    assert len(tree) == len(agent.tree("s")) == 1


def test_a_first_write_that_failed_does_not_make_a_session(workspace, agent):
    script = LIMITED.replace('tree.append(said("later"))', "")
    command = [sys.executable, "-c", script, str(workspace.root), "append", "50"]
    subprocess.run(command, capture_output=True, timeout=60, check=True)

    assert agent.sessions() == []
    assert workspace.verify() == []


# -- files that others replace ------------------------------------------------------------------------


def replaced(path, content: bytes) -> None:
    """As git and editors do it: another file takes the name."""
    other = path.with_name(".other")
    other.write_bytes(content)
    other.replace(path)


def removed_first(path, content: bytes) -> None:
    """As git does it: the old file goes first, so the new one may get its inode."""
    path.unlink()
    path.write_bytes(content)


def in_place(path, content: bytes) -> None:
    """As `cp` does it: the same file, other content."""
    path.write_bytes(content)


@pytest.fixture(params=[replaced, removed_first, in_place])
def swap(request):
    return request.param


def test_an_older_version_of_both_files_is_seen_by_an_open_handle(agent, tree, swap):
    tree.append(said("one"))
    older = log_of(agent).read_bytes(), tree_of(agent).read_bytes()
    tree.append(said("two"))

    swap(log_of(agent), older[0])
    swap(tree_of(agent), older[1])

    assert texts(tree) == ["one"]
    tree.append(said("other two"))
    assert texts(agent.tree("s")) == texts(tree) == ["one", "other two"]
    assert agent.verify() == []


def test_another_version_of_the_same_size_is_seen_by_an_open_handle(agent, tree, swap):
    tree.append(said("one"))
    common = log_of(agent).read_bytes()
    tree.append(said("two", id="m2"))
    ours = log_of(agent).read_bytes()
    theirs = ours.replace(b'"m2"', b'"t2"').replace(b"two", b"TWO")
    assert tree.leaf == "m2"
    assert len(theirs) == len(ours) > len(common)

    swap(log_of(agent), theirs)
    swap(tree_of(agent), theirs)

    assert tree.leaf == agent.tree("s").leaf == "t2"
    assert texts(tree) == ["one", "TWO"]
    tree.append(said("three"))
    assert texts(agent.tree("s")) == ["one", "TWO", "three"]
    assert agent.verify() == []


def test_a_longer_log_is_not_taken_for_the_one_whose_torn_line_was_closed(agent, tree, swap):
    tree.append(said("one"))
    common = log_of(agent).read_bytes()
    with log_of(agent).open("ab") as log:
        log.write(b'{"type":')
    tree.rebuild()  # closes the line that was cut short, and adds nothing
    assert texts(tree) == ["one"]
    line = common.splitlines(keepends=True)[-1].replace(b"one", b"two")
    line = line.replace(tree.leaf.encode(), b"m2")

    swap(log_of(agent), common + line)
    swap(tree_of(agent), common + line)

    roots = [entry.message["parts"][0]["text"] for entry in tree.children(None)]
    assert sorted(roots) == ["one", "two"]


def test_a_merge_by_other_hands_gives_one_tree_with_two_heads(agent, tree, swap):
    tree.append(said("one", id="m1"))
    common = log_of(agent).read_bytes()
    tree.append(said("ours", id="ours"))
    ours = log_of(agent).read_bytes()
    swap(log_of(agent), common)
    swap(tree_of(agent), common)
    tree.append(said("theirs", id="theirs"))
    theirs = log_of(agent).read_bytes()
    union = ours + theirs.removeprefix(common)
    backwards = b"".join(reversed(union.splitlines(keepends=True)))

    for merged in (union, theirs + ours.removeprefix(common), backwards):
        swap(log_of(agent), merged)
        swap(tree_of(agent), merged)
        fresh = agent.tree("s")

        assert fresh.leaf == "theirs"
        assert [item.id for item in agent.tree("s").tail(1)] == ["theirs"]
        assert tree.leaves() == fresh.leaves() == ["ours", "theirs"]
        assert agent.verify() == []


def test_a_merge_of_a_trimmed_and_an_untrimmed_working_set_loses_nothing(agent, tree, swap):
    tree.extend([said("x" * 300, id=f"m{n}") for n in range(6)])
    common = log_of(agent).read_bytes(), tree_of(agent).read_bytes()
    tree.append(said("theirs", id="theirs"))
    theirs = log_of(agent).read_bytes(), tree_of(agent).read_bytes()
    swap(log_of(agent), common[0])
    swap(tree_of(agent), common[1])
    tree.compact("summary", "m0", "m4")
    tree.trim()
    tree.append(said("ours", id="ours"))
    ours = log_of(agent).read_bytes(), tree_of(agent).read_bytes()
    assert b'"type":"trim"' in ours[1]

    for first, second in ((ours, theirs), (theirs, ours)):
        swap(log_of(agent), union_of(first[0], second[0]))
        swap(tree_of(agent), union_of(first[1], second[1]))

        for fresh in (agent.tree("s"), tree):
            assert [getattr(item, "summary", item.id) for item in fresh.context("theirs")] == [
                "summary", "m5", "theirs",
            ]  # fmt: skip
            assert fresh.leaves() == ["theirs", "ours"]
            assert fresh.leaf == "ours"
            assert len(fresh) == 8
    tree.append(said("next"))
    assert agent.verify() == []


def union_of(first: bytes, second: bytes) -> bytes:
    known = first.splitlines(keepends=True)
    return b"".join(
        [*known, *(line for line in second.splitlines(keepends=True) if line not in known)]
    )


def test_lines_in_any_order_are_no_problem(agent, tree):
    tree.extend([said(str(n)) for n in range(6)])
    tree.compact("summary", tree.path()[1].id, tree.path()[3].id)
    content = log_of(agent).read_bytes()
    for seed in range(10):
        mixed = content.splitlines(keepends=True)
        random.Random(seed).shuffle(mixed)
        replaced(log_of(agent), b"".join(mixed))
        replaced(tree_of(agent), b"".join(mixed))

        assert texts(agent.tree("s")) == texts(tree) == ["0", "summary", "4", "5"]
        assert agent.verify() == []


def test_windows_line_ends_a_bom_and_conflict_markers_are_read_over(agent, tree):
    tree.extend([said("one"), said("two")])
    content = log_of(agent).read_bytes().replace(b"\n", b"\r\n")
    for path in (log_of(agent), tree_of(agent)):
        replaced(path, b"\xef\xbb\xbf" + content + b"<<<<<<< ours\n=======\n>>>>>>> theirs\n\n")

    assert texts(agent.tree("s")) == ["one", "two"]
    assert [(p.path[-11:], p.line, p.what) for p in agent.verify("s")[:3]] == [
        ("s.log.jsonl", 4, "conflict marker"),
        ("s.log.jsonl", 5, "conflict marker"),
        ("s.log.jsonl", 6, "conflict marker"),
    ]
    tree.append(said("three"))
    assert texts(agent.tree("s")) == texts(tree) == ["one", "two", "three"]
    assert [problem.line for problem in agent.verify("s")] == [4, 5, 6]


def test_what_this_version_does_not_know_survives_a_rebuild_and_a_trim(agent, tree):
    tree.extend([said("x" * 300, id=f"m{n}") for n in range(4)])
    hologram = b'{"type":"hologram","id":"h1","timestamp":"2026-05-15T08:00:00.000000Z","x":[1]}\n'
    flavoured = log_of(agent).read_bytes().replace(b'"message":{', b'"flavour":"mint","message":{')
    for path in (log_of(agent), tree_of(agent)):
        replaced(path, flavoured + hologram)

    tree.rebuild()
    assert tree_of(agent).read_bytes().count(b'"flavour":"mint"') == 4
    tree.compact("summary", "m0", "m2")
    tree.trim()

    assert hologram in tree_of(agent).read_bytes()
    assert tree_of(agent).read_bytes().count(b'"flavour":"mint"') == 1
    assert agent.verify() == []


# -- a session that is deleted ------------------------------------------------------------------------


@pytest.mark.parametrize("again", [False, True])
def test_handles_of_a_deleted_session_say_so_even_when_it_is_made_again(agent, again):
    writer, reader, tailer = agent.tree("s"), agent.tree("s"), agent.tree("s")
    writer.append(said("old"))
    reader.context()
    assert tailer.leaf is not None
    agent.delete("s")
    if again:
        agent.tree("s").append(said("new"))

    for ask in (
        lambda: writer.append(said("more")),
        lambda: writer.context(),
        lambda: reader.leaf,
        lambda: reader.tail(3),
        lambda: reader.extend([said("more")]),
        lambda: tailer.leaf,
        lambda: tailer.append(said("more")),
    ):
        with pytest.raises(SessionDeleted):
            ask()
    if again:
        assert texts(agent.tree("s")) == ["new"]
    else:
        assert not agent.tree("s").exists()
    assert agent.verify() == []


def test_a_long_header_tells_a_session_from_its_successor_too(agent):
    agent.tree("s").start(parent_session="p" * 5000)
    agent.tree("s").append(said("old"))
    tailer = agent.tree("s")
    assert tailer.leaf is not None
    agent.delete("s")
    agent.tree("s").start(parent_session="p" * 5000)
    agent.tree("s").append(said("new"))

    with pytest.raises(SessionDeleted):
        tailer.tail(1)


def test_a_handle_that_was_opened_but_never_used_belongs_to_whatever_session_it_meets(agent):
    unused = agent.tree("s")
    agent.tree("s").append(said("old"))
    agent.delete("s")
    agent.tree("s").append(said("new"))

    assert texts(unused) == ["new"]


def test_a_restored_session_is_the_one_its_handles_know(agent, tree):
    tree.append(said("one"))
    agent.delete("s")
    agent.restore("s")

    assert texts(tree) == ["one"]


# -- the clock ----------------------------------------------------------------------------------------


def test_after_an_entry_from_the_future_new_ones_still_come_last(agent, tree):
    tree.append(said("one"))
    future = {
        "type": "message",
        "id": "future",
        "timestamp": "2999-12-31T23:59:59.999999Z",
        "parentId": tree.leaf,
        "message": said("from the future"),
    }
    with log_of(agent).open("ab") as log:
        log.write(json.dumps(future).encode() + b"\n")

    tree.append(said("two"))
    tree.append(said("three"))

    assert texts(tree) == texts(agent.tree("s")) == ["one", "from the future", "two", "three"]
    assert agent.verify() == []


@pytest.mark.parametrize("year", ["9998-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"])
def test_an_entry_from_the_end_of_time_does_not_swallow_what_comes_after_it(agent, tree, year):
    tree.append(said("one"))
    last = {"type": "info", "id": "x", "timestamp": year, "name": "late"}
    with log_of(agent).open("ab") as log:
        log.write(json.dumps(last).encode() + b"\n")

    tree.append(said("two"))

    assert texts(agent.tree("s")) == ["one", "two"]


def test_with_syncing_on_the_same_is_stored(tmp_path):
    with Workspace(tmp_path / "deep" / "er", durability="disk") as workspace:
        workspace.agent("a").tree("s").extend([said("one"), said("two")])

    assert texts(Workspace(tmp_path / "deep" / "er").agent("a").tree("s")) == ["one", "two"]
    assert workspace.verify() == []
