"""The index of one namespace, kept open, current and sound.

Every search begins with catching up. An index that is not ours, of another version, or that cannot be
read is thrown away and made anew from the logs: no caller ever hears of it. Several processes that find
no index make it together, and wait for each other's pieces. While one makes it anew with `rebuild`, the
others go on in the old one, and catch up in it too; then they all change to the new one.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from workspace_session.errors import WorkspaceError
from workspace_session.files.forks import keep_over_forks
from workspace_session.search.catch_up import Report, catch_up
from workspace_session.search.engine import Engine, Found, IndexBroken, Request
from workspace_session.search.engines import Kind
from workspace_session.search.place import IndexPlace
from workspace_session.search.sources import sources

logger = logging.getLogger("workspace_session")

_TRIES = 3  # one may find the index broken, and one that it was replaced meanwhile


class Index:
    """One namespace's index; the threads of a process take turns with it."""

    def __init__(self, place: IndexPlace, kind: Kind) -> None:
        self._place = place
        self._kind = kind
        self._mutex = threading.RLock()
        self._engine: Engine | None = None
        self._identity: object = None
        self._inherited: list[Engine] = []
        keep_over_forks(self)

    def renew_in_child(self) -> None:
        """What is open belongs to the parent: even closing it would do harm."""
        self._mutex = threading.RLock()
        if self._engine is not None:
            self._inherited.append(self._engine)
        self._engine = None

    # -- using it ----------------------------------------------------------------------------------

    def find(self, request: Request, report: Report | None = None) -> Found:
        """What is asked for, in everything that was written before this was called."""
        with self._mutex:
            if self._place.identity() is None and not self._has_sources():
                return Found([], 0)
            trouble: IndexBroken | None = None
            for _ in range(_TRIES):
                try:
                    return self._find(request, report)
                except IndexBroken as error:
                    trouble = error
                    self._discard(error)
            raise WorkspaceError(f"the search index cannot be made: {trouble}") from trouble

    def _find(self, request: Request, report: Report | None) -> Found:
        engine = self._opened()
        catch_up(engine, self._place.layout, self._place.namespace, self._held, report)
        found = engine.find(request)
        self._check_identity()
        return found

    def rebuild(self, report: Report | None = None) -> None:
        """Make the index anew beside the one in use, then let it take that one's place."""
        with self._place.reindex_lock:
            directory = self._place.create_aside(self._kind)
            engine = self._kind.open(directory)
            try:
                self._fill(engine, report)
                with self._mutex, self._place.lock:
                    self._fill(engine)  # what has come in meanwhile
                    engine.close()
                    self.close()
                    self._place.put_in_place(directory)
            finally:
                engine.close()

    def _fill(self, engine: Engine, report: Report | None = None) -> None:
        catch_up(engine, self._place.layout, self._place.namespace, nullcontext, report)

    def throw_away(self) -> None:
        """Remove the index; the next search makes it anew."""
        with self._mutex, self._place.lock:
            self.close()
            self._place.throw_away()

    def close(self) -> None:
        """Let go of the files."""
        with self._mutex:
            if self._engine is not None:
                self._engine.close()
            self._engine = None

    def _has_sources(self) -> bool:
        return bool(sources(self._place.layout, self._place.namespace))

    # -- keeping it sound --------------------------------------------------------------------------

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Hold the lock of the index, and see that it still is the one that is open."""
        with self._place.lock:
            self._check_identity()
            yield

    def _check_identity(self) -> None:
        if self._place.identity() != self._identity:
            raise IndexBroken("another process has put a new one in its place")

    def _opened(self) -> Engine:
        if self._engine is None or self._place.identity() != self._identity:
            self.close()
            if not self._place.holds(self._kind):
                with self._place.lock:
                    self._place.create(self._kind)
            self._identity = self._place.identity()
            self._engine = self._kind.open(self._place.directory)
        return self._engine

    def _discard(self, error: IndexBroken) -> None:
        """Throw the index away, unless it is another one by now."""
        broken = self._identity
        self.close()
        with self._place.lock:
            if self._place.identity() == broken:
                logger.warning("the search index is made anew: %s", error)
                self._place.throw_away()
