"""Paths: walked from a message towards its root, as far as somebody wants to know.

The order of messages is `seq`, and a parent's is smaller than its child's: no walk goes in circles. Here
and there a milestone says how long and how large the path to a message is, so that what is asked about
the end of a path does not cost the whole of it. Any of them may be missing: then the walk goes on.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from typing import NamedTuple
from zlib import crc32

from workspace_session.stores.postgres.database import Row, Statements, time_text

_EVERY = 64  # messages, on average, between two milestones
_FIRST_STRETCH, _LONGEST_STRETCH = 2 * _EVERY, 8192

TIP = """
SELECT COALESCE(
  (SELECT l.message_id FROM assistant_leaves l
   WHERE l.session_id = %(session)s AND (l.message_id = '' OR EXISTS (
     SELECT 1 FROM assistant_messages m WHERE m.session_id = l.session_id AND m.id = l.message_id))),
  (SELECT id FROM assistant_messages WHERE session_id = %(session)s ORDER BY seq DESC LIMIT 1))
"""

_BACK = """
WITH RECURSIVE back AS (
  SELECT id, parent_id, seq, octet_length(content)::bigint AS size, role, 1 AS number
  FROM assistant_messages WHERE session_id = %(session)s AND id = %(leaf)s
  UNION ALL
  SELECT m.id, m.parent_id, m.seq, octet_length(m.content)::bigint, m.role, b.number + 1
  FROM back b JOIN assistant_messages m
    ON m.session_id = %(session)s AND m.id = b.parent_id AND m.seq < b.seq
  WHERE b.number < %(count)s)
SELECT back.id, back.parent_id, back.seq, back.size, back.role, k.messages, k.bytes
FROM back LEFT JOIN assistant_milestones k
  ON k.session_id = %(session)s AND k.message_id = back.id
ORDER BY back.seq DESC
"""

_PATH = f"""
WITH RECURSIVE path AS (
  SELECT id, parent_id, seq FROM assistant_messages
  WHERE session_id = %(session)s AND id = %(leaf)s
  UNION ALL
  SELECT m.id, m.parent_id, m.seq FROM path p JOIN assistant_messages m
    ON m.session_id = %(session)s AND m.id = p.parent_id AND m.seq < p.seq)
SELECT m.id, m.content,
  {time_text("m.created_at")}
FROM path JOIN assistant_messages m ON m.session_id = %(session)s AND m.id = path.id
ORDER BY path.seq
"""

_SET_MILESTONE = """
INSERT INTO assistant_milestones (session_id, message_id, seq, messages, bytes)
SELECT session_id, id, seq, %(messages)s, %(bytes)s FROM assistant_messages
WHERE session_id = %(session)s AND id = %(message)s
ON CONFLICT (session_id, message_id) DO NOTHING
"""

_FORGET_MILESTONES = """
DELETE FROM assistant_milestones WHERE session_id = %(session)s AND seq >= %(seq)s
"""


class Step(NamedTuple):
    """A message on a path, and what its milestone says, if it has one."""

    id: str
    parent_id: str | None
    seq: int
    size: int
    role: str
    messages: int | None
    bytes: int | None


class Extent(NamedTuple):
    """How long a path is."""

    messages: int = 0
    bytes: int = 0


Placed = tuple[str, str | None, int]
"""A message, its parent, and its size."""


class Paths:
    """The paths of one session."""

    def __init__(self, session: str) -> None:
        self.session = session

    async def tip(self, run: Statements) -> str | None:
        """The tip of the active branch."""
        found = await run.rows(TIP, {"session": self.session})
        return found[0][0] or None  # '' says that the next message is a root

    async def rows(self, run: Statements, leaf: str | None) -> list[Row]:
        """Id, content and time of every message of a path, the root first."""
        return await run.rows(_PATH, {"session": self.session, "leaf": leaf})

    async def back(
        self, run: Statements, leaf: str | None, stretch: int = _FIRST_STRETCH
    ) -> AsyncGenerator[Step, None]:
        """The path from a message on towards its root, read in stretches that double."""
        while leaf is not None:
            values = {"session": self.session, "leaf": leaf, "count": stretch}
            found = [Step(*row) for row in await run.rows(_BACK, values)]
            for step in found:
                yield step
            leaf = found[-1].parent_id if len(found) == stretch else None
            stretch = min(stretch * 2, _LONGEST_STRETCH)

    async def all_steps(self, run: Statements, leaf: str | None) -> list[Step]:
        """The whole path, the root first, without contents."""
        found = [step async for step in self.back(run, leaf, _LONGEST_STRETCH)]
        found.reverse()
        return found

    # -- milestones --------------------------------------------------------------------------------

    async def extent(self, run: Statements, leaf: str | None) -> Extent:
        """How long and how large the path to a message is."""
        messages = size = 0
        async with aclosing(self.back(run, leaf)) as steps:
            async for step in steps:
                if step.messages is not None and step.bytes is not None:
                    return Extent(messages + step.messages, size + step.bytes)
                messages, size = messages + 1, size + step.size
        return Extent(messages, size)

    async def passed(self, run: Statements, message_id: str) -> None:
        """Set a milestone at a new message, if it is one of those that get one."""
        if _is_marked(message_id):
            await self._set(run, {message_id: await self.extent(run, message_id)})

    async def mark(self, run: Statements, messages: Iterable[Placed]) -> None:
        """Set milestones all over a session; each message comes after its parent."""
        extents: dict[str | None, Extent] = {}
        for message_id, parent_id, size in messages:
            before = extents.get(parent_id, Extent())
            extents[message_id] = Extent(before.messages + 1, before.bytes + size)
        await self._set(run, {one: extents[one] for one in extents if one and _is_marked(one)})

    async def _set(self, run: Statements, extents: Mapping[str, Extent]) -> None:
        rows = [{"message": one, **extent._asdict()} for one, extent in extents.items()]
        await run.many(_SET_MILESTONE, [{"session": self.session, **row} for row in rows])

    async def changed_from(self, run: Statements, seq: int) -> None:
        """Forget what milestones say of paths that may lead over a message that has changed."""
        await run.run(_FORGET_MILESTONES, {"session": self.session, "seq": seq})


def _is_marked(message_id: str) -> bool:
    return crc32(message_id.encode()) % _EVERY == 0
