"""Clones that write, merge, rebase and sync at random end with the same sessions, and nothing is lost."""

from __future__ import annotations

import itertools
import os
import random
import tempfile
from pathlib import Path

import pytest
from clones import ALONE, Clone, another, copied, identify, origin, run
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from workspace_session.git import sync
from workspace_session.model.purging import scrubbed

NAMES = ("one", "two", "three")
SESSIONS = ("s", "t")


class World:
    """Clones of one beginning, and every line that any of them has written."""

    def __init__(self, clones: list[Clone], chance: random.Random) -> None:
        self.clones, self.chance = clones, chance
        self.lines: dict[str, set[bytes]] = {session: set() for session in SESSIONS}
        self.number = itertools.count()
        for clone in clones:
            self.note(clone)

    def note(self, clone: Clone) -> None:
        for session in SESSIONS:
            if clone.tree(session).exists():
                self.note_tree(clone.tree(session))

    def note_tree(self, tree) -> None:
        self.lines[tree.id] |= {entry.line for entry in tree.log()}

    def lines_of(self, session: str) -> set[bytes]:
        """What all of that amounts to: without the text that was purged."""
        return set(scrubbed(list(self.lines[session])))

    # -- what a clone does -------------------------------------------------------------------------

    def write(self, clone: Clone) -> None:
        session = self.chance.choice(SESSIONS)
        tree = clone.tree(session)
        ids = [entry.id for entry in tree.path()] if tree.exists() else []
        kinds = (
            self.append,
            self.append,
            self.branch,
            self.extend,
            self.compact,
            self.delete,
            self.mark,
            self.purge,
        )
        self.chance.choice(kinds if len(ids) > 2 else (self.append,))(tree, ids)
        self.note(clone)

    def said(self):
        return {"role": "user", "content": f"message {next(self.number)} " + "words " * 20}

    def append(self, tree, ids):
        tree.append(self.said())

    def branch(self, tree, ids):
        tree.append(self.said(), parent=self.chance.choice([*ids, None]))

    def extend(self, tree, ids):
        tree.extend([self.said(), self.said()])

    def compact(self, tree, ids):
        shown = [getattr(item, "from_id", item.id) for item in tree.context()]
        ends = [getattr(item, "to_id", item.id) for item in tree.context()]
        start = self.chance.randrange(len(shown))
        tree.compact(f"summary {next(self.number)}", shown[start], self.chance.choice(ends[start:]))
        tree.trim()

    def delete(self, tree, ids):
        tree.delete(self.chance.sample(ids, 1))

    def purge(self, tree, ids):
        self.note_tree(tree)  # what is there before: a merge is not to bring it back
        tree.purge(self.chance.choice(ids))

    def mark(self, tree, ids):
        tree.annotate(name=f"name {next(self.number)}")
        tree.label(self.chance.choice(ids), f"label {next(self.number)}")
        tree.set_leaf(self.chance.choice(ids))

    # -- what git does -----------------------------------------------------------------------------

    def take(self, clone: Clone, other: Clone, how: str) -> None:
        for each in (clone, other):
            each.workspace.close()
            each.commit()
        clone.git("fetch", "-q", os.fspath(other.directory), "HEAD")
        clone.git(
            *(("merge", "-q", "--no-edit") if how == "merge" else ("rebase", "-q")), "FETCH_HEAD"
        )
        assert clone.git("ls-files", "--unmerged").stdout == ""

    def everybody_takes_everything(self) -> None:
        first, *others = self.clones
        for clone in others:
            self.take(first, clone, "merge")
        for clone in others:
            self.take(clone, first, "merge")

    # -- what must be ------------------------------------------------------------------------------

    def check(self, *, ours: bool) -> None:
        for clone in self.clones:
            for session in SESSIONS:
                if self.lines[session]:
                    log = [entry.line for entry in clone.tree(session).log()]
                    assert sorted(log) == sorted(self.lines_of(session))
            if not ours:
                clone.workspace.rebuild()
            assert clone.workspace.verify() == []
        assert len({self.shown(clone) for clone in self.clones}) == 1
        if ours:
            for session in SESSIONS:
                logs = [clone.workspace.agent("a").place.log(session) for clone in self.clones]
                assert len({log.read_bytes() for log in logs if log.exists()}) <= 1

    def shown(self, clone: Clone) -> str:
        """All that readers see, of a handle that has read nothing before."""
        found = []
        for session in SESSIONS:
            tree = clone.tree(session)
            if tree.exists():
                found.append([tree.leaf, sorted(tree.leaves()), tree.labels(), str(tree.info())])
                found += [
                    [item.id for item in tree.context(leaf)] for leaf in sorted(tree.leaves())
                ]
                found += [[item.id for item in tree.path(leaf)] for leaf in sorted(tree.leaves())]
        return repr(found)


