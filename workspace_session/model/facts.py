"""What is said about a session as a whole: facts and usage, checked before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workspace_session.errors import InvalidMessage
from workspace_session.model.canonical import compact, parse
from workspace_session.model.entries import Spent
from workspace_session.model.lines import message_json

_WIRE_NAMES = {"end_reason": "endReason"}
_RESERVED = frozenset({"type", "id", "timestamp", "batch"})


def checked_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts under the names they have on a line."""
    wanted = {_WIRE_NAMES.get(name, name): value for name, value in facts.items()}
    if reserved := _RESERVED & wanted.keys():
        raise InvalidMessage(f"{min(reserved)!r} is not a fact that can be set")
    if (tags := wanted.get("tags")) is not None:
        if isinstance(tags, str) or not all(isinstance(tag, str) for tag in tags):
            raise InvalidMessage("tags are a list of texts")
        wanted["tags"] = sorted(set(tags))
    known: dict[str, Any] = parse(message_json(wanted))
    return known


def checked_usage(input_tokens: int, output_tokens: int, cost: float) -> Spent:
    """What a session has used in addition; cost is in US dollars."""
    for count in (input_tokens, output_tokens):
        if type(count) is not int or not 0 <= count < 2**63:
            raise InvalidMessage("tokens are whole numbers, zero or more")
    if not isinstance(cost, int | float) or not 0 <= cost < float("inf"):
        raise InvalidMessage("cost is a number, zero or more")
    return Spent(input_tokens, output_tokens, float(cost))


def plain_text(what: str, value: object) -> str:
    """A text as it will be read back: what is half of a character becomes U+FFFD."""
    if not isinstance(value, str):
        raise InvalidMessage(f"{what} is a text, not {type(value).__name__}")
    text: str = parse(compact(value))
    return text
