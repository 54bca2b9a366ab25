"""JSON lines: a conversation for programs.

Either the messages of one branch, each just as its writer gave it, or every entry of the session: those
lines are a log, and a copy of the session can be made of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from workspace_session.export.story import tell
from workspace_session.files.session_view import SessionView
from workspace_session.model.canonical import compact

What = Literal["shown", "said", "entries"]


def to_jsonl(session: SessionView, what: What = "shown", *, leaf: str | None = None) -> str:
    """What the model sees of a branch, what was said on it, or every entry there is."""
    story = tell(session, leaf)
    lines: Iterable[bytes]
    match what:
        case "shown":
            lines = (compact(item.message) for item in story.shown)
        case "said":
            lines = (compact(item.message) for item in story.said)
        case "entries":
            lines = (entry.line for entry in story.entries)
    return b"".join(line + b"\n" for line in lines).decode()
