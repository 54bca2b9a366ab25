"""The tables: what `schema.sql` says, and how it is brought into a database."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from workspace_session.stores.postgres.database import Database, Row
from workspace_session.stores.postgres.texts import search_text

_BATCH = 500
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('workspace_session:schema', 0))"

_MESSAGES_WITHOUT = """
SELECT seq, session_id, id, text_content FROM assistant_messages
WHERE seq > %(after)s AND search_text = '' AND text_content <> '' ORDER BY seq LIMIT %(count)s
"""
_SET_MESSAGE = """
UPDATE assistant_messages SET search_text = %(search_text)s
WHERE session_id = %(first)s AND id = %(second)s AND text_content = %(text)s
"""
_ENTRIES_WITHOUT = """
SELECT ARRAY[label, key], label, key, content FROM cf_agents_search_entries
WHERE (label, key) > (%(label)s, %(key)s) AND search_text = '' AND content <> ''
ORDER BY label, key LIMIT %(count)s
"""
_SET_ENTRY = """
UPDATE cf_agents_search_entries SET search_text = %(search_text)s
WHERE label = %(first)s AND key = %(second)s AND content = %(text)s
"""


def schema_sql() -> str:
    """The statements that make the tables, or bring older ones up to date; they may be run again."""
    return files("workspace_session.stores.postgres").joinpath("schema.sql").read_text("utf-8")


async def apply_schema(conn: Any) -> None:
    """Make the tables on a connection or a pool, and what older rows can be searched by."""
    database = Database(conn)
    async with database.operation() as run:
        await run.row(_LOCK)  # two that make the same table at once would be in each other's way
        await run.run(schema_sql())
    await _fill_in(database, _MESSAGES_WITHOUT, _SET_MESSAGE, {"after": 0})
    await _fill_in(database, _ENTRIES_WITHOUT, _SET_ENTRY, {"label": "", "key": ""})


async def _fill_in(database: Database, find: str, store: str, start: dict[str, Any]) -> None:
    """In batches, each of them an operation: rows may be many."""
    while True:
        async with database.operation() as run:
            rows = await run.rows(find, {**start, "count": _BATCH})
            await run.many(store, [_with_tokens(row) for row in rows])
        if not rows:
            return
        last = rows[-1][0]
        start = {"label": last[0], "key": last[1]} if isinstance(last, list) else {"after": last}


def _with_tokens(row: Row) -> dict[str, str]:
    _place, first, second, text = row
    return {"first": first, "second": second, "text": text, "search_text": search_text(text)}
