"""Messages and overlays as they are stored, and as readers are given them."""

from __future__ import annotations

from workspace_session.model.canonical import parse
from workspace_session.session.shapes import is_readable
from workspace_session.session.values import Compaction, SessionMessage
from workspace_session.stores.postgres.database import Row, Statements, time_text

COLUMNS = f"""
SELECT id, content, {time_text("created_at")}, seq
FROM assistant_messages WHERE session_id = %(session)s
"""
ONE = COLUMNS + "AND id = %(id)s"
SOME = COLUMNS + "AND id = ANY(%(ids)s)"

_OVERLAYS = f"""
SELECT COALESCE(overlay_id, id), summary, from_message_id, to_message_id,
  {time_text("created_at")}, retired
FROM assistant_compactions WHERE session_id = %(session)s ORDER BY seq
"""


def as_message(row: Row) -> SessionMessage | None:
    """A row as the session API shows it, with its id and the time of its making.

    None if it has not the shape of a message.
    """
    try:
        message = parse(row[1].encode())
    except ValueError:
        return None
    if not isinstance(message, dict):
        return None
    message["id"] = row[0]
    message.setdefault("createdAt", row[2])
    return message if is_readable(message) else None


def readable(rows: list[Row]) -> list[SessionMessage]:
    """Rows as messages, without those that are none."""
    return [message for row in rows if (message := as_message(row)) is not None]


async def all_overlays(run: Statements, session: str) -> list[Compaction]:
    """All overlays, oldest first, those that apply no more too."""
    return [Compaction(*row) for row in await run.rows(_OVERLAYS, {"session": session})]
