"""What an entry says, on one line: for `log`, whatever the entry's type.

Messages and summaries are told by their text. Every other entry, of an unknown type too, is told by the
fields of its line, so that nothing has to be added here when a type is.
"""

from __future__ import annotations

import json
from typing import Any

from workspace_session import Entry, Message
from workspace_session.cli.render import GIST, gist, inert, plural, short, speaker
from workspace_session.model.entries import Compaction
from workspace_session.model.messages import one_line, plain

_COMMON = frozenset({"type", "id", "timestamp", "batch"})


def told(entry: Entry) -> tuple[str, str]:
    """The type of an entry, and its gist."""
    if isinstance(entry, Message):
        said = entry.message
        separator = ":" if entry.author is None else ""
        return entry.type, f"{speaker(said)}{separator} {gist(said, entry.author)}"
    if isinstance(entry, Compaction):
        covered = plural(entry.covers.messages, "message")
        return entry.type, f"{covered}: {inert(one_line(entry.summary, GIST))}"
    wire: dict[str, Any] = json.loads(entry.line)
    fields = (_field(name, value) for name, value in wire.items() if name not in _COMMON)
    return inert(one_line(wire["type"], 20)), inert(one_line(" ".join(fields), GIST))


def _field(name: str, value: Any) -> str:
    if name == "message" and isinstance(value, dict):
        return f"{speaker(value)}: {gist(value)}"
    if isinstance(value, str) and name.endswith("Id"):
        return f"{name}={short(value)}"
    return f"{name}={'null' if value is None else plain(value)}"
