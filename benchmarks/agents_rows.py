"""The rows of the session for the OpenAI Agents SDK: the SDK's own work, awaited on both sides.

Against `SQLiteSession` what is required of the core has to hold through the adapter too. The SDK's
session with branches is what ours has to stand beside in long conversations.
"""

from __future__ import annotations

from itertools import islice

from benchmarks import corpus
from benchmarks.rows import Sides, row
from benchmarks.stage import Stage

_TAIL = 20


@row("agents-add", "AgentsSession: add one item, durable", "SQLiteSession.add_items")
def agents_add(stage: Stage) -> Sides:
    return _adding(stage, "agents-add", 1, stage.scale.calls)


@row("agents-add-batch", "AgentsSession: add 100, durable", "SQLiteSession.add_items", at_least=3)
def agents_add_batch(stage: Stage) -> Sides:
    return _adding(stage, "agents-add-batch", 100, max(stage.scale.calls // 5, 1))


def _adding(stage: Stage, name: str, size: int, calls: int) -> Sides:
    ours, peer = stage.agents_session(stage.root / name), stage.peer(f"{name}-peer")
    mine, other = corpus.batches(size), corpus.batches(size)
    return Sides(
        ours=lambda: ours.add(islice(mine, calls)),
        theirs=lambda: peer.add(islice(other, calls)),
    )


@row(
    "agents-history",
    "AgentsSession: whole history, {middle} items, warm",
    "SQLiteSession.get_items",
    at_least=2.5,
)
def agents_history(stage: Stage) -> Sides:
    count = stage.scale.middle
    ours, peer = stage.agents_session(stage.workspace_of(count)), stage.peer_of(count)
    return Sides(ours=ours.read_all, theirs=peer.read_all)


@row("agents-tail", "AgentsSession: last 20 of {long}, cold", "SQLiteSession.get_items(20)")
def agents_tail(stage: Stage) -> Sides:
    count, calls = stage.scale.long, max(stage.scale.calls // 5, 1)
    ours, peer = stage.agents_session(stage.workspace_of(count)), stage.peer_of(count)
    return Sides(
        ours=lambda: ours.read_tail_cold(_TAIL, calls),
        theirs=lambda: peer.read_tail_cold(_TAIL, calls),
    )


@row("agents-tail-flat", "AgentsSession: last 20 of {long}, cold", "of {short} items", within=1.5)
def agents_tail_flat(stage: Stage) -> Sides:
    calls = max(stage.scale.calls // 5, 1)
    roots = (stage.workspace_of(count) for count in (stage.scale.long, stage.scale.short))
    long, short = (stage.agents_session(root) for root in roots)
    return Sides(
        ours=lambda: long.read_tail_cold(_TAIL, calls),
        theirs=lambda: short.read_tail_cold(_TAIL, calls),
    )


# -- beside the session with branches ----------------------------------------------------------------


@row(
    "agents-long-add",
    "AgentsSession: add one item at {long}, durable",
    "AdvancedSQLiteSession.add_items",
    at_least=20,
    rounds=5,
)
def agents_long_add(stage: Stage) -> Sides:
    count, calls = stage.scale.long, max(stage.scale.calls // 10, 1)
    ours = stage.agents_session(stage.copy_of(count, "agents-long-add"))
    peer = stage.peer_of(count, name="advanced-add", branches=True)
    mine, other = corpus.batches(1), corpus.batches(1)
    return Sides(
        ours=lambda: ours.add(islice(mine, calls)),
        theirs=lambda: peer.add(islice(other, calls)),
    )


@row(
    "agents-long-pop",
    "AgentsSession: pop one item at {long}, durable",
    "AdvancedSQLiteSession.pop_item",
    at_least=20,
    rounds=5,
)
def agents_long_pop(stage: Stage) -> Sides:
    count, calls = stage.scale.long, max(stage.scale.calls // 20, 1)
    ours = stage.agents_session(stage.copy_of(count, "agents-long-pop"))
    peer = stage.peer_of(count, name="advanced-pop", branches=True)
    return Sides(ours=lambda: ours.pop(calls), theirs=lambda: peer.pop(calls))


@row(
    "agents-long-tail",
    "AgentsSession: last 20 of {long}",
    "AdvancedSQLiteSession.get_items(20)",
    at_least=20,
    rounds=5,
)
def agents_long_tail(stage: Stage) -> Sides:
    count, calls = stage.scale.long, max(stage.scale.calls // 10, 1)
    ours = stage.agents_session(stage.copy_of(count, "agents-long-tail"))
    peer = stage.peer_of(count, name="advanced-tail", branches=True)
    return Sides(
        ours=lambda: ours.read_tail(_TAIL, calls), theirs=lambda: peer.read_tail(_TAIL, calls)
    )
