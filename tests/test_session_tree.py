"""The contract of a session, kept by files however they are used."""

from __future__ import annotations

import json

import pytest
from contracts import TreeContract, grow, said

from workspace_session import SessionTree, Workspace

WRITES = frozenset(
    {
        "append", "extend", "update", "delete", "clear", "set_leaf", "compact", "label", "annotate",
        "add_usage", "add_custom", "start", "pop", "replace_tail", "undo",
    }
)  # fmt: skip


class Wrapped:
    """A session that does something around each call."""

    def __init__(self, open_tree) -> None:
        self._open = open_tree

    @property
    def leaf(self):
        return self._open().leaf

    @property
    def id(self):
        return self._open().id

    def __len__(self) -> int:
        return len(self._open())

    def __getattr__(self, name: str):
        return getattr(self._open(), name)


class TrimmedAfterEachWrite(Wrapped):
    def __getattr__(self, name: str):
        method = getattr(self._open(), name)
        if name not in WRITES:
            return method

        def write_and_trim(*args, **kwargs):
            result = method(*args, **kwargs)
            self._open().trim()
            return result

        return write_and_trim


class OnDisk(TreeContract):
    """A storage test ends with nothing broken."""

    @pytest.fixture(autouse=True)
    def clean_afterwards(self, workspace):
        yield
        assert workspace.verify() == []


class TestOneHandle(OnDisk):
    """One handle that stays open."""


class TestANewHandleAtEveryCall(OnDisk):
    """Nothing is remembered between calls but by the files."""

    @pytest.fixture
    def tree(self, agent):
        return Wrapped(lambda: agent.tree("s"))


class TestTwoHandlesInTurn(OnDisk):
    """Each call sees what was written through another handle."""

    @pytest.fixture
    def tree(self, workspace):
        other = Workspace(workspace.root, durability="os")
        handles = [workspace.agent("a").tree("s"), other.agent("a").tree("s")]

        def next_handle():
            handles.reverse()
            return handles[0]

        return Wrapped(next_handle)


class TestTrimmedAfterEveryWrite(OnDisk):
    """What is trimmed is not missed."""

    @pytest.fixture
    def tree(self, agent):
        handle = agent.tree("s")
        return TrimmedAfterEachWrite(lambda: handle)


class TestTrimmedAndReadByANewHandle(OnDisk):
    @pytest.fixture
    def tree(self, agent):
        return TrimmedAfterEachWrite(lambda: agent.tree("s"))


class TestInMemory(TreeContract):
    """A session on no disk keeps the same contract."""

    @pytest.fixture
    def tree(self):
        return SessionTree.in_memory("s")


# -- what only files have ---------------------------------------------------------------------------


def test_a_trim_is_worth_while_and_is_seen_by_nobody(agent, tree, check_clean):
    grow(tree, 30)
    before = agent.place.tree("s").stat().st_size
    summaries = [tree.compact("short", "m0", "m19")]

    tree.trim()

    assert agent.place.tree("s").stat().st_size < before / 2
    assert [item.id for item in tree.context()] == [
        summaries[0].id, *(f"m{n}" for n in range(20, 30)),
    ]  # fmt: skip
    check_clean()


def test_trimming_happens_by_itself_once_most_is_hidden(agent, tree, check_clean):
    grow(tree, 30)

    tree.compact("short", "m0", "m28")

    assert agent.place.tree("s").stat().st_size < agent.place.log("s").stat().st_size / 5
    check_clean()


def test_an_id_is_known_after_a_trim_by_the_handle_that_trimmed(tree):
    grow(tree, 10)
    tree.compact("short", "m0", "m8")
    tree.append(said("x", "x0"))
    grow(tree, 10, prefix="n")
    tree.compact("short again", "m0", "n8")
    tree.trim()

    assert not tree.append(said("again", "n3")).inserted
    assert not tree.append(said("again", "m3")).inserted


def test_an_id_is_known_after_a_trim_though_other_hands_have_escaped_it(agent, tree):
    grow(tree, 10, prefix="é")
    for path in (agent.place.log("s"), agent.place.tree("s")):
        lines = map(json.loads, path.read_bytes().splitlines())
        path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    tree.compact("short", "é0", "é8")
    assert b"trim" in agent.place.tree("s").read_bytes()

    assert not agent.tree("s").append(said("again", "é3")).inserted


def test_an_id_is_known_after_an_update_has_made_the_working_set_anew(agent, tree):
    tree.extend([said("long " * 50, f"m{number}") for number in range(10)])
    tree.compact("short", "m0", "m8")
    tree.extend([said("longer " * 500, "large"), said("x", "a")])
    tree.extend([said("x", "b"), said("x", "c")])  # the ids in the log have been read by now
    tree.compact("short too", "a", "b")

    tree.update("m3", said("new", "m3"))

    assert b'"id":"b"' not in agent.place.tree("s").read_bytes()
    assert not tree.append(said("again", "b")).inserted


def test_a_session_with_an_orphan_can_be_compacted_and_trimmed(agent, tree):
    grow(tree, 3)
    orphan = b'{"type":"message","id":"o","timestamp":"2026-01-01T00:00:00Z","parentId":"lost","message":{}}'
    for path in (agent.place.log("s"), agent.place.tree("s")):
        with path.open("ab") as file:
            file.write(orphan + b"\n")

    tree.compact("short", "m0", "m1")
    tree.trim()
    tree.append(said("found", "lost"), None)

    assert [entry.id for entry in tree.path("o")] == ["lost", "o"]
    assert [entry.id for entry in agent.tree("s").path("o")] == ["lost", "o"]


def test_a_handle_costs_nothing_until_it_is_used(workspace, agent):
    agent.tree("never used")

    assert not agent.place.directory.exists()
    assert workspace.agents() == []


def test_reading_a_session_that_is_not_there_makes_no_files(workspace, agent):
    tree = agent.tree("s")

    assert tree.context() == []
    assert tree.leaf is None
    assert not tree.exists()

    assert not agent.place.directory.exists()


def test_a_refused_first_write_makes_no_files(agent):
    for attempt in (
        lambda: agent.tree("s").append({"id": 5}),
        lambda: agent.tree("s").append({}, "nowhere"),
        lambda: agent.tree("s").set_leaf("nowhere"),
    ):
        with pytest.raises((ValueError, LookupError)):
            attempt()

    assert not agent.place.directory.exists()


def test_verify_is_asked_of_one_session_by_its_handle(agent, tree):
    grow(tree, 2)
    assert tree.verify() == []

    with agent.place.log("s").open("ab") as log:
        log.write(b"torn")

    assert [(problem.line, problem.what) for problem in tree.verify()] == [
        (4, "the last line is torn")
    ]
