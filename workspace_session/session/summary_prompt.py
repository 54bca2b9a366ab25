"""The prompt that asks for a summary: a transcript without noise, and the shape of the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from workspace_session.model.blocks import compact_json
from workspace_session.session.tool_parts import tool_name, tool_parts
from workspace_session.session.values import SessionMessage

_VALUE_LENGTH = 500
_SEPARATOR = "\n\n---\n\n"

_OPENING = """\
The conversation below is about to leave the context of an assistant. Write the summary that takes \
its place, so that the assistant can go on as if it still saw everything."""

_FIRST = """\
CONVERSATION:
{turns}"""

_NEXT = """\
PREVIOUS SUMMARY:
{previous}

NEW TURNS:
{turns}

Bring the previous summary up to date with the new turns: keep what is still relevant, add what is \
new, and drop only what is clearly obsolete."""

_ANSWER = """\
Answer under these headings:

## Topic
What the conversation is about and what the user wants from it.

## Key Points
Facts, decisions, preferences and results, with the names and numbers that matter.

## Current State
What is done, and where things stand at the end.

## Open Items
Questions without an answer, promises and next steps.

Use ~{budget} tokens. State only facts from the conversation; do not invent paths, commands or \
details. Write the body of the summary only, without a preface or closing remarks."""


def summary_prompt(messages: Sequence[SessionMessage], previous: Sequence[str], budget: int) -> str:
    """What to ask of a model: `previous` summaries are brought up to date with the messages."""
    turns = _SEPARATOR.join(_transcript(message) for message in messages)
    template = _NEXT if previous else _FIRST
    body = template.format(previous="\n\n".join(previous), turns=turns)
    return f"{_OPENING}\n\n{body}\n\n{_ANSWER.format(budget=budget)}"


def text_of(message: Mapping[str, Any]) -> str:
    """The text parts of a message, one below the other."""
    parts = message.get("parts")
    texts = (
        part.get("text")
        for part in (parts if isinstance(parts, list) else [])
        if isinstance(part, Mapping) and part.get("type") == "text"
    )
    return "\n".join(text for text in texts if isinstance(text, str))


def _transcript(message: SessionMessage) -> str:
    lines = [f"[{message.get('role')}]"]
    if text := text_of(message):
        lines.append(text)
    for part in tool_parts(message):
        lines.append(f"[tool: {tool_name(part)}]")
        lines += _values(part)
    return "\n".join(lines)


def _values(part: Mapping[str, Any]) -> Iterator[str]:
    output = part["output"] if "output" in part else part.get("result")
    for name, value in (("input", part.get("input")), ("output", output)):
        if value is not None and value not in ("", [], {}):
            text = value if isinstance(value, str) else compact_json(value)
            yield f"{name}: {text[:_VALUE_LENGTH]}"
