"""Lines: how an entry is written, and how it is read back.

The same entry always has the same bytes: keys in a fixed order, no spaces, UTF-8 as is. `compose` and
`decode` are the only places where `parent_id` becomes `parentId` and back. A line that holds no entry
is `NotAnEntry`: readers skip it and report it, they never drop it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

import orjson

from workspace_session.errors import InvalidMessage, StateNotSerializable
from workspace_session.model.canonical import compact, compact_plain, parse
from workspace_session.model.clock import is_fixed_time, normal_time
from workspace_session.model.entries import (
    WIDE,
    Abort,
    Batch,
    Clear,
    Compaction,
    Covers,
    Delete,
    Entry,
    Header,
    Info,
    Label,
    Leaf,
    Message,
    Other,
    Purge,
    Said,
    Spent,
    Trim,
    Update,
    Usage,
)

FORMAT_VERSION = 1
_COMMON = frozenset({"type", "id", "timestamp", "batch"})
_LEFT_OUT_WHEN_NONE = frozenset({"parentSession", "author", "first"})
_BOM = b"\xef\xbb\xbf"

E = TypeVar("E", bound=Entry)
Wire = dict[str, Any]


class NotAnEntry(ValueError):
    """A line that holds no entry; the text says why."""


# -- what the fields of a line may be --------------------------------------------------------------


def _text(wire: Wire, key: str) -> str:
    value = wire.get(key)
    if not isinstance(value, str) or not value:
        raise NotAnEntry(f"{key} is not a text")
    return value


def _text_or_none(wire: Wire, key: str) -> str | None:
    return None if wire.get(key) is None else _any_text(wire, key)


def _any_text(wire: Wire, key: str) -> str:
    value = wire.get(key)
    if not isinstance(value, str):
        raise NotAnEntry(f"{key} is not a text")
    return value


def _texts(wire: Wire, key: str) -> tuple[str, ...]:
    value = wire.get(key)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise NotAnEntry(f"{key} is not a list of texts")
    return tuple(value)


def _count(wire: Wire, key: str) -> int:
    value = wire.get(key, 0)
    if not isinstance(value, int) or isinstance(value, bool):
        raise NotAnEntry(f"{key} is not a whole number")
    return value


def _number(wire: Wire, key: str) -> float:
    value = wire.get(key, 0.0)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise NotAnEntry(f"{key} is not a number")
    return float(value)


def _object(wire: Wire, key: str) -> Wire:
    value = wire.get(key)
    if not isinstance(value, dict):
        raise NotAnEntry(f"{key} is not an object")
    return value


def _covers(wire: Wire, key: str) -> Covers:
    value = {} if wire.get(key) is None else _object(wire, key)
    return Covers(_count(value, "messages"), _count(value, "tokens"))


def _spent(wire: Wire, key: str) -> Spent:
    value = _object(wire, key)
    return Spent(
        _count(value, "inputTokens"), _count(value, "outputTokens"), _number(value, "cost")
    )


def _said(wire: Wire, key: str) -> Said | None:
    if wire.get(key) is None:
        return None
    value = _object(wire, key)
    return Said(_text(value, "timestamp"), _any_text(value, "text"))


def _facts(wire: Wire, _key: str) -> Wire:
    return {key: value for key, value in wire.items() if key not in _COMMON}


Reader = Callable[[Wire, str], Any]

# For each type: the field, its key on the line, and what reads it; in the order of the line.
_FIELDS: dict[type[Entry], tuple[tuple[str, str, Reader], ...]] = {
    Header: (
        ("version", "version", _count),
        ("agent", "agent", _text_or_none),
        ("parent_session", "parentSession", _text_or_none),
    ),
    Message: (("parent_id", "parentId", _text_or_none), ("author", "author", _text_or_none)),
    Update: (("target_id", "targetId", _text),),
    Delete: (("target_ids", "targetIds", _texts),),
    Clear: (),
    Compaction: (
        ("from_id", "fromId", _text),
        ("to_id", "toId", _text),
        ("from_parent_id", "fromParentId", _text_or_none),
        ("summary", "summary", _any_text),
        ("covers", "covers", _covers),
    ),
    Leaf: (("target_id", "targetId", _text_or_none),),
    Label: (("target_id", "targetId", _text), ("label", "label", _text_or_none)),
    Info: (("facts", "", _facts),),
    Usage: (
        ("input_tokens", "inputTokens", _count),
        ("output_tokens", "outputTokens", _count),
        ("cost", "cost", _number),
    ),
    Abort: (("batch_id", "batchId", _text),),
    Purge: (("target_id", "targetId", _text),),
    Trim: (
        ("end_id", "endId", _text),
        ("leaf", "leaf", _text_or_none),
        ("created_at", "createdAt", _text),
        ("hidden", "hidden", _count),
        ("first", "first", _said),
        ("usage", "usage", _spent),
        ("parents", "parents", _object),
        ("inner", "inner", _texts),
        ("kept", "kept", _count),
    ),
}
_KINDS = {kind.type: kind for kind in _FIELDS}


# -- to lines --------------------------------------------------------------------------------------


def message_json(message: object) -> bytes:
    """The bytes that stand for a message, or `InvalidMessage`."""
    return messages_json([message])[0]


def messages_json(messages: Iterable[object]) -> list[bytes]:
    """The same for each of many, which takes half as long."""
    values = [one if isinstance(one, dict) else _as_dict(one) for one in messages]
    return compact_plain(values) or [_maybe_wide(_json(value)) for value in values]


def _as_dict(message: object) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise InvalidMessage(f"a message is a JSON object, not {type(message).__name__}")
    return dict(message)


class WideJson(bytes):
    """A message with whole numbers beyond 64 bits, which orjson would read as floats."""


def _maybe_wide(data: bytes) -> bytes:
    try:
        return data if compact(orjson.loads(data)) == data else WideJson(data)
    except orjson.JSONDecodeError:  # beyond what a float holds
        return WideJson(data)


def compose(
    kind: type[E],
    *,
    id: str,  # noqa: A002 - the field's name
    timestamp: str,
    batch: Batch | None = None,
    message: bytes | None = None,
    **fields: Any,
) -> E:
    """A new entry with its line; `message` is the content as `message_json` gave it."""
    wire: Wire = {"type": kind.type, "id": id, "timestamp": timestamp}
    if batch is not None:
        wire["batch"] = batch._asdict()
    for name, key, _reader in _FIELDS[kind]:
        value = fields[name]
        if not key:
            wire.update(value)
        elif value is not None or key not in _LEFT_OUT_WHEN_NONE:
            wire[key] = _plain(value)
    line = _json(wire)
    if message is not None:
        wide = WIDE if type(message) is WideJson else b""
        line = b'%b%b,"message":%b}' % (line[:-1], wide, message)
    return kind(id=id, timestamp=timestamp, batch=batch, line=line, **fields)


def compose_message(
    data: bytes,
    *,
    id: str,  # noqa: A002 - the field's name
    timestamp: str,
    parent_id: str | None,
    author: str | None = None,
    batch: Batch | None = None,
) -> Message:
    """What `compose` makes of a message."""
    return message_composer(author, batch)(data, id, timestamp, parent_id)


def message_composer(
    author: str | None, batch: Batch | None
) -> Callable[[bytes, str, str, str | None], Message]:
    """What makes a message of its data, id, timestamp and parent: every append comes through here.

    The lines are put together by hand, and what the messages of a batch have in common only once.
    """
    mark = b"" if batch is None else b',"batch":' + orjson.dumps(batch._asdict())
    by = b"" if author is None else b',"author":' + compact(author)

    def composed(data: bytes, message_id: str, timestamp: str, parent_id: str | None) -> Message:
        line = b'{"type":"message","id":%b,"timestamp":"%b"%b,"parentId":%b%b,"message":%b}' % (
            orjson.dumps(message_id),
            timestamp.encode(),
            mark,
            orjson.dumps(parent_id),
            by + WIDE if type(data) is WideJson else by,
            data,
        )
        return Message(
            id=message_id,
            timestamp=timestamp,
            batch=batch,
            line=line,
            parent_id=parent_id,
            author=author,
        )

    return composed


def compose_other(kind: str, fields: Wire, *, id: str, timestamp: str) -> Other:  # noqa: A002
    """A new entry of a type that only an extension understands."""
    line = _json({"type": kind, "id": id, "timestamp": timestamp, **fields})
    return Other(id=id, timestamp=timestamp, kind=kind, line=line)


def _plain(value: Any) -> Any:
    if isinstance(value, Covers | Said):
        return value._asdict()
    if isinstance(value, Spent):
        return {
            "inputTokens": value.input_tokens,
            "outputTokens": value.output_tokens,
            "cost": value.cost,
        }
    return value


def _json(value: Wire) -> bytes:
    try:
        return compact(value)
    except StateNotSerializable as error:
        raise InvalidMessage(f"not JSON at {error.path}: {error.reason}") from None


# -- from lines ------------------------------------------------------------------------------------


def decode(line: bytes) -> Entry:
    """The entry that a line holds; `NotAnEntry` says why it holds none."""
    try:
        wire = orjson.loads(line)
    except orjson.JSONDecodeError:
        line = line.removeprefix(_BOM).rstrip(b"\r")
        wire = _parsed(line)
    if type(wire) is not dict:
        raise NotAnEntry("not a JSON object")
    return _plain_message(wire, line) or _any_entry(wire, line.rstrip(b"\r"))


def _plain_message(wire: Wire, line: bytes) -> Message | None:
    """Nearly every line: the same as `_any_entry`, by hand, for what is exactly as we write it."""
    if wire.get("type") != "message":
        return None
    entry_id, time, parent = wire.get("id"), wire.get("timestamp"), wire.get("parentId")
    batch = wire.get("batch")
    if (
        type(entry_id) is str
        and type(time) is str
        and (parent is None or type(parent) is str)
        and type(wire.get("message")) is dict
        and entry_id
        and is_fixed_time(time)
        and "author" not in wire
        and line[-1] == 125  # the closing brace: no carriage return
    ):
        mark = None if batch is None else _batch(wire)
        return Message(id=entry_id, timestamp=time, batch=mark, line=line, parent_id=parent)
    return None


def _any_entry(wire: Wire, line: bytes) -> Entry:
    timestamp = normal_time(wire.get("timestamp"))
    if timestamp is None:
        raise NotAnEntry("timestamp is not a time")
    batch = None if wire.get("batch") is None else _batch(wire)
    entry_id, name = _text(wire, "id"), _text(wire, "type")
    kind = _KINDS.get(name)
    if kind is None:
        return Other(id=entry_id, timestamp=timestamp, batch=batch, line=line, kind=name)
    if kind is Message or kind is Update:
        _object(wire, "message")
    fields = {name: reader(wire, key) for name, key, reader in _FIELDS[kind]}
    return kind(id=entry_id, timestamp=timestamp, batch=batch, line=line, **fields)


def _parsed(line: bytes) -> Any:
    try:
        return parse(line)  # slower, and knows what other writers leave
    except ValueError:
        raise NotAnEntry(_why_unreadable(line)) from None


def _batch(wire: Wire) -> Batch:
    batch = _object(wire, "batch")
    return _shared_batch(_text(batch, "id"), _count(batch, "size"))


_shared_batch = lru_cache(maxsize=64)(Batch)  # the members of a batch come one after another


def _why_unreadable(line: bytes) -> str:
    if not line.strip():
        return "blank line"
    if line.startswith((b"<<<<<<<", b"=======", b">>>>>>>", b"|||||||")):
        return "conflict marker"
    return "not JSON (torn or edited)"
