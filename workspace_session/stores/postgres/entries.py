"""Entries in Postgres that a model can search and write, by key."""

from __future__ import annotations

from typing import Any

from workspace_session.search import Query
from workspace_session.stores.postgres.database import Database
from workspace_session.stores.postgres.search import ENTRIES, search_rows
from workspace_session.stores.postgres.texts import SEARCHABLE, check_key, check_text, search_text

_TOP = 10
_COUNT = "SELECT count(*) FROM cf_agents_search_entries WHERE label = %(label)s"
_SET = """
INSERT INTO cf_agents_search_entries (label, key, content, search_text)
VALUES (%(label)s, %(key)s, %(content)s, %(search_text)s)
ON CONFLICT (label, key) DO UPDATE SET content = EXCLUDED.content,
  search_text = EXCLUDED.search_text, updated_at = clock_timestamp()
"""


class PostgresSearchProvider:
    """Entries by label and key; the label is that of the block, which `init` tells."""

    def __init__(self, conn: Any) -> None:
        self._database = Database(conn)
        self.init("search")

    def init(self, label: str) -> None:
        """The label of the block; entries of different labels are kept apart."""
        self._label = check_key("label", label)

    async def get(self) -> str | None:
        """How many entries there are; None without any."""
        async with self._database.operation() as run:
            row = await run.row(_COUNT, {"label": self._label})
        return f"{row[0]} entries indexed." if row and row[0] else None

    async def set(self, key: str, content: str) -> None:
        """Write an entry."""
        check_key("key", key)
        size = len(check_text(f"the content of entry {key!r}", content).encode())
        if size > SEARCHABLE:
            raise ValueError(f"entry {key!r} has {size} bytes; at most {SEARCHABLE} can be indexed")
        values = {"label": self._label, "key": key, "content": content}
        async with self._database.operation() as run:
            await run.run(_SET, {**values, "search_text": search_text(content)})

    async def search(self, query: str) -> str | None:
        """The best entries that hold all words of the query; None if there is none."""
        async with self._database.operation() as run:
            values = {"label": self._label}
            found = await search_rows(run, ENTRIES, Query.of(query), _TOP, values)
        return "\n\n".join(f"[{key}]\n{content}" for key, content in found) or None
