"""Session files: one JSON object per line, appended under a lock, never edited.

A line ends at `\\n` and nowhere else. A torn last line (a crash in the middle of a write) is left out by
readers and closed by the next writer; `verify()` reports it, and anything else that is no entry.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from workspace_session.files.atomic import file_mode, sync_directory, write_all
from workspace_session.files.forks import after_fork
from workspace_session.files.locks import refuse_much
from workspace_session.model.entries import Entry
from workspace_session.model.lines import NotAnEntry, decode

_BLOCK = 1 << 16
MANY = 1000  # from here on the collector is paused


class BadLine(NamedTuple):
    """A line that holds no entry: its number, counted from 1, and why."""

    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class Lines:
    """What a stretch of a file holds. `ends` are the offsets behind each entry's line."""

    entries: list[Entry] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    bad: list[BadLine] = field(default_factory=list)
    end: int = 0  # behind the last complete line
    torn: bool = False  # whether something follows that


# -- reading ---------------------------------------------------------------------------------------


def read_bytes(path: Path, start: int = 0) -> tuple[bytes, os.stat_result] | None:
    """The bytes from an offset on, and what the file was when they were read; None without it."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        found = os.fstat(descriptor)
        refuse_much(found.st_size - start, path.name)
        chunks = []
        at = start
        while chunk := os.pread(descriptor, max(_BLOCK, found.st_size - at), at):
            chunks.append(chunk)
            at += len(chunk)
        return b"".join(chunks), found
    finally:
        os.close(descriptor)


def parse_lines(data: bytes, start: int = 0) -> Lines:
    """The entries of a stretch of a file that begins at offset `start`."""
    lines = data.split(b"\n")
    torn = bool(lines.pop())
    entries: list[Entry] = []
    ends: list[int] = []
    bad: list[BadLine] = []
    at = start
    for line in lines:
        at += len(line) + 1
        try:
            entries.append(decode(line))
            ends.append(at)
        except NotAnEntry as error:
            bad.append(BadLine(len(entries) + len(bad) + 1, str(error)))
    return Lines(entries, ends, bad, at, torn)


def lines_backwards(descriptor: int, size: int, block: int = _BLOCK) -> Iterator[tuple[int, bytes]]:
    """The complete lines of an open file and the offsets behind them, the last one first.

    No more is read than is asked for, in blocks that double. What follows the last newline is torn,
    or empty, and left out.
    """
    at, rest = size, b""
    is_whole = False  # whether a newline follows what comes next
    while at > 0:
        length = min(block, at)
        at -= length
        block *= 2
        data = os.pread(descriptor, length, at) + rest
        end = len(data)
        while (newline := data.rfind(b"\n", 0, end)) >= 0:
            if is_whole:
                yield at + end + 1, data[newline + 1 : end]
            is_whole, end = True, newline
        rest = data[:end]
    if is_whole:
        yield len(rest) + 1, rest


_pauses = 0
_pauses_mutex = threading.Lock()
_was_enabled = False


@contextmanager
def collector_paused(wanted: bool = True) -> Iterator[None]:
    """Keep the garbage collector out of a bulk load, where it costs more than the load itself.

    Nothing that is made here is garbage yet, so all its searching would be in vain. Pauses may
    overlap; the last one to end brings the collector back.
    """
    global _pauses, _was_enabled
    if not wanted:
        yield
        return
    with _pauses_mutex:
        if _pauses == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _pauses += 1
    try:
        yield
    finally:
        with _pauses_mutex:
            _pauses = max(0, _pauses - 1)  # a fork may have ended it already
            if _pauses == 0 and _was_enabled:
                gc.enable()


@after_fork
def _end_pauses() -> None:
    """Those of other threads would never end here."""
    global _pauses, _pauses_mutex
    _pauses_mutex = threading.Lock()
    if _pauses and _was_enabled:
        gc.enable()
    _pauses = 0


# -- writing ---------------------------------------------------------------------------------------


class Written(NamedTuple):
    """Where an append began, the file as it was behind it, and the seconds that the sync took."""

    start: int
    after: os.stat_result
    waited: float


def append_bytes(path: Path, data: bytes, *, sync: bool, flags: int = 0) -> Written:
    """Add bytes to a file with one write; call it under the lock.

    A write that comes back short (a full disk) is undone, and the error raised.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | flags, file_mode())
    try:
        start = os.lseek(descriptor, 0, os.SEEK_END)
        waited = 0.0
        try:
            write_all(descriptor, data)
            if sync:
                begun = time.perf_counter()
                _sync(descriptor)
                waited = time.perf_counter() - begun
                if start == 0:
                    sync_directory(path.parent)
        except BaseException:
            os.ftruncate(descriptor, start)
            if start == 0:
                path.unlink()  # it was made by this
            raise
        after = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    return Written(start, after, waited)


def truncate(path: Path, size: int) -> None:
    """Undo an append: nobody has been told of it yet."""
    os.truncate(path, size)


def joined(entries: Sequence[Entry]) -> bytes:
    """The lines of entries, as a file holds them."""
    return b"\n".join([*[entry.line for entry in entries], b""])


_sync = getattr(os, "fdatasync", os.fsync)  # the length of the file is synced by both
