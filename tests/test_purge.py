"""Purging: the text of an entry goes for good, wherever it was, and nothing else does."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys

import pytest
from clones import another, copied, origin
from hypothesis import given
from hypothesis import strategies as st

from workspace_session import (
    InvalidMessage,
    Session,
    SessionTree,
    UnknownMessage,
    UnknownSession,
    Workspace,
)
from workspace_session.files.follow import Choice, Following
from workspace_session.files.memory_files import MemoryLog
from workspace_session.git import merge_files, merge_lines, sync
from workspace_session.model.entries import Purge
from workspace_session.model.lines import decode
from workspace_session.model.purging import blank, scrubbed

SECRET = "hunter2"


def said(text, message_id=None, role="user"):
    named = {} if message_id is None else {"id": message_id}
    return {**named, "role": role, "parts": [{"type": "text", "text": text}]}


def holders(root) -> list[str]:
    """The files below a directory that still hold the secret; git's own do not count."""
    paths = [path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts]
    return sorted(path.name for path in paths if SECRET.encode() in path.read_bytes())


@pytest.fixture
def leaked(tree):
    """A session with the secret in its first message."""
    tree.append(said(f"my password is {SECRET}", "m1"))
    tree.append(said("noted", "m2", "assistant"))
    tree.append(said("what next?", "m3"))
    return tree


def texts(tree) -> list[str]:
    return [item.message["parts"][0]["text"] for item in tree.context()]


# -- what goes, and what stays ---------------------------------------------------------------------


def test_the_text_goes_and_id_place_role_and_time_stay(workspace, agent, leaked, check_clean):
    before = leaked.get("m1")

    purged = agent.purge("s", "m1")

    after = leaked.get("m1")
    assert (after.key, after.parent_id) == (before.key, before.parent_id)
    assert after.message == said("[purged]", "m1")
    assert texts(leaked) == ["[purged]", "noted", "what next?"]
    assert (purged.entry_id, purged.type, purged.forks, purged.in_trash) == ("m1", "message", (), 0)
    assert holders(workspace.root) == []
    check_clean()


@pytest.mark.parametrize("engine", ["whoosh", "sqlite"])
def test_the_search_index_and_the_list_of_sessions_forget_it(workspace, agent, leaked, engine):
    workspace.use_search(engine)
    assert len(agent.search(SECRET)) == 1
    assert SECRET in agent.sessions()[0].summary
    assert holders(workspace.root) != []

    agent.purge("s", "m1")

    assert holders(workspace.root) == []
    assert len(agent.search(SECRET)) == 0
    assert len(agent.search("noted")) == 1
    assert agent.sessions()[0].summary == "[purged]"
    assert holders(workspace.root) == []


def test_every_version_of_a_message_goes_by_the_id_of_any(workspace, agent, leaked, check_clean):
    leaked.update("m1", said(f"I mean {SECRET}!", "m1"))
    update = next(entry for entry in leaked.log() if entry.type == "update")
    leaked.update("m1", said("never mind", "m1"))

    agent.purge("s", update.id)

    assert holders(workspace.root) == []
    assert texts(leaked)[0] == "[purged]"
    check_clean()


def test_what_is_said_in_its_place_afterwards_stands(agent, leaked, check_clean):
    agent.purge("s", "m1")
    leaked.update("m1", said("my password is a secret", "m1"))

    assert texts(leaked)[0] == "my password is a secret"
    check_clean()


def test_a_later_message_of_the_same_id_is_another_one(agent, leaked, check_clean):
    agent.purge("s", "m1")
    leaked.delete(["m1"])
    leaked.append(said("hello again", "m1"))

    assert texts(leaked)[-1] == "hello again"
    check_clean()


def test_a_trimmed_session_forgets_it_too(workspace, agent, leaked, check_clean):
    leaked.compact("they talked", "m1", "m2")
    leaked.trim()
    assert holders(workspace.root) == ["s.jsonl", "s.log.jsonl"]  # one as the first thing said

    purged = agent.purge("s", "m1")

    assert holders(workspace.root) == []
    assert texts(leaked) == ["they talked", "what next?"]
    assert purged.summaries == (leaked.compactions()[0].id,)
    check_clean()


