"""Content blocks: what a message is made of, whichever API wrote it.

Five kinds are enough for every dialect. A block is a value: it holds what was said, and what a tool
was given or gave back exactly as the message had it. `dialects` makes blocks, `messages` uses them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson

from workspace_session.errors import StateNotSerializable
from workspace_session.model.canonical import compact


@dataclass(frozen=True, slots=True)
class Text:
    """Something said to the reader; never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """Reasoning, or a summary of it; empty when the provider withheld or encrypted it."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A request to run a tool; `hosted` ones are run by the provider, so no result is owed."""

    id: str
    name: str
    input: Any
    hosted: bool = False


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gave back; `name` is empty in dialects that only repeat the id of the call."""

    call_id: str
    name: str
    output: Any


@dataclass(frozen=True, slots=True)
class Media:
    """Something that is not text: `image`, `audio`, `video`, `document` or another `file`."""

    kind: str


Block: TypeAlias = Text | Thinking | ToolCall | ToolResult | Media


def compact_json(value: Any) -> str:
    """JSON without spaces, non-ASCII as it is; of what JSON cannot hold, its `str`."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # large integers, lone surrogates and 255 levels are still JSON
        pass
    try:
        return compact(value).decode()
    except StateNotSerializable:
        return _str_or_mark(value)


def _str_or_mark(value: object) -> str:
    try:
        return str(value)
    except (ValueError, RecursionError):  # nested past the stack
        return "…"
