"""What one agent has in a workspace: its sessions, their index, its state, in one namespace.

Nothing is kept here but the place on disk: any number of these may stand for one agent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

from workspace_session.errors import (
    SessionExists,
    UnknownSession,
    WorkspaceBusy,
    WorkspaceError,
)
from workspace_session.files import trash
from workspace_session.files.index import SessionIndex
from workspace_session.files.layout import AgentPlace
from workspace_session.files.locks import lock_at
from workspace_session.files.payloads import keep_payload
from workspace_session.files.purge import Purged, purge
from workspace_session.files.retention import Retention
from workspace_session.files.session_tree import SessionTree
from workspace_session.files.state import WorkspaceSession
from workspace_session.files.stats import SessionStats, session_stats
from workspace_session.files.trash import Trashed
from workspace_session.files.verify import Problem, check_agent, check_session
from workspace_session.model.clock import fresh_id
from workspace_session.model.entries import Compaction
from workspace_session.model.hits import Filters, SearchHits
from workspace_session.model.info import SessionInfo, from_member

if TYPE_CHECKING:
    from workspace_session.stores.compacting import Cut
    from workspace_session.stores.files import FileStore
    from workspace_session.workspace import Workspace

logger = logging.getLogger("workspace_session")


class AgentWorkspace:
    """What one agent has in a workspace: sessions, their index, state."""

    def __init__(self, workspace: Workspace, place: AgentPlace) -> None:
        self.workspace = workspace
        self.place = place
        self.broadcast: Callable[[str], Any] | None = None  # is told what happens to sessions

    def __repr__(self) -> str:
        user = "" if self.user is None else f" of {self.user!r}"
        return f"AgentWorkspace({self.id!r}{user})"

    @property
    def id(self) -> str:
        """The agent's id."""
        return self.place.agent_id

    @property
    def user(self) -> str | None:
        """Whose namespace this is, or None for the common one."""
        return "/".join(self.place.namespace) if self.place.namespace else None

    @cached_property
    def state(self) -> WorkspaceSession:
        """Snapshots of state modules."""
        store = WorkspaceSession(self.workspace, self.id)
        return store.scoped(self.place.namespace) if self.place.namespace else store

    @property
    def index(self) -> SessionIndex:
        """The index behind `sessions()`."""
        return self.workspace.index_of(self.place)

    # -- sessions ----------------------------------------------------------------------------------

    def tree(self, session_id: str) -> SessionTree:
        """A session, there or not: it comes into being with its first write."""
        return SessionTree.on_disk(
            self.place,
            session_id,
            durable=self._durable,
            register=self.index,
            search=lambda *query, **filters: self.search(*query, session=session_id, **filters),
        )

    def sessions(self) -> list[SessionInfo]:
        """All sessions, the one written to last first; those with only state come at the end."""
        members = self.index.catch_up()
        infos = [self._info(session_id, member) for session_id, member in members.items()]
        infos.sort(key=lambda info: info.id)
        infos.sort(key=lambda info: info.updated_at or "", reverse=True)
        only_state = [sid for sid in self.place.state_session_ids() if sid not in members]
        return infos + [self._info(session_id, {}) for session_id in only_state]

    def session_ids(self) -> list[str]:
        """The ids of all sessions, those with only state included, without reading any of them."""
        return sorted({*self.place.session_ids(), *self.place.state_session_ids()})

    def create(self, session_id: str | None = None, **facts: Any) -> SessionTree:
        """A new session without messages, with an id of its own if none is given."""
        tree = self.tree(fresh_id() if session_id is None else session_id)
        if not tree.start(**facts):
            raise SessionExists(tree.id)
        return tree

    def fork(
        self, session_id: str, at: str | None = None, new_id: str | None = None, **facts: Any
    ) -> SessionTree:
        """A new session with the path to a message, the tip if none is named."""
        source, target = self.tree(session_id), self.tree(fresh_id() if new_id is None else new_id)
        if source.header() is None:
            raise UnknownSession(session_id)
        at = source.leaf if at is None else at
        if at is None:
            target.start(parent_session=session_id, **facts)
        else:
            source.fork(at, target, **facts)
        return target

    def compact(
        self, session_id: str, summarize: Callable[[str], str | None], **cut: Unpack[Cut]
    ) -> Compaction | None:
        """Have `summarize(prompt)` sum up the middle of a branch; no lock is held meanwhile.

        None when there was nothing to sum up. `leaf`, `from_id` and `to_id` say which messages;
        `keep_first`, `keep_last` and `keep_tokens` what stays of a branch.
        """
        from workspace_session.stores.compacting import compact_tree  # which needs this module

        tree = self.tree(session_id)
        if not tree.exists():
            raise UnknownSession(session_id)
        return compact_tree(tree, summarize, **cut)

    def delete(self, session_id: str) -> Trashed:
        """Move a session, its transcript and its state, to the trash."""
        gone = trash.delete(self.place, session_id, durable=self._durable)
        self.index.remove(session_id)
        return gone

    def due(
        self, rule: Retention, now: datetime | None = None
    ) -> tuple[list[tuple[SessionInfo, str]], list[tuple[Trashed, str]]]:
        """What a rule would send to the trash, and erase from there, each with the reason."""
        now = datetime.now(UTC) if now is None else now
        return list(rule.due(self.sessions(), now)), list(rule.erasable(self.trashed(), now))

    def retire(self, info: SessionInfo) -> bool:
        """Move a session to the trash, unless it was written to since `info` was had."""
        with lock_at(self.place.session_lock(info.id)):
            if self.tree(info.id).info().updated_at != info.updated_at:
                return False
            self.delete(info.id)
        return True

    def erase(self, gone: Trashed) -> None:
        """Remove a deleted session for good."""
        trash.erase(self.place, gone)

    def restore(self, session_id: str) -> Trashed:
        """Bring the session of that id that was deleted last back."""
        back = trash.restore(self.place, session_id, durable=self._durable)
        self.index.catch_up()
        return back

    def trashed(self) -> list[Trashed]:
        """The sessions that can be restored, the one deleted last first."""
        return trash.trashed(self.place)

    def purge(self, session_id: str, entry_id: str) -> Purged:
        """Take the text of an entry away for good: from the session, its copies in the trash, indexes.

        What git has committed still holds it, and so do forks, which are named.
        """
        tree = self.tree(session_id)
        if not tree.exists():
            raise UnknownSession(session_id)
        purged = purge(self.place, tree, entry_id, durable=self._durable)
        self.index.put(session_id)
        self.workspace.searcher.throw_away(self.place.namespace)
        return purged

    def search(
        self,
        query: str,
        limit: int | None = 20,
        *,
        session: str | None = None,
        **filters: Unpack[Filters],
    ) -> SearchHits:
        """This agent's messages that have all words of a query, the best first."""
        return self.workspace.searcher.search(
            query,
            limit,
            namespace=self.place.namespace,
            agent=self.id,
            session=session,
            **filters,
        )

    def session_store(self) -> FileStore:
        """What `Session` and `SessionManager` run on."""
        from workspace_session.stores.files import FileStore  # which needs this module

        return FileStore(self)

    def keep_file(self, data: bytes, extension: str) -> str:
        """Keep a payload in a file that is named after its content; the path below the root."""
        return keep_payload(self.place, data, extension, durable=self._durable)

    # -- looking after it --------------------------------------------------------------------------

    def verify(self, session_id: str | None = None) -> list[Problem]:
        """Everything that is not as it should be, of this agent or of one of its sessions."""
        if session_id is not None:
            return check_session(self.place, session_id)
        return check_agent(self.place)

    def stats(self, session_id: str | None = None) -> list[SessionStats]:
        """The figures of one session, or of all, the one written to last first."""
        if session_id is not None:
            return [session_stats(self.place, self.tree(session_id))]
        written = [info.id for info in self.sessions() if info.updated_at is not None]
        return [session_stats(self.place, self.tree(one)) for one in written]

    def rebuild(self) -> int:
        """Make working sets and index anew from the logs; returns the number of sessions.

        A session that cannot be read is logged and left as it is: `verify` says what is wrong with it.
        """
        rebuilt = 0
        for session_id in self.place.session_ids():
            try:
                self.tree(session_id).rebuild()
                rebuilt += 1
            except WorkspaceBusy:
                raise
            except WorkspaceError as error:
                logger.warning("session %r is left as it is: %s", session_id, error)
        self.index.rebuild()
        return rebuilt

    @property
    def _durable(self) -> bool:
        return self.workspace.durability == "disk"

    def _info(self, session_id: str, member: dict[str, object]) -> SessionInfo:
        return from_member(session_id, member, agent_id=self.id, user_id=self.user)
