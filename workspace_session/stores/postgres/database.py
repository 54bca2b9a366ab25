"""The database: a connection or a pool that the caller owns, one operation at a time.

An operation is a transaction of its own, or part of the one that the caller has open, and leaves none
behind. Nothing is ever configured, opened or closed here, and values are always bound parameters.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakKeyDictionary

from workspace_session.session.task_lock import TaskLock

Row = tuple[Any, ...]
Values = Mapping[str, Any]

# Providers that share a connection take turns.
_locks: WeakKeyDictionary[Any, TaskLock] = WeakKeyDictionary()


def import_psycopg() -> Any:
    """The driver, or what to do about its absence."""
    try:
        import psycopg
    except ImportError as error:
        raise ImportError(
            "Postgres needs psycopg: pip install 'workspace-session[postgres]'"
        ) from error
    return psycopg


def time_text(column: str) -> str:
    """SQL for a time in the form of all times, whatever the connection makes of one."""
    return f"""to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""


class Statements:
    """What an operation may do: run statements, one after another, in its transaction."""

    def __init__(self, cursor: Any, *, joined: bool) -> None:
        self.joined = joined  # whether the caller may yet roll everything back
        self.touched: int | None = None  # the incarnation of the session whose record was touched
        self._cursor = cursor

    async def run(self, sql: str, values: Values | None = None) -> int:
        """Run a statement; returns how many rows it has touched."""
        await self._cursor.execute(sql, values)
        return int(self._cursor.rowcount)

    async def rows(self, sql: str, values: Values | None = None) -> list[Row]:
        """All rows of a query. It is planned for these values and the tables as they are now: a plan
        made for a table that was empty would read the whole of it at every step of a path."""
        await self._cursor.execute(sql, values, prepare=False)
        found: list[Row] = await self._cursor.fetchall()
        return found

    async def row(self, sql: str, values: Values | None = None) -> Row | None:
        """The first row of a query, or None."""
        await self._cursor.execute(sql, values)
        found: Row | None = await self._cursor.fetchone()
        return found

    async def many(self, sql: str, values: Sequence[Values]) -> None:
        """Run a statement once for each of many values."""
        if values:
            await self._cursor.executemany(sql, values)


class Database:
    """Where operations run."""

    def __init__(self, source: Any) -> None:
        import_psycopg()
        if not _is_asynchronous(source):
            raise TypeError(
                "Postgres providers take a psycopg AsyncConnection or an AsyncConnectionPool, "
                f"not {type(source).__name__}"
            )
        self.source = source
        self.is_pool = not callable(getattr(source, "transaction", None))

    @asynccontextmanager
    async def operation(self) -> AsyncIterator[Statements]:
        """One operation: all of it happens, or nothing."""
        if self.is_pool:
            async with self.source.connection() as connection, _statements(connection) as found:
                yield found
        else:
            turn = _locks.setdefault(self.source, TaskLock())
            async with turn, _statements(self.source) as found:
                yield found


@asynccontextmanager
async def _statements(connection: Any) -> AsyncIterator[Statements]:
    psycopg = import_psycopg()
    joined = connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE
    # Whatever kind of cursor and of rows the caller is used to, these are ours.
    cursor = psycopg.AsyncCursor(connection, row_factory=psycopg.rows.tuple_row)
    async with connection.transaction(), cursor:
        yield Statements(cursor, joined=joined)


def _is_asynchronous(source: Any) -> bool:
    """Told by what it has, so that a connection or a pool may be wrapped."""
    kinds = ("connection", "transaction")
    return any(callable(getattr(source, kind, None)) for kind in kinds) and (
        inspect.iscoroutinefunction(getattr(source, "close", None))
    )
