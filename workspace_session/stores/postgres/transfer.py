"""Copying sessions between a workspace and Postgres: both end up with the same set of entries.

The lines of a pushed session are kept beside its rows. What was done in Postgres since becomes entries
first, then the two sets are united, then both sides are made to mean what the union means. So copying
twice is copying once, in whatever direction, and whatever was written on both sides is merged as
clones are. Lines go up in batches that count for nothing until the last one is there: a copy that was
cut short goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from workspace_session.agent import AgentWorkspace
from workspace_session.bridge import in_thread
from workspace_session.errors import InvalidMessage, UnknownSession
from workspace_session.files.session_tree import SessionTree
from workspace_session.model.batches import settle
from workspace_session.model.entries import Entry, Message
from workspace_session.model.lines import decode
from workspace_session.model.purging import withheld
from workspace_session.model.tree import Tree
from workspace_session.stores.postgres.catch_up import catch_up
from workspace_session.stores.postgres.database import Statements
from workspace_session.stores.postgres.provider import LOCK
from workspace_session.stores.postgres.record import Record
from workspace_session.stores.postgres.rows import Rows, store
from workspace_session.stores.postgres.store import PostgresStore
from workspace_session.stores.postgres.texts import check_message_id, check_text

_BATCH_LINES, _BATCH_BYTES = 1000, 4_000_000

_KEYS = 'SELECT "timestamp", id FROM assistant_entries WHERE session_id = %(session)s'
_APPLIED_KEYS = _KEYS + " AND applied"
_LINES = """
SELECT line, applied FROM assistant_entries WHERE session_id = %(session)s
ORDER BY "timestamp" COLLATE "C", id COLLATE "C"
"""
_SOME_LINES = """
SELECT e.line FROM assistant_entries e
JOIN unnest(%(times)s::text[], %(ids)s::text[]) AS wanted (time, id)
  ON e."timestamp" = wanted.time AND e.id = wanted.id
