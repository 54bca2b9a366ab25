"""A stretch of a log: the entries from an offset on, and the marks that can be set among them.

A batch that may still be being written is held back, and so is a torn line: marks stay before them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias

from workspace_session.files.jsonl import Lines, parse_lines, read_bytes
from workspace_session.model.batches import Settled, settle
from workspace_session.model.entries import Abort, Entry, Purge, Trim
from workspace_session.model.purging import withheld
from workspace_session.search.engine import Mark
from workspace_session.search.sources import Source, digest

Key: TypeAlias = tuple[str, str]
_BEFORE_ALL: Key = ("", "")


class Item(NamedTuple):
    """An entry that counts, and where its line is."""

    entry: Entry
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """What was read of a log, and the mark it was read on from."""

    items: list[Item]
    before: Mark | None
    _data: bytes
    _start: int  # the offset of the data in the log
    _end: int  # behind what is settled
    _found: os.stat_result

    @classmethod
    def whole(cls, source: Source) -> Stretch | None:
        """A log from its beginning; None when it has vanished."""
        read = read_bytes(Path(source.path))
        return None if read is None else cls._of(read[0], 0, read[1], None)

    @classmethod
    def after(cls, source: Source, mark: Mark) -> Stretch | None:
        """What was appended behind a mark; None when something else was done to the log."""
        if not mark.end or not source.may_continue(mark):
            return None
        read = read_bytes(Path(source.path), mark.end - mark.last_length - 1)
        if read is None or read[1].st_ino != mark.inode:
            return None
        line, newline, data = read[0].partition(b"\n")
        if not newline or digest(line) != mark.last_line:
            return None
        stretch = cls._of(data, mark.end, read[1], mark)
        return stretch if stretch._goes_on() else None

    @classmethod
    def _of(cls, data: bytes, start: int, found: os.stat_result, before: Mark | None) -> Stretch:
        lines = parse_lines(data, start)
        settled = settle(lines.entries)
        counted = dict(zip(map(id, settled.counted), withheld(settled.counted), strict=True))
        items = [
            Item(counted[id(entry)], start + data.rfind(b"\n", 0, end - start - 1) + 1, end)
            for entry, end in zip(lines.entries, lines.ends, strict=True)
            if id(entry) in counted and type(entry) is not Trim
        ]
        return cls(items, before, data, start, _end_of_settled(lines, settled, start), found)

    def is_in_order(self) -> bool:
        """Whether each entry is newer than the one before it."""
        return all(a.entry.key < b.entry.key for a, b in pairwise(self.items))

    def _goes_on(self) -> bool:
        """Whether everything here is newer than the mark, and revokes nothing before it."""
        newer = not self.items or self.items[0].entry.key > _newest(self.before)
        revokes = any(type(item.entry) in (Abort, Purge) for item in self.items)
        return newer and not revokes and self.is_in_order()

    # -- marks --

    def mark(self, taken: int) -> Mark:
        """The mark behind the first so many items; behind the last of them, behind everything."""
        newest = max((item.entry.key for item in self.items[:taken]), default=_BEFORE_ALL)
        newest = max(newest, _newest(self.before))
        if taken == len(self.items):
            return self._mark(self._found.st_size, self._found.st_mtime_ns, self._end, newest)
        end = self.items[taken - 1].end
        return self._mark(end, 0, end, newest)  # a size that says: there is more

    def _mark(self, size: int, modified: int, end: int, newest: Key) -> Mark:
        inode = self._found.st_ino
        if end == self._start:
            line, length = self.before[4:6] if self.before is not None else ("", 0)
            return Mark(inode, size, modified, end, line, length, *newest)
        data = self._data[: end - self._start - 1]
        last = data[data.rfind(b"\n") + 1 :]
        return Mark(inode, size, modified, end, digest(last), len(last), *newest)


def _newest(mark: Mark | None) -> Key:
    return _BEFORE_ALL if mark is None else (mark.timestamp, mark.entry_id)


def _end_of_settled(lines: Lines, settled: Settled, start: int) -> int:
    if settled.settled == len(lines.entries):
        return lines.end
    return lines.ends[settled.settled - 1] if settled.settled else start
