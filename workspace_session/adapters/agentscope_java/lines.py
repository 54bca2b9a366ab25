"""Lines of AgentScope for Java: one JSON object each, which becomes a `Line` and back.

A line is understood generously and written in one way: members in a fixed order, those that are null
left out, nine digits of every second, then whatever else it had.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, NoReturn

from workspace_session.adapters.agentscope_java.times import EPOCH, ExactFloat, understood
from workspace_session.errors import StateNotSerializable
from workspace_session.model.canonical import compact, parse

# The members of each type that follow `type`, `id`, `parentId` and `timestamp`, in their order.
_ORDER = {
    "message": ("role", "content", "toolCallId", "blockTypes"),
    "summary": ("summary", "format"),
    "compaction": ("firstKeptEntryId", "summaryEntryId"),
    "tool_use": ("toolCallId", "name", "input", "truncated", "originalSize"),
    "tool_result": (
        "toolCallId",
        "name",
        "output",
        "outputBlockTypes",
        "truncated",
        "originalSize",
    ),
}
_COMMON = ("type", "id", "parentId", "timestamp")
_IDS = ("id", "parentId", "toolCallId", "firstKeptEntryId", "summaryEntryId")
_BOM = b"\xef\xbb\xbf"


class NotALine(ValueError):
    """A line that holds no entry; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One entry. `fields` are its other members, unknown ones included; `doubts` is for people."""

    type: str
    id: str
    parent_id: str | None = None
    timestamp: str
    fields: dict[str, Any]
    doubts: tuple[str, ...] = field(default=(), compare=False)


def render(line: Line) -> bytes:
    """The bytes of an entry, without the end of its line."""
    known = {name: line.fields[name] for name in _ORDER[line.type] if name in line.fields}
    head = {"type": line.type, "id": line.id, "parentId": line.parent_id}
    # The digits of a time are more than a float has, so they are put in between as they are.
    return b"%b,%b%b}" % (
        _members(head)[:-1],
        b'"timestamp":' + line.timestamp.encode(),
        b"".join(b"," + part for part in [_members({**known, **line.fields})[1:-1]] if part),
    )


def _members(wire: dict[str, Any]) -> bytes:
    return compact({name: value for name, value in wire.items() if value is not None})


def decode(data: bytes, number: int, before: str | None) -> Line:
    """The entry of a line, or `NotALine`; `number` counts from 1, `before` is the last time."""
    data = data.removeprefix(_BOM).removesuffix(b"\r")
    wire, time = _parsed(data)
    kind = wire.pop("type", None)
    if not isinstance(kind, str) or kind not in _ORDER:
        raise NotALine(f"the type {kind!r} is unknown" if kind else "it has no type")
    if kind == "message" and not {"role", "content"} & wire.keys():
        raise NotALine("a message with neither role nor content")
    doubts = []
    for name in _IDS:
        doubts += _make_id(wire, name)
    found = understood(time)
    if found is None and time is not None:
        instead = "that of the line before" if before else "the year 1970"
        doubts.append(f"the time is not understood; {instead} is taken")
    elif found is not None and found.doubt:
        doubts.append(found.doubt)
    return Line(
        type=kind,
        id=wire.pop("id", None) or _derived_id(data, number),
        parent_id=wire.pop("parentId", None),
        timestamp=found.text if found else before or EPOCH,
        fields=wire,
        doubts=tuple(doubts),
    )


def _parsed(data: bytes) -> tuple[dict[str, Any], Any]:
    """The members that are not null, and the time, which is not among them."""
    try:
        wire = json.loads(data.decode(), parse_float=_number, parse_constant=_not_json)
        if not isinstance(wire, dict):
            raise NotALine("it is not a JSON object")
        time = wire.pop("timestamp", None)
        # Through the one form that is stored: half characters and depth are settled here.
        plain: dict[str, Any] = parse(compact(wire))
    except UnicodeDecodeError:
        raise NotALine("it is not UTF-8") from None
    except RecursionError:
        raise NotALine("it is nested too deeply") from None
    except NotALine:
        raise
    except json.JSONDecodeError as error:
        raise NotALine(f"it is not JSON: {error.msg}: character {error.colno}") from None
    except (ValueError, StateNotSerializable) as error:
        raise NotALine(f"it is not JSON: {error}") from None
    return {name: value for name, value in plain.items() if value is not None}, time


def _number(text: str) -> ExactFloat:
    number = ExactFloat(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text} is too large")
    return number


def _not_json(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _make_id(wire: dict[str, Any], name: str) -> list[str]:
    """Ids are texts; a number is its digits, and anything else is as if it were not there."""
    value = wire.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool):
        wire[name] = str(value)
    elif value is not None and (not isinstance(value, str) or not value):
        del wire[name]
        return [f"{name} is not an id; it is left out"]
    return []


def _derived_id(data: bytes, number: int) -> str:
    """The id of a line without one: the same each time the file is read."""
    return "line-" + hashlib.sha256(b"%d:%b" % (number, data)).hexdigest()[:32]
