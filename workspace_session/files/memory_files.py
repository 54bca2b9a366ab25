"""A session that is on no disk: the same as its files would be, for as long as the process lives.

Handles share one `MemoryLog` as they would share a file. There is no working set to trim: the log is
already in memory.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from workspace_session.errors import SessionDeleted
from workspace_session.files.forks import keep_over_forks
from workspace_session.files.jsonl import parse_lines
from workspace_session.files.locks import Mutex, refuse_much
from workspace_session.files.session_files import Loaded, SessionFiles
from workspace_session.model.entries import Entry
from workspace_session.model.purging import scrubbed


@dataclass(slots=True, eq=False, weakref_slot=True)
class MemoryLog:
    """What the log of one session would hold."""

    data: bytearray = field(default_factory=bytearray)
    scrubbed: int = 0  # how often text was taken out of it
    deleted: str | None = None  # the session it was of; one made anew has a log of its own
    # Of the session: whoever writes holds it.
    lock: Mutex = field(default_factory=lambda: Mutex("a session in memory"))
    mutex: threading.Lock = field(init=False)  # of all that, for a moment

    def __post_init__(self) -> None:
        self.renew_in_child()
        keep_over_forks(self)

    def renew_in_child(self) -> None:
        """Whoever held it does not exist here."""
        self.mutex = threading.Lock()


@dataclass(frozen=True, slots=True)
class MemoryPlace:
    """Whose a session is."""

    agent_id: str
    namespace: tuple[str, ...] = ()

    def refuse_twins(self, session_id: str) -> None:
        """Ids that differ only in case are no trouble here."""


class MemoryFiles(SessionFiles):
    """One handle's view of a log in memory."""

    def __init__(self, log: MemoryLog) -> None:
        self._shared = log
        self.durable = False
        self.forget()

    def forget(self) -> None:
        self.ragged = self.log_lost = self.take_last_line = False
        self.cut: list[str] = []
        self._end = self._before = 0
        self._scrubbed = self._shared.scrubbed

    @property
    def identity(self) -> object:
        return id(self._shared)

    def exist(self) -> bool:
        return bool(self._shared.data)

    @property
    def log_size(self) -> int:
        return len(self._shared.data)

    @property
    def tree_size(self) -> int:
        return 0

    @property
    def is_torn(self) -> bool:
        return False

    # -- reading -----------------------------------------------------------------------------------

    def load(self, *, from_log: bool = False) -> Loaded:  # noqa: ARG002 (there is only the log)
        self.forget()
        return Loaded(later=self.changes(locked=False) or [])

    def read_log(self) -> list[Entry] | None:
        return self.load().later

    def changes(self, *, locked: bool) -> list[Entry] | None:  # noqa: ARG002 (one reader, one truth)
        with self._shared.mutex:
            if self._shared.deleted is not None:
                raise SessionDeleted(self._shared.deleted)
            if len(self._shared.data) < self._end or self._scrubbed != self._shared.scrubbed:
                return None  # undone, or scrubbed, by another handle
            refuse_much(len(self._shared.data) - self._end, "a session in memory")
            data = bytes(self._shared.data[self._end :])
            self._end += len(data)
        return parse_lines(data).entries

    def read_header(self) -> Entry | None:
        with self._shared.mutex:
            if self._shared.deleted is not None:
                raise SessionDeleted(self._shared.deleted)
            first = bytes(self._shared.data[: self._shared.data.find(b"\n") + 1])
        return next(iter(parse_lines(first).entries), None)

    def newest_first(self) -> Iterator[Entry] | None:
        return None

    def remember_order(self) -> None:
        pass

    # -- writing, under the lock -------------------------------------------------------------------

    def append_log(self, data: bytes) -> None:
        with self._shared.mutex:
            self._before = len(self._shared.data)
            self._shared.data += data
            self._end = len(self._shared.data)

    def ends_in_a_whole_line(self) -> bool:
        return False

    def undo_log(self) -> None:
        with self._shared.mutex:
            del self._shared.data[self._before :]

    def scrub_log(self) -> bool:
        with self._shared.mutex:
            lines = bytes(self._shared.data).split(b"\n")
            clean = b"\n".join(scrubbed(lines))
            if clean == self._shared.data:
                return False
            self._shared.data[:] = clean
            self._shared.scrubbed += 1
        return True

    def remove_leftovers(self) -> None:
        pass

    def append_tree(self, data: bytes) -> None:
        pass

    def replace_tree(self, data: bytes) -> None:  # noqa: ARG002
        self.ragged = False

    def restore_log(self, data: bytes) -> None:  # noqa: ARG002
        raise AssertionError("a log in memory is never lost")
