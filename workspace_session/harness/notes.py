"""Notes: what is worth remembering of a day, in `memory/<date>.md`, for people and agents to read.

A note is added and nothing is changed: what a file held before stays byte for byte. `MEMORY.md` belongs
to people and agents; nothing here writes it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workspace_session.bridge import in_thread
from workspace_session.files.atomic import make_directories, write_atomic
from workspace_session.files.layout import SharedPlace
from workspace_session.files.locks import lock_at
from workspace_session.harness.calling import call_out
from workspace_session.harness.context import BoundContext
from workspace_session.model.canonical import compact, parse

logger = logging.getLogger("workspace_session")


def append_note(
    place: SharedPlace, text: str, *, title: str, now: datetime | None, durable: bool
) -> Path | None:
    """Add a note to the file of the day; None, and nothing written, when it is blank."""
    moment = _moment(now)
    text = _whole(text).strip("\r\n").rstrip()
    if not text.strip():
        return None
    date = f"{moment:%Y-%m-%d}"
    heading = " ".join(_whole(title).split()) or "Note"
    note = f"## {moment:%H:%M:%S}Z {heading}\n\n{text}\n"
    path = place.notes(date)
    shown = place.layout.shown(path.parent)
    with lock_at(place.memory_lock, shown=shown):
        place.layout.check(path)
        make_directories(path.parent, sync=durable)
        earlier = path.read_bytes() if path.exists() else b""
        if earlier:
            earlier += b"\n" if earlier.endswith(b"\n") else b"\n\n"
        else:
            earlier = f"# {date}\n\n".encode()
        write_atomic(path, earlier + note.encode(), sync=durable)
    return path


async def extract_notes(ctx: BoundContext, messages: Sequence[Any]) -> None:
    """Note what is worth remembering of messages; that this fails is only logged."""
    if ctx.extract is None or not messages:
        return
    place = ctx.workspace.layout.shared(ctx.namespace)
    durable = ctx.workspace.durability == "disk"
    try:
        text = await call_out(ctx.extract, list(messages))
        if text is not None:
            await in_thread(append_note, place, text, title="Note", now=None, durable=durable)
    except Exception:
        logger.warning("no notes of session %r: extracting failed", ctx.session_id, exc_info=True)


def _moment(now: datetime | None) -> datetime:
    if now is None:
        return datetime.now(UTC)
    if not isinstance(now, datetime):
        raise TypeError(f"the time of a note is a datetime, not {type(now).__name__}")
    if now.utcoffset() is None:
        raise ValueError("the time of a note needs a time zone")
    return now.astimezone(UTC)


def _whole(text: str) -> str:
    """The text without halves of characters, which no file could hold."""
    if not isinstance(text, str):
        raise TypeError(f"a note is a text, not {type(text).__name__}")
    whole: str = parse(compact(text))
    return whole
