"""Catching up: the one way into an index.

What a search must see is what the logs held when it began. So the logs are looked at, those that are
not at their marks are read on, and what that means is written, a good piece at a time and each piece
under the lock. Any number of processes may do this at once: between two pieces others get the lock, and
whoever has it goes on where the marks are. A process that dies leaves the pieces it had finished.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TypeAlias

from workspace_session.files.jsonl import collector_paused
from workspace_session.files.layout import Layout
from workspace_session.search.crew import Crew, crew_for
from workspace_session.search.engine import Change, Engine, Log
from workspace_session.search.reading import Reading
from workspace_session.search.sources import Source, changed

logger = logging.getLogger("workspace_session")

Report: TypeAlias = Callable[[int, int], None]
"""Is told how many bytes of logs have been taken in, and of how many."""

_BREATH_SECONDS = 0.005
_BULK = 1 << 20  # bytes from which on this is bulk work


def catch_up(
    engine: Engine,
    layout: Layout,
    namespace: tuple[str, ...],
    held: Callable[[], AbstractContextManager[None]],
    report: Report | None = None,
) -> None:
    """Bring an index up to what the logs of a namespace hold now; `held` keeps its writers apart."""
    marks = engine.marks()
    stale, gone = changed(layout, namespace, marks)
    if not stale and not gone:
        return
    total = sum(source.size for source in stale)
    unknown = [source for source in stale if source.log not in marks] if engine.is_quick else []
    with collector_paused(total > _BULK), crew_for(unknown) as crew:
        todo = _Todo(stale, crew)
        while todo or gone:
            with held():
                changes = [Change(log, None, afresh=True) for log in gone if log in engine.marks()]
                changes += todo.changes(engine)
                if changes:
                    engine.write(changes)
            gone = []
            if report is not None:
                report(total - todo.size, total)
            if todo:
                time.sleep(_BREATH_SECONDS)  # or those who wait for the lock would never get it


class _Todo:
    """Logs that are still to be read, the one that was begun first."""

    def __init__(self, stale: Iterable[Source], crew: Crew) -> None:
        self._sources: dict[Log, Source] = {source.log: source for source in stale}
        self._crew = crew
        self._begun: dict[Log, Reading] = {}

    def __bool__(self) -> bool:
        return bool(self._sources)

    @property
    def size(self) -> int:
        """How many bytes the logs have that are not finished."""
        return sum(source.size for source in self._sources.values())

    def changes(self, engine: Engine) -> list[Change]:
        """What the next entries mean; call it under the lock, and write what it gives."""
        found: list[Change] = []
        room = engine.room
        while room > 0 and self._sources:
            log = self._next()
            whole = self._crew.result(log)
            if whole is not None and log not in engine.marks():
                found.append(whole)
                room -= self._sources.pop(log).size
                continue
            reading = self._reading(log, engine)
            if reading is not None:
                before = reading.left
                found.append(reading.piece(room, engine.known))
                room -= before - reading.left
                if not reading.finished:
                    # The next entry does not fit. Who looked at the marks again before this piece
                    # is written would find the old ones, and begin the log again, for ever.
                    self._begun = {log: reading}
                    break
            del self._sources[log]
        return found

    def _next(self) -> Log:
        """The log that was begun, or one that a worker has read, or the last that none has begun."""
        log = next(iter(self._begun), None) or self._crew.finished()
        if log is None:
            log = next((one for one in reversed(self._sources) if self._crew.leaves(one)), None)
        log = log or self._crew.wait()
        assert log is not None  # what the crew does not leave, it is reading
        return log

    def _reading(self, log: Log, engine: Engine) -> Reading | None:
        """What is to be read of a log, going on where we or another process got to; None: nothing."""
        mark = engine.marks().get(log)
        begun = self._begun.pop(log, None)
        if begun is not None and begun.mark == mark:
            return begun
        source = self._sources[log].now()
        if source is None or source.is_at(mark):
            return None
        try:
            return Reading.on(source, mark)
        except OSError as error:  # the others are still searched
            logger.warning("session %r of agent %r is not searched: %s", *reversed(log), error)
            return None
