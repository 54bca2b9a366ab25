"""Many sessions of one agent: making, listing, forking, continuing and searching them.

Everything that is said of a session is a fact in the session itself; the manager keeps nothing but the
`Session` objects it has handed out.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, NoReturn, Protocol, overload

from workspace_session.errors import UnknownSession
from workspace_session.model.info import SessionInfo
from workspace_session.model.placing import LATEST, Parent
from workspace_session.session import arguments
from workspace_session.session.calling import call
from workspace_session.session.manager_builder import ManagerBuilder
from workspace_session.session.protocols import Hits
from workspace_session.session.session import Session
from workspace_session.session.shapes import checked
from workspace_session.session.tools import Tool, history_search_tool
from workspace_session.session.values import Compaction, SessionMessage

_TOP = 10
Infos = list[SessionInfo]
Messages = list[SessionMessage]
Compactions = list[Compaction]
Ids = list[str]


class _Begin(Protocol):
    """`manager.create`, for type checkers."""

    def __call__(
        self,
        name: str,
        *,
        parent_session_id: str | None = None,
        model: str | None = None,
        source: str | None = None,
    ) -> Awaitable[SessionInfo]: ...


class _Create:
    """`SessionManager.create(store)` makes a manager, `manager.create(name)` a session."""

    @overload
    def __get__(
        self, manager: None, owner: type[SessionManager]
    ) -> Callable[[Any], SessionManager]: ...
    @overload
    def __get__(self, manager: SessionManager, owner: type[SessionManager]) -> _Begin: ...
    def __get__(self, manager: SessionManager | None, owner: type[SessionManager]) -> Any:
        return owner if manager is None else manager._create


class SessionManager(ManagerBuilder):
    """The sessions of a store. Settings are copied into a session when it is first obtained.

    `SessionManager.create(store)` makes a manager for an `AgentWorkspace` or another store;
    `await manager.create(name, parent_session_id=None, model=None, source=None)` begins a session
    and gives its record.
    """

    create = _Create()

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self._sessions: dict[str, Session] = {}

    def __reduce__(self) -> NoReturn:
        raise TypeError("a SessionManager cannot be pickled: make it anew where it is needed")

    # -- records -----------------------------------------------------------------------------------

    async def _create(
        self,
        name: str,
        *,
        parent_session_id: str | None = None,
        model: str | None = None,
        source: str | None = None,
    ) -> SessionInfo:
        """A new session without messages, with an id of its own."""
        return await self._store.create(
            _new_id(),
            name=arguments.text("a name", name),
            parent_session_id=arguments.text_or_none("a session id", parent_session_id),
            model=arguments.text_or_none("a model", model),
            source=arguments.text_or_none("a source", source),
        )

    async def get(self, session_id: str) -> SessionInfo | None:
        """A session's record, or None."""
        return await self._store.info(session_id)

    async def list(self) -> Infos:
        """All records, the one touched last first."""
        return await self._store.list()

    async def rename(self, session_id: str, name: str) -> SessionInfo:
        """Give a session another name."""
        return await self._store.annotate(session_id, name=arguments.text("a name", name))

    async def add_usage(
        self, session_id: str, input_tokens: int, output_tokens: int, cost: float = 0.0
    ) -> SessionInfo:
        """Add to what a session has used; cost is in US dollars."""
        arguments.count("input_tokens", input_tokens)
        arguments.count("output_tokens", output_tokens)
        if not 0 <= arguments.number("a cost", cost) < math.inf:
            raise ValueError("a cost is a finite number, zero or more")
        return await self._store.add_usage(session_id, input_tokens, output_tokens, cost)

    async def delete(self, session_id: str) -> None:
        """Take a session away; whoever still has it gets `SessionDeleted`."""
        await self._store.delete(session_id)
        self._sessions.pop(session_id, None)

    # -- sessions ----------------------------------------------------------------------------------

    async def get_session(self, session_id: str) -> Session:
        """The session of an id, the same object each time; made if there is none."""
        session = await self._object(session_id)
        if not await self._store.exists(session_id):
            await self._store.create(session_id, name=session_id)
        return session

    async def _object(self, session_id: str) -> Session:
        """The object of an id; one whose session others have deleted is not given out again."""
        session = self._sessions.get(arguments.text("a session id", session_id))
        if session is not None and await session.is_deleted():
            self._let_go(session_id, session)
        if session_id not in self._sessions:
            session = await self._new(session_id)
            return self._sessions.setdefault(session_id, session)  # another may have been faster
        return self._sessions[session_id]

    def _let_go(self, session_id: str, session: Session) -> None:
        if self._sessions.get(session_id) is session:
            del self._sessions[session_id]

    async def _new(self, session_id: str) -> Session:
        session = await self._set_up(session_id)
        if self._history_label is not None:
            session.with_context(
                self._history_label,
                description="Cross-session conversation history",
                provider={"get": self._history_summary, "search": self._history_search},
            )
        return session

    async def _known(self, session_id: str) -> Session:
        if not await self._store.exists(session_id):
            raise UnknownSession(session_id)
        return await self._object(session_id)

    async def append(
        self, session_id: str, message: Mapping[str, Any], parent_id: Parent = LATEST
    ) -> str:
        """Store a message; returns its id."""
        draft = checked(message)
        session = await self._object(session_id)  # a message that is refused makes no record
        return str((await session.append_message(draft, parent_id)).message["id"])

    async def upsert(
        self, session_id: str, message: Mapping[str, Any], parent_id: Parent = LATEST
    ) -> str:
        """Update the message of that id where it is, or store it; returns its id."""
        draft = checked(message)
        session = await self._object(session_id)
        if "id" in draft and await session.update_message(draft) is not None:
            return str(draft["id"])
        result = await session.append_message(draft, parent_id)
        if not result.inserted:  # somebody has stored it since
            await session.update_message(draft)
        return str(result.message["id"])

    async def append_all(
        self, session_id: str, messages: Iterable[Mapping[str, Any]], parent_id: Parent = LATEST
    ) -> str | None:
        """Store messages, each under the one before; returns the last one's id."""
        drafts = [checked(message) for message in messages]
        if not drafts:
            await self.get_session(session_id)
        last: Parent = parent_id
        for message in drafts:
            last = await self.append(session_id, message, last)
        return last if isinstance(last, str) else None

    async def get_history(self, session_id: str, leaf_id: str | None = None) -> Messages:
        """What a model is shown."""
        return await (await self._known(session_id)).get_history(leaf_id)

    async def get_branches(self, session_id: str, message_id: str | None) -> Messages:
        """The direct children of a message."""
        return await (await self._known(session_id)).get_branches(message_id)

    async def get_message_count(self, session_id: str) -> int:
        """How many messages the active branch has."""
        return await (await self._known(session_id)).get_path_length()

    async def add_compaction(
        self, session_id: str, summary: str, from_id: str, to_id: str
    ) -> Compaction:
        """Store an overlay."""
        return await (await self._known(session_id)).add_compaction(summary, from_id, to_id)

    async def get_compactions(self, session_id: str) -> Compactions:
        """All overlays of a session."""
        return await (await self._known(session_id)).get_compactions()

    async def clear_messages(self, session_id: str) -> None:
        """Remove all messages of a session."""
        await (await self._known(session_id)).clear_messages()

    async def delete_messages(self, session_id: str, message_ids: Iterable[str]) -> Ids:
        """Remove messages of a session."""
        return await (await self._known(session_id)).delete_messages(message_ids)

    # -- new sessions from old ---------------------------------------------------------------------

    async def fork(self, session_id: str, at_message_id: str, new_name: str) -> SessionInfo:
        """A new session that begins with the path to a message."""
        arguments.text("a message id", at_message_id)
        arguments.text("a name", new_name)
        facts = await self._inherited(session_id)
        return await self._store.fork(session_id, at_message_id, _new_id(), name=new_name, **facts)

    async def compact_and_split(
        self, session_id: str, summary: str, new_name: str | None = None
    ) -> SessionInfo:
        """End a session and continue it in a new one that begins with a summary of it."""
        arguments.text("a summary", summary)
        arguments.text_or_none("a name", new_name)
        facts = await self._inherited(session_id)
        old = await self._store.annotate(session_id, end_reason="compaction")
        name = old.name if new_name is None else new_name
        child = await self._create(name, parent_session_id=session_id, **facts)
        text = f"[Context from previous session]\n\n{summary}"
        await self.append(
            child.id, {"role": "assistant", "parts": [{"type": "text", "text": text}]}
        )
        info = await self._store.info(child.id)
        assert info is not None
        return info

    async def _inherited(self, session_id: str) -> dict[str, Any]:
        info = await self._store.info(session_id)
        if info is None:
            raise UnknownSession(session_id)
        return {"model": info.model, "source": info.source}

    # -- search ------------------------------------------------------------------------------------

    async def search(self, query: str, limit: int = 20) -> Hits:
        """Messages of all sessions that hold all words of the query, the best first."""
        arguments.text("a query", query)
        arguments.number("a limit", limit)
        return await self._store.search(query, limit)

    async def tools(self) -> dict[str, Tool]:
        """The tool that searches all sessions."""
        tool = history_search_tool(lambda query: self.search(query, _TOP))
        return {tool.name: tool}

    async def _history_summary(self) -> str | None:
        count = len(await self.list())
        if not count:
            return None
        return f"{count} session{'' if count == 1 else 's'} available for search."

    async def _history_search(self, query: str) -> str | None:
        found: str = await call((await self.tools())["session_search"].execute, query=query)
        return None if found == "No results found." else found


def _new_id() -> str:
    return uuid.uuid4().hex
