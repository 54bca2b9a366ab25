"""Where the calls on one session run: where they are made, as long as that is quicker than a hop.

A session that is in memory is read there, except for much of it. If it turns out that others have added
much since, or that much of it is on disk alone, a thread does it after all. A write that waits for a
disk goes to a thread, unless the disk has lately been quicker than the way there and back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from workspace_session.bridge.calls import at_once, in_passing, in_thread
from workspace_session.files.locks import MUCH

T = TypeVar("T")


class Tree(Protocol):
    """What has to be known of a session."""

    @property
    def is_warm(self) -> bool: ...
    @property
    def is_quick(self) -> bool: ...
    @property
    def waits(self) -> bool: ...
    @property
    def size_hint(self) -> int: ...
    @property
    def bytes_hint(self) -> int: ...


class TreeCalls:
    """The calls on one session. So many messages as are `short` take no longer than a hop to read."""

    def __init__(self, tree: Tree, *, short: int) -> None:
        self._tree = tree
        self._short = short

    async def write(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """The result of a call that writes little."""
        if not self._tree.is_quick:
            run = in_thread
        elif self._tree.waits:
            run = in_passing
        else:
            run = at_once
        return await run(function, *args, **kwargs)

    async def read(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """The result of a call that reads little."""
        run = at_once if self._tree.is_warm else in_thread
        return await run(function, *args, **kwargs)

    async def read_all(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """The result of a call that may read the whole session."""
        tree = self._tree
        is_short = tree.size_hint < self._short and tree.bytes_hint <= MUCH
        run = at_once if tree.is_warm and is_short else in_thread
        return await run(function, *args, **kwargs)
