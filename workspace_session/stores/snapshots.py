"""Values of an agent, kept as state snapshots: of one session, or of all its sessions.

Reading, changing and writing share one lock. A block that changes leaves a trace in the session's log,
so that it counts as a change of the session.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workspace_session.agent import AgentWorkspace
from workspace_session.bridge import in_thread
from workspace_session.files.session_tree import SessionTree
from workspace_session.files.state import ABSENT, JsonSession, StateStore
from workspace_session.search import Query, rank

_TOP = 10


class Snapshot:
    """One value; without a session id it is shared by all sessions of the agent."""

    def __init__(
        self,
        agent: AgentWorkspace,
        key: str,
        session_id: str | None,
        *,
        traced: str | None = None,
        tree: SessionTree | None = None,
    ) -> None:
        self._key = key
        self._traced = traced  # under which label a change is noted in the log
        self._tree = agent.tree(session_id) if tree is None and session_id is not None else tree
        self._store: StateStore = agent.state
        self._place = session_id or ""
        if session_id is None:  # beside the sessions, where none of them can be
            shared = JsonSession(agent.place.context, agent.workspace.durability)
            self._store, self._place = shared.scoped(("agent",)), "blocks"

    def get(self) -> Any:
        """The value, or None when it was never set."""
        self._check()
        return self._store.get(self._place, self._key)

    def change(self, change: Callable[[Any], Any]) -> Any:
        """Read, change and write; returns the new value."""
        with self._store.locked(self._place):
            found = self.get()
            new = change(found)
            if new == found:
                return new
            self._store.save(self._place, self._key, new)
        if self._tree is not None and self._traced is not None:
            self._tree.add_custom("block", {"label": self._traced})
        return new

    def set_if_absent(self, value: Any) -> Any:
        """Set the value unless there is one; returns what is there in the end."""
        with self._store.locked(self._place):
            self._check()
            found = self._store.get_versioned(self._place, self._key)
            if found.etag is not ABSENT:
                return found.value
            self._store.save(self._place, self._key, value)
        return value

    def _check(self) -> None:
        if self._tree is not None:
            self._tree.check()


class AgentContextProvider:
    """One text of an agent: a writable context block, or a prompt."""

    def __init__(
        self,
        agent: AgentWorkspace,
        label: str,
        session_id: str | None = None,
        *,
        prefix: str = "block",
        tree: SessionTree | None = None,
    ) -> None:
        traced = label if prefix == "block" else None
        self._snapshot = Snapshot(agent, f"{prefix}.{label}", session_id, traced=traced, tree=tree)

    async def get(self) -> str | None:
        """The text, or None when it was never set."""
        found = await in_thread(self._snapshot.get)
        return found if isinstance(found, str) else None

    async def set(self, content: str) -> None:
        """Replace the text."""
        await in_thread(self._snapshot.change, lambda _old: content)

    async def update(self, change: Callable[[str], str]) -> str:
        """Read, change and write under one lock; returns the new text."""
        return str(await in_thread(self._snapshot.change, lambda old: change(old or "")))

    async def set_if_absent(self, content: str) -> str:
        """Set the text unless there is one; returns what is there in the end."""
        return str(await in_thread(self._snapshot.set_if_absent, content))


class AgentSearchProvider:
    """Entries of an agent that a model can search and write, by key; the block's label names them."""

    def __init__(self, agent: AgentWorkspace, session_id: str | None = None) -> None:
        self._agent = agent
        self._session_id = session_id
        self.init("search")

    def init(self, label: str) -> None:
        """The label of the block; entries of different labels are kept apart."""
        self._snapshot = Snapshot(self._agent, f"block.{label}", self._session_id, traced=label)

    async def get(self) -> str | None:
        """How many entries there are; None without any."""
        entries = await self._entries()
        return f"{len(entries)} entries indexed." if entries else None

    async def set(self, key: str, content: str) -> None:
        """Write an entry."""
        await in_thread(self._snapshot.change, lambda old: {**(old or {}), key: content})

    async def search(self, query: str) -> str | None:
        """The best entries that hold all words of the query; None if there is none."""
        entries = await self._entries()
        found = await in_thread(rank, Query.of(query), list(entries.values()))
        keys = list(entries)
        shown = [f"[{keys[number]}]\n{entries[keys[number]]}" for number, _score in found[:_TOP]]
        return "\n\n".join(shown) or None

    async def _entries(self) -> dict[str, str]:
        found = await in_thread(self._snapshot.get)
        return found if isinstance(found, dict) else {}
