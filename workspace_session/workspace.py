"""Opening a root and wiring the parts together.

A workspace is a directory. Opening one creates at most the directory itself; everything below it is
made by the first write that needs it.
"""

from __future__ import annotations

import logging
import os
import weakref
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from workspace_session.errors import (
    NotAWorkspace,
    SessionExists,
    UnknownSession,
    WorkspaceBusy,
    WorkspaceError,
)
from workspace_session.files import trash
from workspace_session.files.atomic import make_directories
from workspace_session.files.follow import Choice, Chosen
from workspace_session.files.index import SessionIndex
from workspace_session.files.layout import AgentPlace, Layout, root_above
from workspace_session.files.locks import lock_at
from workspace_session.files.payloads import keep_payload
from workspace_session.files.purge import Purged, purge
from workspace_session.files.retention import Retention
from workspace_session.files.session_tree import SessionTree
from workspace_session.files.state import WorkspaceSession
from workspace_session.files.stats import SessionStats, session_stats
from workspace_session.files.trash import Trashed
from workspace_session.files.verify import Problem, check_agent, check_agents, check_session
from workspace_session.files.watch import AsyncEvents, Callback, Events, Watch
from workspace_session.model.clock import fresh_id
from workspace_session.model.entries import Compaction
from workspace_session.model.hits import Filters, SearchHits
from workspace_session.model.info import SessionInfo, from_member

if TYPE_CHECKING:
    from workspace_session.search import EngineName, Searcher
    from workspace_session.stores.compacting import Cut
    from workspace_session.stores.files import FileStore

logger = logging.getLogger("workspace_session")

Durability = Literal["disk", "os"]
NamespaceFactory = Callable[[Any], tuple[str, ...]]
"""Says, of the `RuntimeContext` of a turn, in which namespace it takes place."""


def _user_alone(ctx: Any) -> tuple[str, ...]:
    return () if ctx.user_id is None else (ctx.user_id,)


