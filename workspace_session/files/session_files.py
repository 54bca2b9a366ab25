"""The two files of a session, as bytes and offsets.

The log is the truth, the working set is derived from it. After every write both end in the same entry.
Whatever else is found (a crash between the two writes, a torn line, a file that was edited, merged or
deleted) is `ragged`: reading goes by the log, and the next writer makes the working set anew.

Readers take no lock. They remember how far they have read; a file that shrank, was replaced, or does
not hold the last line they know where they know it, is read again from its beginning.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from workspace_session.files import pace, seal
from workspace_session.files.atomic import (
    make_directories,
    remove_stale_temporaries,
    write_atomic,
)
from workspace_session.files.jsonl import (
    Lines,
    Written,
    append_bytes,
    lines_backwards,
    parse_lines,
    read_bytes,
    truncate,
)
from workspace_session.files.layout import AgentPlace
from workspace_session.model.batches import Settled, settle
from workspace_session.model.canonical import compact, parse
from workspace_session.model.entries import Entry, Trim
from workspace_session.model.lines import NotAnEntry, decode
from workspace_session.model.purging import scrubbed
from workspace_session.model.union import merge_lines

logger = logging.getLogger("workspace_session")

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_MESSAGE = b'{"type":"message","id":'
_LINE = 1 << 12  # bytes, which most lines are shorter than


@dataclass(slots=True)
class _Mark:
    """How far a file is known: which file it was, and what stood at the end of what was read."""

    inode: int
    size: int
    modified: int
    device: int
    end: int = 0  # everything before it has been taken in
    last_line: bytes = b""
    torn: bool = False  # whether it lacks its last newline


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the files of a session hold, as far as it counts."""

    kept: list[Entry] = field(default_factory=list)  # what a trimmed working set kept
    trim: Trim | None = None
    later: list[Entry] = field(default_factory=list)  # all entries, or those since the trim


