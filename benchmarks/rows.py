"""The rows of the table: one function each, registered with what is required of it.

A row function puts its pieces on the stage and returns the two sides; adding a row is adding a
function. `at_least=3` means the other side must take three times as long as ours or longer,
`within=3` that ours may take three times as long as the other side at most, `at_least=None` that the
figure is there to read the others by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import orjson

from benchmarks import corpus
from benchmarks.peers import parse_lines
from benchmarks.stage import AGENT, SESSION, Scale, Stage
from benchmarks.timing import Side, Timing, alternate, once, per_await, per_call
from workspace_session import Session, Workspace
from workspace_session.files.jsonl import append_bytes

_TAIL = 20


class Sides(NamedTuple):
    """What is compared."""

    ours: Side
    theirs: Side


Play: TypeAlias = Callable[[Stage], Sides]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    name: str
    work: str  # `{long}` and the like are the numbers of the scale
    against: str
    at_least: float | None
    within: bool  # the requirement was worded as "within 1/at_least"
    rounds: int | None  # fewer than the scale's, of what takes long
    play: Play

    def passes(self, timing: Timing) -> bool:
        """Whether the figure is what is required."""
        return self.at_least is None or timing.ratio >= self.at_least

    def described(self, scale: Scale) -> tuple[str, str]:
        """The work and what it is measured against, with this run's numbers."""
        numbers = {key: f"{getattr(scale, key):,}" for key in scale.__slots__}
        return self.work.format(**numbers), self.against.format(**numbers)


ROWS: dict[str, Row] = {}


def row(
    name: str,
    work: str,
    against: str,
    *,
    at_least: float | None = 1.0,
    within: float | None = None,
    rounds: int | None = None,
) -> Callable[[Play], Play]:
    """Put a row function on the table."""

    def register(play: Play) -> Play:
        ROWS[name] = Row(
            name=name,
            work=work,
            against=against,
            at_least=at_least if within is None else 1 / within,
            within=within is not None,
            rounds=rounds,
            play=play,
        )
        return play

    return register


def measure(name: str, root: Path, scale: Scale) -> Timing:
    """The figures of one row, on a stage in that directory."""
    stage = Stage(root, scale)
    try:
        return alternate(*ROWS[name].play(stage), ROWS[name].rounds or scale.rounds)
    finally:
        stage.close()


# -- writing ---------------------------------------------------------------------------------------


@row("append-one", "append one message, durable", "SQLiteSession.add_items")
def append_one(stage: Stage) -> Sides:
    tree, peer = stage.tree("append-one"), stage.peer("append-one-peer")
    mine, other = corpus.stream(), corpus.batches(1)
    calls = stage.scale.calls
    return Sides(
        ours=lambda: per_call(tree.append, islice(mine, calls)),
        theirs=lambda: peer.add(islice(other, calls)),
    )


