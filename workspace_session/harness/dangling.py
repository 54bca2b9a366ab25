"""Tool calls without a result: models refuse them, and a turn that was cut short leaves some behind.

What is stored stays as it is. Only the list for the model gets a result that says what happened, in the
shape that the message with the call has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from workspace_session.harness.messages import as_message
from workspace_session.model.blocks import ToolCall
from workspace_session.model.messages import dangling_tool_calls, tool_calls

NO_RESULT = "[no result: the call was interrupted]"


def close_dangling(messages: Iterable[Any]) -> list[Any]:
    """The messages, each call that has no result followed by one that says so."""
    given = list(messages)
    stored = [as_message(message) for message in given]
    open_calls = set(dangling_tool_calls(stored))
    closed: list[Any] = []
    for message, found in zip(given, stored, strict=True):
        closed.append(message)
        calls = [call for call in tool_calls(found) if call.id in open_calls]
        open_calls.difference_update(call.id for call in calls)
        closed += _results(found, calls) if calls else ()
    return closed


def _results(message: Mapping[str, Any], calls: list[ToolCall]) -> list[Any]:
    if isinstance(message.get("parts"), list):
        return [{"role": "assistant", "parts": [_ui_part(call) for call in calls]}]
    kind = message.get("type")
    if isinstance(kind, str) and kind.endswith("_call"):
        return [
            {"type": f"{kind}_output", "call_id": call.id, "output": NO_RESULT} for call in calls
        ]
    if isinstance(message.get("content"), list) and not message.get("tool_calls"):
        if "name" in message:  # as AgentScope has it
            blocks = [_named_block(call) for call in calls]
            return [{"name": "system", "role": "system", "content": blocks}]
        return [{"role": "user", "content": [_block(call) for call in calls]}]
    return [{"role": "tool", "tool_call_id": call.id, "content": NO_RESULT} for call in calls]


def _ui_part(call: ToolCall) -> dict[str, Any]:
    return {
        "type": "tool-result",
        "toolCallId": call.id,
        "toolName": call.name,
        "result": NO_RESULT,
    }


def _named_block(call: ToolCall) -> dict[str, Any]:
    return {"type": "tool_result", "id": call.id, "name": call.name, "output": NO_RESULT}


def _block(call: ToolCall) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call.id, "content": NO_RESULT}
