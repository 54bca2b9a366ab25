"""Purging: what is left of an entry when its text is taken away for good.

A `Purge` names an entry. Of what stands before it in the order of entries, that entry and the updates
of it hold no text: id, time, place and role stay, what was said becomes `[purged]`. The same line always
becomes the same line, and a line without text stays as it is, so clones that take a text away apart
agree byte for byte, and a merge with one that still has it does not bring it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from workspace_session.model import messages
from workspace_session.model.canonical import compact, parse
from workspace_session.model.clock import normal_time
from workspace_session.model.entries import (
    Abort,
    Clear,
    Compaction,
    Delete,
    Entry,
    Header,
    Info,
    Label,
    Leaf,
    Message,
    Purge,
    Trim,
    Update,
    Usage,
)
from workspace_session.model.lines import NotAnEntry, decode

PURGED = "[purged]"

_WITHOUT_TEXT = (Header, Leaf, Delete, Clear, Usage, Abort, Trim, Purge)
_COMMON = ("type", "id", "timestamp", "batch")
# What of a line says where an entry is, and nothing of what it says.
_PLACE: dict[type[Entry], tuple[str, ...]] = {
    Message: ("parentId", "author"),
    Update: ("targetId",),
    Compaction: ("fromId", "toId", "fromParentId", "covers"),
    Label: ("targetId",),
}
_PLACE_OF_OTHERS = ("customType",)


def has_text(entry: Entry) -> bool:
    """Whether there is anything in an entry that can be taken away."""
    return not isinstance(entry, _WITHOUT_TEXT)


def blank(entry: Entry) -> Entry:
    """The entry without what it says; the same object when it says nothing."""
    if not has_text(entry):
        return entry
    wire = parse(entry.line)
    place = _PLACE.get(type(entry), _PLACE_OF_OTHERS)
    left = {name: wire[name] for name in (*_COMMON, *place) if name in wire}
    line = compact({**left, **_instead(entry, wire)})
    return entry if line == entry.line else decode(line)


def _instead(entry: Entry, wire: dict[str, Any]) -> dict[str, Any]:
    """What stands on a line in place of a text."""
    if isinstance(entry, Message | Update):
        return {"message": _blank_message(wire["message"])}
    if isinstance(entry, Compaction):
        return {"summary": PURGED}
    if isinstance(entry, Label):
        return {"label": None if entry.label is None else PURGED}
    return dict.fromkeys(entry.facts) if isinstance(entry, Info) else {}


def _blank_message(message: dict[str, Any]) -> dict[str, Any]:
    role, created = messages.role(message), message.get("createdAt")
    left = {"id": message["id"]} if isinstance(message.get("id"), str) else {}
    left |= {"role": role} if role else {}
    left["parts"] = [{"type": "text", "text": PURGED}]
    return left | ({"createdAt": created} if normal_time(created) else {})


# -- which entries ---------------------------------------------------------------------------------


def reaches(purge: Purge, entry: Entry) -> bool:
    """Whether an entry is one that a purge takes the text of."""
    target = entry.target_id if isinstance(entry, Update) else entry.id
    return target == purge.target_id and entry.key < purge.key


def withheld(entries: Sequence[Entry], purges: Iterable[Purge] | None = None) -> Sequence[Entry]:
    """Entries without the text that purges (None: those among them) take away.

    The very same sequence when there is no such text, which is nearly always.
    """
    found = [one for one in entries if type(one) is Purge] if purges is None else list(purges)
    if not found:
        return entries
    targets = {purge.target_id for purge in found}
    result: list[Entry] = []
    changed = False
    for entry in entries:
        if (entry.target_id if isinstance(entry, Update) else entry.id) in targets and any(
            reaches(purge, entry) for purge in found
        ):
            result.append(blank(entry))
            changed |= result[-1] is not entry
        else:
            result.append(entry)
    return result if changed else entries


# -- raw lines -------------------------------------------------------------------------------------


def scrubbed(lines: Sequence[bytes]) -> Sequence[bytes]:
    """The lines of a session file without the text that purges among them take away.

    Every other line stays as it is, whatever it holds; a fragment of one that had to go, goes.
    """
    purges = [entry for line in lines if b'"purge"' in line and (entry := _purge(line))]
    if not purges:
        return lines
    targets = {compact(purge.target_id) for purge in purges}
    marks = {b'"%b":%b' % (name, target) for target in targets for name in (b"id", b"targetId")}
    # Most lines name none of them, and need not be read: other hands write escapes, though.
    hints = {b"\\u", b"\\/", *targets}
    kept = (
        _scrubbed(line, purges, marks) if any(hint in line for hint in hints) else line
        for line in lines
    )
    return [line for line in kept if line is not None]


def _scrubbed(line: bytes, purges: list[Purge], marks: set[bytes]) -> bytes | None:
    try:
        entry = decode(line)
    except NotAnEntry:
        place, _, _said = line.partition(b',"message":')
        return None if any(mark in place for mark in marks) else line
    if not any(reaches(purge, entry) for purge in purges):
        return line
    without = blank(entry)
    return line if without is entry else without.line


def _purge(line: bytes) -> Purge | None:
    try:
        entry = decode(line)
    except NotAnEntry:
        return None
    return entry if isinstance(entry, Purge) else None
