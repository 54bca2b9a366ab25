"""The gate of a harness: it counts the turns inside, those that wait included, and can be closed."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future

from workspace_session.errors import HarnessClosed


class Gate:
    """`with gate:` is a turn; closing refuses new ones and waits until the last has left."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._mutex = threading.Lock()
        self._inside = 0
        self._closed = False
        self._empty: list[Future[None]] = []  # those who wait for the last turn to leave

    def __enter__(self) -> None:
        with self._mutex:
            if self._closed:
                raise HarnessClosed(self._name)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._mutex:
            self._inside -= 1
            waiting = [] if self._inside else self._empty
            self._empty = self._empty if self._inside else []
        for empty in waiting:
            if empty.set_running_or_notify_cancel():
                empty.set_result(None)

    async def close(self) -> None:
        """Let nobody in from now on, and wait for those inside, on whatever event loop they are."""
        empty: Future[None] = Future()
        with self._mutex:
            self._closed = True
            if self._inside:
                self._empty.append(empty)
            else:
                empty.set_result(None)
        await asyncio.wrap_future(empty)
