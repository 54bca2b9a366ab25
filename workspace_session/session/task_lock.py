"""A lock for the tasks of any event loop.

`asyncio.Lock` belongs to the loop that first waited for it, and sessions outlive loops and are used
from several. Waiters are served in order; one that is cancelled passes its turn on.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from concurrent.futures import Future


class TaskLock:
    """`async with lock:` holds it; a task that already holds it must not ask again."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._held = False
        self._waiting: deque[Future[None]] = deque()

    async def __aenter__(self) -> None:
        with self._mutex:
            if not self._held:
                self._held = True
                return
            turn: Future[None] = Future()
            self._waiting.append(turn)
        try:
            await asyncio.wrap_future(turn)
        except asyncio.CancelledError:
            if not turn.cancel():  # the turn came together with the cancellation
                self._pass_on()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        with self._mutex:
            while self._waiting:
                turn = self._waiting.popleft()
                if turn.set_running_or_notify_cancel():  # False for one that was cancelled
                    turn.set_result(None)
                    return
            self._held = False
