"""A session in Postgres, for `Session`: every write is one transaction under the session's lock.

The lock is an advisory one of the database, so that it holds for all processes and goes with the
transaction. Finding the tip and writing are thereby one step.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from workspace_session.errors import InvalidCompaction, UnknownMessage, UnknownParent
from workspace_session.model.canonical import compact_sorted, parse
from workspace_session.model.clock import fresh_id
from workspace_session.model.facts import plain_text
from workspace_session.model.fold import nearest_left
from workspace_session.model.lines import message_json
from workspace_session.model.placing import LATEST, Parent, draft
from workspace_session.session.shapes import check_stretch, still_shows
from workspace_session.session.values import AppendResult, Compaction, SessionMessage
from workspace_session.stores.postgres.database import Database, Statements, time_text
from workspace_session.stores.postgres.flight import flying
from workspace_session.stores.postgres.paths import TIP
from workspace_session.stores.postgres.reading import SessionReading
from workspace_session.stores.postgres.record import Guard, Unrecorded
from workspace_session.stores.postgres.stored import ONE, as_message
from workspace_session.stores.postgres.texts import (
    check_key,
    check_message_id,
    check_text,
    content_columns,
    sought,
)

LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('workspace_session:' || %(session)s, 0))"

_PLACE = f"""
SELECT ({TIP}), EXISTS (
  SELECT 1 FROM assistant_messages WHERE session_id = %(session)s AND id = %(parent)s)
"""
_ADD = f"""
WITH added AS (
  INSERT INTO assistant_messages
    (id, session_id, parent_id, role, content, text_content, search_text, created_at)
  VALUES (%(id)s, %(session)s, %(parent)s, %(role)s, %(content)s, %(text_content)s,
    %(search_text)s, clock_timestamp())
  ON CONFLICT (session_id, id) DO NOTHING RETURNING seq, created_at),
tip AS (DELETE FROM assistant_leaves
  WHERE session_id = %(session)s AND EXISTS (SELECT 1 FROM added))
SELECT seq, {time_text("created_at")} FROM added
"""
UPDATE = """
UPDATE assistant_messages SET role = %(role)s, content = %(content)s,
  text_content = %(text_content)s, search_text = %(search_text)s
WHERE session_id = %(session)s AND id = %(id)s
"""
_DOOMED = """
SELECT id, parent_id, seq FROM assistant_messages
WHERE session_id = %(session)s AND id = ANY(%(ids)s)
"""
_ADOPT = """
UPDATE assistant_messages m SET parent_id = homes.home
FROM unnest(%(ids)s::text[], %(homes)s::text[]) AS homes (id, home)
WHERE m.session_id = %(session)s AND m.parent_id = homes.id AND m.id <> ALL(%(ids)s)
"""
_DELETE = "DELETE FROM assistant_messages WHERE session_id = %(session)s AND id = ANY(%(ids)s)"
_UNLABEL = (
    "DELETE FROM assistant_labels WHERE session_id = %(session)s AND message_id = ANY(%(ids)s)"
)
_RETIRE = """
UPDATE assistant_compactions SET retired = TRUE WHERE session_id = %(session)s
AND (from_message_id = ANY(%(ids)s) OR to_message_id = ANY(%(ids)s))
"""
SET_TIP = """
INSERT INTO assistant_leaves (session_id, message_id, updated_at)
VALUES (%(session)s, %(message)s, clock_timestamp())
ON CONFLICT (session_id) DO UPDATE
SET message_id = EXCLUDED.message_id, updated_at = EXCLUDED.updated_at
"""
FORGET_TIP = "DELETE FROM assistant_leaves WHERE session_id = %(session)s"
_HAS_ANY = """
SELECT (SELECT count(*) FROM assistant_messages WHERE session_id = %(session)s),
  EXISTS (SELECT 1 FROM assistant_compactions WHERE session_id = %(session)s)
