"""The session store on files: an agent's part of a workspace.

Transcripts are `SessionTree`s, blocks and prompts are state snapshots beside them, the registry is the
index of the sessions' own facts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workspace_session.agent import AgentWorkspace
from workspace_session.bridge import in_thread
from workspace_session.errors import UnknownSession
from workspace_session.files.session_tree import SessionTree
from workspace_session.model.info import SessionInfo
from workspace_session.stores.snapshots import AgentContextProvider
from workspace_session.stores.tree_provider import TreeProvider

Infos = list[SessionInfo]


class FileStore:
    """Sessions of one agent and user, on files."""

    def __init__(self, agent: AgentWorkspace) -> None:
        self.agent = agent

    @property
    def agent_id(self) -> str:
        """Whose sessions these are."""
        return self.agent.id

    @property
    def user_id(self) -> str | None:
        """For which user."""
        return self.agent.user

    @property
    def broadcast(self) -> Callable[[str], Any] | None:
        """Where status and error events go as text, if the agent's workspace has one."""
        found = getattr(self.agent, "broadcast", None)
        return found if callable(found) else None

    # -- parts of a session ------------------------------------------------------------------------

    def provider(self, session_id: str) -> TreeProvider:
        """The provider of a session, there or not."""
        return TreeProvider(**self.parts(session_id))

    def parts(self, session_id: str) -> dict[str, Any]:
        """What a `TreeProvider` of a session is made of."""
        lock = self.agent.place.session_lock(session_id)
        return {
            "tree": self.agent.tree(session_id),
            "search": self._search_one,
            "compaction_lock": lock.with_name(f"{lock.name.removesuffix('.lock')}.compaction.lock"),
        }

    def block_provider(self, session: TreeProvider | None, label: str) -> AgentContextProvider:
        """A context block as a state snapshot."""
        if session is None:
            return AgentContextProvider(self.agent, label)
        return AgentContextProvider(self.agent, label, session.session_id, tree=session.tree)

    def prompt_provider(self, session: TreeProvider) -> AgentContextProvider:
        """The frozen prompt as a state snapshot."""
        return AgentContextProvider(
            self.agent, "system", session.session_id, prefix="prompt", tree=session.tree
        )

    # -- the registry ------------------------------------------------------------------------------

    async def create(self, session_id: str, **facts: Any) -> SessionInfo:
        """A new session without messages."""
        return await in_thread(self._create, session_id, facts)

    def _create(self, session_id: str, facts: dict[str, Any]) -> SessionInfo:
        tree = self.agent.tree(session_id)
        tree.start(parent_session=facts.pop("parent_session_id", None), **facts)
        return tree.info()

    async def exists(self, session_id: str) -> bool:
        """Whether there is a record of a session."""
        return self.agent.tree(session_id).exists()

    async def info(self, session_id: str) -> SessionInfo | None:
        """A session's record."""
        return await in_thread(self._info, session_id)

    def _info(self, session_id: str) -> SessionInfo | None:
        tree = self.agent.tree(session_id)
        return tree.info() if tree.header() is not None else None

    async def list(self) -> Infos:
        """All records, the one touched last first."""
        return await in_thread(self._list)

    def _list(self) -> Infos:
        return [info for info in self.agent.sessions() if info.updated_at is not None]

    async def annotate(self, session_id: str, **facts: Any) -> SessionInfo:
        """Set facts of a session."""
        return await in_thread(self._change, session_id, SessionTree.annotate, facts)

    async def add_usage(
        self, session_id: str, input_tokens: int, output_tokens: int, cost: float
    ) -> SessionInfo:
        """Add to what a session has used."""
        usage = {"input_tokens": input_tokens, "output_tokens": output_tokens, "cost": cost}
        return await in_thread(self._change, session_id, SessionTree.add_usage, usage)

    def _change(
        self, session_id: str, change: Callable[..., Any], arguments: dict[str, Any]
    ) -> SessionInfo:
        tree = self.agent.tree(session_id)
        if tree.header() is None:
            raise UnknownSession(session_id)
        change(tree, **arguments)
        return tree.info()

    async def delete(self, session_id: str) -> None:
        """Move a session to the trash."""
        await in_thread(self.agent.delete, session_id)

    async def fork(
        self, session_id: str, at_message_id: str, new_id: str, **facts: Any
    ) -> SessionInfo:
        """A new session with the path to a message."""
        return await in_thread(self._fork, session_id, at_message_id, new_id, facts)

    def _fork(self, session_id: str, at: str, new_id: str, facts: dict[str, Any]) -> SessionInfo:
        return self.agent.fork(session_id, at, new_id, **facts).info()

    # -- search ------------------------------------------------------------------------------------

    async def search(self, query: str, limit: int) -> Any:
        """Hits in all sessions."""
        return await in_thread(self.agent.search, query, limit=limit)

    def _search_one(self, query: str, limit: int, session_id: str) -> Any:
        return self.agent.search(query, limit=limit, session=session_id)


class AgentSessionProvider(TreeProvider):
    """The storage of one session of an agent, for a `Session` that is to wire nothing itself."""

    def __init__(self, agent: AgentWorkspace, session_id: str = "default") -> None:
        super().__init__(**FileStore(agent).parts(session_id))
