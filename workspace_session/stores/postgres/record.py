"""The record of a session: what is known of it as a whole, and whether it still is the same session.

A session that is deleted and made again has another incarnation, by which every handle of the first
one, in any process, knows that its session is gone.
"""

from __future__ import annotations

from typing import Any, Protocol

from workspace_session.errors import SessionDeleted
from workspace_session.model.canonical import compact, parse
from workspace_session.model.info import SessionInfo, from_member
from workspace_session.model.messages import one_line
from workspace_session.stores.postgres.database import Row, Statements, time_text
from workspace_session.stores.postgres.search import NOBODY, Owner
from workspace_session.stores.postgres.texts import session_key

_SUMMARY = 120  # characters

_INCARNATION = "SELECT incarnation FROM assistant_sessions WHERE session_id = %(session)s"

# A touch is later than every other one of the agent, whatever the clocks say.
_TOUCH = """
INSERT INTO assistant_sessions
  (user_id, agent_id, id, session_id, message_count, created_at, updated_at)
SELECT %(user)s, %(agent)s, %(id)s, %(session)s, greatest(%(more)s::bigint, 0), now.time, now.time
FROM (SELECT greatest(clock_timestamp(), (
  SELECT max(updated_at) + interval '1 microsecond' FROM assistant_sessions
  WHERE user_id = %(user)s AND agent_id = %(agent)s)) AS time) AS now
ON CONFLICT (user_id, agent_id, id) DO UPDATE SET updated_at = EXCLUDED.updated_at,
  message_count = greatest(assistant_sessions.message_count + %(more)s::bigint, 0)
RETURNING incarnation
"""

_COLUMNS = f"""
SELECT s.id, s.parent_session_id, s.facts,
  s.input_tokens, s.output_tokens, s.estimated_cost, s.message_count,
  {time_text("s.created_at")},
  {time_text("s.updated_at")},
  (SELECT left(m.text_content, 2000) FROM assistant_messages m WHERE m.session_id = s.session_id
   AND m.role = 'user' AND m.text_content ~ '\\S' ORDER BY m.seq LIMIT 1),
  (SELECT array_agg(l.message_id ORDER BY l.created_at, l.message_id) FROM assistant_labels l
   WHERE l.session_id = s.session_id),
  (SELECT array_agg(l.label ORDER BY l.created_at, l.message_id) FROM assistant_labels l
   WHERE l.session_id = s.session_id)
FROM assistant_sessions s WHERE s.user_id = %(user)s AND s.agent_id = %(agent)s
"""
ONE_RECORD = _COLUMNS + "AND s.id = %(id)s"
ALL_RECORDS = _COLUMNS + """ORDER BY s.updated_at DESC, s.id COLLATE "C" """

_FACTS = """
SELECT facts FROM assistant_sessions WHERE session_id = %(session)s FOR UPDATE
"""
_SET_FACTS = """
UPDATE assistant_sessions SET name = %(name)s, model = %(model)s, source = %(source)s,
  end_reason = %(endReason)s, facts = %(facts)s WHERE session_id = %(session)s
"""


class Guard(Protocol):
    """What a provider knows of its session beside the messages."""

    owner: Owner

    async def check(self, run: Statements) -> None:
        """Raise `SessionDeleted` if this is not the session any more that it was."""

    async def touch(self, run: Statements, more: int = 0) -> None:
        """Something was changed; there are so many messages more, or fewer."""

    def settle(self, run: Statements) -> None:
        """What was done has happened, unless it is part of a transaction of the caller."""


class Unrecorded:
    """A session of which nothing is known but its messages."""

    owner = NOBODY

    async def check(self, run: Statements) -> None:
        """There is no one to delete it."""

    async def touch(self, run: Statements, more: int = 0) -> None:
        """There is nothing to note it in."""

    def settle(self, run: Statements) -> None:
        """There is nothing to remember."""


class Record:
    """One handle's view of a session's row in the registry."""

    def __init__(self, user_id: str | None, agent_id: str, session_id: str) -> None:
        self.session_id = session_id
        self.owner = Owner(agent_id, user_id)
        self.key = session_key(user_id, agent_id, session_id)
        self.values = {
            "user": user_id or "",
            "agent": agent_id,
            "id": session_id,
            "session": self.key,
        }
        self._known: int | None = None

    async def check(self, run: Statements) -> None:
        """Raise `SessionDeleted` if this is not the session any more that it was."""
        known = self._known  # as it is now: meanwhile another task may make the session
        row = await run.row(_INCARNATION, self.values)
        found = None if row is None else row[0]
        if known is not None and found != known:
            raise SessionDeleted(self.session_id)
        if self._known is None and not run.joined:
            self._known = found

    async def touch(self, run: Statements, more: int = 0) -> None:
        """Something was changed; the first touch makes the record."""
        row = await run.row(_TOUCH, {**self.values, "more": more})
        assert row is not None
        run.touched = row[0]

    def settle(self, run: Statements) -> None:
        """What was touched is there, unless the caller may yet roll it back."""
        if run.touched is not None and not run.joined:
            self._known = run.touched


# -- facts -----------------------------------------------------------------------------------------


async def stored_facts(run: Statements, session: str) -> dict[str, Any] | None:
    """The facts of a session, under the names they have on a line; None without a record."""
    row = await run.row(_FACTS, {"session": session})
    return None if row is None else parse(row[0].encode())


async def store_facts(run: Statements, session: str, facts: dict[str, Any]) -> None:
    """Replace the facts of a session; some have columns as well, for readers of the table."""
    known = {name: value for name, value in facts.items() if value is not None}
    texts = {name: v.replace("\0", "") for name, v in known.items() if isinstance(v, str)}
    values = {name: texts.get(name) for name in ("name", "model", "source", "endReason")}
    await run.run(_SET_FACTS, {**values, "facts": compact(known).decode(), "session": session})


def info_of(row: Row, owner: Owner) -> SessionInfo:
    """What a row of `ONE_RECORD` or `ALL_RECORDS` says."""
    (session_id, parent, known, tokens_in, tokens_out, cost, count) = row[:7]
    (created, updated, first, targets, labels) = row[7:]
    facts = parse(known.encode())
    tags, summary = facts.get("tags"), facts.get("summary")
    member = {
        "name": facts.get("name"),
        "summary": summary if isinstance(summary, str) else one_line(first or "", _SUMMARY),
        "model": facts.get("model"),
        "source": facts.get("source"),
        "endReason": facts.get("endReason"),
        "tags": sorted(tags) if isinstance(tags, list) else (),
        "parentSessionId": parent,
        "inputTokens": tokens_in,
        "outputTokens": tokens_out,
        "cost": cost,
        "messageCount": count,
        "createdAt": created,
        "updatedAt": updated,
        "labels": dict(zip(targets or (), labels or (), strict=True)),
    }
    return from_member(session_id, member, agent_id=owner.agent_id or "", user_id=owner.user_id)
