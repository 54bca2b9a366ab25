"""Dialects: how each API writes a text, a thought, a tool call, a result or a picture.

`read` turns one part, content block or item into blocks. It accepts any JSON value, never raises
and looks one level deep. The dialects share a table because their type names do not collide: UI
parts (`tool-<name>`), Gemini parts (no type at all), OpenAI items (`*_call`, `*_call_output`),
Anthropic and AgentScope blocks (`tool_use`, `tool_result`). What is not recognised gives no blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from workspace_session.model.blocks import Block, Media, Text, Thinking, ToolCall, ToolResult

_Json: TypeAlias = Mapping[str, Any]

_MEDIA_KINDS = {
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "computer_screenshot": "image",
    "audio": "audio",
    "input_audio": "audio",
    "output_audio": "audio",
    "video": "video",
    "video_url": "video",
    "input_video": "video",
    "document": "document",
    "data": "file",
    "file": "file",
    "input_file": "file",
}

_TOOL_INPUTS = ("input", "arguments", "args", "action", "actions", "operation", "code", "queries")


def read(value: object) -> list[Block]:
    """The blocks of one part, content block or item."""
    if isinstance(value, str):
        return [Text(value)] if value else []
    if not isinstance(value, dict):
        return []
    kind = value.get("type")
    if not isinstance(kind, str):
        return _gemini_part(value)
    if reader := _READERS.get(kind):
        return reader(value)
    if kind in _MEDIA_KINDS:
        return [_media(value, _MEDIA_KINDS[kind])]
    return _by_affix(value, kind)


def read_chat_call(value: object) -> list[Block]:
    """A member of a chat completion's `tool_calls`: `{id, function: {name, arguments}}`."""
    if not isinstance(value, dict):
        return []
    body = _object(value, "function", "custom") or value
    return [ToolCall(string(value, "id"), string(body, "name"), _first(body, *_TOOL_INPUTS))]


def is_tool_part(part: _Json) -> bool:
    """Whether a UI part holds a tool call, its result, or both."""
    kind = part.get("type")
    return isinstance(kind, str) and (kind.startswith("tool-") or kind == "dynamic-tool")


def tool_name(part: _Json) -> str:
    """The tool of a UI part: `toolName`, else the `<name>` of its type `tool-<name>`."""
    if named := string(part, "toolName"):
        return named
    kind = string(part, "type")
    if kind in ("tool-call", "tool-result") or not kind.startswith("tool-"):
        return "unknown"
    return kind.removeprefix("tool-") or "unknown"


# -- readers ---------------------------------------------------------------------------------------


def _by_affix(value: _Json, kind: str) -> list[Block]:
    """The families whose members their name gives away."""
    if is_tool_part(value):
        return _tool_part(value)
    if kind.endswith("_call"):
        return _call_item(value)
    if kind.endswith("_call_output"):
        return _output_item(value)
    if kind.endswith("_tool_result"):  # of a tool the provider ran: web_search_tool_result, …
        name = kind.removesuffix("_tool_result")
        return [ToolResult(string(value, "tool_use_id"), name, value.get("content"))]
    return []


def _gemini_part(value: _Json) -> list[Block]:
    """A part without a type: its key says what it is."""
    if said := string(value, "text"):
        return [Thinking(said) if value.get("thought") is True else Text(said)]
    if call := _object(value, "functionCall", "function_call"):
        return [ToolCall(string(call, "id"), string(call, "name"), call.get("args"))]
    if result := _object(value, "functionResponse", "function_response"):
        return [ToolResult(string(result, "id"), string(result, "name"), result.get("response"))]
    if blob := _object(value, "inlineData", "fileData", "inline_data", "file_data"):
        return [_media(blob, "file")]
    return []


def _text(value: _Json) -> list[Block]:
    said = string(value, "text", "refusal")
    return [Text(said)] if said else []


def _thinking(value: _Json) -> list[Block]:
    said = string(value, "thinking", "text", "reasoning")
    return [Thinking(said or _joined(value.get("summary")) or _joined(value.get("content")))]


def _hint(value: _Json) -> list[Block]:
    """AgentScope's note to the model: a string, or text and data blocks."""
    said = _joined(value.get("hint"))
    return [Text(said)] if said else []


