"""The session store in memory, for tests and throw-away agents: the same rules, nothing on disk."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from workspace_session.errors import UnknownSession
from workspace_session.files.memory_files import MemoryLog
from workspace_session.files.names import encode_id
from workspace_session.files.session_tree import SessionTree
from workspace_session.model import messages
from workspace_session.model.clock import normal_time
from workspace_session.model.entries import Message
from workspace_session.model.hits import SearchHit, SearchHits
from workspace_session.model.info import SessionInfo
from workspace_session.search import Query, rank, snippet
from workspace_session.stores.tree_provider import TreeProvider, as_message

Infos = list[SessionInfo]


@dataclass(slots=True)
class _Session:
    """What the files of one session would be."""

    log: MemoryLog = field(default_factory=MemoryLog)
    texts: dict[str, str] = field(default_factory=dict)


class _Register:
    """What trees need to know of each other: the time of the newest entry of all."""

    is_due = False

    def __init__(self) -> None:
        self.latest = ""
        self._mutex = threading.Lock()

    def touch(self, tree: SessionTree) -> None:
        with self._mutex:
            self.latest = max(self.latest, tree.latest)


class MemoryStore:
    """Sessions of one agent, for as long as this object lives."""

    def __init__(self, agent_id: str = "default", *, user_id: str | None = None) -> None:
        self.agent_id = agent_id
        self.user_id = user_id
        self.broadcast: Callable[[str], Any] | None = None
        self._sessions: dict[str, _Session] = {}
        self._shared_texts: dict[str, str] = {}
        self._register = _Register()
        self._mutex = threading.Lock()  # of the texts

    # -- parts of a session ------------------------------------------------------------------------

    def tree(self, session_id: str) -> SessionTree:
        """The tree of a session, there or not."""
        encode_id("session", session_id)  # what cannot be one on files is none here
        found = self._sessions.setdefault(session_id, _Session())
        return SessionTree.in_memory(
            session_id,
            agent_id=self.agent_id,
            log=found.log,
            register=self._register,
        )

    def provider(self, session_id: str) -> TreeProvider:
        """The provider of a session, there or not."""
        return TreeProvider(self.tree(session_id), search=self._search_one)

    def block_provider(self, session: TreeProvider | None, label: str) -> MemoryText:
        """A context block."""
        if session is None:
            return MemoryText(self._shared_texts, f"block.{label}", self._mutex)
        return self._text(session, f"block.{label}")

    def prompt_provider(self, session: TreeProvider) -> MemoryText:
        """The frozen prompt."""
        return self._text(session, "prompt.system")

    def _text(self, session: TreeProvider, key: str) -> MemoryText:
        place = self._sessions.setdefault(session.session_id, _Session())
        return MemoryText(place.texts, key, self._mutex, session.tree)

    # -- the registry ------------------------------------------------------------------------------

    async def create(self, session_id: str, **facts: Any) -> SessionInfo:
        """A new session without messages."""
        tree = self.tree(session_id)
        tree.start(parent_session=facts.pop("parent_session_id", None), **facts)
        return tree.info()

    async def exists(self, session_id: str) -> bool:
        """Whether there is a record of a session."""
        encode_id("session", session_id)
        return session_id in self._sessions and bool(self._sessions[session_id].log.data)

    async def info(self, session_id: str) -> SessionInfo | None:
        """A session's record."""
        tree = self._existing(session_id)
        return None if tree is None else tree.info()

    async def list(self) -> Infos:
        """All records, the one touched last first."""
        trees = [self._existing(session_id) for session_id in sorted(self._sessions)]
        infos = [tree.info() for tree in trees if tree is not None]
        return sorted(infos, key=lambda info: info.updated_at or "", reverse=True)

    async def annotate(self, session_id: str, **facts: Any) -> SessionInfo:
        """Set facts of a session."""
        tree = self._known(session_id)
        tree.annotate(**facts)
        return tree.info()

    async def add_usage(
        self, session_id: str, input_tokens: int, output_tokens: int, cost: float
    ) -> SessionInfo:
        """Add to what a session has used."""
        tree = self._known(session_id)
        tree.add_usage(input_tokens=input_tokens, output_tokens=output_tokens, cost=cost)
        return tree.info()

    async def delete(self, session_id: str) -> None:
        """Forget a session; its handles raise `SessionDeleted`."""
        self._known(session_id)
        gone = self._sessions.pop(session_id)
        with gone.log.lock, gone.log.mutex:
            gone.log.data.clear()
            gone.log.deleted = session_id

    async def fork(
        self, session_id: str, at_message_id: str, new_id: str, **facts: Any
    ) -> SessionInfo:
        """A new session with the path to a message."""
        source = self._known(session_id)
        target = self.tree(new_id)
        source.fork(at_message_id, target, **facts)
        return target.info()

    def _existing(self, session_id: str) -> SessionTree | None:
        encode_id("session", session_id)
        if session_id not in self._sessions:
            return None
        tree = self.tree(session_id)
        return tree if tree.header() is not None else None

    def _known(self, session_id: str) -> SessionTree:
        tree = self._existing(session_id)
        if tree is None:
            raise UnknownSession(session_id)
        return tree

    # -- search ------------------------------------------------------------------------------------

    async def search(self, query: str, limit: int) -> SearchHits:
        """Hits in all sessions."""
        return self._search(query, limit, sorted(self._sessions))

    def _search_one(self, query: str, limit: int, session_id: str) -> SearchHits:
        return self._search(query, limit, [session_id])

    def _search(self, query: str, limit: int, session_ids: Sequence[str]) -> SearchHits:
        """Read everything: what fits in memory is searched as fast as it is read."""
        trees = [tree for tree in map(self._existing, session_ids) if tree is not None]
        found = [(tree.id, entry) for tree in trees for entry in tree.all_messages()]
        found.sort(key=lambda one: one[1].key)  # of equals the newest comes first
        texts = [messages.text(entry.message) for _id, entry in found]
        wanted = Query.of(query)
        ranked = rank(wanted, texts)
        hits = [
            SearchHit(
                session_id=found[number][0],
                agent_id=self.agent_id,
                user_id=self.user_id,
                message_id=found[number][1].id,
                role=messages.role(found[number][1].message),
                content=texts[number],
                snippet=snippet(texts[number], wanted),
                score=score,
                created_at=_created_at(found[number][1]),
            )
            for number, score in ranked[: max(limit, 0)]
        ]
        return SearchHits(hits, len(ranked) if limit > 0 else 0)