class SessionFiles:
    """Reads and writes the pair of files; knows nothing of what entries mean."""

    def __init__(self, place: AgentPlace, session_id: str, *, durable: bool) -> None:
        self.log_path = place.log(session_id)
        self.tree_path = place.tree(session_id)
        self._layout = place.layout
        self.durable = durable
        self.forget()

    def forget(self) -> None:
        """Know nothing: the next reading starts from the beginning."""
        self._log: _Mark | None = None
        self._tree: _Mark | None = None
        self.ragged = False
        self.log_lost = False
        self.sealable = True  # whether its end alone tells the truth
        self.cut: list[str] = []  # batches that no abort names yet
        self._before = 0  # the size of the log before the last append
        self.take_last_line = False  # whether one without its newline counts

    @property
    def is_quick(self) -> bool:
        """Whether writing waits for no disk, or for one that has lately been quick."""
        return not self.durable or (self._log is not None and pace.is_quick(self._log.device))

    @property
    def identity(self) -> object:
        """What all handles of this session have in common."""
        return self.log_path

    def exist(self) -> bool:
        """Whether the session has a file."""
        return self.log_path.exists() or self.tree_path.exists()

    @property
    def log_size(self) -> int:
        """The size of the log as it was last seen."""
        return self._log.size if self._log else 0

    @property
    def tree_size(self) -> int:
        """The size of the working set as it was last seen."""
        return self._tree.size if self._tree else 0

    @property
    def is_torn(self) -> bool:
        """Whether the log lacks its last newline, as far as it was read."""
        return self._log is not None and self._log.torn

    # -- reading all -------------------------------------------------------------------------------

    def load(self, *, from_log: bool = False) -> Loaded:
        """Read the working set, and from the log what it lacks; or the log alone."""
        self._layout.check(self.log_path)
        self._layout.check(self.tree_path)
        found = read_bytes(self.tree_path)
        if found is not None:
            self._tree = _mark(found[1])
        lines = parse_lines(found[0] if found else b"")
        if from_log or not lines.entries or self.take_last_line:
            return self._load_log()
        end = _end_key(lines.entries[-1])
        replay = self._log_since(end)
        if replay is None and self._log is None:
            self.log_lost = self.ragged = True
            return _split(lines.entries, ()) or Loaded(later=settle(lines.entries).counted)
        if replay is None or any(entry.key <= end for entry in replay):
            return self._load_log()
        self.ragged = bool(replay or lines.bad or lines.torn)
        return _split(lines.entries, replay) or self._load_log()

    def _load_log(self) -> Loaded:
        self.ragged = True
        return Loaded(later=self.read_log() or [])

    def read_log(self) -> list[Entry] | None:
        """Every entry of the log that counts; None without a log."""
        found = read_bytes(self.log_path)
        if found is None:
            return None
        lines = parse_lines(found[0] + b"\n" if self.take_last_line else found[0])
        self._log = _mark(found[1])
        self._log.torn = lines.torn or self.take_last_line
        settled = settle(lines.entries)
        self.cut = settled.cut
        self._remember(lines, settled)
        return settled.counted

    def _log_since(self, key: tuple[str, str]) -> list[Entry] | None:
        """What the log holds behind an entry; None when it does not hold the entry."""
        try:
            descriptor = os.open(self.log_path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            log = self._log = _mark(os.fstat(descriptor))
            newer: list[Entry] = []
            for end, line in lines_backwards(descriptor, log.size):
                if not log.end:
                    log.end, log.last_line, log.torn = end, line, end < log.size
                try:
                    entry = decode(line)
                except NotAnEntry:
                    continue  # a torn line that was closed; `verify` reports it
                if entry.key == key:  # an id alone may come again: of a message that was deleted
                    newer.reverse()
                    return newer
                newer.append(entry)
        finally:
            os.close(descriptor)
        return None

    def _remember(self, lines: Lines, settled: Settled) -> None:
        """Take the entries that are settled as read; what may still be written is not."""
        assert self._log is not None
        if settled.settled == len(lines.entries):
            self._log.end = lines.end
        elif settled.settled:
            self._log.end = lines.ends[settled.settled - 1]
        if settled.settled:
            self._log.last_line = lines.entries[settled.settled - 1].line

    def message_ids(self) -> set[bytes]:
        """The ids of all messages in the log, as they are written there."""
        found = read_bytes(self.log_path)
        ids: set[bytes] = set()
        for line in (found[0] if found else b"").split(b"\n"):
            if line.startswith(_MESSAGE):
                found_id = line[len(_MESSAGE) : line.find(b',"timestamp":')]
                ids.add(_as_written(found_id) if b"\\" in found_id else found_id)
            elif b'"message"' in line:  # written by other hands
                ids.update(compact(entry.id) for entry in parse_lines(line + b"\n").entries)
        return ids

    # -- reading on --------------------------------------------------------------------------------

    def changes(self, *, locked: bool) -> list[Entry] | None:
        """What was appended to the log since; None when everything has to be read again."""
        log = self._log
        try:
            found = self.log_path.stat()
        except FileNotFoundError:
            return None
        if log is None or found.st_ino != log.inode or found.st_size < log.end:
            return None
        entries: list[Entry] = []
        grown = 0
        if (found.st_size, found.st_mtime_ns) != (log.size, log.modified):
            before = log.end
            read = self._read_on(log)
            if read is None:
                return None
            entries, grown = read, log.end - before
        if self._tree is not None:
            self._tree.size += grown
        if locked and not self._is_whole(log):
            return None
        return entries

    def _read_on(self, log: _Mark) -> list[Entry] | None:
        start = max(0, log.end - len(log.last_line) - 1)
        found = read_bytes(self.log_path, start)
        if found is None or found[1].st_ino != log.inode:
            return None
        data = found[0]
        if log.end and not log.last_line:
            return None  # nothing to know the place by: an inode may have been given out again
        if not data.startswith(log.last_line) or len(data) < log.end - start:
            return None
        lines = parse_lines(data[log.end - start :], log.end)
        settled = settle(lines.entries)
        if len(settled.cut) > (settled.settled < len(lines.entries)):
            return None  # a batch that is not whole, and is not just being written either
        log.size, log.modified, log.torn = found[1].st_size, found[1].st_mtime_ns, lines.torn
        self._remember(lines, settled)
        return settled.counted

    def _is_whole(self, log: _Mark) -> bool:
        """Under the lock: whether the log ends where it was read to, and the working set fits it."""
        if self.ragged or self.cut or log.size != log.end or self._tree is None:
            return False
        try:
            found = self.tree_path.stat()
        except FileNotFoundError:
            return False
        same = (found.st_ino, found.st_size) == (self._tree.inode, self._tree.size)
        return same and (seal.is_intact(found) or found.st_mtime_ns == self._tree.modified)

    # -- reading the end ---------------------------------------------------------------------------

    def newest_first(self) -> Iterator[Entry] | None:
        """The entries of the working set from its end on; None when their order is not known."""
        self._layout.check(self.log_path)
        self._layout.check(self.tree_path)
        try:
            tree = os.open(self.tree_path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            found = os.fstat(tree)
            last = next(lines_backwards(tree, found.st_size, _LINE), None)
            if not seal.is_intact(found) or last is None or last[1] != self._last_of_log():
                os.close(tree)
                return None
        except BaseException:
            os.close(tree)
            raise
        return _entries_backwards(tree, found.st_size)

    def read_header(self) -> Entry | None:
        """The first line of the working set, without the rest."""
        try:
            with self.tree_path.open("rb") as tree:
                first = parse_lines(tree.readline()).entries
        except FileNotFoundError:
            return None
        return first[0] if first else None

    def _last_of_log(self) -> bytes | None:
        try:
            log = os.open(self.log_path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            last = next(lines_backwards(log, os.fstat(log).st_size, _LINE), None)
            return None if last is None else last[1]
        finally:
            os.close(log)

    def remember_order(self) -> None:
        """The working set was read in full and found to be in order."""
        if self._tree is not None and not self.ragged and self.sealable:
            seal.put(self.tree_path, self._tree.size)

    # -- writing, under the lock -------------------------------------------------------------------

    def append_log(self, data: bytes) -> None:
        """Add lines to the log: from here on they have happened."""
        if self._log is None:
            make_directories(self.log_path.parent, sync=self.durable)
        if self._log is not None and self._log.torn:
            data = b"\n" + data  # closes the line that was cut short
        appended = self._append(self.log_path, data, sync=self.durable)
        self._before = appended.start
        self.take_last_line = False
        self._log = _mark(appended.after)
        if self.durable:
            pace.note(self._log.device, appended.waited)
        self._log.end = self._log.size
        self._log.last_line = data[data.rfind(b"\n", 0, -1) + 1 : -1]
        self.cut = []

    def _append(self, path: Path, data: bytes, *, sync: bool) -> Written:
        """Add to a file that has not become a link out of the workspace since it was read."""
        if _NO_LINK:
            try:
                return append_bytes(path, data, sync=sync, flags=_NO_LINK)
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
        self._layout.check(path)
        return append_bytes(path, data, sync=sync)

    def ends_in_a_whole_line(self) -> bool:
        """Whether the log lacks nothing but its last newline: closing it makes that line count."""
        if self._log is None or self._log.size == self._log.end or self.take_last_line:
            return False
        rest = read_bytes(self.log_path, self._log.end)
        last = (rest[0] if rest else b"").rpartition(b"\n")[2]
        return bool(parse_lines(last + b"\n").entries)

    def undo_log(self) -> None:
        """Take the last append back: the operation it belonged to has failed."""
        if self._before:
            truncate(self.log_path, self._before)
        else:
            self.log_path.unlink(missing_ok=True)  # it was made by this

    def append_tree(self, data: bytes) -> None:
        """Add lines to the working set."""
        appended = self._append(self.tree_path, data, sync=False)
        self._tree = _mark(appended.after)
        self.remember_order()

    def replace_tree(self, data: bytes) -> None:
        """Make `data` the working set, at once."""
        write_atomic(self.tree_path, data, sync=False)
        self._tree = _mark(self.tree_path.stat())
        self.ragged = False
        self.remember_order()

    def all_entries(self) -> list[Entry]:
        """Every entry of the log as the file holds it, those that do not count included."""
        found = read_bytes(self.log_path)
        return parse_lines(found[0]).entries if found else []

    def unite_log(self, lines: bytes) -> bool:
        """Make the log the union of its lines and others; False if it has them all."""
        found = read_bytes(self.log_path)
        ours = found[0] if found else b""
        united = merge_lines(ours, lines)
        if set(united.split(b"\n")) <= set(ours.split(b"\n")):
            return False
        make_directories(self.log_path.parent, sync=self.durable)
        self._layout.check(self.log_path)
        write_atomic(self.log_path, united, sync=self.durable)
        return True

    def scrub_log(self) -> bool:
        """Take out of the log the text that purges in it take away; False when there was none."""
        found = read_bytes(self.log_path)
        lines = found[0].split(b"\n") if found else []
        clean = scrubbed(lines)
        if clean is lines or clean == lines:
            return False
        self._layout.check(self.log_path)
        write_atomic(self.log_path, b"\n".join(clean), sync=self.durable)
        return True

    def remove_leftovers(self) -> None:
        """Remove what a crash has left of an unfinished file: it may hold any text."""
        for path in (self.log_path, self.tree_path):
            remove_stale_temporaries(path.parent, 0, of=path)

    def restore_log(self, data: bytes) -> None:
        """Make a log that was lost anew from what the working set holds."""
        logger.warning("%s was missing: made anew from the working set", self.log_path.name)
        write_atomic(self.log_path, data, sync=self.durable)
        self._log = _mark(self.log_path.stat())
        self._log.end = self._log.size
        self.log_lost = False


def _entries_backwards(descriptor: int, size: int) -> Iterator[Entry]:
    try:
        for _end, line in lines_backwards(descriptor, size):
            try:
                yield decode(line)
            except NotAnEntry:
                continue  # `verify` reports it
    finally:
        os.close(descriptor)


def _as_written(text: bytes) -> bytes:
    """A text in JSON as we would write it: other hands escape what need not be."""
    try:
        return compact(parse(text))
    except ValueError:
        return text  # of a line that is no entry


def _mark(found: os.stat_result) -> _Mark:
    return _Mark(found.st_ino, found.st_size, found.st_mtime_ns, found.st_dev)


def _split(entries: list[Entry], replay: Sequence[Entry]) -> Loaded | None:
    """What a working set holds, and what comes after it; None when only the log can tell.

    Which it is when it was put together by other hands: trimmed twice over, with lines moved past
    the trim or brought back before it, or with a batch that is not whole.
    """
    trims = [at for at, entry in enumerate(entries) if isinstance(entry, Trim)]
    settled = settle([*entries[trims[0] + 1 if trims else 0 :], *replay])
    if settled.cut or len(trims) > 1:
        return None
    if not trims:
        return Loaded(later=settled.counted)
    kept, trim = entries[: trims[0]], entries[trims[0]]
    assert isinstance(trim, Trim)
    moved = any(entry.key > trim.end for entry in kept)
    if moved or trim.kept != len(kept) or any(entry.key <= trim.end for entry in settled.counted):
        return None
    return Loaded(kept, trim, settled.counted)


def _end_key(last: Entry) -> tuple[str, str]:
    """The entry in the log that the end of a working set corresponds to."""
    return last.end if isinstance(last, Trim) else last.key
