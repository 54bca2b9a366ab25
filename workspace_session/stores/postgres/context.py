"""Context blocks and prompts in Postgres: one text each, by label.

Reading, changing and writing are one transaction under a lock: that of the session, for what is wired
to one, so that a block that is gone with its session is never written again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from workspace_session.stores.postgres.database import Database, Statements
from workspace_session.stores.postgres.provider import LOCK
from workspace_session.stores.postgres.record import Guard, Unrecorded
from workspace_session.stores.postgres.texts import check_key, check_text

_GET = "SELECT content FROM cf_agents_context_blocks WHERE label = %(label)s"
_SET = """
INSERT INTO cf_agents_context_blocks (label, content, session_id, updated_at)
VALUES (%(label)s, %(content)s, %(owner)s, clock_timestamp())
ON CONFLICT (label) DO UPDATE SET content = EXCLUDED.content, updated_at = EXCLUDED.updated_at
"""


class PostgresContextProvider:
    """One text: a writable context block, or a prompt. The caller scopes the label."""

    def __init__(
        self,
        conn: Any,
        label: str,
        *,
        session: str | None = None,
        guard: Guard | None = None,
        touches: bool = False,
    ) -> None:
        self._database = Database(conn)
        self._label = check_key("label", label)
        self._session = session
        self._guard = guard or Unrecorded()
        self._touches = touches  # whether a change counts as one of the session

    async def get(self) -> str | None:
        """The text, or None when it was never set."""
        async with self._database.operation() as run:
            await self._guard.check(run)
            return await self._get(run)

    async def set(self, content: str) -> None:
        """Replace the text."""
        check_text(f"the content of block {self._label!r}", content)
        await self.update(lambda _old: content)

    async def update(self, change: Callable[[str], str]) -> str:
        """Read, change and write under one lock; returns the new text."""
        async with self._writing() as run:
            old = await self._get(run)
            new = check_text(f"the content of block {self._label!r}", change(old or ""))
            if new != old:
                await self._set(run, new)
                if self._touches:
                    await self._guard.touch(run)
        return new

    async def set_if_absent(self, content: str) -> str:
        """Set the text unless there is one; returns what is there in the end."""
        check_text(f"the content of block {self._label!r}", content)
        async with self._writing() as run:
            old = await self._get(run)
            if old is None:
                await self._set(run, content)
        return content if old is None else old

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[Statements]:
        async with self._database.operation() as run:
            await run.row(LOCK, {"session": self._session or f"block:{self._label}"})
            await self._guard.check(run)
            yield run
        self._guard.settle(run)

    async def _get(self, run: Statements) -> str | None:
        row = await run.row(_GET, {"label": self._label})
        return None if row is None else row[0]

    async def _set(self, run: Statements, content: str) -> None:
        values = {"label": self._label, "content": content, "owner": self._session}
        await run.run(_SET, values)