def _created_at(entry: Message) -> str:
    """When a message was made, in the form of all times."""
    return normal_time(as_message(entry)["createdAt"]) or entry.timestamp


class MemoryText:
    """One text: a context block, or a prompt."""

    def __init__(
        self,
        texts: dict[str, str],
        key: str,
        mutex: threading.Lock,
        tree: SessionTree | None = None,
    ) -> None:
        self._texts = texts
        self._mutex = mutex
        self._key = key
        self._tree = tree

    def get(self) -> str | None:
        """The text, or None when it was never set."""
        self._check()
        return self._texts.get(self._key)

    def set(self, content: str) -> None:
        """Replace the text."""
        self.update(lambda _old: content)

    def update(self, change: Callable[[str], str]) -> str:
        """Read, change and write in one step; returns the new text."""
        self._check()
        with self._mutex:
            found = self._texts.get(self._key)
            new = self._texts[self._key] = change(found or "")
        if new != found and self._tree is not None and self._key.startswith("block."):
            self._tree.add_custom("block", {"label": self._key.removeprefix("block.")})
        return new

    def set_if_absent(self, content: str) -> str:
        """Set the text unless there is one; returns what is there in the end."""
        self._check()
        return self._texts.setdefault(self._key, content)

    def _check(self) -> None:
        if self._tree is not None:
            self._tree.check()