WHERE e.session_id = %(session)s
"""
_ADD_LINE = """
INSERT INTO assistant_entries (session_id, "timestamp", id, line, applied)
VALUES (%(session)s, %(timestamp)s, %(id)s, %(line)s, %(applied)s)
ON CONFLICT (session_id, "timestamp", id) DO NOTHING
"""
_APPLY = (
    "UPDATE assistant_entries SET applied = TRUE WHERE session_id = %(session)s AND NOT applied"
)

_REPLACE_LINE = """
UPDATE assistant_entries SET line = %(line)s, applied = %(applied)s
WHERE session_id = %(session)s AND "timestamp" = %(timestamp)s AND id = %(id)s
"""

Key = tuple[str, str]


class Copied(NamedTuple):
    """A session that was copied, and how many entries were new where it went."""

    session_id: str
    entries: int


class Progress(NamedTuple):
    """How far a copy is: entries that are where they belong, and how many there are."""

    session_id: str
    done: int
    total: int


Report = Callable[[Progress], None]


# -- to Postgres -----------------------------------------------------------------------------------


async def push(
    agent: AgentWorkspace,
    target: PostgresStore,
    session_ids: Iterable[str] | None = None,
    report: Report | None = None,
) -> list[Copied]:
    """Copy sessions of an agent to Postgres, all of them if none are named."""
    wanted = agent.place.session_ids() if session_ids is None else list(session_ids)
    for session_id in wanted:
        if not agent.tree(session_id).exists():
            raise UnknownSession(session_id)
    return [await _push(agent.tree(one), target, report) for one in wanted]


async def _push(tree: SessionTree, target: PostgresStore, report: Report | None) -> Copied:
    entries = await in_thread(tree.all_entries)
    for entry in entries:
        _check(entry)
    record = target.record(tree.id)
    async with target.database.operation() as run:
        known = {(row[0], row[1]) for row in await run.rows(_KEYS, record.values)}
    new = [entry for entry in entries if entry.key not in known]
    done = len(entries) - len(new)
    for batch in _batches(new):
        async with target.database.operation() as run:
            await run.many(_ADD_LINE, [_line_values(record, entry) for entry in batch])
        done += len(batch)
        if report is not None:
            report(Progress(tree.id, done, len(entries)))
    async with target.database.operation() as run:
        await _settle(run, target, record)
    return Copied(tree.id, len(new))


def _check(entry: Entry) -> None:
    """See that Postgres can hold an entry."""
    try:
        check_text("the id of an entry", entry.id)
    except ValueError as error:
        raise InvalidMessage(str(error)) from None
    if isinstance(entry, Message):
        check_message_id(entry.id)


def _batches(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    batch: list[Entry] = []
    size = 0
    for entry in entries:
        batch.append(entry)
        size += len(entry.line)
        if len(batch) == _BATCH_LINES or size > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _line_values(record: Record, entry: Entry, *, applied: bool = False) -> dict[str, object]:
    place = {"session": record.key, "timestamp": entry.timestamp, "id": entry.id}
    return {**place, "line": entry.line.decode(), "applied": applied}


async def _settle(run: Statements, target: PostgresStore, record: Record) -> None:
    """Make lines and rows of a session mean the same: everything that is in either of them."""
    await run.row(LOCK, record.values)
    lines = [(decode(row[0].encode()), row[1]) for row in await run.rows(_LINES, record.values)]
    rows = await Rows.read(run, record)
    tree = _tree([entry for entry, applied in lines if applied])
    new: list[Entry] = []
    if rows.updated_at is not None:
        new = catch_up(tree, rows, record.session_id, target.agent_id)
        await run.many(_ADD_LINE, [_line_values(record, one, applied=True) for one in new])
    if len(lines) > sum(applied for _entry, applied in lines):
        tree = _tree([*(entry for entry, _applied in lines), *new])
        await run.run(_APPLY, record.values)
        await _scrub(run, record, [entry for entry, _applied in lines])
    wanted = Rows.of(tree)
    is_newer = (wanted.updated_at or "") > (rows.updated_at or "")
    if tree.entries and (is_newer or wanted != rows):
        await store(run, record, rows, wanted)


async def _scrub(run: Statements, record: Record, entries: Sequence[Entry]) -> None:
    """Take out of the lines the text that purges among them take away."""
    clean = withheld(entries)
    if clean is not entries:
        pairs = zip(entries, clean, strict=True)
        changed = [new for old, new in pairs if new is not old]
        values = [_line_values(record, entry, applied=True) for entry in changed]
        await run.many(_REPLACE_LINE, values)


def _tree(entries: Sequence[Entry]) -> Tree:
    in_order = sorted(settle(entries).counted, key=lambda entry: entry.key)
    return Tree.of_log(in_order)


# -- to a workspace --------------------------------------------------------------------------------


async def pull(
    source: PostgresStore,
    agent: AgentWorkspace,
    session_ids: Iterable[str] | None = None,
    report: Report | None = None,
) -> list[Copied]:
    """Copy sessions from Postgres to an agent, all of them if none are named."""
    if session_ids is None:
        wanted = sorted(info.id for info in await source.list())
    else:
        wanted = list(session_ids)
        for session_id in wanted:
            if not await source.exists(session_id):
                raise UnknownSession(session_id)
    return [await _pull(source, agent.tree(one), report) for one in wanted]


async def _pull(source: PostgresStore, tree: SessionTree, report: Report | None) -> Copied:
    record = source.record(tree.id)
    async with source.database.operation() as run:
        await _settle(run, source, record)
        keys = {(row[0], row[1]) for row in await run.rows(_APPLIED_KEYS, record.values)}
    here = {entry.key for entry in await in_thread(tree.all_entries)}
    missing = sorted(keys - here)
    lines: list[str] = []
    for start in range(0, len(missing), _BATCH_LINES):
        wanted = missing[start : start + _BATCH_LINES]
        values = {"times": [time for time, _id in wanted], "ids": [one for _time, one in wanted]}
        async with source.database.operation() as run:
            rows = await run.rows(_SOME_LINES, {"session": record.key, **values})
        lines += [row[0] for row in rows]
        if report is not None:
            report(Progress(tree.id, len(keys) - len(missing) + len(lines), len(keys)))
    if lines:
        await in_thread(tree.take_in, b"".join(line.encode() + b"\n" for line in lines))
    return Copied(tree.id, len(lines))