@row("append-batch", "append a batch of 100, durable", "SQLiteSession.add_items", at_least=3)
def append_batch(stage: Stage) -> Sides:
    tree, peer = stage.tree("append-batch"), stage.peer("append-batch-peer")
    mine, other = corpus.batches(100), corpus.batches(100)
    calls = max(stage.scale.calls // 5, 1)
    return Sides(
        ours=lambda: per_call(tree.extend, islice(mine, calls)),
        theirs=lambda: peer.add(islice(other, calls)),
    )


@row(
    "append-batch-floor",
    "the bytes of a batch of 100: one write, one sync, nothing else",
    "SQLiteSession.add_items",
    at_least=None,
)
def append_batch_floor(stage: Stage) -> Sides:
    """What no store of plain files can be quicker than, on this disk."""
    file, peer = stage.root / "append-batch-floor.jsonl", stage.peer("append-batch-floor-peer")
    mine, other = corpus.batches(100), corpus.batches(100)
    calls = max(stage.scale.calls // 5, 1)

    def written(batches: Iterator[list[corpus.Item]]) -> float:
        data = [b"\n".join(map(orjson.dumps, batch)) + b"\n" for batch in batches]
        return per_call(lambda one: append_bytes(file, one, sync=True), data)

    return Sides(
        ours=lambda: written(islice(mine, calls)),
        theirs=lambda: peer.add(islice(other, calls)),
    )


@row(
    "append-crowded",
    "append, {many_sessions} sessions in the workspace",
    "append, {few_sessions} sessions in it",
    within=1.2,
)
def append_crowded(stage: Stage) -> Sides:
    return Sides(
        ours=_append_among(stage, stage.scale.many_sessions),
        theirs=_append_among(stage, stage.scale.few_sessions),
    )


def _append_among(stage: Stage, sessions: int) -> Side:
    tree = Workspace(stage.crowded(sessions)).agent(AGENT).tree("session-00003")
    items = corpus.stream()
    return lambda: per_call(tree.append, islice(items, stage.scale.calls))


@row("append-async", "await append_message, durability os", "SessionTree.append", within=2.5)
def append_async(stage: Stage) -> Sides:
    agent = Workspace(stage.root / "append-async", durability="os").agent(AGENT)
    session, tree = Session(agent, session_id="async"), agent.tree("sync")
    mine, other = map(_as_messages, (corpus.stream(), corpus.stream()))
    calls = stage.scale.calls
    return Sides(
        ours=lambda: per_await(session.append_message, islice(mine, calls)),
        theirs=lambda: per_call(tree.append, islice(other, calls)),
    )


def _as_messages(items: Iterable[corpus.Item]) -> Iterator[dict[str, Any]]:
    """Items of the corpus, each as the one part of a session message."""
    for item in items:
        yield {"role": item.get("role", "assistant"), "parts": [item]}


# -- reading ---------------------------------------------------------------------------------------


@row(
    "history",
    "whole history, {middle} messages, warm",
    "SQLiteSession.get_items",
    at_least=2.5,
)
def history(stage: Stage) -> Sides:
    count = stage.scale.middle
    tree = Workspace(stage.workspace_of(count)).agent(AGENT).tree(SESSION)
    peer = stage.peer_of(count)
    assert len(tree.context()) == count
    return Sides(
        ours=lambda: once(lambda: tree.messages()),
        theirs=peer.read_all,
    )


@row("tail", "last 20 of {long} messages, cold", "SQLiteSession.get_items(20)")
def tail(stage: Stage) -> Sides:
    peer = stage.peer_of(stage.scale.long)
    calls = max(stage.scale.calls // 5, 1)
    return Sides(
        ours=_tail_of(stage, stage.scale.long),
        theirs=lambda: peer.read_tail_cold(_TAIL, calls),
    )


@row("tail-middle", "last 20 of {middle} messages, cold", "of {short} messages", within=1.5)
def tail_middle(stage: Stage) -> Sides:
    return Sides(_tail_of(stage, stage.scale.middle), _tail_of(stage, stage.scale.short))


@row("tail-long", "last 20 of {long} messages, cold", "of {short} messages", within=1.5)
def tail_long(stage: Stage) -> Sides:
    return Sides(_tail_of(stage, stage.scale.long), _tail_of(stage, stage.scale.short))


def _tail_of(stage: Stage, count: int) -> Side:
    root = stage.workspace_of(count)

    def cold(_: int) -> list[dict[str, Any]]:
        tree = Workspace(root).agent(AGENT).tree(SESSION)
        return [entry.message for entry in tree.tail(_TAIL)]

    assert len(cold(0)) == _TAIL
    return lambda: per_call(cold, range(max(stage.scale.calls // 5, 1)))


@row(
    "open",
    "open {long} messages cold and read all",
    "orjson.loads of every line, collector off",
    within=3,
)
def open_cold(stage: Stage) -> Sides:
    count = stage.scale.long
    root = stage.workspace_of(count)

    def whole() -> list[dict[str, Any]]:
        tree = Workspace(root).agent(AGENT).tree(SESSION)
        return tree.messages()

    assert len(whole()) == count
    path = root / "agents" / AGENT / "sessions" / f"{SESSION}.jsonl"
    return Sides(ours=lambda: once(whole), theirs=lambda: parse_lines(path))


# Which put their rows on the table, and therefore come last.
from benchmarks import agents_rows as agents_rows  # noqa: E402
from benchmarks import postgres_rows as postgres_rows  # noqa: E402
from benchmarks import search_rows as search_rows  # noqa: E402