"""
EMPTY = (
    "DELETE FROM assistant_messages WHERE session_id = %(session)s",
    "DELETE FROM assistant_compactions WHERE session_id = %(session)s",
    "DELETE FROM assistant_labels WHERE session_id = %(session)s",
    "DELETE FROM assistant_milestones WHERE session_id = %(session)s",
    FORGET_TIP,
)
_ADD_OVERLAY = f"""
INSERT INTO assistant_compactions
  (id, session_id, summary, from_message_id, to_message_id, created_at)
VALUES (%(id)s, %(session)s, %(summary)s, %(from)s, %(to)s, GREATEST(clock_timestamp(), (
  SELECT max(created_at) + interval '1 microsecond' FROM assistant_compactions
  WHERE session_id = %(session)s)))
RETURNING {time_text("created_at")}
"""
UPHEAVAL = """
INSERT INTO assistant_upheavals (session_id, upheavals) VALUES (%(session)s, 1)
ON CONFLICT (session_id) DO UPDATE SET upheavals = assistant_upheavals.upheavals + 1
"""


class PostgresSessionProvider(SessionReading):
    """The messages and overlays of one session, on a connection or a pool that the caller owns."""

    def __init__(self, conn: Any, session_id: str = "", *, guard: Guard | None = None) -> None:
        check_key("session", session_id)
        super().__init__(Database(conn), session_id, guard or Unrecorded())

    @property
    def session_id(self) -> str:
        """The session's id."""
        return getattr(self._guard, "session_id", self._key)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Statements]:
        """A transaction under the session's lock."""
        async with self._database.operation() as run:
            await run.row(LOCK, self._values())
            await self._guard.check(run)
            yield run
        self._guard.settle(run)

    # -- messages ----------------------------------------------------------------------------------

    async def append_message(
        self, message: SessionMessage, parent_id: Parent = LATEST
    ) -> AppendResult:
        """Store a message; finding the tip and writing are one step."""
        data, own_id = draft(message)
        message_id = own_id or fresh_id()
        check_message_id(message_id)
        async with self.writing() as run:
            known = await self._stored(run, message_id)
            if known is not None:
                return known
            parent = await self._place(run, parent_id)
            values = self._values(id=message_id, parent=parent, **content_columns(message, data))
            row = await run.row(_ADD, values)
            if row is None:  # somebody wrote it without taking the lock
                known = await self._stored(run, message_id)
                assert known is not None
                return known
            await self._paths.passed(run, message_id)
            await self._guard.touch(run, +1)
        stored = as_message((message_id, data.decode(), row[1])) or dict(message)
        return AppendResult(stored, True, parent)

    async def _stored(self, run: Statements, message_id: str) -> AppendResult | None:
        row = await run.row(ONE, self._values(id=message_id))
        if row is None:
            return None
        return AppendResult(as_message(row) or {"id": message_id}, False)

    async def _place(self, run: Statements, parent_id: Parent) -> str | None:
        named = sought(parent_id)
        ((tip, is_known),) = await run.rows(_PLACE, self._values(parent=named))
        if parent_id is LATEST:
            return tip or None
        if parent_id is not None and not is_known:
            raise UnknownParent(self.session_id, parent_id)
        return named

    async def update_message(self, message: SessionMessage) -> SessionMessage | None:
        """Give a message new content; None if there is no such message."""
        message_id = sought(message["id"])
        async with self.writing() as run:
            row = await run.row(ONE, self._values(id=message_id))
            if row is None:
                return None
            old = as_message(row)
            created = row[2] if old is None else old["createdAt"]
            new = {**message, "createdAt": created}
            if old is not None and compact_sorted(new) == compact_sorted(old):
                return old
            data = message_json(new)
            await run.run(UPDATE, self._values(id=message_id, **content_columns(new, data)))
            if len(data) != len(row[1].encode()):
                await self._paths.changed_from(run, row[3])
            await run.run(UPHEAVAL, self._values())
            await self._guard.touch(run)
        updated: SessionMessage = parse(data)
        return updated

    async def delete_messages(self, message_ids: Sequence[str]) -> list[str]:
        """Remove messages; returns the ids of those that were there."""
        wanted = [one for one in dict.fromkeys(message_ids) if sought(one) is not None]
        async with self.writing() as run:
            rows = {row[0]: row for row in await run.rows(_DOOMED, self._values(ids=wanted))}
            gone = [message_id for message_id in wanted if message_id in rows]
            if not gone:
                return []
            homes = nearest_left(gone, {message_id: row[1] for message_id, row in rows.items()})
            tip = await self._paths.tip(run)
            values = self._values(ids=gone, homes=[homes[one] for one in gone])
            for statement in (_ADOPT, _DELETE, _UNLABEL, _RETIRE):
                await run.run(statement, values)
            if tip in homes:
                await self._move_tip(run, homes[tip])
            await self._paths.changed_from(run, min(row[2] for row in rows.values()))
            await run.run(UPHEAVAL, self._values())
            await self._guard.touch(run, -len(gone))
        return gone

    async def _move_tip(self, run: Statements, message_id: str | None) -> None:
        """Make a message the tip; None: the newest."""
        if message_id is None:
            await run.run(FORGET_TIP, self._values())
        else:
            await run.run(SET_TIP, self._values(message=message_id))

    async def clear_messages(self) -> None:
        """Remove all messages and overlays."""
        async with self.writing() as run:
            found = await run.row(_HAS_ANY, self._values())
            if found is None or not any(found):
                return
            for statement in EMPTY:
                await run.run(statement, self._values())
            await run.run(UPHEAVAL, self._values())
            await self._guard.touch(run, -found[0])

    async def set_leaf(self, message_id: str) -> SessionMessage:
        """Make a message the tip."""
        async with self.writing() as run:
            message = await self._message(run, message_id)
            if message is None:
                raise UnknownMessage(self.session_id, message_id)
            if await self._paths.tip(run) != message_id:
                await self._move_tip(run, message_id)
                await run.run(UPHEAVAL, self._values())
                await self._guard.touch(run)
        return message

    # -- overlays ----------------------------------------------------------------------------------

    async def add_compaction(self, summary: str, from_id: str, to_id: str) -> Compaction:
        """Store an overlay."""
        async with self.writing() as run:
            return await self._add_overlay(run, summary, from_id, to_id)

    async def compact_range(
        self, summary: str, from_id: str, to_id: str, expected: Sequence[str]
    ) -> Compaction | None:
        """Store an overlay if the range still shows what it was made from, in one step."""
        async with self.writing() as run:
            if not still_shows(await self._shown(run, sought(to_id)), expected):
                return None
            return await self._add_overlay(run, summary, from_id, to_id)

    async def _add_overlay(
        self, run: Statements, summary: str, from_id: str, to_id: str
    ) -> Compaction:
        steps = await self._paths.all_steps(run, sought(to_id))
        check_stretch(self.session_id, [step.id for step in steps], from_id, to_id)
        summary = plain_text("a summary", summary)
        if not summary.strip():
            raise InvalidCompaction(self.session_id, from_id, to_id, "the summary is blank")
        try:
            check_text("a summary", summary)
        except ValueError as error:
            raise InvalidCompaction(self.session_id, from_id, to_id, str(error)) from None
        overlay_id = fresh_id()
        values: Mapping[str, Any] = {"id": overlay_id, "summary": summary}
        ends = {"from": from_id, "to": to_id}
        row = await run.row(_ADD_OVERLAY, self._values(**values, **ends))
        await run.run(UPHEAVAL, self._values())
        await self._guard.touch(run)
        assert row is not None
        return Compaction(overlay_id, summary, from_id, to_id, row[0])

    @asynccontextmanager
    async def lock(self) -> AsyncIterator[bool]:
        """Keep other processes from compacting this session; gives False if one is at it."""
        async with flying(self._database, self._key) as alone:
            yield alone
