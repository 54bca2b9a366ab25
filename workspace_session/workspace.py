"""Opening a root and wiring the parts together.

A workspace is a directory. Opening one creates at most the directory itself; everything below it is
made by the first write that needs it.
"""

from __future__ import annotations

import logging
import os
import weakref
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from workspace_session.agent import AgentWorkspace
from workspace_session.errors import (
    NotAWorkspace,
)
from workspace_session.files.atomic import make_directories
from workspace_session.files.follow import Choice, Chosen
from workspace_session.files.index import SessionIndex
from workspace_session.files.layout import AgentPlace, Layout, root_above
from workspace_session.files.session_tree import SessionTree
from workspace_session.files.verify import Problem, check_agents
from workspace_session.files.watch import AsyncEvents, Callback, Events, Watch
from workspace_session.model.hits import Filters, SearchHits

if TYPE_CHECKING:
    from workspace_session.search import EngineName, Searcher

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


def _flush_all(indexes: dict[AgentPlace, SessionIndex]) -> None:
    for index in indexes.values():
        index.flush()