def test_a_summary_a_label_a_fact_and_data_of_an_extension_can_be_purged(
    workspace, agent, leaked, check_clean
):
    overlay = leaked.compact(f"the password is {SECRET}", "m2", "m3")
    leaked.label("m1", SECRET)
    leaked.annotate(name=SECRET, mood="calm")
    custom = leaked.add_custom("note", {"of": SECRET})
    ids = {entry.type: entry.id for entry in leaked.log()}
    for entry_id in (ids["label"], ids["info"], overlay.id, "m1"):
        agent.purge("s", entry_id)

    assert agent.purge("s", custom.id).type == "custom"

    assert holders(workspace.root) == []
    assert texts(leaked) == ["[purged]", "[purged]"]
    assert leaked.labels() == {"m1": "[purged]"}
    assert leaked.info().name == "s"
    check_clean()


def test_what_has_no_text_is_refused_and_nothing_is_written(agent, leaked):
    leaked.set_leaf("m1")
    before = agent.place.log("s").read_bytes()
    leaf = next(entry for entry in leaked.log() if entry.type == "leaf")

    with pytest.raises(InvalidMessage, match=f"the leaf '{leaf.id}' has no text"):
        agent.purge("s", leaf.id)
    with pytest.raises(UnknownMessage):
        agent.purge("s", "nobody")
    with pytest.raises(UnknownSession):
        agent.purge("nobody", "m1")

    assert agent.place.log("s").read_bytes() == before


def test_to_purge_again_writes_nothing(agent, leaked):
    agent.purge("s", "m1")
    before = agent.place.log("s").read_bytes()

    agent.purge("s", "m1")

    assert agent.place.log("s").read_bytes() == before


def test_members_of_a_batch_still_count(agent, tree, check_clean):
    tree.extend([said(SECRET, "m1"), said("two", "m2")])

    agent.purge("s", "m1")

    assert texts(agent.tree("s")) == ["[purged]", "two"]
    check_clean()


def test_copies_in_the_trash_go_and_forks_are_named(workspace, agent, leaked):
    leaked.fork("m3", agent.tree("other"))
    leaked.fork("m3", agent.tree("gone"))
    agent.delete("gone")

    purged = agent.purge("s", "m1")

    assert (purged.forks, purged.in_trash) == (("other",), 1)
    assert holders(workspace.root) == ["other.jsonl", "other.log.jsonl"]
    agent.restore("gone")
    assert texts(agent.tree("gone"))[0] == "[purged]"
    assert agent.purge("other", "m1").forks == ()
    assert holders(workspace.root) == []


def test_a_session_in_memory_forgets_it_for_all_handles():
    log = MemoryLog()
    ours, theirs = (SessionTree.in_memory("s", log=log) for _ in range(2))
    ours.append(said(SECRET, "m1"))
    assert texts(theirs) == [SECRET]

    ours.purge("m1")
    theirs.append(said("on", "m2"))

    assert texts(ours) == texts(theirs) == ["[purged]", "on"]
    assert SECRET.encode() not in log.data


# -- others who are at work, and crashes -----------------------------------------------------------


def test_a_handle_that_has_read_it_sees_it_gone_and_writes_on(
    workspace, agent, leaked, check_clean
):
    other = Workspace(workspace.root, durability="os").agent("a").tree("s")
    assert SECRET in texts(other)[0]

    agent.purge("s", "m1")
    other.append(said("still here", "m4"))
    other.compact("short", "m2", "m3")
    other.trim()

    assert texts(other) == ["[purged]", "short", "still here"]
    assert holders(workspace.root) == []
    check_clean()


def test_who_follows_is_told_of_the_purge_and_of_nothing_twice(workspace, agent, leaked):
    following = Following(workspace.layout, Choice())
    list(following.look())

    agent.purge("s", "m1")
    leaked.append(said("on", "m4"))
    events = list(following.look())

    assert [type(event).__name__ for event in events] == ["SessionReplaced", "EntriesAdded"]
    assert [entry.type for entry in events[-1].entries] == ["purge", "message"]
    late = Following(workspace.layout, Choice())
    assert SECRET not in str([event.entries for event in late.begin()])


def test_a_session_that_agents_hold_shows_it_gone_and_its_estimate_follows(agent, leaked):
    async def story() -> tuple[list, int, int]:
        session = Session.create(agent).for_session("s")
        await session.append_message(said("word " * 500 + SECRET, "long"))
        before = await session._provider.get_context_tokens()
        agent.purge("s", "long")
        return await session.get_history(), before, await session._provider.get_context_tokens()

    history, before, after = asyncio.run(story())

    assert SECRET not in str(history[1:])
    assert after < before - 400


