"""Two clones that are written apart and merged by others: after a merge both mean the same.

A merge unites the lines of the logs, and those of the working sets, in any order and without knowing
what they mean. However often that happens, between whatever writes and trims, each clone shows what
its log says, and both show the same.
"""

from __future__ import annotations

import logging
import random
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from logs import answers

from workspace_session import LATEST, SessionError, SessionTree, Workspace
from workspace_session.files.verify import is_purged_text
from workspace_session.model.batches import settle
from workspace_session.model.entries import Compaction, Entry
from workspace_session.model.lines import decode
from workspace_session.model.tree import Tree

clones = st.sampled_from([0, 1])
ids = st.sampled_from([f"m{number}" for number in range(10)])
ALL_IDS = [f"m{number}" for number in range(10)]
PADDING = "long " * 60


class CloneMachine(RuleBasedStateMachine):
    @initialize()
    def open(self) -> None:
        logging.getLogger("workspace_session").setLevel(logging.ERROR)
        self.directory = Path(tempfile.mkdtemp(prefix="clones-"))
        self.agents = [
            Workspace(self.directory / name, durability="os").agent("a")
            for name in ("left", "right")
        ]
        self.agents[0].tree("s").start()
        self.copy()
        self.warm = [agent.tree("s") for agent in self.agents]

    def copy(self) -> None:
        """The right one begins as a clone of the left one."""
        self.agents[1].place.sessions.mkdir(parents=True)
        for here, there in zip(*(self.files(agent) for agent in self.agents), strict=True):
            shutil.copy(here, there)

    @staticmethod
    def files(agent) -> tuple[Path, Path]:
        return agent.place.log("s"), agent.place.tree("s")

    def teardown(self) -> None:
        if hasattr(self, "directory"):
            try:
                if sys.exc_info()[0] is None:
                    self.merge(False, 0)
                    for agent in self.agents:
                        agent.tree("s").append({"id": "last"})
                        told = {problem.what.partition(" ")[0] for problem in agent.verify("s")}
                        assert told <= {"message", "the"}, agent.verify("s")
                        agent.rebuild()
                        assert not any(map(is_purged_text, agent.verify("s")))
            finally:
                shutil.rmtree(self.directory)

    # -- writing --

    @rule(
        clone=clones, message_id=ids, parent=st.none() | ids | st.just(LATEST), warm=st.booleans()
    )
    def append(self, clone, message_id, parent, warm) -> None:
        self.attempt(clone, warm, "append", {"id": message_id, "padding": PADDING}, parent)

    @rule(clone=clones, some=st.lists(ids, min_size=2, max_size=4))
    def extend(self, clone, some) -> None:
        messages = [{"id": message_id, "padding": PADDING} for message_id in some]
        self.attempt(clone, True, "extend", messages)

    @rule(clone=clones, message_id=ids, warm=st.booleans())
    def update(self, clone, message_id, warm) -> None:
        self.attempt(clone, warm, "update", message_id, {"id": message_id, "updated in": clone})

    @rule(clone=clones, some=st.lists(ids, min_size=1, max_size=2))
    def delete(self, clone, some) -> None:
        self.attempt(clone, True, "delete", some)

    @rule(clone=clones, leaf=st.none() | ids)
    def set_leaf(self, clone, leaf) -> None:
        self.attempt(clone, True, "set_leaf", leaf)

    @rule(clone=clones, data=st.data(), warm=st.booleans())
    def compact(self, clone, data, warm) -> None:
        path = self.agents[clone].tree("s").path()
        if path:
            first = data.draw(st.integers(0, len(path) - 1))
            last = data.draw(st.integers(first, len(path) - 1))
            self.attempt(clone, warm, "compact", "short", path[first].id, path[last].id)

    @rule(clone=clones, labelled=ids)
    def label(self, clone, labelled) -> None:
        self.attempt(clone, True, "label", labelled, f"by {clone}")

    @rule(clone=clones, name=st.sampled_from(["one", "two", None]))
    def annotate(self, clone, name) -> None:
        self.tree(clone, True).annotate(name=name)

    @rule(clone=clones, message_id=ids, warm=st.booleans())
    def purge(self, clone, message_id, warm) -> None:
        self.attempt(clone, warm, "purge", message_id)

    @rule(clone=clones, rare=st.integers(0, 3))
    def clear(self, clone, rare) -> None:
        if not rare:
            self.tree(clone, True).clear()

    @rule(clone=clones, warm=st.booleans())
    def trim(self, clone, warm) -> None:
        self.tree(clone, warm).trim()

    def attempt(self, clone: int, warm: bool, name: str, *arguments) -> None:
        with suppress(SessionError):  # what is refused is the business of other tests
            getattr(self.tree(clone, warm), name)(*arguments)

    def tree(self, clone: int, warm: bool) -> SessionTree:
        return self.warm[clone] if warm else self.agents[clone].tree("s")

    # -- merging --

    @rule(shuffled=st.booleans(), seed=st.integers(0, 5))
    def merge(self, shuffled, seed) -> None:
        rng = random.Random(seed)
        for kind in (0, 1):
            contents = [self.files(agent)[kind].read_bytes() for agent in self.agents]
            for clone, agent in enumerate(self.agents):
                lines = united(contents[clone], contents[1 - clone])
                if shuffled:
                    rng.shuffle(lines)
                other = agent.place.sessions / ".merged"
                other.write_bytes(b"".join(lines))
                other.replace(self.files(agent)[kind])

    # -- looking --

    @invariant()
    def each_clone_shows_what_its_log_says(self) -> None:
        if not hasattr(self, "directory"):
            return
        for clone, agent in enumerate(self.agents):
            entries = entries_of(agent.place.log("s"))
            expected = answers(Tree.of(entries), ALL_IDS)
            tail = [shown(agent.tree("s").tail(2)), agent.tree("s").leaf]
            assert tail == [expected["context"][-2:], expected["tip"]]
            for tree in (agent.tree("s"), self.warm[clone]):
                assert_shows(tree, expected)


def united(ours: bytes, theirs: bytes) -> list[bytes]:
    lines = ours.splitlines(keepends=True)
    known = set(lines)
    return [*lines, *(line for line in theirs.splitlines(keepends=True) if line not in known)]


def entries_of(log: Path) -> list[Entry]:
    return settle([decode(line) for line in log.read_bytes().splitlines()]).counted


def shown(items) -> list[str]:
    return [item.summary if isinstance(item, Compaction) else item.id for item in items]


def assert_shows(tree: SessionTree, expected: dict) -> None:
    assert tree.leaf == expected["tip"]
    assert shown(tree.context()) == expected["context"]
    assert len(tree) == expected["len"]
    assert tree.leaves() == expected["leaves"]
    assert tree.labels() == expected["labels"]
    assert tree.facts() == expected["facts"]
    for message_id in ALL_IDS:
        if expected[f"has {message_id}"]:
            assert tree.get(message_id).message == expected[f"content of {message_id}"]
            assert shown(tree.path(message_id)) == expected[f"path to {message_id}"]
            assert shown(tree.context(message_id)) == expected[f"context of {message_id}"]
        assert shown(tree.children(message_id)) == expected[f"children of {message_id}"]


TestClones = CloneMachine.TestCase
TestClones.settings = settings(max_examples=max(60, settings().max_examples))
