"""The session store on Postgres: the sessions of one agent and user, and of nobody else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workspace_session.errors import SessionExists, UnknownMessage, UnknownSession
from workspace_session.model.canonical import compact
from workspace_session.model.clock import fresh_id
from workspace_session.model.facts import checked_facts, checked_usage, plain_text
from workspace_session.model.info import SessionInfo
from workspace_session.stores.postgres.context import PostgresContextProvider
from workspace_session.stores.postgres.database import Database, Statements
from workspace_session.stores.postgres.paths import Paths
from workspace_session.stores.postgres.provider import EMPTY, LOCK, PostgresSessionProvider
from workspace_session.stores.postgres.record import (
    ALL_RECORDS,
    ONE_RECORD,
    Record,
    info_of,
    store_facts,
    stored_facts,
)
from workspace_session.stores.postgres.search import IN_AGENT, Owner, search_messages
from workspace_session.stores.postgres.texts import check_text, session_key, sought

Infos = list[SessionInfo]

_EXISTS = "SELECT EXISTS (SELECT 1 FROM assistant_sessions WHERE session_id = %(session)s)"
_SET_PARENT = """
UPDATE assistant_sessions SET parent_session_id = %(parent)s WHERE session_id = %(session)s
"""
_ADD_USAGE = """
UPDATE assistant_sessions SET input_tokens = input_tokens + %(input_tokens)s,
  output_tokens = output_tokens + %(output_tokens)s, estimated_cost = estimated_cost + %(cost)s
WHERE session_id = %(session)s
"""
FORGET = (
    *EMPTY,
    "DELETE FROM cf_agents_context_blocks WHERE session_id = %(session)s",
    "DELETE FROM assistant_upheavals WHERE session_id = %(session)s",
    "DELETE FROM assistant_flights WHERE session_id = %(session)s",
    "DELETE FROM assistant_entries WHERE session_id = %(session)s",
    "DELETE FROM assistant_sessions WHERE session_id = %(session)s",
)
_COPY = (
    """
    INSERT INTO assistant_messages
      (id, session_id, parent_id, role, content, text_content, search_text, created_at)
    SELECT id, %(session)s, parent_id, role, content, text_content, search_text, created_at
    FROM assistant_messages WHERE session_id = %(source)s AND id = ANY(%(ids)s) ORDER BY seq
    """,
    """
    INSERT INTO assistant_labels (session_id, message_id, label, created_at)
    SELECT %(session)s, message_id, label, created_at
    FROM assistant_labels WHERE session_id = %(source)s AND message_id = ANY(%(ids)s)
    """,
)
_COPIED_OVERLAYS = """
SELECT COALESCE(overlay_id, id), summary, from_message_id, to_message_id, created_at
FROM assistant_compactions WHERE session_id = %(source)s AND NOT retired
AND from_message_id = ANY(%(ids)s) AND to_message_id = ANY(%(ids)s) ORDER BY seq
"""
ADD_OVERLAY = """
INSERT INTO assistant_compactions
  (id, overlay_id, session_id, summary, from_message_id, to_message_id, created_at, retired)
