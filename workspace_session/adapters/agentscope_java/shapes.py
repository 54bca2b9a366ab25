"""One entry of AgentScope for Java is one message in AgentScope's shape, and may be had back.

What the shape has no place for stays in `metadata.agentscope`: the original time, the original parent,
unknown members. `original` gives the entry back as long as the message is as it was made from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workspace_session.adapters.agentscope_java.lines import Line
from workspace_session.adapters.agentscope_java.times import Time, understood

KEPT = "agentscope"  # the member of `metadata`

Json = dict[str, Any]


def to_message(line: Line) -> Json:
    """The message of an entry; a `summary` is one only where it has nothing to stand in for."""
    rest = dict(line.fields)
    role, content = _MAKERS[line.type](rest)
    kept: Json = {} if line.type == "message" else {"type": line.type}
    if line.parent_id is not None:
        kept["parentId"] = line.parent_id
    kept = {**kept, "timestamp": line.timestamp, **rest}
    message: Json = {"id": line.id, "name": role, "role": role, "content": content}
    return {**message, "metadata": {KEPT: kept}}


def original(message: Mapping[str, Any]) -> Line | None:
    """The entry that a message was made from, or None when it is another by now."""
    kept = kept_of(message)
    found = time_of(message)
    kind = kept.get("type", "message")
    content = message.get("content")
    if found is None or not isinstance(kind, str) or kind not in _MAKERS:
        return None
    if not isinstance(content, list):
        return None
    fields = {name: kept[name] for name in kept if name not in ("type", "parentId", "timestamp")}
    _FILLERS[kind](fields, message.get("role"), content)
    line = Line(
        type=kind,
        id=str(message.get("id")),
        parent_id=kept.get("parentId"),
        timestamp=found,
        fields={name: value for name, value in fields.items() if value is not None},
    )
    return line if to_message(line) == message else None


def time_of(message: Mapping[str, Any]) -> str | None:
    """The original time of an imported message."""
    found: Time | None = understood(kept_of(message).get("timestamp"))
    return found.text if found else None


def kept_of(message: Mapping[str, Any]) -> Json:
    """What an import has kept beside the message; empty for any other message."""
    metadata = message.get("metadata")
    kept = metadata.get(KEPT) if isinstance(metadata, dict) else None
    return kept if isinstance(kept, dict) else {}


# -- each type: take its members from `rest`, and put them back ------------------------------------


def _said(rest: Json) -> tuple[str, list[Json]]:
    named = rest.get("role")
    role = rest.pop("role").lower() if named and isinstance(named, str) else ""
    said = rest.get("content")
    if isinstance(said, str) and said:
        del rest["content"]
        return role, [{"type": "text", "text": said}]
    kinds = rest.get("blockTypes")
    kinds = kinds if isinstance(kinds, list) else []
    return role, [{"type": kind} for kind in kinds if isinstance(kind, str)]


def _fill_said(fields: Json, role: Any, content: list[Any]) -> None:
    if isinstance(role, str) and role:
        fields["role"] = role.upper()
    if content and isinstance(content[0], dict) and content[0].get("type") == "text":
        fields["content"] = content[0].get("text")


def _called(rest: Json) -> tuple[str, list[Json]]:
    return "assistant", [{"type": "tool_use", **_taken(rest, "input")}]


def _gave(rest: Json) -> tuple[str, list[Json]]:
    return "tool", [{"type": "tool_result", **_taken(rest, "output")}]


def _taken(rest: Json, last: str) -> Json:
    names = {"toolCallId": "id", "name": "name", last: last}
    return {names[name]: rest.pop(name) for name in names if name in rest}


def _fill_tool(fields: Json, _role: Any, content: list[Any]) -> None:
    block = content[0] if content and isinstance(content[0], dict) else {}
    names = {"id": "toolCallId", "name": "name", "input": "input", "output": "output"}
    fields.update({names[name]: block[name] for name in names if name in block})


def _summed_up(rest: Json) -> tuple[str, list[Json]]:
    return "assistant", [{"type": "text", "text": rest.pop("summary", "")}]


def _fill_summary(fields: Json, _role: Any, content: list[Any]) -> None:
    if content and isinstance(content[0], dict):
        fields["summary"] = content[0].get("text")


_MAKERS = {"message": _said, "tool_use": _called, "tool_result": _gave, "summary": _summed_up}
_FILLERS = {
    "message": _fill_said,
    "tool_use": _fill_tool,
    "tool_result": _fill_tool,
    "summary": _fill_summary,
}
