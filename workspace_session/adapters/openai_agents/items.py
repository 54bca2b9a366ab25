"""Items: what the SDK gives to be stored, and how what is stored reads as items again.

A message of the session is an item, byte for byte the JSON that was given. A summary that stands in for
a range reads as a message of the assistant in the one form that every model of the SDK takes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

Item: TypeAlias = dict[str, Any]


_SEALED = '{"__enc__":1,'  # how a summary begins that stands in an envelope


def summary_item(summary: Any) -> Item:
    """The item of a summary; of one that is sealed, its envelope."""
    text: str = summary.summary
    if text.startswith(_SEALED):
        with suppress(ValueError):  # a model may say anything, this too
            envelope: Item = json.loads(text)
            return envelope
    return {"role": "assistant", "content": text}


def sealed_summary(envelope: Item) -> str:
    """An envelope as the text of a summary."""
    return json.dumps({"__enc__": 1, **envelope}, separators=(",", ":"))


def is_user_item(item: Mapping[str, Any]) -> bool:
    """Whether an item is what a user said."""
    return item.get("role") == "user" and item.get("type", "message") == "message"


def is_sealed(item: Mapping[str, Any]) -> bool:
    """Whether an item is an envelope that only its owner's key opens."""
    return item.get("__enc__") == 1


def cut_before(items: list[Item], at: int) -> int:
    """The nearest place, from `at` towards the start, where a list of items may be cut in two.

    It lies between no call and its output, nor between a thought and what it led to; and a call that
    still waits for its output stays behind it. 0 when there is none.
    """
    last_user = max((index for index, item in enumerate(items) if is_user_item(item)), default=-1)
    first, last = _places(items)
    for call, index in first.items():
        if last[call] == index and index > last_user and _asks(items[index]):
            at = min(at, index)
    while at > 0 and not _is_clean(items, at, first, last):
        at -= 1
    return at


def _is_clean(items: list[Item], at: int, first: dict[str, int], last: dict[str, int]) -> bool:
    parted = any(index < at <= last[call] for call, index in first.items())
    return not parted and items[at - 1].get("type") != "reasoning"


def _places(items: Iterable[Item]) -> tuple[dict[str, int], dict[str, int]]:
    """Where each call is spoken of first and last."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for index, item in enumerate(items):
        call = _call(item)
        if call is not None:
            first.setdefault(call, index)
            last[call] = index
    return first, last


def _call(item: Mapping[str, Any]) -> str | None:
    """The call, or the request for an approval, that an item belongs to."""
    key = {"mcp_approval_request": "id", "mcp_approval_response": "approval_request_id"}
    found = item.get(key.get(str(item.get("type")), "call_id"))
    return found if isinstance(found, str) else None


def _asks(item: Mapping[str, Any]) -> bool:
    kind = str(item.get("type"))
    return kind.endswith("_call") or kind == "mcp_approval_request"