def three_clones(directory: Path, below: str, *, ours: bool) -> list[Clone]:
    (directory / NAMES[0]).mkdir()
    run(directory / NAMES[0], "init", "-q")
    identify(directory / NAMES[0])
    (directory / NAMES[0] / below).mkdir(parents=True, exist_ok=True)
    first = Clone(directory / NAMES[0], below)
    first.install()
    if not ours:  # a clone of somebody who does not have our command
        run(first.directory, "config", "--unset", "merge.union.driver")
        for hook in ("post-merge", "post-rewrite", "post-checkout"):
            (first.directory / ".git" / "hooks" / hook).unlink()
    first.say("base")
    first.say("of all")
    first.commit()
    return [first, *(copied(first, directory / name, below) for name in NAMES[1:])]


def live(seed: int, steps: int, *, ours: bool) -> None:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as directory:
        below = chance.choice(["", "team/notes"])  # at the top of the repository, or in it
        world = World(three_clones(Path(directory), below, ours=ours), chance)
        for _ in range(steps):
            clone = chance.choice(world.clones)
            for _ in range(chance.randrange(6)):
                world.write(clone)
            if chance.random() < 0.5:
                other = chance.choice([one for one in world.clones if one is not clone])
                world.take(clone, other, chance.choice(["merge", "rebase"]))
        world.everybody_takes_everything()
        world.check(ours=ours)


seeds = st.integers(0, 2**32)


def few(examples: int) -> settings:
    """A seed does not shrink to anything simpler, and every example runs git a hundred times."""
    return settings(max_examples=examples, phases=[Phase.explicit, Phase.generate])


@few(2)
@given(seeds)
def test_with_the_driver_everything_is_there_once_and_all_see_the_same(seed):
    live(seed, 6, ours=True)


@few(5)
@given(seeds)
def test_with_the_plain_union_everything_is_there_once_and_all_see_the_same(seed):
    live(seed, 8, ours=False)


def merged_both_ways(seed: int, *, ours: bool) -> None:
    """Two clones that were written apart, each merged into a copy of the other."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        below = chance.choice(["", "team/notes"])
        world = World(three_clones(directory, below, ours=ours), chance)
        left, right, _ = world.clones
        for clone in (left, right):
            for _ in range(chance.randrange(2, 8)):
                world.write(clone)
        left_copy, right_copy = (
            copied(clone, directory / f"copy-{at}", below) for at, clone in enumerate((left, right))
        )
        world.take(left_copy, right, "merge")
        world.take(right_copy, left, "merge")

        world.clones = [left_copy, right_copy]
        world.check(ours=ours)
        if ours:
            trees = {clone.git("rev-parse", "HEAD^{tree}").stdout for clone in world.clones}
            assert len(trees) == 1


@few(1)
@given(seeds)
def test_a_merge_b_is_b_merge_a_with_the_driver(seed):
    merged_both_ways(seed, ours=True)


@few(2)
@given(seeds)
def test_a_merge_b_is_b_merge_a_with_the_plain_union(seed):
    merged_both_ways(seed, ours=False)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("ours", [True, False], ids=["driver", "plain union"])
def test_for_a_long_time_merging_is_the_same_both_ways(ours):
    for seed in range(100):
        merged_both_ways(seed, ours=ours)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("ours", [True, False], ids=["driver", "plain union"])
def test_for_a_long_time_everything_is_there_once_and_all_see_the_same(ours):
    for seed in range(60):
        live(seed, 25, ours=ours)


# -- through a remote ------------------------------------------------------------------------------


def live_with_a_remote(seed: int, steps: int) -> None:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as directory:
        first = origin(Path(directory))
        clones = [first, *(another(Path(directory), name) for name in NAMES[1:])]
        world = World(clones, chance)
        for _ in range(steps):
            clone = chance.choice(clones)
            for _ in range(chance.randrange(5)):
                world.write(clone)
            if chance.random() < 0.2 and clone.tree("t").exists():
                clone.workspace.agent("a").delete("t")
            if chance.random() < 0.6:
                sync(clone.workspace)
        for clone in (*clones, *clones):
            sync(clone.workspace)

        assert len({clone.git("rev-parse", "HEAD").stdout for clone in clones}) == 1
        assert len({world.shown(clone) for clone in clones}) == 1
        for clone in clones:
            assert clone.workspace.verify() == []
            assert clone.git("status", "--porcelain").stdout == ""
            assert {entry.line for entry in clone.tree("s").log()} == world.lines_of("s")


@pytest.fixture(autouse=True, scope="module")
def alone():
    with pytest.MonkeyPatch.context() as patch:
        for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"):
            patch.setenv(name, ALONE[name])
        yield


@few(2)
@given(seeds)
def test_clones_that_sync_agree_also_when_sessions_are_deleted(seed):
    live_with_a_remote(seed, 6)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_clones_that_sync_for_a_long_time_agree():
    for seed in range(30):
        live_with_a_remote(seed, 25)