WRITER = """
import sys
from workspace_session import Workspace
tree = Workspace(sys.argv[1], durability="os").agent("a").tree("s")
tree.context()
print("ready", flush=True)
for number in range(200):
    tree.append({"id": f"w{number}", "role": "user", "content": "on and on"})
"""


def test_a_process_that_is_writing_loses_nothing(workspace, agent, leaked, check_clean):
    arguments = [sys.executable, "-c", WRITER, str(workspace.root)]
    writer = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    assert writer.stdout.readline() == "ready\n"
    for target in ("m1", "m2", "m3"):
        agent.purge("s", target)
    assert writer.wait(timeout=60) == 0
    writer.stdout.close()

    assert len(leaked) == 203
    assert holders(workspace.root) == []
    check_clean()


def crashed(agent, tree, step):
    """The files as they are after a crash in the middle of a purge."""
    log, working_set = agent.place.log("s"), agent.place.tree("s")
    before, hidden = log.read_bytes(), working_set.read_bytes()
    tree.purge("m1")
    purge = next(entry for entry in tree.log() if isinstance(entry, Purge))
    if step == "announced":
        log.write_bytes(before + purge.line + b"\n")
    working_set.write_bytes(hidden)
    return Workspace(agent.workspace.root, durability="os").agent("a")


@pytest.mark.parametrize("trimmed", [False, True])
@pytest.mark.parametrize("step", ["announced", "log written"])
class TestAfterACrash:
    @pytest.fixture
    def anew(self, agent, leaked, step, trimmed):
        if trimmed:
            leaked.compact("they talked", "m1", "m2")
            leaked.trim()
        found = crashed(agent, leaked, step)
        assert holders(agent.workspace.root) != []
        return found

    def test_no_reader_shows_it_and_verify_tells(self, anew, trimmed):
        assert texts(anew.tree("s"))[0] == ("they talked" if trimmed else "[purged]")
        assert SECRET not in str(anew.tree("s").tail(9)) + str(anew.tree("s").path())
        assert anew.verify("s") != []
        assert len(anew.search(SECRET)) == 0

    def test_the_next_write_finishes_it(self, anew):
        anew.tree("s").append(said("go on", "m4"))

        assert holders(anew.workspace.root) == []
        assert anew.verify("s") == []

    def test_so_does_rebuilding(self, anew):
        anew.rebuild()

        assert holders(anew.workspace.root) == []
        assert anew.verify("s") == []

    def test_so_does_purging_again(self, anew):
        leftover = anew.place.sessions / ".s.jsonl.tmp-1-0123abcd"
        leftover.write_text(SECRET)

        anew.purge("s", "m1")

        assert holders(anew.workspace.root) == []
        assert anew.verify("s") == []


# -- merging ---------------------------------------------------------------------------------------


@pytest.fixture
def two(tmp_path, workspace, agent, leaked):
    """The session, and a clone of it that has not heard of the purge and has written on."""
    workspace.close()
    shutil.copytree(workspace.root, tmp_path / "clone")
    clone = Workspace(tmp_path / "clone", durability="os").agent("a")
    clone.tree("s").append(said("from the clone", "c1"))
    agent.purge("s", "m1")
    leaked.append(said("from here", "h1"))
    return agent, clone


def files(agent):
    return agent.place.log("s"), agent.place.tree("s")


def test_our_driver_does_not_bring_it_back(two):
    agent, clone = two
    for ours, theirs in zip(files(agent), files(clone), strict=True):
        a, b = ours.read_bytes(), theirs.read_bytes()
        assert merge_lines(a, b) == merge_lines(b, a)
        merge_files(theirs, ours)
        assert SECRET.encode() not in theirs.read_bytes()

    assert sorted(texts(clone.tree("s"))) == ["[purged]", "from here", "noted", "what next?"]
    assert clone.verify("s") == []


@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_after_a_plain_union_nobody_shows_it_and_the_next_write_takes_it_away(two, first):
    agent, clone = two
    for ours, theirs in zip(files(agent), files(clone), strict=True):
        pair = (ours, theirs) if first == "ours" else (theirs, ours)
        lines = dict.fromkeys(
            b"".join(path.read_bytes() for path in pair).splitlines(keepends=True)
        )
        ours.write_bytes(b"".join(lines))
    anew = Workspace(agent.workspace.root, durability="os").agent("a")
    assert holders(agent.workspace.root) == ["s.jsonl", "s.log.jsonl"]

    assert texts(anew.tree("s"))[0] == "[purged]"
    assert SECRET not in str([entry.line for entry in anew.tree("s").log()])
    assert any("was purged and is still here" in problem.what for problem in anew.verify("s"))
    assert len(anew.search(SECRET)) == 0

    anew.tree("s").append(said("go on", "m4"))
    assert holders(agent.workspace.root / "agents") == []
    assert anew.verify("s") == []


