"""Locks between processes, and between the threads of one.

One lock file guards one thing. Inside a process all users of a lock file share one `threading` lock
in front of it, so that threads queue without polling and only one of them at a time asks `filelock`.
A lock is held for milliseconds, never across somebody else's code; waiting is bounded and ends in
`WorkspaceBusy`. Lock files are never deleted: deleting one lets two holders in.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from weakref import WeakValueDictionary

from filelock import lock_descriptor, unlock_descriptor

from workspace_session.errors import WorkspaceBusy
from workspace_session.files.atomic import file_mode, make_directories
from workspace_session.files.forks import after_fork, keep_over_forks

WAIT_SECONDS = 30.0
_POLL_SECONDS = 0.001
MUCH = 1 << 19  # bytes; the lines in them take some milliseconds to be understood

_registry: WeakValueDictionary[str, PathLock] = WeakValueDictionary()
_registry_mutex = threading.Lock()


_waiting = threading.local()


@contextmanager
def no_waiting() -> Iterator[None]:
    """In this thread, what would take its time raises `WorkspaceBusy` at once.

    That is a lock that somebody else holds, and reading or writing more than `MUCH`.
    """
    before = _is_waiting_forbidden()
    _waiting.forbidden = True
    try:
        yield
    finally:
        _waiting.forbidden = before


def _is_waiting_forbidden() -> bool:
    return getattr(_waiting, "forbidden", False)


def refuse_much(count: int, shown: str) -> None:
    """See that so many bytes may be read or written here."""
    if count > MUCH and _is_waiting_forbidden():
        raise _TakesTime(shown, f"{count:,} bytes", 0.0)


class _TakesTime(WorkspaceBusy):
    """It is not somebody else who would be waited for, but what there is to do."""

    def __str__(self) -> str:
        return f"{self.path}: to read or write {self.holder} takes its time"


class Mutex:
    """Keeps the threads apart that share something in memory; one of them may enter it again.

    Whoever holds it may be waiting for the disk, so `no_waiting` counts here too.
    """

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self.renew_in_child()
        keep_over_forks(self)

    def renew_in_child(self) -> None:
        """Whoever held it does not exist here."""
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=not _is_waiting_forbidden()):
            raise WorkspaceBusy(self._shown, "another thread of this process", 0.0)

    def __exit__(self, *_error: object) -> None:
        self._lock.release()


class PathLock:
    """The lock of one lock file, shared by the whole process; a thread may enter it again."""

    def __init__(self, path: Path, shown: str) -> None:
        self.path = path
        self.shown = shown  # how errors name it: below the root
        self._mutex = threading.RLock()
        self._depth = 0
        self._descriptor = -1
        keep_over_forks(self)

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_error: object) -> None:
        self.release()

    def acquire(self, timeout: float = WAIT_SECONDS) -> None:
        """Take the lock, or raise `WorkspaceBusy` when it was not had in time."""
        if _is_waiting_forbidden():
            timeout = 0.0
        started = time.monotonic()
        if not self._mutex.acquire(timeout=timeout):
            raise WorkspaceBusy(self.shown, "another thread of this process", timeout)
        try:
            if self._depth == 0:
                self._descriptor = self._locked_file(started + timeout, timeout)
            self._depth += 1
        except BaseException:
            self._mutex.release()
            raise

    def release(self) -> None:
        """Give the lock back."""
        self._depth -= 1
        try:
            if self._depth == 0:
                unlock_descriptor(self._descriptor)
                os.close(self._descriptor)
        finally:
            self._mutex.release()

    def _locked_file(self, deadline: float, timeout: float) -> int:
        """The lock file, open and locked.

        filelock's own `FileLock` resolves the path anew each time, which takes ten times as long as
        all the rest; both contend for the same lock.
        """
        while True:
            descriptor = self._open()
            try:
                while not lock_descriptor(descriptor, blocking=False):
                    if time.monotonic() >= deadline:
                        raise WorkspaceBusy(self.shown, _holder_of(self.path), timeout)
                    time.sleep(_POLL_SECONDS)
                if os.fstat(descriptor).st_nlink:
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)  # removed by somebody while we waited: others use a new one

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT
        try:
            return os.open(self.path, flags, file_mode())
        except FileNotFoundError:
            make_directories(self.path.parent, sync=False)
            return os.open(self.path, flags, file_mode())

    def renew_in_child(self) -> None:
        """The threads that held or awaited this lock do not exist here."""
        if self._depth:
            os.close(self._descriptor)  # not unlocked: the parent still holds it
        self._mutex = threading.RLock()
        self._depth = 0
        self._descriptor = -1


def lock_at(path: Path, *, shown: str | None = None) -> PathLock:
    """The process-wide lock of a lock file; its directory is made when it is first taken."""
    key = os.fspath(path)
    with _registry_mutex:
        lock = _registry.get(key)
        if lock is None:
            lock = _registry[key] = PathLock(path, shown or path.name)
        return lock


def _holder_of(path: Path) -> str:
    """Who holds the lock, as far as the kernel tells: read only when waiting has failed."""
    try:
        inode = path.stat().st_ino
        table = Path("/proc/locks").read_text("ascii", "replace")
    except OSError:
        return "another process"
    for line in table.splitlines():
        fields = line.split()
        # 1: FLOCK ADVISORY WRITE <pid> <major>:<minor>:<inode> 0 EOF
        if len(fields) >= 6 and fields[5].rpartition(":")[2] == str(inode) and fields[4] != "0":
            return f"process {fields[4]}"
    return "another process"


@after_fork
def _renew_registry() -> None:
    global _registry_mutex
    _registry_mutex = threading.Lock()
