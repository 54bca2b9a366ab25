"""Reading a session: its tree, its end, its overlays.

The rules of what is shown are those of `session`: here rows become messages, and walks find out no more
than was asked.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

from workspace_session.errors import SessionDeleted
from workspace_session.model.tokens import estimate_message_tokens
from workspace_session.session.shapes import (
    RecentWindow,
    Shown,
    as_messages,
    overlaid,
)
from workspace_session.session.values import Compaction, RecentHistory, RowStat, SessionMessage
from workspace_session.stores.postgres.database import Database, Statements
from workspace_session.stores.postgres.paths import Paths, Step
from workspace_session.stores.postgres.record import Guard
from workspace_session.stores.postgres.search import IN_SESSION, search_messages
from workspace_session.stores.postgres.stored import (
    COLUMNS,
    ONE,
    SOME,
    all_overlays,
    as_message,
    readable,
)
from workspace_session.stores.postgres.texts import sought
from workspace_session.stores.postgres.visible import visible

_PAGE = 500  # messages
_FEW = 4  # that come between two estimates

_CHILDREN = COLUMNS + "AND parent_id = %(parent)s ORDER BY seq"
_ROOTS = COLUMNS + "AND parent_id IS NULL ORDER BY seq"
_NEXT = COLUMNS + "AND seq > %(after)s ORDER BY seq LIMIT %(count)s"

_ENDING = """
SELECT 1 FROM assistant_compactions
WHERE session_id = %(session)s AND to_message_id = ANY(%(ids)s) LIMIT 1
"""
_UPHEAVALS = "SELECT upheavals FROM assistant_upheavals WHERE session_id = %(session)s"


class SessionReading:
    """One session, for reading."""

    makes_ids = True

    def __init__(self, database: Database, key: str, guard: Guard) -> None:
        self._database = database
        self._key = key
        self._guard = guard
        self._paths = Paths(key)
        self._tokens = _ContextTokens()

    @property
    def identity(self) -> object:
        """What all handles of one session have in common that share a connection or a pool."""
        return (self._database.source, self._key)

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[Statements]:
        async with self._database.operation() as run:
            await self._guard.check(run)
            yield run

    def _values(self, **more: Any) -> dict[str, Any]:
        return {"session": self._key, **more}

    async def is_deleted(self) -> bool:
        """Whether the session was deleted under this handle."""
        try:
            async with self._reading():
                return False
        except SessionDeleted:
            return True

    # -- messages ----------------------------------------------------------------------------------

    async def get_message(self, message_id: str) -> SessionMessage | None:
        """A message, or None."""
        async with self._reading() as run:
            return await self._message(run, message_id)

    async def _message(self, run: Statements, message_id: str | None) -> SessionMessage | None:
        row = await run.row(ONE, self._values(id=sought(message_id)))
        return None if row is None else as_message(row)

    async def get_history(self, leaf_id: str | None = None) -> list[SessionMessage]:
        """The raw path."""
        async with self._reading() as run:
            rows = await self._paths.rows(run, await self._leaf(run, leaf_id))
        return readable(rows)

    async def _leaf(self, run: Statements, leaf_id: str | None) -> str | None:
        return sought(leaf_id) if leaf_id else await self._paths.tip(run)

    async def get_latest_leaf(self) -> SessionMessage | None:
        """The tip."""
        async with self._reading() as run:
            return await self._message(run, await self._paths.tip(run))

    async def get_branches(self, message_id: str | None) -> list[SessionMessage]:
        """Direct children, or the roots."""
        async with self._reading() as run:
            if message_id is None:
                return readable(await run.rows(_ROOTS, self._values()))
            return readable(await run.rows(_CHILDREN, self._values(parent=sought(message_id))))

    async def iter_messages(self) -> AsyncIterator[SessionMessage]:
        """Every message of every branch."""
        after = 0
        while True:
            async with self._reading() as run:
                rows = await run.rows(_NEXT, self._values(after=after, count=_PAGE))
            for message in readable(rows):
                yield message
            if len(rows) < _PAGE:
                return
            after = rows[-1][3]

    async def search_messages(self, query: str, limit: int) -> Any:
        """Hits in this session."""
        async with self._reading() as run:
            return await search_messages(
                run, IN_SESSION, query, limit, self._values(), self._guard.owner
            )

    # -- sizes -------------------------------------------------------------------------------------

    async def get_path_length(self, leaf_id: str | None = None) -> int:
        """How many messages the raw path has."""
        async with self._reading() as run:
            leaf = await self._leaf(run, leaf_id)
            return (await self._paths.extent(run, leaf)).messages

    async def get_row_stats(self) -> list[RowStat]:
        """Sizes of the messages of the active path."""
        async with self._reading() as run:
            steps = await self._paths.all_steps(run, await self._paths.tip(run))
        return [RowStat(step.id, step.role, step.size) for step in steps]

    async def get_recent_history(
        self, max_content_bytes: int, min_recent_messages: int = 1
    ) -> RecentHistory:
        """The raw end of the active path that fits; `Session` applies the overlays inside it."""
        window = RecentWindow(max_content_bytes, min_recent_messages)
        recent: list[Step] = []
        total = 0
        known = False  # whether a milestone has told the size of the rest
        async with self._reading() as run:
            tip = await self._paths.tip(run)
            async with aclosing(self._paths.back(run, tip)) as steps:
                async for step in steps:
                    if window.takes(step.size):
                        recent.append(step)
                    if not known:
                        known = step.bytes is not None
                        total += step.size if step.bytes is None else step.bytes
                    if known and not window.is_open:
                        break
            ids = [step.id for step in recent]
            rows = {row[0]: row for row in await run.rows(SOME, self._values(ids=ids))}
        messages = readable([rows[message_id] for message_id in reversed(ids)])
        return RecentHistory(messages, not window.is_open, total)

    # -- overlays ----------------------------------------------------------------------------------

    async def get_compactions(self) -> list[Compaction]:
        """All overlays, oldest first."""
        async with self._reading() as run:
            return await all_overlays(run, self._key)

    async def get_context(self, leaf_id: str | None = None) -> list[Shown]:
        """The path with overlays applied, without reading what they hide."""
        async with self._reading() as run:
            return await self._shown(run, await self._leaf(run, leaf_id))

    async def _shown(self, run: Statements, leaf: str | None) -> list[Shown]:
        overlays = await all_overlays(run, self._key)
        shown = await visible(run, self._paths, leaf, overlays) if overlays else None
        if shown is None:
            shown = overlaid(readable(await self._paths.rows(run, leaf)), overlays)
        return shown

    async def get_context_tokens(self) -> int:
        """The estimate of the active history; appending adds to it and costs no more."""
        known = self._tokens  # another task may be making another estimate
        async with self._reading() as run:
            found = await run.row(_UPHEAVALS, self._values())
            version = 0 if found is None else found[0]
            tip = await self._paths.tip(run)
            new = await self._appended(run, tip, known) if version == known.version else None
            shown: list[Shown]
            if new is None:
                shown, before = await self._shown(run, tip), 0
            else:
                rows = await run.rows(SOME, self._values(ids=new))
                shown, before = list(readable(rows)), known.total
            row = await run.row(ONE, self._values(id=tip))
        total = before + estimate_message_tokens(as_messages(shown))
        if not run.joined:  # what may yet be rolled back is not remembered
            self._tokens = _ContextTokens(version, tip, row[3] if row else 0, total)
        return total

    async def _appended(
        self, run: Statements, tip: str | None, known: _ContextTokens
    ) -> list[str] | None:
        """The messages between the tip of an estimate and this one; None if it is elsewhere."""
        new: list[str] = []
        if known.tip is None:
            return None
        async with aclosing(self._paths.back(run, tip, _FEW)) as steps:
            async for step in steps:
                if step.seq <= known.seq:
                    known_still = (step.id, step.seq) == (known.tip, known.seq)
                    return new if known_still and not await self._is_taken_up(run, new) else None
                new.append(step.id)
        return None

    async def _is_taken_up(self, run: Statements, new: list[str]) -> bool:
        """Whether a summary ends among messages, so that it counts now and did not before.

        None ends in the newest one alone: nothing has happened since but appends.
        """
        return len(new) > 1 and await run.row(_ENDING, self._values(ids=new)) is not None


class _ContextTokens:
    """An estimate of what a model is shown, and of which messages it is the estimate."""

    def __init__(
        self, version: int = -1, tip: str | None = None, seq: int = 0, total: int = 0
    ) -> None:
        self.version, self.tip, self.seq, self.total = version, tip, seq, total
