"""Writing to a session: one pass under its lock, the log first.

Read what others added, check and place, the log, the working set. What is refused has written nothing;
what returned is in the log. When a step fails, the log is taken back to where it was and memory is
forgotten: the files alone tell what happened.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from workspace_session.files.jsonl import joined
from workspace_session.files.locks import refuse_much
from workspace_session.files.session_files import SessionFiles
from workspace_session.files.session_view import Place, Search, SessionView
from workspace_session.model.clock import is_dated, somewhat_before, stamps
from workspace_session.model.entries import Abort, Clear, Compaction, Delete, Entry, Header
from workspace_session.model.lines import FORMAT_VERSION, compose
from workspace_session.model.tree import NeedsLog, Tree
from workspace_session.model.trim import plan

logger = logging.getLogger("workspace_session")

T = TypeVar("T")
E = TypeVar("E", bound=Entry)
# What an operation wants written, and what it returns; `after` is the time that must be exceeded.
Make = Callable[[Tree, str], tuple[Sequence[Entry], T]]


class Register(Protocol):
    """Where sessions are listed, which is told of each write."""

    @property
    def latest(self) -> str:
        """A time that new entries must exceed, whatever their session holds."""

    @property
    def is_due(self) -> bool:
        """Whether it will take its time when it is told of the next write."""

    def touch(self, tree: Any) -> None:
        """A session has changed."""


class SessionWriter(SessionView):
    """A session that can be written to; what there is to write, a subclass says."""

    def __init__(
        self,
        place: Place,
        session_id: str,
        files: SessionFiles,
        lock: AbstractContextManager[None],
        *,
        register: Register | None = None,
        search: Search | None = None,
    ) -> None:
        super().__init__(place, session_id, files, search=search)
        self._lock = lock
        self._register = register

    @property
    def waits(self) -> bool:
        """Whether a write waits for a disk."""
        return self._files.durable

    @property
    def is_quick(self) -> bool:
        """Whether a short write is likely to be over before a thread would have begun it."""
        is_due = self._register is not None and self._register.is_due
        return self.is_warm and self._files.is_quick and not is_due

    # -- the working set ---------------------------------------------------------------------------

    def trim(self) -> int:
        """Leave out of the working set what no reader can see; returns the bytes that saved."""
        with self._lock, self._mutex:
            self._current(locked=True)
            self._restore_lost_log()  # or what is left out would be nowhere
            return self._replace_if_smaller(than=self._files.tree_size)

    def rebuild(self) -> None:
        """Make the working set anew from the log, and a log that was lost from the working set.

        The whole log is read, so that also batches are set aside that a merge has brought in unfinished,
        a torn line is closed, and text is taken out that was purged.
        """
        with self._lock, self._mutex:
            if not self.exists():
                return
            self._current_for_writing()
            self._restore_lost_log()
            self._files.scrub_log()
            tree = self._load(from_log=True)
            due = self._due(tree, tree.newest[0])
            if due or self._files.take_last_line or self._files.is_torn:
                self._commit(due)
            else:
                self._files.replace_tree(rendered(tree))
            self._replace_if_smaller(than=self._files.tree_size // 2)

    # -- other places ------------------------------------------------------------------------------

    def all_entries(self) -> list[Entry]:
        """Every entry of the log, for a copy: those that do not count are copied too."""
        with self._lock, self._mutex:
            if not self.exists():
                return []
            self._current_for_writing()
            self._restore_lost_log()
            return self._files.all_entries()

    def take_in(self, lines: bytes) -> bool:
        """Unite the log with lines that were written elsewhere; False if it has them all."""
        with self._lock, self._mutex:
            if self.exists():
                self._current_for_writing()
                self._restore_lost_log()
            else:
                self.place.refuse_twins(self.id)
            is_new = self._files.unite_log(lines)
        if is_new:
            self.rebuild()
            if self._register is not None:
                self._register.touch(self)
        return is_new

    def _restore_lost_log(self) -> None:
        if self._files.log_lost:
            self._files.restore_log(rendered(self._working))
            self._load()

    def _replace_if_smaller(self, *, than: int) -> int:
        found = self._answer(plan)
        before = self._files.tree_size
        if not found.kept or found.size >= than:
            return 0
        self._files.replace_tree(joined([*found.kept, found.trim]))
        self._working, self._full = Tree.of(found.kept, found.trim), None
        self._logged_ids = None  # what was appended since they were read is left out now
        return before - self._files.tree_size

    # -- writing -----------------------------------------------------------------------------------

    def _write(self, make: Make[T]) -> T:
        with self._lock, self._mutex:
            tree = self._current_for_writing()  # what other writers added
            after = tree.newest[0]
            if self._register is not None and not is_dated():
                after = max(after, self._register.latest)
            first = self._due(tree, after)
            after = first[-1].timestamp if first else after
            entries, result = self._answer(lambda tree: make(tree, after))  # changes nothing
            if entries:
                if isinstance(entries[0], Header):
                    first = [entry for entry in first if not isinstance(entry, Header)]
                self._commit([*first, *entries])
            elif self._files.take_last_line:
                self._commit([])  # what was answered rests on a line that others do not see yet
        if entries and self._register is not None:
            self._register.touch(self)
        return result

    def _current_for_writing(self) -> Tree:
        tree = self._current(locked=True)
        if self._files.ends_in_a_whole_line():
            self._files.take_last_line = True
            tree = self._load()
        if tree.withheld and self._files.scrub_log():  # a merge has brought it back
            tree = self._load()
        return tree

    def _commit(self, entries: Sequence[Entry]) -> None:
        data = joined(entries)
        refuse_much(len(data), self.id)
        try:
            if self._files.log_lost:
                self._files.restore_log(rendered(self._working))
            self._files.append_log(data)  # the truth
            try:
                self._follow(entries, data)  # what the model sees
            except BaseException:
                self._files.undo_log()
                raise
        except BaseException:
            self._forget()
            raise
        if not entries:
            return
        if isinstance(entries[0], Header):
            self._headers.add(entries[0].timestamp)
        copied = len(entries) > 2 and isinstance(entries[0], Header)  # a fork may bring overlays
        if copied or isinstance(entries[-1], Compaction | Clear | Delete):
            self._trim_when_mostly_hidden()

    def _follow(self, entries: Sequence[Entry], data: bytes) -> None:
        """Let memory and the working set follow the log."""
        assert self._working is not None
        if self._full is not None:
            self._full.add(entries)
        try:
            self._working.add(entries)
        except NeedsLog:  # they speak of what was trimmed: the working set needs that again
            found = plan(self._whole())
            self._working, self._full = Tree.of(found.kept, found.trim), None
            self._logged_ids = None  # of what is left out now, some was here when they were read
            self._files.ragged = True
        if self._files.ragged or self._working.withheld:
            self._files.replace_tree(rendered(self._working))
            self._working.withheld = False  # what was written holds none of it
        else:
            self._files.append_tree(data)

    def _trim_when_mostly_hidden(self) -> None:
        try:
            self._replace_if_smaller(than=self._files.tree_size // 2)
        except OSError as error:  # what was written stands; a long working set is only slow
            logger.warning("could not trim session %r: %s", self.id, error)
            self._forget()

    def _due(self, tree: Tree, after: str) -> list[Entry]:
        """What has to be written before anything else: a header, the end of an unfinished batch."""
        due: list[Entry] = []
        if not tree.headers:
            self.place.refuse_twins(self.id)
            due.append(self._header(after, None))
        for batch_id in self._files.cut:
            after = due[-1].timestamp if due else after
            due.append(self._entry(Abort, after, batch_id=batch_id))
        return due

    def _header(self, after: str, parent_session: str | None) -> Header:
        timestamp = stamps(1, after)[0][0]
        if is_dated() and not after:  # or a session that is made again would not be told from it
            timestamp = somewhat_before(timestamp)
        return compose(
            Header,
            id=self.id,
            timestamp=timestamp,
            version=FORMAT_VERSION,
            agent=self.place.agent_id,
            parent_session=parent_session,
        )

    @staticmethod
    def _entry(kind: type[E], after: str, **fields: Any) -> E:
        timestamp, fresh_id = stamps(1, after)[0]
        return compose(kind, id=fresh_id, timestamp=timestamp, **fields)


def rendered(tree: Tree | None) -> bytes:
    """A working set as a file holds it."""
    assert tree is not None
    if tree.trim is None:
        return joined(tree.entries)
    kept = [entry for entry in tree.entries if entry.key <= tree.trim.end]
    return joined([*kept, tree.trim, *tree.entries[len(kept) :]])
