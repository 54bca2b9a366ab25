"""A channel between the task of a turn and whoever reads its stream: one event at a time.

The agent goes on when the next event is asked for, as a generator would: one that nobody reads any more
stands still.
"""

from __future__ import annotations

import asyncio
from typing import Any

_END = object()


class Channel:
    """Events of a task, for one reader on the same event loop."""

    def __init__(self) -> None:
        self.item: Any = None
        self._items: asyncio.Queue[Any] = asyncio.Queue()
        self._wanted = asyncio.Event()

    def closed_by(self, task: asyncio.Task[Any]) -> asyncio.Task[Any]:
        """End the channel when a task ends; the task."""
        task.add_done_callback(lambda _task: self._items.put_nowait(_END))
        return task

    async def send(self, item: Any) -> None:
        """Hand over an event, and wait until there is a wish for another."""
        self._wanted.clear()
        self._items.put_nowait(item)
        await self._wanted.wait()

    async def has_more(self) -> bool:
        """Wait for the next event, which `item` then is; False at the end."""
        self._wanted.set()
        self.item = await self._items.get()
        return self.item is not _END
