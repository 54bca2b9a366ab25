"""`AgentsSession`: what the OpenAI Agents SDK calls a session, on a session of a workspace.

An item comes back equal to what was added. One `add_items` is one batch: after a crash it is there as a
whole or not at all, which is what a resumed run of the SDK relies on. Nothing is ever removed: a pop
moves the tip, a clear hides, and both can be undone.

The SDK is not needed to make one. What it is asked for is looked up when it is there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import Any, Self

from workspace_session import AgentWorkspace, InvalidMessage, Message, SessionTree, Workspace
from workspace_session.adapters.openai_agents.branching import Branching
from workspace_session.adapters.openai_agents.handle import SHORT, Handle
from workspace_session.adapters.openai_agents.items import Item, summary_item
from workspace_session.adapters.openai_agents.spending import Spending
from workspace_session.bridge import in_thread


class AgentsSession(Branching, Spending):
    """A conversation to pass as `session=`. It may be used from any event loop and any thread."""

    session_id: str

    def __init__(
        self, agent_workspace: AgentWorkspace, session_id: str, *, session_settings: Any = None
    ) -> None:
        if not isinstance(agent_workspace, AgentWorkspace):
            raise TypeError(
                "a session belongs to an agent: AgentsSession.open(root, session_id), or "
                "AgentsSession(workspace.agent(name), session_id)"
            )
        super().__init__(agent_workspace.tree(session_id))
        self._agent: AgentWorkspace | None = agent_workspace
        self._take(session_id, session_settings)

    @classmethod
    def open(
        cls,
        root: str | os.PathLike[str],
        session_id: str,
        agent: str = "default",
        user: str | None = None,
        *,
        session_settings: Any = None,
        **options: Any,
    ) -> Self:
        """The session of an agent in the workspace at `root`; `options` are those of `Workspace`."""
        workspace = Workspace(root, **options)
        session = cls(workspace.agent(agent, user), session_id, session_settings=session_settings)
        session._owned = workspace
        return session

    @classmethod
    def in_memory(cls, session_id: str = "default", *, session_settings: Any = None) -> Self:
        """A session on no disk, the same in everything else but search."""
        return cls._of(SessionTree.in_memory(session_id), session_settings)

    @classmethod
    def _of(cls, tree: SessionTree, session_settings: Any) -> Self:
        session = cls.__new__(cls)
        Handle.__init__(session, tree)
        session._agent = None
        session._take(tree.id, session_settings)
        return session

    def _take(self, session_id: str, session_settings: Any) -> None:
        self.session_id = session_id
        self.session_settings = session_settings

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.session_id!r})"

    @property
    def session_settings(self) -> Any:
        """The SDK's `SessionSettings`, or None."""
        return self._settings

    @session_settings.setter
    def session_settings(self, settings: Any) -> None:
        if isinstance(settings, dict):
            settings = _as_settings(settings)
        elif settings is not None and not hasattr(settings, "limit"):
            raise TypeError(f"settings are SessionSettings or a dict, not {settings!r}")
        self._settings = settings

    # -- the protocol of the SDK -------------------------------------------------------------------

    async def get_items(self, limit: int | None = None, *, wrapper: Any = None) -> list[Any]:
        """The items of the active branch, oldest first; with a limit, its newest.

        Without one, `session_settings.limit` is it. A summary comes as a message of the assistant.
        """
        self._note(wrapper)
        if limit is None:
            limit = _limit_of(self.session_settings)
        elif not isinstance(limit, int):
            raise TypeError(f"a limit is a whole number, not {limit!r}")
        is_short = limit is not None and limit <= SHORT
        read = self._tree_calls.read if is_short else self._tree_calls.read_all
        return await read(self.tree.messages, last=limit, summary=summary_item)

    async def add_items(self, items: list[Any], *, wrapper: Any = None) -> None:
        """Add items in order, all of them or none. What is added twice is there twice."""
        self._note(wrapper)
        tree = self.tree
        if isinstance(items, str | bytes | Mapping):
            raise InvalidMessage("items come as a list, not one by one")
        items = list(items)
        if items:
            write = self._tree_calls.write if len(items) <= SHORT else in_thread
            await write(tree.extend, items, own_id=False)

    async def pop_item(self, *, wrapper: Any = None) -> Any:
        """Take the newest item back and return it, or None. It stays in the log, as a branch."""
        self._note(wrapper)
        popped = await self._tree_calls.write(self.tree.pop)
        if popped is None:
            return None
        return popped.message if isinstance(popped, Message) else summary_item(popped)

    async def clear_session(self, *, wrapper: Any = None) -> None:
        """Hide all items. The log keeps them."""
        self._note(wrapper)
        await in_thread(self.tree.clear)

    # -- beyond it ---------------------------------------------------------------------------------

    async def fork(self, new_id: str) -> Self:
        """A new session that begins with the active branch of this one."""
        if self._agent is None:
            fork = type(self)._of(SessionTree.in_memory(new_id), self.session_settings)
        else:
            fork = type(self)(self._agent, new_id, session_settings=self.session_settings)
        await in_thread(_fork, self.tree, fork.tree)
        return fork

    # -- what the SDK's compaction looks for -------------------------------------------------------

    async def _get_compaction_snapshot(
        self, limit: int, *, prune_prefix: Callable[[Item], bool] | None = None
    ) -> Any:
        """The newest items, whether they are all there are, and how to replace the last of them.

        A subclass may give items another form, which replacing them here would bypass.
        """
        snapshot_type = _snapshot_type()
        if snapshot_type is None or type(self) is not AgentsSession:
            return None
        tree = self.tree
        shown = await self._tree_calls.read(tree.tail, limit + 1)
        complete, shown = len(shown) <= limit, shown[-limit:]
        items = [one.message if isinstance(one, Message) else summary_item(one) for one in shown]

        async def replace_suffix(start: int, output: list[Item]) -> bool:
            if not shown[start:]:
                return False
            return await in_thread(_replace, self.tree, shown[start:], output, prune_prefix)

        return snapshot_type(items, complete, replace_suffix)

    async def _atomic_replace_items(self, items: list[Item]) -> bool:
        """Put items in the place of the whole active branch, which stays as a branch."""
        if type(self) is not AgentsSession:
            return False
        await in_thread(_replace_all, self.tree, items)
        return True


