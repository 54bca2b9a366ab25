"""A connection for those who have none: what the commands of the shell use.

Only here is one opened and closed, and what the driver or the server complains about becomes one
sentence.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from workspace_session.errors import PostgresFailed
from workspace_session.stores.postgres.database import Database, import_psycopg

_OWNERS = "SELECT DISTINCT agent_id, user_id FROM assistant_sessions ORDER BY user_id, agent_id"
_NO_TABLES = "workspace-session postgres-schema --apply makes the tables"


@asynccontextmanager
async def connected(dsn: str | None = None) -> AsyncIterator[Any]:
    """A connection to a database; without an address, to the one that libpq's environment names."""
    psycopg = import_psycopg()
    try:
        async with await psycopg.AsyncConnection.connect(dsn or "") as connection:
            yield connection
    except psycopg.errors.UndefinedTable as error:
        raise PostgresFailed(f"{_first_line(error)} ({_NO_TABLES})") from error
    except psycopg.Error as error:
        raise PostgresFailed(_first_line(error)) from error


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


async def owners(conn: Any) -> list[tuple[str, str | None]]:
    """The agents that have sessions in a database, by id and user."""
    async with Database(conn).operation() as run:
        return [(agent, user or None) for agent, user in await run.rows(_OWNERS)]
