"""Reading many logs at once, in processes of our own: half of the time that a quick engine takes.

A worker is given logs and gives back what they mean for an index, as any reader would. It is a plain
child process with two pipes: it does not import the program that started it, and ends when its pipe
does. Whatever goes wrong with workers, the logs are then read here; only time is lost.
"""

from __future__ import annotations

import logging
import marshal
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import astuple
from queue import SimpleQueue
from typing import IO, Any, TypeAlias

from workspace_session.files.jsonl import collector_paused
from workspace_session.search.engine import Change, Document, Log, Mark
from workspace_session.search.reading import Reading
from workspace_session.search.sources import Source

logger = logging.getLogger("workspace_session")

_PROGRAM = "from workspace_session.search.crew import work; work()"
_WORTHWHILE = 8 << 20  # bytes of logs: below that it takes longer to start a worker than to read
_AT_MOST = 8  # workers; what they read is written by one
_LENGTH = 8  # bytes that tell how long a value is
# What comes of a worker that has failed, or says something else than it should.
_TROUBLE = (OSError, EOFError, ValueError, TypeError, MemoryError, OverflowError)

Promised: TypeAlias = Future[Change | None]
Answer: TypeAlias = tuple[tuple[Any, ...], list[tuple[Any, ...]]]
"""A mark and documents, as plain tuples."""


class Crew:
    """What workers make of logs: each log is read by one of them, or is left to the caller."""

    def __init__(self, promised: Mapping[Log, Promised] | None = None) -> None:
        self._promised = dict(promised or {})

    def finished(self) -> Log | None:
        """A log that a worker has read."""
        return next((log for log, one in self._promised.items() if one.done()), None)

    def leaves(self, log: Log) -> bool:
        """Whether no worker has begun with a log: from now on none will."""
        promised = self._promised.get(log)
        if promised is not None and promised.cancel():
            del self._promised[log]
        return log not in self._promised

    def wait(self) -> Log | None:
        """The next log that a worker has read, when it has; None when there is none to come."""
        wait(self._promised.values(), return_when=FIRST_COMPLETED)
        return self.finished()

    def result(self, log: Log) -> Change | None:
        """What the whole of a log means; None when no worker can tell."""
        promised = self._promised.pop(log, None)
        try:
            return None if promised is None else promised.result()
        except (*_TROUBLE, CancelledError) as error:
            logger.debug("session %r is read here: %r", log.session_id, error)
            return None


@contextmanager
def crew_for(whole: Sequence[Source]) -> Iterator[Crew]:
    """Workers that read logs from their beginning, if there is enough to read; beside the caller."""
    count = min(len(whole), (os.cpu_count() or 1) - 1, _AT_MOST)
    if count < 1 or sum(source.size for source in whole) < _WORTHWHILE or not sys.executable:
        yield Crew()
        return
    workers = [_Worker() for _ in range(count)]
    idle: SimpleQueue[_Worker] = SimpleQueue()
    for worker in workers:
        idle.put(worker)

    def read(source: Source) -> Change | None:
        worker = idle.get()
        try:
            return worker.read(source)
        finally:
            idle.put(worker)

    pool = ThreadPoolExecutor(count, thread_name_prefix="search-crew")
    try:
        yield Crew({source.log: pool.submit(read, source) for source in whole})
    finally:
        pool.shutdown(cancel_futures=True)
        for worker in workers:
            worker.end()


class _Worker:
    """The handle of a child process; one thread at a time uses it."""

    def __init__(self) -> None:
        path = os.pathsep.join(filter(None, sys.path))
        self._process = subprocess.Popen(  # noqa: S603 (this very interpreter)
            [sys.executable, "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,  # an interrupt is for us to handle
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to: IO[bytes] = self._process.stdin
        self._from: IO[bytes] = self._process.stdout

    def read(self, source: Source) -> Change | None:
        _send(self._to, (tuple(source.log), *astuple(source)[1:]))
        answer = _receive(self._from)
        if answer is None:
            return None
        mark, added = answer
        documents = tuple(map(Document._make, added))
        return Change(source.log, Mark(*mark), afresh=True, added=documents)

    def end(self) -> None:
        for pipe in (self._to, self._from):
            try:
                pipe.close()
            except OSError as error:
                logger.debug("a search worker has gone before its time: %s", error)
        self._process.wait()


def work() -> None:
    """The child: reads logs until there are no more."""
    requests = os.fdopen(0, "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever is printed is no answer
    with collector_paused():
        while True:
            try:
                log, *rest = _receive(requests)
            except EOFError:
                return
            _send(answers, _read(Source(Log(*log), *rest)))


def _read(source: Source) -> Answer | None:
    try:
        reading = Reading.on(source, None)
    except OSError:
        return None  # which the parent will meet, too
    if reading is None:
        return None
    change = reading.piece(sys.maxsize, lambda _log, _ids: {})
    assert change.mark is not None
    return tuple(change.mark), list(map(tuple, change.added))


# -- the pipes: values of one interpreter, for another of the same kind --------------------------


def _send(pipe: IO[bytes], value: Any) -> None:
    data = marshal.dumps(value)
    pipe.write(len(data).to_bytes(_LENGTH, "big") + data)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> Any:
    length = pipe.read(_LENGTH)
    data = pipe.read(int.from_bytes(length, "big"))
    if not data:
        raise EOFError
    return marshal.loads(data)  # noqa: S302 (between us and our own child)