VALUES (%(id)s, %(overlay)s, %(session)s, %(summary)s, %(from)s, %(to)s, %(created)s, %(retired)s)
"""


class PostgresStore:
    """Sessions of one agent and user, on a connection or a pool that the caller owns."""

    def __init__(self, conn_or_pool: Any, agent_id: str, *, user_id: str | None = None) -> None:
        self.agent_id = agent_id
        self.user_id = user_id
        self.broadcast: Callable[[str], Any] | None = None
        self._owner = Owner(agent_id, user_id)
        session_key(user_id, agent_id, "any")  # what cannot be is refused here
        self._source = conn_or_pool
        self.database = Database(conn_or_pool)

    # -- parts of a session ------------------------------------------------------------------------

    def record(self, session_id: str) -> Record:
        """A view of the record of a session, there or not."""
        return Record(self.user_id, self.agent_id, session_id)

    def provider(self, session_id: str) -> StoredSession:
        """The provider of a session, there or not."""
        return StoredSession(self._source, self.record(session_id))

    def block_provider(self, session: StoredSession | None, label: str) -> PostgresContextProvider:
        """A context block."""
        return self._text(session, "block", label)

    def prompt_provider(self, session: StoredSession) -> PostgresContextProvider:
        """The frozen prompt."""
        return self._text(session, "prompt", "system")

    def _text(
        self, session: StoredSession | None, kind: str, label: str
    ) -> PostgresContextProvider:
        session_id = None if session is None else session.session_id
        name = compact([self.user_id, self.agent_id, session_id, kind, label]).decode()
        if session is None:
            return PostgresContextProvider(self._source, name)
        return PostgresContextProvider(
            self._source,
            name,
            session=session.record.key,
            guard=session.record,
            touches=kind == "block",
        )

    # -- the registry ------------------------------------------------------------------------------

    async def create(self, session_id: str, **facts: Any) -> SessionInfo:
        """A new session without messages; one that is there stays as it is."""
        parent = facts.pop("parent_session_id", None)
        known = checked_facts(facts)
        record = self.record(session_id)
        async with self.database.operation() as run:
            await run.row(LOCK, record.values)
            if await stored_facts(run, record.key) is None:
                await self._start(run, record, parent, known)
            return await self._info(run, record)

    async def _start(
        self,
        run: Statements,
        record: Record,
        parent: str | None,
        facts: dict[str, Any],
        *,
        messages: int = 0,
    ) -> None:
        if parent is not None:
            parent = check_text("a session id", plain_text("a session id", parent))
        await record.touch(run, messages)
        await store_facts(run, record.key, facts)
        await run.run(_SET_PARENT, {"session": record.key, "parent": parent})

    async def exists(self, session_id: str) -> bool:
        """Whether there is a record of a session."""
        async with self.database.operation() as run:
            row = await run.row(_EXISTS, self.record(session_id).values)
        return row is not None and bool(row[0])

    async def info(self, session_id: str) -> SessionInfo | None:
        """A session's record."""
        async with self.database.operation() as run:
            row = await run.row(ONE_RECORD, self.record(session_id).values)
        return None if row is None else info_of(row, self._owner)

    async def _info(self, run: Statements, record: Record) -> SessionInfo:
        row = await run.row(ONE_RECORD, record.values)
        if row is None:
            raise UnknownSession(record.session_id)
        return info_of(row, self._owner)

    async def list(self) -> Infos:
        """All records, the one touched last first."""
        values = {"user": self.user_id or "", "agent": self.agent_id}
        async with self.database.operation() as run:
            rows = await run.rows(ALL_RECORDS, values)
        return [info_of(row, self._owner) for row in rows]

    async def annotate(self, session_id: str, **facts: Any) -> SessionInfo:
        """Set facts of a session; None clears one."""
        wanted = checked_facts(facts)
        record = self.record(session_id)
        async with self.database.operation() as run:
            await run.row(LOCK, record.values)
            known = await stored_facts(run, record.key)
            if known is None:
                raise UnknownSession(session_id)
            if any(known.get(name) != value for name, value in wanted.items()):
                await store_facts(run, record.key, {**known, **wanted})
                await record.touch(run)
            return await self._info(run, record)

    async def add_usage(
        self, session_id: str, input_tokens: int, output_tokens: int, cost: float
    ) -> SessionInfo:
        """Add to what a session has used."""
        record = self.record(session_id)
        usage = checked_usage(input_tokens, output_tokens, cost)._asdict()
        async with self.database.operation() as run:
            if not await run.run(_ADD_USAGE, {**usage, "session": record.key}):
                raise UnknownSession(session_id)
            await record.touch(run)
            return await self._info(run, record)

    async def delete(self, session_id: str) -> None:
        """Take a session away, all its parts at once; its handles raise `SessionDeleted`."""
        record = self.record(session_id)
        async with self.database.operation() as run:
            await run.row(LOCK, record.values)
            if await stored_facts(run, record.key) is None:
                raise UnknownSession(session_id)
            for statement in FORGET:
                await run.run(statement, record.values)

    async def fork(
        self, session_id: str, at_message_id: str, new_id: str, **facts: Any
    ) -> SessionInfo:
        """A new session with the path to a message, its overlays and labels."""
        source, target = self.record(session_id), self.record(new_id)
        known = checked_facts(facts)
        async with self.database.operation() as run:
            await run.row(LOCK, source.values)
            if await stored_facts(run, source.key) is None:
                raise UnknownSession(session_id)
            steps = await Paths(source.key).all_steps(run, sought(at_message_id))
            if not steps:
                raise UnknownMessage(session_id, at_message_id)
            await run.row(LOCK, target.values)
            if await stored_facts(run, target.key) is not None:
                raise SessionExists(new_id)
            ids = [step.id for step in steps]
            values = {"source": source.key, "session": target.key, "ids": ids}
            for statement in _COPY:
                await run.run(statement, values)
            await self._copy_overlays(run, values)
            copies = [(step.id, step.parent_id, step.size) for step in steps]
            await Paths(target.key).mark(run, copies)
            await self._start(run, target, session_id, known, messages=len(ids))
            return await self._info(run, target)

    async def _copy_overlays(self, run: Statements, values: dict[str, Any]) -> None:
        """Under new ids in the table, and the old ones for readers."""
        copies = [
            {
                "id": fresh_id(),
                "overlay": overlay_id,
                "session": values["session"],
                "summary": summary,
                "from": from_id,
                "to": to_id,
                "created": created,
                "retired": False,
            }
            for overlay_id, summary, from_id, to_id, created in await run.rows(
                _COPIED_OVERLAYS, values
            )
        ]
        await run.many(ADD_OVERLAY, copies)

    # -- search ------------------------------------------------------------------------------------

    async def search(self, query: str, limit: int) -> Any:
        """Hits in all sessions."""
        values = {"user": self.user_id or "", "agent": self.agent_id}
        async with self.database.operation() as run:
            return await search_messages(run, IN_AGENT, query, limit, values, self._owner)


class StoredSession(PostgresSessionProvider):
    """A session of a store: it has a record, which its writes keep up."""

    def __init__(self, source: Any, record: Record) -> None:
        super().__init__(source, record.key, guard=record)
        self.record = record