def _fork(source: SessionTree, target: SessionTree) -> None:
    if source.leaf is None:
        target.start(parent_session=source.id)
    else:
        source.fork(source.leaf, target)


def _replace(
    tree: SessionTree,
    tail: list[Any],
    output: list[Item],
    is_expired: Callable[[Item], bool] | None,
) -> bool:
    """Replace the tail, and take what has expired at the beginning out of the way."""
    expired: list[str] = []
    if is_expired is not None:
        kept = tree.context()[: -len(tail)]
        messages = takewhile(lambda one: isinstance(one, Message), kept)
        expired = [one.id for one in takewhile(lambda one: is_expired(one.message), messages)]
    return tree.replace_tail(tail, output, without=expired) is not None


def _replace_all(tree: SessionTree, items: list[Item]) -> None:
    while tree.replace_tail(tree.context(), items, all_of_it=True) is None:
        pass  # somebody added to it in between: that is replaced too


def _limit_of(settings: Any) -> int | None:
    found = settings.get("limit") if isinstance(settings, dict) else None
    limit: int | None = getattr(settings, "limit", found)
    return limit


def _as_settings(settings: dict[str, Any]) -> Any:
    try:
        from agents.memory.session_settings import coerce_session_settings
    except ImportError:
        return settings
    return coerce_session_settings(settings)


def _snapshot_type() -> Any:
    try:
        from agents.memory.session import _CompactionSnapshot
    except ImportError:  # an SDK without it: it clears and adds
        return None
    return _CompactionSnapshot