def _tool_part(value: _Json) -> list[Block]:
    """A UI part holds the call, and later the result beside it; a result may also stand alone."""
    call_id, name = string(value, "toolCallId"), tool_name(value)
    answers = [key for key in ("output", "result", "errorText") if key in value]
    given = _first(value, "input", "args")
    found: list[Block] = []
    if given is not None or not (answers or value["type"] == "tool-result"):
        found.append(ToolCall(call_id, name, given))
    if answers:
        found.append(ToolResult(call_id, name, value[answers[0]]))
    return found


def _tool_use(value: _Json) -> list[Block]:
    return [ToolCall(string(value, "id"), string(value, "name"), _first(value, *_TOOL_INPUTS))]


def _hosted_tool_use(value: _Json) -> list[Block]:
    return [ToolCall(string(value, "id"), string(value, "name"), value.get("input"), hosted=True)]


def _tool_result(value: _Json) -> list[Block]:
    call_id = string(value, "tool_use_id", "call_id", "id")  # AgentScope's `id` is the call's
    return [ToolResult(call_id, string(value, "name"), _first(value, "output", "content"))]


def _call_item(value: _Json) -> list[Block]:
    """A call of the Responses API; the provider ran, and answered, one without a `call_id`."""
    kind = string(value, "type")
    name = string(value, "name") or kind.removesuffix("_call")
    given = _first(value, *_TOOL_INPUTS, "revised_prompt")
    if call_id := string(value, "call_id"):
        return [ToolCall(call_id, name, given)]
    item_id = string(value, "id")
    call = ToolCall(item_id, name, given, hosted=True)
    if kind == "image_generation_call":  # its result is the picture itself
        return [call, Media("image")]
    gave = _first(value, "output", "outputs", "results", "error")
    return [call] if gave is None else [call, ToolResult(item_id, name, gave)]


def _output_item(value: _Json) -> list[Block]:
    call_id = string(value, "call_id", "id")  # local_shell_call_output may name the call in `id`
    gave = _first(value, "output", "result", "tools")
    if isinstance(gave, dict):  # a screenshot: the one output that is a block, not a list of them
        gave = [gave]
    return [ToolResult(call_id, string(value, "name"), gave)]


def _media(value: _Json, kind: str) -> Media:
    """Files say in their media type what they are."""
    if kind != "file":
        return Media(kind)
    source = _object(value, "source") or value
    media_type = string(source, "mediaType", "mimeType", "media_type", "mime_type", "mime")
    family = media_type.partition("/")[0]
    return Media(family if family in ("image", "audio", "video") else kind)


_READERS: dict[str, Callable[[_Json], list[Block]]] = {
    "text": _text,
    "input_text": _text,
    "output_text": _text,
    "refusal": _text,
    "hint": _hint,
    "reasoning": _thinking,
    "reasoning_text": _thinking,
    "summary_text": _thinking,
    "thinking": _thinking,
    "redacted_thinking": _thinking,
    "tool_use": _tool_use,
    "tool_call": _tool_use,
    "toolCall": _tool_use,
    "server_tool_use": _hosted_tool_use,
    "mcp_tool_use": _hosted_tool_use,
    "tool_result": _tool_result,
    "program": _call_item,
    "program_output": _output_item,
    "tool_search_output": _output_item,
}

# -- picking from an object ------------------------------------------------------------------------


def string(value: _Json, *keys: str) -> str:
    """The first of these members that is a non-empty string, else `""`."""
    for key in keys:
        found = value.get(key)
        if found and isinstance(found, str):
            return found
    return ""


def _object(value: _Json, *keys: str) -> _Json:
    for key in keys:
        found = value.get(key)
        if found and isinstance(found, dict):
            return found
    return {}


def _first(value: _Json, *keys: str) -> Any:
    """The first of these members that is not null: `""`, 0 and False are values."""
    for key in keys:
        found = value.get(key)
        if found is not None:
            return found
    return None


def _joined(value: object) -> str:
    """A string, or the texts of a list of text objects."""
    if not isinstance(value, list):
        return value if isinstance(value, str) else ""
    texts = [string(item, "text") for item in value if isinstance(item, dict)]
    return "\n".join(text for text in texts if text)
