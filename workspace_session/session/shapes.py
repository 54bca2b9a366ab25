"""Session messages: their shape, checked before anything is written and when anything is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from math import floor
from typing import Any, TypeGuard

from workspace_session.errors import InvalidCompaction, InvalidMessage, StateNotSerializable
from workspace_session.model.canonical import compact, parse
from workspace_session.model.clock import as_time
from workspace_session.model.overlays import cover
from workspace_session.session.values import (
    SUMMARY_PREFIX,
    Compaction,
    SessionMessage,
    is_compaction_message,
)

Shown = SessionMessage | Compaction
_MOST = 1 << 53  # messages; an infinity has no floor


def checked(message: object) -> SessionMessage:
    """A copy of a message that is fit to be stored; its id, if it has one, is its own."""
    if not isinstance(message, Mapping):
        raise InvalidMessage(f"a message is a JSON object, not {type(message).__name__}")
    try:
        copy: SessionMessage = parse(compact(_with_time_as_text(dict(message))))
    except StateNotSerializable as error:
        raise InvalidMessage(f"not JSON at {error.path}: {error.reason}") from None
    for key in ("id", "role"):
        if key in copy and (not isinstance(copy[key], str) or not copy[key]):
            raise InvalidMessage(f"the {key} of a message is a non-empty text")
    if "role" not in copy:
        raise InvalidMessage("a message has a role")
    if not isinstance(copy.get("parts"), list):
        raise InvalidMessage("the parts of a message are a list")
    if copy.get("id") != message.get("id"):
        raise InvalidMessage("the id of a message is not valid Unicode")
    if copy.get("id", "").startswith(SUMMARY_PREFIX):
        raise InvalidMessage(f"ids that start with {SUMMARY_PREFIX!r} are those of summaries")
    return copy


def _with_time_as_text(message: SessionMessage) -> SessionMessage:
    created = message.get("createdAt")
    if not isinstance(created, datetime):
        return message
    return {**message, "createdAt": as_time(created)}


def is_readable(message: object) -> TypeGuard[SessionMessage]:
    """Whether something stored has the shape of a session message; reads skip what has not."""
    return (
        isinstance(message, dict)
        and isinstance(message.get("id"), str)
        and isinstance(message.get("role"), str)
        and isinstance(message.get("parts"), list)
        and bool(message["id"] and message["role"])
    )


def as_read(found: Iterable[object]) -> list[SessionMessage]:
    """What a provider gave, as it is shown: without what is no message."""
    return [_with_time_as_text(message) for message in found if is_readable(message)]


def overlaid(path: Sequence[SessionMessage], compactions: Sequence[Compaction]) -> list[Shown]:
    """A path with overlays applied; each summary is the overlay it comes from."""
    readable = as_read(path)
    by_id = {overlay.message["id"]: overlay for overlay in compactions}
    items: list[Shown] = [
        by_id.get(message["id"], message) if is_compaction_message(message) else message
        for message in readable
    ]
    active = [overlay for overlay in compactions if not overlay.retired]
    starts = [_end(item, "from_id") for item in items]
    ends = [_end(item, "to_id") for item in items]
    return [
        items[shown] if isinstance(shown, int) else shown for shown in cover(starts, ends, active)
    ]


def as_messages(items: Sequence[Shown]) -> list[SessionMessage]:
    """What a model is shown."""
    return [item.message if isinstance(item, Compaction) else item for item in items]


def apply_overlays(
    path: Sequence[SessionMessage], compactions: Sequence[Compaction]
) -> list[SessionMessage]:
    """A path with summaries in place of what they cover; applying it twice changes nothing."""
    return as_messages(overlaid(path, compactions))


def still_shows(items: Sequence[Shown], expected: Sequence[str]) -> bool:
    """Whether the end of a path still is as a summary was made from."""
    ids = [message["id"] for message in as_messages(items)]
    return ids[-len(expected) :] == list(expected)


def id_of(found: object) -> str:
    """The id of a stored message, of one that cannot be read too; `""` if it has none."""
    named = found.get("id") if isinstance(found, Mapping) else None
    return named if isinstance(named, str) else ""


def check_stretch(session_id: str, path: Sequence[str], from_id: str, to_id: str) -> None:
    """See that the path to `to_id`, by ids, holds the beginning of a range to be summarised."""
    if from_id not in path or not path or path[-1] != to_id:
        raise InvalidCompaction(session_id, from_id, to_id, "it is no stretch of one branch")


class RecentWindow:
    """The longest end of a path that fits a budget, told message by message from its end on."""

    def __init__(self, max_content_bytes: float, min_recent_messages: float) -> None:
        self._budget = max_content_bytes
        self._least = floor(max(1, min(min_recent_messages, _MOST)))
        self.messages = 0
        self._bytes = 0
        self.is_open = True

    def takes(self, size: int) -> bool:
        """Whether the next older message, of this size, is in the window."""
        fits = self.messages < self._least or self._bytes + size <= self._budget
        self.is_open = self.is_open and fits
        if self.is_open:
            self.messages += 1
            self._bytes += size
        return self.is_open


def stored_size(message: Mapping[str, Any]) -> int:
    """The UTF-8 size of a message as compact JSON."""
    return len(compact(message))


def _end(item: Shown, which: str) -> str:
    if isinstance(item, Compaction):
        return str(getattr(item, which))
    return str(item["id"])
