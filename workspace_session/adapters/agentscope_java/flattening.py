"""A message of any shape as entries of AgentScope for Java: texts, and tool blocks in two ways.

By default what tools were asked and gave is text among the texts. As entries of their own, a message
becomes a chain: what was said, each call, each result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from workspace_session.adapters.agentscope_java.lines import Line
from workspace_session.adapters.agentscope_java.shortening import cut, length, shortened
from workspace_session.model.blocks import (
    Block,
    Media,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    compact_json,
)
from workspace_session.model.canonical import parse
from workspace_session.model.messages import blocks, plain, role

_INPUT, _OUTPUT = 500, 1000

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Flattener:
    """Makes entries of messages; `tool_names` gives, by call id, names that results leave out."""

    tool_entries: bool
    tool_names: Mapping[str, str]

    def lines(self, message_id: str, message: Json, parent: str | None, time: str) -> list[Line]:
        """The entries of a message, each hanging from the one before."""
        parts = blocks(message)
        found: list[Line] = []

        def add(kind: str, entry_id: str, fields: Json) -> None:
            above = found[-1].id if found else parent
            fields = {name: value for name, value in fields.items() if value is not None}
            line = Line(type=kind, id=entry_id, parent_id=above, timestamp=time, fields=fields)
            found.append(line)

        tools = [part for part in parts if isinstance(part, ToolCall | ToolResult)]
        if not self.tool_entries:
            add("message", message_id, self._with_tools(message, parts))
            return found
        said = [part for part in parts if part not in tools]
        if said or not tools:
            add("message", message_id, _said(message, said, _texts(said)))
        ids = _distinct(message_id)
        for index, part in enumerate(tools):
            if isinstance(part, ToolCall):
                add("tool_use", ids("use", part.id or f"idx-{index}"), _use(part))
            else:
                add("tool_result", ids("result", part.call_id or f"idx-{index}"), self._gave(part))
        return found

    def _with_tools(self, message: Json, parts: list[Block]) -> Json:
        calls = [
            part.id if isinstance(part, ToolCall) else part.call_id
            for part in parts
            if isinstance(part, ToolCall | ToolResult)
        ]
        fields = _said(message, parts, list(self._shown(parts)))
        return {**fields, "toolCallId": (calls[0] or None) if calls else None}

    def _shown(self, parts: list[Block]) -> Iterator[str]:
        for part in parts:
            match part:
                case Text(said):
                    yield said
                case ToolCall(name=name, input=given):
                    asked = shortened(_input_text(given), _INPUT, "...")
                    yield f"[tool_call: {name}({asked})]" if asked else f"[tool_call: {name}]"
                case ToolResult(output=output):
                    gave = shortened(plain(output), _OUTPUT, "...(truncated)")
                    yield f"[tool_result: {self._name(part)}] {gave}".rstrip(" ")

    def _gave(self, part: ToolResult) -> Json:
        output = plain(part.output)
        fields = {"toolCallId": part.call_id, "name": self._name(part)}
        kinds = _output_kinds(part.output)
        return {
            **fields,
            "output": cut(output, _OUTPUT),
            "outputBlockTypes": kinds or None,
            **_truncation(length(output), _OUTPUT),
        }

    def _name(self, part: ToolResult) -> str:
        return part.name or self.tool_names.get(part.call_id, "")


# -- texts -----------------------------------------------------------------------------------------


def _texts(parts: list[Block]) -> list[str]:
    return [part.text for part in parts if isinstance(part, Text)]


def _said(message: Json, parts: list[Block], texts: list[str]) -> Json:
    kinds = [_kind(part) for part in parts] or _raw_kinds(message)
    return {
        "role": role(message).upper() or None,
        "content": "\n".join(texts),
        "blockTypes": kinds or None if not texts else None,
    }


def _kind(part: Block) -> str:
    match part:
        case Media(kind):
            return kind
        case Thinking():
            return "thinking"
    return "text"


def _raw_kinds(message: Json) -> list[str]:
    """The types of blocks that nobody understands."""
    content = message.get("content")
    items = content if isinstance(content, list) else []
    kinds = [item.get("type") for item in items if isinstance(item, dict)]
    return [kind for kind in kinds if isinstance(kind, str)]


# -- tools -----------------------------------------------------------------------------------------


def _use(part: ToolCall) -> Json:
    given = _input_object(part.input)
    text = compact_json(given)
    size = length(text)
    if size > _INPUT:
        given = {"_preview": cut(text, _INPUT), "_truncated": True, "_originalSize": size}
    fields = {"toolCallId": part.id, "name": part.name, "input": given}
    return {**fields, **_truncation(size, _INPUT)}


def _truncation(size: int, limit: int) -> Json:
    return {"truncated": True, "originalSize": size} if size > limit else {"truncated": False}


def _input_text(given: Any) -> str:
    """What a tool was asked, as JSON; nothing for an input without members."""
    text = given if isinstance(given, str) else compact_json(given)
    return "" if given is None or text.strip() in ("", "{}") else text


def _input_object(given: Any) -> Json:
    """The same as an object, which some dialects write as a text of JSON."""
    if isinstance(given, str) and given:
        with suppress(ValueError):  # a text that is no JSON is an input all the same
            given = parse(given.encode("utf-8", "replace"))
    if given is None or given == "":
        return {}
    return given if isinstance(given, dict) else {"input": given}


def _output_kinds(output: Any) -> list[str]:
    if isinstance(output, str):
        return ["text"] if output else []
    items = output if isinstance(output, list) else []
    kinds = [item.get("type") for item in items if isinstance(item, dict)]
    return [kind for kind in kinds if isinstance(kind, str)]


def _distinct(message_id: str) -> Callable[[str, str], str]:
    """Ids of tool entries; a message may use one call id twice."""
    used: dict[str, int] = {}

    def make(kind: str, call_id: str) -> str:
        entry_id = f"{message_id}:{kind}:{call_id}"
        used[entry_id] = used.get(entry_id, 0) + 1
        return entry_id if used[entry_id] == 1 else f"{entry_id}:{used[entry_id]}"

    return make
