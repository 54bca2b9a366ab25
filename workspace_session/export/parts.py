"""Parts: what a message is made of, in the order in which a reader is told.

The answer of a tool stands with its call where one message holds both. A message of a shape that
nobody here knows is told by its JSON: an export leaves nothing out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from workspace_session.errors import StateNotSerializable
from workspace_session.model.blocks import Media, Text, Thinking, ToolCall, ToolResult
from workspace_session.model.canonical import parse
from workspace_session.model.messages import blocks, one_line, plain, role
from workspace_session.model.rendering import render

# Controls, half characters, and what turns the direction of all text behind it.
_ACTIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
# Marks of Markdown that say nothing where nobody renders them.
_MARKUP = re.compile(r"\*\*|`+|^ {0,3}(?:#{1,6} |[-*] |> ?)|\|?(?: ?:?-{3,}:? ?\|)+", re.MULTILINE)
_ENVELOPE = frozenset({"id", "role", "type"})


@dataclass(frozen=True, slots=True)
class Exchange:
    """A tool that was called, or answered, or both."""

    name: str
    call: ToolCall | None
    result: ToolResult | None


@dataclass(frozen=True, slots=True)
class Unread:
    """A message that no dialect explains, as it is."""

    message: Mapping[str, Any]


Part: TypeAlias = Text | Thinking | Media | Exchange | Unread


def parts(message: Mapping[str, Any], tool_names: Mapping[str, str]) -> list[Part]:
    """The parts of a message; `tool_names` gives, by call id, names its results leave out."""
    found: list[Part] = []
    calls: dict[str, tuple[int, ToolCall]] = {}
    for block in blocks(message):
        match block:
            case ToolCall():
                calls[block.id] = (len(found), block)
                found.append(Exchange(block.name, block, None))
            case ToolResult() if block.call_id in calls:
                place, call = calls.pop(block.call_id)
                found[place] = Exchange(call.name, call, block)
            case ToolResult():
                name = block.name or tool_names.get(block.call_id, "")
                found.append(Exchange(name, None, block))
            case _:
                found.append(block)
    if not found and message.keys() - _ENVELOPE:
        return [Unread(message)]
    return found


def speaker(message: Mapping[str, Any], found: Sequence[Part]) -> str:
    """Who speaks; some APIs have a tool answer in the name of the user."""
    answers = [isinstance(part, Exchange) and part.call is None for part in found]
    return "tool" if answers and all(answers) else role(message)


def gist(message: Mapping[str, Any], tool_names: Mapping[str, str], length: int) -> str:
    """A message on one line: what it says or, if that is nothing, what it does."""
    found = parts(message, tool_names)
    said = " ".join(part.text for part in found if isinstance(part, Text))
    if said:
        return one_line(_MARKUP.sub("", said), length)
    return one_line(" ".join(filter(None, map(_deed, found))), length)


def _deed(part: Part) -> str:
    match part:
        case Text(said) | Thinking(said):
            return said
        case Media(kind):
            return f"[{kind}]"
        case Exchange(name, call, result):
            told = call.input if call is not None else result and result.output
            return f"{name} {plain(told)}"
        case Unread(message):
            return plain(dict(message))


def pretty(value: Any) -> str:
    """What a tool was given or gave back: text as it is, JSON with a line for each member."""
    text = plain(value)
    if text[:1] not in ("{", "["):
        return text
    try:
        return render(parse(text.encode()), sort=False, indent=True).decode()
    except (ValueError, StateNotSerializable):  # it only begins like JSON, or is nested too deeply
        return text


def inert(text: str) -> str:
    """The text with every character that acts on what stands beside it written as an escape."""
    return _ACTIVE.sub(_escape, text.replace("\r\n", "\n"))


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
