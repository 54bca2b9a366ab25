"""Summaries and compactions of AgentScope for Java, kept as custom entries as they were.

In a session an overlay does what they do; the note beside it is what lets an export give them back.
"""

from __future__ import annotations

from typing import Any

from workspace_session.adapters.agentscope_java.lines import Line
from workspace_session.model.canonical import parse
from workspace_session.model.entries import Entry, Other

CUSTOM_TYPE = "agentscope"


def as_data(line: Line) -> dict[str, Any]:
    """What the custom entry of an entry holds."""
    parent = {} if line.parent_id is None else {"parentId": line.parent_id}
    head = {"type": line.type, "id": line.id, **parent, "timestamp": line.timestamp}
    return {**head, "fields": line.fields}


def noted(entry: Entry) -> Line | None:
    """The entry that a custom entry holds; None for any other."""
    if not isinstance(entry, Other) or entry.kind != "custom":
        return None
    wire = parse(entry.line)
    data = wire.get("data")
    match data if wire.get("customType") == CUSTOM_TYPE else None:
        case {
            "type": "summary" | "compaction" as kind,
            "id": str(entry_id),
            "timestamp": str(timestamp),
            "fields": dict(fields),
        }:
            above = data.get("parentId")
            parent = above if isinstance(above, str) else None
            return Line(
                type=kind, id=entry_id, parent_id=parent, timestamp=timestamp, fields=fields
            )
    return None
