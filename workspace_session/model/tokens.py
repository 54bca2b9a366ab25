"""Tokens: a cheap estimate that needs no tokenizer and gives the same number everywhere.

It is a heuristic on characters and words, fit for deciding when to compact, not for billing. An
estimate depends on one message alone, so sums may be kept and added to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil
from typing import Any

from workspace_session.model.blocks import Block, Media, ToolCall, ToolResult, compact_json
from workspace_session.model.dialects import is_tool_part, read
from workspace_session.model.messages import blocks, plain

MESSAGE_OVERHEAD = 4


def estimate_tokens(value: Any) -> int:
    """About how many tokens a text has, or any other value as compact JSON."""
    if value is None:
        return 0
    text = value if isinstance(value, str) else compact_json(value)
    return ceil(max(len(text) / 4, len(text.split()) * 1.3))


def estimate_message_tokens(messages: Iterable[Mapping[str, Any]]) -> int:
    """About how many tokens the messages cost the model together."""
    return sum(map(_message_tokens, messages))


def _message_tokens(message: Mapping[str, Any]) -> int:
    parts = message.get("parts") if isinstance(message, Mapping) else None
    if isinstance(parts, list):
        return MESSAGE_OVERHEAD + sum(map(_part_tokens, parts))
    return MESSAGE_OVERHEAD + sum(map(_block_tokens, blocks(message)))


def _part_tokens(part: object) -> int:
    if not isinstance(part, dict):
        return 0
    kind = part.get("type")
    if kind == "text" or kind == "reasoning":
        said = part.get("text")
        return estimate_tokens(part.get("reasoning") if said is None else said)
    if not isinstance(kind, str):
        return sum(map(_block_tokens, read(part)))
    if is_tool_part(part):
        gave = part["output"] if "output" in part else part.get("result")
        return estimate_tokens(part.get("input")) + estimate_tokens(gave)
    said = part.get("text")
    return estimate_tokens(part.get("result") if said is None else said)


def _block_tokens(block: Block) -> int:
    """Media cost nothing here: what they cost depends on the model, not on their bytes."""
    if isinstance(block, Media):
        return 0
    if isinstance(block, ToolCall):
        return estimate_tokens(plain(block.input))
    if isinstance(block, ToolResult):
        return estimate_tokens(plain(block.output))
    return estimate_tokens(block.text)
