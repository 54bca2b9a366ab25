"""Which entry of a transcript hangs from which.

An entry hangs from its parent; one without a parent, or with one that is nowhere, from the message
before. A run without parents that repeats role and content of the whole conversation so far, in order,
is that history sent again: its entries are the earlier ones under other ids.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field

from workspace_session.adapters.agentscope_java.lines import Line
from workspace_session.adapters.agentscope_java.reading import Transcript
from workspace_session.adapters.agentscope_java.shapes import to_message
from workspace_session.model.canonical import compact


@dataclass(slots=True)
class Lineage:
    """The entries of a transcript, each once, in the order of the file."""

    lines: dict[str, Line] = field(default_factory=dict)
    parents: dict[str, str | None] = field(default_factory=dict)
    same: dict[str, str] = field(default_factory=dict)  # entries sent again, and which they are
    last: str | None = None  # the message that the transcript ends at


def settle(transcript: Transcript, stored: Container[str]) -> Lineage:
    """Find the parent of every entry; `stored` are the messages that the session has already."""
    found = Lineage()
    entries = transcript.entries
    ids = {line.id for line in entries}
    so_far: list[tuple[str, bytes]] = []  # the conversation: ids and contents
    awaited: set[str] = set()  # what is somebody's parent
    index = 0
    while index < len(entries):
        line = entries[index]
        if line.id in found.lines or line.id in found.same:
            repeated = 1
        elif repeated := _sent_again(entries, index, so_far, found.lines):
            run = entries[index : index + repeated]
            found.same |= {one.id: first for one, (first, _) in zip(run, so_far, strict=True)}
        if repeated:
            index += repeated
            if not is_summary(last := entries[index - 1]):
                found.last = found.same.get(last.id, last.id)
            continue
        index += 1
        parent = line.parent_id
        if parent is not None and parent not in ids and parent not in stored:
            transcript.doubt(line.id, f"there is no entry {parent!r} to be its parent")
            parent = None
        found.lines[line.id] = line
        if parent is not None:
            awaited.add(parent)
            found.parents[line.id] = parent
        elif line.id in awaited and _descends(found, line.id):
            found.parents[line.id] = None  # the message before is below it
        else:
            found.parents[line.id] = found.last
        if not is_summary(line):
            found.last = line.id
            so_far.append((line.id, _content(line)))
    for entry_id, parent in found.parents.items():  # of which some came later than their children
        found.parents[entry_id] = found.same.get(parent, parent) if parent is not None else None
    return found


def parents_first(lineage: Lineage, transcript: Transcript) -> Iterator[Line]:
    """The entries in the order of the file, each after its parent; a circle is cut at its first."""
    done: set[str] = set()
    waiting: dict[str, list[Line]] = {}

    def ready(first: Line) -> Iterator[Line]:
        pending = [first]
        while pending:
            line = pending.pop()
            done.add(line.id)
            yield line
            pending += reversed(waiting.pop(line.id, []))

    for line in lineage.lines.values():
        parent = lineage.parents[line.id]
        if parent is None or parent in done or parent not in lineage.lines:
            yield from ready(line)
        else:
            waiting.setdefault(parent, []).append(line)
    for line in lineage.lines.values():
        if line.id not in done:
            transcript.doubt(line.id, "its parents form a circle; it is cut here")
            waiting[lineage.parents[line.id] or ""].remove(line)
            lineage.parents[line.id] = None
            yield from ready(line)


def is_summary(line: Line) -> bool:
    """Whether an entry is about messages rather than one."""
    return line.type in ("summary", "compaction")


def _descends(found: Lineage, entry_id: str) -> bool:
    """Whether the last message hangs, by whatever way, from an entry."""
    seen: set[str] = set()
    above = found.last
    while above is not None and above not in seen and above != entry_id:
        seen.add(above)
        above = found.parents.get(above)
    return above == entry_id


def _sent_again(
    entries: list[Line], start: int, so_far: list[tuple[str, bytes]], known: Container[str]
) -> int:
    """How many entries from `start` on are the conversation so far: as many as it has, or none."""
    if len(entries) - start < len(so_far):
        return 0
    for offset, (_, content) in enumerate(so_far):
        line = entries[start + offset]
        if line.parent_id is not None or is_summary(line) or line.id in known:
            return 0
        if _content(line) != content:
            return 0
    return len(so_far)


def _content(line: Line) -> bytes:
    message = to_message(line)
    return compact([message["role"], message["content"]])