@pytest.mark.parametrize("installed", [True, False])
def test_a_sync_does_not_bring_it_back(tmp_path, installed):
    one = origin(tmp_path)
    one.tree().append(said(SECRET, "m1"))
    sync(one.workspace)
    two = another(tmp_path, "two")
    if installed:
        two.install()
    two.tree().append(said("on", "m2"))
    one.workspace.agent("a").purge("s", "m1")
    one.tree().append(said("here", "m3"))
    for clone in (one, two, one):
        sync(clone.workspace)

    for clone in (one, two):
        assert holders(clone.root) == []
        assert sorted(entry.id for entry in clone.tree().all_messages()) == ["m1", "m2", "m3"]
        assert clone.workspace.verify() == []


def test_after_a_merge_by_hand_without_the_driver_the_hook_takes_it_away(tmp_path):
    one = origin(tmp_path)
    one.tree().append(said(SECRET, "m1"))
    one.tree().append(said("two", "m2"))
    one.commit()
    two = copied(one, tmp_path / "two")
    two.tree().append(said("on", "m3"))
    two.commit()
    one.workspace.agent("a").purge("s", "m1")
    one.tree().append(said("here", "m4"))
    one.commit()
    two.git("config", "--unset", "merge.union.driver")

    two.git("pull", "-q", "--no-rebase", "--no-edit", str(one.directory), "HEAD")

    assert holders(two.root) == []
    assert two.workspace.verify() == []


# -- lines -----------------------------------------------------------------------------------------

TARGETS = st.sampled_from(["m1", "m2", 'odd " \\ \u65e5 id'])


@st.composite
def lines(draw):
    """Lines of a log: messages, updates, purges and what is broken, in any order."""
    tree = SessionTree.in_memory("s")
    ids = draw(st.lists(TARGETS, min_size=1, max_size=3, unique=True))
    for one in ids:
        tree.append({"id": one, "role": "user", "content": f"{SECRET} {one}"})
    for one in draw(st.lists(st.sampled_from(ids), max_size=3)):
        tree.update(one, {"id": one, "role": "user", "content": f"{SECRET} {draw(st.integers())}"})
    original = [entry.line for entry in tree.log()]
    purged = draw(st.sampled_from(ids))
    tree.purge(purged)
    every = [*original, *(entry.line for entry in tree.log())]
    cut = draw(st.integers(0, 60))
    return draw(st.permutations([*every, original[1][: len(original[1]) - cut]]))


@given(lines())
def test_lines_scrubbed_twice_are_those_scrubbed_once(found):
    once = list(scrubbed(found))

    assert list(scrubbed(once)) == once
    purges = [decode(line).target_id for line in found if b'"purge"' in line]
    for line in once:
        if any(f'"id":"{target}"'.encode() in line for target in purges):
            assert SECRET.encode() not in line


@given(lines(), lines())
def test_merging_with_purges_is_the_same_from_both_sides(ours, theirs):
    a, b = (b"".join(line + b"\n" for line in one) for one in (ours, theirs))

    assert merge_lines(a, b) == merge_lines(b, a)
    assert merge_lines(merge_lines(a, b), b) == merge_lines(a, b)


@given(lines())
def test_what_is_blank_stays_as_it_is(found):
    for line in found:
        try:
            entry = decode(line)
        except ValueError:
            continue
        assert blank(blank(entry)).line == blank(entry).line


def test_a_line_by_other_hands_is_scrubbed_too():
    odd = (
        b'{ "id" :\t"m1", "message": {"role": "user", "content": "hunter2"}, "note": "hunter2",'
        b' "type": "message", "timestamp": "2026-05-15T08:00:01Z" }'
    )
    purge = b'{"type":"purge","id":"p","timestamp":"2026-05-15T08:00:02.000000Z","targetId":"m1"}'

    (line, kept) = scrubbed([odd, purge])

    assert kept == purge
    assert decode(line).message == {"role": "user", "parts": [{"type": "text", "text": "[purged]"}]}
    assert b"hunter2" not in line
