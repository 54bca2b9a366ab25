"""Messages: what any of the understood shapes says, as role, text, tool calls and results.

This is the one door to the knowledge of message shapes; storage never opens it. Every function
takes any JSON value, never raises and never recurses, so a strange message harms no other. The
shapes: UI messages with `parts`, OpenAI input items and chat messages, AgentScope `Msg`, Anthropic
messages, and their near relatives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from workspace_session.model.blocks import (
    Block,
    Media,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    compact_json,
)
from workspace_session.model.dialects import read, read_chat_call, string

_ROLES = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "system": "system",
    "tool": "tool",
    "toolresult": "tool",
    "function": "tool",
}

_OF_ASSISTANTS = frozenset({"reasoning", "program", "compaction", "mcp_approval_request"})

# What carries the bytes or leads to them: it tells media from a tool's own `{"type": "file"}`.
_PAYLOADS = frozenset(
    {"source", "data", "url", "image_url", "input_audio", "file_data", "file_id", "file_url"}
)


def role(message: Mapping[str, Any]) -> str:
    """Who speaks: `user`, `assistant`, `system`, `tool`, another role as it is, or `""`."""
    message = _object(message)
    named = string(message, "role")
    if named:
        return _ROLES.get(named.casefold(), named)
    kind = string(message, "type")
    if kind.endswith("_output"):
        return "tool"
    if kind.endswith("_call") or kind in _OF_ASSISTANTS:
        return "assistant"
    return ""


def blocks(message: Mapping[str, Any]) -> list[Block]:
    """What the message is made of, in order."""
    message = _object(message)
    parts = message.get("parts")
    if isinstance(parts, list):
        return [block for part in parts for block in read(part)]
    if isinstance(message.get("type"), str) and not ("role" in message and "content" in message):
        return read(message) or _content(message)
    return _result_message(message) or _content(message)


def text(message: Mapping[str, Any]) -> str:
    """The texts of the message, one below the other: what search and summaries use."""
    return "\n".join(block.text for block in blocks(message) if isinstance(block, Text))


def tool_text(message: Mapping[str, Any]) -> str:
    """What tools were called with and gave back, for those who search that too."""
    return "\n".join(
        line
        for block in blocks(message)
        if isinstance(block, ToolCall | ToolResult) and (line := _tool_line(block))
    )


def tool_calls(message: Mapping[str, Any]) -> list[ToolCall]:
    """The calls this message makes."""
    return [block for block in blocks(message) if isinstance(block, ToolCall)]


def tool_results(message: Mapping[str, Any]) -> list[ToolResult]:
    """The results this message brings."""
    return [block for block in blocks(message) if isinstance(block, ToolResult)]


def dangling_tool_calls(messages: Iterable[Mapping[str, Any]]) -> list[str]:
    """The ids of calls that no message answers, in order; calls without an id cannot be named."""
    called: dict[str, None] = {}
    answered: set[str] = set()
    for message in messages:
        for block in blocks(message):
            if isinstance(block, ToolCall) and block.id and not block.hosted:
                called[block.id] = None
            elif isinstance(block, ToolResult):
                answered.add(block.call_id)
    return [call_id for call_id in called if call_id not in answered]


# -- for people ------------------------------------------------------------------------------------


def describe(message: Mapping[str, Any], tool_names: Mapping[str, str] | None = None) -> str:
    """The whole message as text; `tool_names` gives, by call id, names its results leave out."""
    lines = [_line(block, tool_names or {}) for block in blocks(message)]
    if not lines:
        return _mark(_object(message))
    return "\n".join(lines)


def _mark(message: dict[str, Any]) -> str:
    """What there is to say of a message that says nothing itself."""
    kind = string(message, "type")
    if message.get("__enc__") == 1:
        return "[encrypted]"
    if kind == "mcp_approval_request":
        asked = f"{string(message, 'name')}({plain(message.get('arguments'))})"
        return f"[{kind} {asked}]"
    return f"[{kind}]" if kind and kind != "message" else ""


def one_line(text: str, limit: int) -> str:
    """The text with its whitespace collapsed, cut to `limit` characters and `…`."""
    limit = max(limit, 0)
    # That many words are more than `limit` characters: the rest of a long text stays unsplit.
    joined = " ".join(text.split(None, limit))
    return joined if len(joined) <= limit else joined[:limit] + "…"


def plain(value: Any) -> str:
    """A tool's input or output: text as it is, lists of content blocks by their text, else JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    shown = [_shown(item) for item in value] if isinstance(value, list) else []
    if not shown or None in shown:
        return compact_json(value)
    return "\n".join(line for line in shown if line)


def _shown(item: object) -> str | None:
    """The text of a content block, a mark for media (never its base64), None for other values."""
    if not isinstance(item, dict) or not isinstance(item.get("type"), str):
        return None
    match read(item):
        case [Text(said)]:
            return said
        case [Media(kind)] if not _PAYLOADS.isdisjoint(item):
            return f"[{kind}]"
        case [] if item.get("text") == "":
            return ""
    return None


def _line(block: Block, tool_names: Mapping[str, str]) -> str:
    match block:
        case Text(said):
            return said
        case Thinking(said):
            return f"[thinking] {said}".rstrip()
        case ToolCall(name=name, input=given):
            return f"[tool_call {name}({plain(given)})]" if plain(given) else f"[tool_call {name}]"
        case ToolResult(call_id, name, gave):
            name = name or tool_names.get(call_id, "")
            return f"[tool_result {name}".rstrip() + f"] {plain(gave)}".rstrip()
        case Media(kind):
            return f"[{kind}]"


def _tool_line(block: ToolCall | ToolResult) -> str:
    if isinstance(block, ToolCall):
        return f"{block.name} {plain(block.input)}".strip()
    return plain(block.output)


# -- the envelope ----------------------------------------------------------------------------------


def _object(message: object) -> dict[str, Any]:
    if isinstance(message, dict):
        return message
    return dict(message) if isinstance(message, Mapping) else {}


def _result_message(message: dict[str, Any]) -> list[Block]:
    """A message that is one tool result as a whole, as in chat completions."""
    if role(message) != "tool":
        return []
    call_id = string(message, "tool_call_id", "toolCallId")
    content = message.get("content")
    if not call_id and not isinstance(content, str):
        return []
    return [ToolResult(call_id, string(message, "name", "toolName", "tool_name"), content)]


def _content(message: dict[str, Any]) -> list[Block]:
    """`content` and what chat completions keep beside it."""
    content = message.get("content")
    found: list[Block] = []
    if thought := string(message, "reasoning_content", "reasoning"):
        found.append(Thinking(thought))
    for item in content if isinstance(content, list) else [content]:
        found += read(item)
    if refusal := string(message, "refusal"):
        found.append(Text(refusal))
    calls = message.get("tool_calls") or message.get("toolCalls")
    for call in calls if isinstance(calls, list) else ():
        found += read_chat_call(call)
    return found
