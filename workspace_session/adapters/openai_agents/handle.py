"""A session's tree behind coroutines: where calls run, and when they stop being possible.

What waits for a disk, or reads much, runs in a thread; the rest runs where it is called. A caller that
is cancelled waits until what it began has ended. Nothing in here belongs to an event loop or a thread.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

from workspace_session import SessionTree, Workspace
from workspace_session.bridge import at_once, in_thread

T = TypeVar("T")
SHORT = 100  # items; reading more takes longer than going to a thread


class Handle:
    """An open session. `hasty`: its writes never wait for a disk; `owned` is closed with it."""

    def __init__(self, tree: SessionTree, *, hasty: bool, owned: Workspace | None = None) -> None:
        self._tree = tree
        self._hasty = hasty
        self._owned = owned
        self._closed = False

    @property
    def tree(self) -> SessionTree:
        """The session itself, for everything that is not offered as a coroutine."""
        if self._closed:
            raise RuntimeError(f"session {self._tree.id!r} is closed")
        return self._tree

    def close(self) -> None:
        """From now on every call raises `RuntimeError`; closing again does nothing."""
        self._closed = True
        if self._owned is not None:
            self._owned.close()

    async def aclose(self) -> None:
        """The same, awaited."""
        await in_thread(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _write(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        run = at_once if self._hasty and self._tree.is_warm else in_thread
        return await run(function, *args, **kwargs)

    async def _read(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        run = at_once if self._tree.is_warm else in_thread
        return await run(function, *args, **kwargs)

    async def _read_all(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        run = at_once if self._tree.is_warm and self._tree.size_hint < SHORT else in_thread
        return await run(function, *args, **kwargs)
