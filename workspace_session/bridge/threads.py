"""Threads that make calls, and keep count of those that are not over yet."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeAlias

Call: TypeAlias = Callable[[], Callable[[], None]]
"""What is to be done, and then, when it counts as done, to be told. Neither is to raise."""


class Threads:
    """Threads that wait for calls, at most so many. The end of the process waits for what they do.

    What an executor does besides this takes thirty microseconds for each call: a tenth of the time of
    a durable write.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._mutex = threading.Lock()
        self._calls: SimpleQueue[Call | None] = SimpleQueue()
        self._unfinished = 0  # calls, the one of a stand-in among them
        self._threads: list[threading.Thread] = []
        atexit.register(self._end)

    def submit(self, call: Call) -> None:
        """Have a call made soon."""
        with self._mutex:
            self._unfinished += 1
            if len(self._threads) < min(self._unfinished, self._most):
                # A daemon, or it would be waited for before it is told to end.
                thread = threading.Thread(target=self._run, name="workspace-session", daemon=True)
                thread.start()
                self._threads.append(thread)
        self._calls.put(call)

    def stand_in(self) -> bool:
        """Let the calling thread be the one at work, until it leaves; False if there is one."""
        with self._mutex:
            if self._unfinished:
                return False
            self._unfinished = 1
            return True

    def leave(self) -> None:
        """One call less is to be finished."""
        with self._mutex:
            self._unfinished -= 1

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            tell = call()
            self.leave()  # first: whoever is told may want to stand in
            tell()
            del call, tell  # which may hold much

    def _end(self) -> None:
        with self._mutex:
            ending, self._threads = self._threads, []
        for _ in ending:
            self._calls.put(None)
        for thread in ending:
            thread.join()