class Workspace:
    """A directory that agents write their conversations and state to.

    `durability="disk"` has every write on disk before it returns; `"os"` leaves that to the
    kernel: nothing is lost when a process dies, the last seconds may be when the power fails.
    `search` chooses the engine, `"whoosh"` or `"sqlite"`, for this and every later opening.
    `namespace` says where a turn of the harness takes place: by default, with its user.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        durability: Durability = "disk",
        create: bool = True,
        search: EngineName | None = None,
        namespace: NamespaceFactory = _user_alone,
    ) -> None:
        if durability not in ("disk", "os"):
            raise ValueError(f"durability is 'disk' or 'os', not {durability!r}")
        self.layout = Layout(Path(root))
        self.durability: Durability = durability
        self._namespace = namespace
        if not create and not self.layout.is_workspace():
            raise NotAWorkspace(os.fspath(root))
        self._make_hidden()
        if search is not None:
            from workspace_session.search import keep_engine  # what nobody uses is not loaded

            keep_engine(self.layout, search)
        self._indexes: dict[AgentPlace, SessionIndex] = {}
        self._watches: weakref.WeakSet[Watch] = weakref.WeakSet()
        # What was touched last is written down when the workspace is let go, or the program ends.
        self._closing = weakref.finalize(self, _flush_all, self._indexes)

    def _make_hidden(self) -> None:
        try:
            make_directories(self.layout.hidden, sync=False)
        except OSError:
            if not self.layout.is_workspace():
                raise  # else what is there can be read, and what is written will tell
        for place in (self.layout.locks, self.layout.trash, self.layout.search):
            self.layout.check(place)

    def __repr__(self) -> str:
        return f"Workspace({os.fspath(self.root)!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop watching, bring the indexes up to date with what was written, let go of open files."""
        for watch in list(self._watches):
            watch.stop()
        _flush_all(self._indexes)
        if "searcher" in self.__dict__:
            self.searcher.close()

    @property
    def root(self) -> Path:
        """The directory."""
        return self.layout.root

    @staticmethod
    def above(directory: str | os.PathLike[str]) -> Path | None:
        """The root of the nearest workspace, from a directory upwards; None if there is none."""
        return root_above(Path(directory).absolute())

    # -- agents ------------------------------------------------------------------------------------

    def namespace_of(self, ctx: Any) -> tuple[str, ...]:
        """The namespace of a `RuntimeContext`."""
        parts = self._namespace(ctx)
        if isinstance(parts, str):
            raise TypeError("a namespace is a tuple of texts, not one text")
        namespace = tuple(parts)
        self.layout.namespace(namespace)  # whose parts are refused here
        return namespace

    def agent(
        self,
        agent_id: str,
        user: str | None = None,
        *,
        namespace: tuple[str, ...] | None = None,
    ) -> AgentWorkspace:
        """The part of one agent, in the namespace of a user, or in a deeper one, if one is given."""
        if namespace is None:
            namespace = () if user is None else (user,)
        return AgentWorkspace(self, self.layout.agent(agent_id, namespace))

    def agents(self) -> list[AgentWorkspace]:
        """Every agent that has written something, those of all users included."""
        return [
            AgentWorkspace(self, self.layout.agent(agent_id, namespace))
            for namespace in self.layout.namespaces()
            for agent_id in self.layout.agent_ids(namespace)
        ]

    def index_of(self, place: AgentPlace) -> SessionIndex:
        """The index of an agent's sessions: one for all handles of this workspace."""
        index = self._indexes.get(place)
        if index is None:
            durable = self.durability == "disk"
            index = SessionIndex(
                place, lambda sid: SessionTree.on_disk(place, sid, durable=durable), durable=durable
            )
            self._indexes[place] = index
        return index

    # -- search ------------------------------------------------------------------------------------

    @cached_property
    def searcher(self) -> Searcher:
        """What searches all sessions, each user's apart."""
        from workspace_session.search import Searcher, kept_engine

        return Searcher(self.layout, kept_engine(self.layout))

    def search(
        self,
        query: str,
        limit: int | None = 20,
        *,
        user: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        **filters: Unpack[Filters],
    ) -> SearchHits:
        """The messages that have all words of a query, the best first; a `"phrase"` as it stands.

        They are those of one user or, without one, of the common namespace: never of two.
        """
        namespace = () if user is None else (user,)
        return self.searcher.search(
            query, limit, namespace=namespace, agent=agent, session=session, **filters
        )

    def use_search(self, engine: EngineName) -> None:
        """Choose the search engine, for this and every later opening."""
        from workspace_session.search import keep_engine

        keep_engine(self.layout, engine)
        self.searcher.close()
        del self.searcher

    def reindex(self, report: Callable[[int, int], None] | None = None) -> None:
        """Make all search indexes anew. That is never needed; it packs what grew in small steps.

        `report` is told how many bytes of a namespace's logs are done, and of how many.
        """
        for namespace in self.layout.namespaces():
            self.searcher.reindex(namespace, report)

    # -- watching ----------------------------------------------------------------------------------

    def watch(
        self,
        callback: Callback,
        *,
        polling: bool = False,
        existing: bool = False,
        **chosen: Unpack[Chosen],
    ) -> Watch:
        """Call back with what any process does to sessions from now on, until the watch is stopped.

        `agent`, `user` and `session` narrow it down. `existing` begins with what is there already;
        `polling` is for network file systems, where the system gives no notice of changes.
        """
        watch = self._start(callback, polling=polling, existing=existing, **chosen)
        watch.wait_until_begun()
        return watch

    def events(
        self,
        *,
        polling: bool = False,
        existing: bool = False,
        timeout: float | None = None,
        **chosen: Unpack[Chosen],
    ) -> Events:
        """The same as an iterator, which ends when nothing has happened for `timeout` seconds."""
        start = partial(self._start, polling=polling, existing=existing, **chosen)
        return Events(start, timeout)

    def events_async(
        self,
        *,
        polling: bool = False,
        existing: bool = False,
        timeout: float | None = None,
        **chosen: Unpack[Chosen],
    ) -> AsyncEvents:
        """The same for `async for`, best inside `async with`."""
        start = partial(self._start, polling=polling, existing=existing, **chosen)
        return AsyncEvents(start, timeout)

    def _start(
        self,
        callback: Callback,
        on_stop: Callable[[], None] | None = None,
        *,
        polling: bool,
        existing: bool,
        **chosen: Unpack[Chosen],
    ) -> Watch:
        choice = Choice(**chosen)
        watch = Watch(
            self.layout, callback, choice, polling=polling, existing=existing, on_stop=on_stop
        )
        self._watches.add(watch)
        return watch

    # -- looking after it --------------------------------------------------------------------------

    def verify(self) -> list[Problem]:
        """Everything that is not as it should be; an empty list when all is well."""
        namespaces = sorted({(), *self.layout.namespaces()})
        problems = [found for one in namespaces for found in check_agents(self.layout, one)]
        return problems + [problem for agent in self.agents() for problem in agent.verify()]

    def rebuild(self) -> int:
        """Make all derived files anew; returns the number of sessions.

        The search indexes are only thrown away: the next search makes them.
        """
        for namespace in self.layout.namespaces():
            self.searcher.throw_away(namespace)
        return sum(agent.rebuild() for agent in self.agents())


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
        index = self.index
        return SessionTree.on_disk(
            self.place,
            session_id,
            durable=self._durable,
            on_change=index.touch,
            floor=lambda: index.latest,
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
        with lock_at(self.place.session_lock(info.id)).held():
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


def _flush_all(indexes: dict[AgentPlace, SessionIndex]) -> None:
    for index in indexes.values():
        index.flush()
