"""Entries: the immutable facts that a session is made of.

A session is a set of entries, ordered by (timestamp, id). Each keeps the line it was read from or
written as, so that nothing this version does not know is lost when a file is rewritten; what a line
looks like is the business of `lines`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeVar, cast, dataclass_transform

import orjson

from workspace_session.model.canonical import parse

T = TypeVar("T")

WIDE = b',"wide":true'  # stands before a content that only `parse` reads exactly
_CONTENT = b',"message":'


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def value(cls: type[T]) -> type[T]:
    """An immutable value. The type checker sees to it: to have the interpreter enforce it too would
    make an entry seven times as dear, and a session is opened by making all of its entries."""
    return dataclass(slots=True, kw_only=True)(cls)


def message_of(line: bytes) -> dict[str, Any]:
    """The content of a line that is known to be that of a message or an update."""
    try:
        # As we write it, the content comes last, and no text before it can hold these bytes.
        at = line.index(_CONTENT)
        if line[at - len(WIDE) : at] != WIDE:
            return cast(dict[str, Any], orjson.loads(line[at + len(_CONTENT) : -1]))
    except ValueError:
        pass  # a line by other hands
    return cast(dict[str, Any], parse(line)["message"])


def contents(
    items: Iterable[Message | Compaction],
    summary: Callable[[Compaction], dict[str, Any]] | None = None,
) -> list[dict[str, Any]]:
    """The messages of many entries: what `message` of each gives, in half the time.

    `summary` makes the message of a compaction, where another form is wanted.
    """
    loads = orjson.loads
    result: list[dict[str, Any]] = []
    for item in items:
        if type(item) is Message and item.revision is None:
            at = item.content_at or _content_at(item)
            if at > 0:
                try:
                    result.append(loads(item.line[at:-1]))
                    continue
                except ValueError:
                    item.content_at = -1  # type: ignore[misc]  # no part of the value
        if summary is not None and isinstance(item, Compaction):
            result.append(summary(item))
        else:
            result.append(item.message)
    return result


def _content_at(entry: Message) -> int:
    """Where the content begins that is the last of its line; it is looked for once."""
    at = entry.line.find(_CONTENT)
    at = -1 if at < 0 or entry.line[at - len(WIDE) : at] == WIDE else at + len(_CONTENT)
    entry.content_at = at  # type: ignore[misc]  # no part of the value
    return at


class Batch(NamedTuple):
    """The mark on entries that were written together: readers see all of them or none."""

    id: str
    size: int


@value
class Entry:
    """One line of a session; the pair (timestamp, id) orders entries, never their place in a file."""

    type: ClassVar[str] = ""

    id: str
    timestamp: str
    batch: Batch | None = None
    line: bytes = field(repr=False)

    @property
    def key(self) -> tuple[str, str]:
        """What orders entries."""
        return (self.timestamp, self.id)


@value
class Header(Entry):
    """The first line of a session."""

    type: ClassVar[str] = "session"
    version: int
    agent: str | None
    parent_session: str | None = None


@value
class Update(Entry):
    """New content for a message; the newest wins, position and parent stay."""

    type: ClassVar[str] = "update"
    target_id: str

    @property
    def message(self) -> dict[str, Any]:
        """The new content, a fresh object each time."""
        return message_of(self.line)


@value
class Message(Entry):
    """One node of the tree. `revision` is the newest update of it, if there is one."""

    type: ClassVar[str] = "message"
    parent_id: str | None
    author: str | None = None
    revision: Update | None = None
    # For `contents` alone: 0 until it has looked, below if the line was written by other hands.
    content_at: int = field(default=0, repr=False, compare=False)

    @property
    def message(self) -> dict[str, Any]:
        """The newest content, a fresh object each time: changing it changes nothing stored."""
        source = self if self.revision is None else self.revision
        return message_of(source.line)

    def says(self, data: bytes) -> bool:
        """Whether the newest content stands on its line in just these bytes."""
        line = self.line if self.revision is None else self.revision.line
        return (
            line.endswith(data + b"}") and line.find(b',"message":') == len(line) - len(data) - 12
        )


@value
class Delete(Entry):
    """Messages that are gone; their children hang from the nearest surviving ancestor."""

    type: ClassVar[str] = "delete"
    target_ids: tuple[str, ...]


@value
class Clear(Entry):
    """Everything before it is hidden."""

    type: ClassVar[str] = "clear"


class Covers(NamedTuple):
    """How much a compaction stands in for."""

    messages: int
    tokens: int


@value
class Compaction(Entry):
    """A summary that stands in for a range of messages when history is read."""

    type: ClassVar[str] = "compaction"
    from_id: str
    to_id: str
    from_parent_id: str | None
    summary: str
    covers: Covers

    @property
    def message(self) -> dict[str, Any]:
        """The summary as the message that a model is shown in place of the range."""
        return {
            "id": f"compaction_{self.id}",
            "role": "assistant",
            "parts": [{"type": "text", "text": self.summary}],
            "createdAt": self.timestamp,
        }


@value
class Leaf(Entry):
    """The tip of the active branch moves; None means before the first message."""

    type: ClassVar[str] = "leaf"
    target_id: str | None


@value
class Label(Entry):
    """A bookmark on a message; None takes it away."""

    type: ClassVar[str] = "label"
    target_id: str
    label: str | None


@value
class Info(Entry):
    """Facts of the session; the newest value of each wins, null clears it."""

    type: ClassVar[str] = "info"
    facts: Mapping[str, Any]


@value
class Usage(Entry):
    """Tokens and money spent; all of them are summed."""

    type: ClassVar[str] = "usage"
    input_tokens: int
    output_tokens: int
    cost: float


@value
class Abort(Entry):
    """A batch that a crash cut short: its entries never count."""

    type: ClassVar[str] = "abort"
    batch_id: str


@value
class Purge(Entry):
    """The text of an entry is gone for good; its id and its place stay."""

    type: ClassVar[str] = "purge"
    target_id: str


class Spent(NamedTuple):
    """Sums of usage."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0


class Said(NamedTuple):
    """A text, on one line, and when it was said."""

    timestamp: str
    text: str


@value
class Trim(Entry):
    """What a trimmed working set left out, summed up.

    In a log it stands only after the log was lost and made anew from such a working set.

    It stands between what was kept and what was appended since. `end_id` is the newest entry that
    was taken into account: the place in the log where this working set begins to lag.
    """

    type: ClassVar[str] = "trim"
    end_id: str
    leaf: str | None
    created_at: str
    hidden: int
    first: Said | None
    usage: Spent
    parents: Mapping[str, str | None]
    inner: tuple[str, ...] = ()  # kept messages with children that were not kept
    kept: int = 0  # how many entries stand before this one

    @property
    def end(self) -> tuple[str, str]:
        """The key of the newest entry that was taken into account."""
        return (self.timestamp, self.end_id)


@value
class Other(Entry):
    """An entry for an extension (`custom`), or of a type this version does not know: kept whole."""

    kind: str
