"""Tool parts: which call a result answers, and where a list of messages may be cut.

A call and the unbroken run of its results are one group, and no boundary given here splits one.
Boundaries are found in one walk over the run of tool messages around them, so a group of thousands
of results costs no more than reading it once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from workspace_session.model import dialects
from workspace_session.session.values import SessionMessage

Part: TypeAlias = Mapping[str, Any]

NO_RESULT = "[Result not available: see the summary above]"


# -- one part --------------------------------------------------------------------------------------


def is_tool_part(part: object) -> bool:
    """Whether a part holds a tool call, its result, or both."""
    return isinstance(part, Mapping) and dialects.is_tool_part(part)


def tool_name(part: Part) -> str:
    """`toolName`, else the `<name>` of a type `tool-<name>`, else `unknown`."""
    return dialects.tool_name(part)


def call_id(part: Part) -> str | None:
    """What ties a result to its call; None for a part that names no call."""
    found = part.get("toolCallId")
    return found if isinstance(found, str) else None


def tool_parts(message: Mapping[str, Any]) -> list[Part]:
    """The tool parts of a message, in order."""
    parts = message.get("parts")
    return [part for part in parts if is_tool_part(part)] if isinstance(parts, list) else []


def is_result(part: Part) -> bool:
    """Whether the tool has answered: an answer of `None` or `False` is one too."""
    return "output" in part or "result" in part


def call_ids(message: Mapping[str, Any]) -> frozenset[str]:
    """The ids that the tool parts of a message name."""
    named = (call_id(part) for part in tool_parts(message))
    return frozenset(found for found in named if found is not None)


# -- boundaries ------------------------------------------------------------------------------------


def align_forward(messages: Sequence[SessionMessage], i: int) -> int:
    """The first boundary at or after `i` that splits no group."""
    if not 0 < i < len(messages):
        return i
    for boundary, splits in _boundaries(messages, _run_start(messages, i)):
        if boundary >= i and not splits:
            return boundary
    return len(messages)


def align_backward(messages: Sequence[SessionMessage], i: int) -> int:
    """The last boundary at or before `i` that splits no group."""
    if not 0 < i < len(messages):
        return i
    whole = i
    for boundary, splits in _boundaries(messages, _run_start(messages, i)):
        if boundary > i:
            break
        if not splits:
            whole = boundary
    return whole


def _run_start(messages: Sequence[SessionMessage], i: int) -> int:
    """Where the run of tool messages around `i` begins: a boundary that nothing reaches across."""
    while i > 0 and call_ids(messages[i]):
        i -= 1
    return i


def _boundaries(messages: Sequence[SessionMessage], start: int) -> Iterator[tuple[int, bool]]:
    """Each boundary from `start` on, and whether it splits a group."""
    # Calls that every message since has answered. Equal ones are one: without that, many messages
    # with the same call id would be many groups, each carried along to the end.
    open_groups: set[frozenset[str]] = set()
    for boundary in range(start, len(messages)):
        ids = call_ids(messages[boundary])
        open_groups = {group for group in open_groups if not group.isdisjoint(ids)}
        yield boundary, bool(open_groups)
        if ids and messages[boundary].get("role") == "assistant":
            open_groups.add(ids)


# -- pairs -----------------------------------------------------------------------------------------


def sanitize_tool_pairs(messages: Sequence[SessionMessage]) -> list[SessionMessage]:
    """The messages without results that nothing called for, and with a stub for each lost result."""
    called: set[str] = set()
    answered: set[str | None] = set()
    for message in messages:
        if message.get("role") == "assistant":
            called |= call_ids(message)
        answered.update(call_id(part) for part in tool_parts(message) if is_result(part))
    kept = [whole for message in messages if (whole := _without_orphans(message, called))]
    pending = call_ids(kept[-1]) if kept else frozenset()
    return _with_stubs(kept, called - answered - pending)


def _without_orphans(message: SessionMessage, called: set[str]) -> SessionMessage | None:
    """The message, a copy with fewer parts, or None when it held nothing but orphans."""
    if message.get("role") == "assistant":
        return message  # every id it names counts as a call
    parts = message.get("parts") or []
    kept = [part for part in parts if not _is_orphan(part, called)]
    if len(kept) == len(parts):
        return message
    return {**message, "parts": kept} if kept else None


def _is_orphan(part: object, called: set[str]) -> bool:
    if not isinstance(part, Mapping) or not is_tool_part(part) or not is_result(part):
        return False
    return call_id(part) not in called


def _with_stubs(messages: list[SessionMessage], lost: set[str]) -> list[SessionMessage]:
    """The messages, the first that makes a lost call followed by a stub; `lost` ends up empty."""
    whole: list[SessionMessage] = []
    for message in messages:
        whole.append(message)
        if message.get("role") != "assistant":
            continue
        for part in tool_parts(message):
            found = call_id(part)
            if found is not None and found in lost:
                lost.remove(found)
                whole.append(_stub(found, tool_name(part)))
    return whole


def _stub(found: str, name: str) -> SessionMessage:
    part = {"type": "tool-result", "toolCallId": found, "toolName": name, "result": NO_RESULT}
    return {"id": f"stub-{found}", "role": "assistant", "parts": [part]}
