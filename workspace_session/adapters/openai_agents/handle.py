"""A session's tree behind coroutines: where calls run, and when they stop being possible.

What is short runs where it is called, the rest in a thread. A caller that is cancelled waits until what
it began has ended. Nothing in here belongs to an event loop or a thread.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from workspace_session import SessionTree, Workspace
from workspace_session.bridge import TreeCalls, in_thread

SHORT = 100  # items; more of them take longer than going to a thread does


class Handle:
    """An open session; `owned` is closed with it."""

    def __init__(self, tree: SessionTree, *, owned: Workspace | None = None) -> None:
        self._tree = tree
        self._tree_calls = TreeCalls(tree, short=SHORT)
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
