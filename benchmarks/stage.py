"""The stage: a directory with the sessions that rows are played on, each built once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING, TypeVar

from benchmarks import corpus
from benchmarks.peers import AgentsPeer, AwaitedSession
from workspace_session import Workspace
from workspace_session.adapters.openai_agents import AgentsSession

if TYPE_CHECKING:
    from benchmarks.postgres_stage import Database
    from workspace_session import SessionTree

S = TypeVar("S", bound=AwaitedSession)
AGENT, SESSION = "bench", "s"
_CHUNK = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How large, and how often."""

    long: int = 100_000
    middle: int = 10_000
    short: int = 1_000
    brief: int = 100
    many_sessions: int = 10_000
    few_sessions: int = 10
    calls: int = 200  # in a round of a fast operation
    rounds: int = 9


QUICK = Scale(long=10_000, middle=2_000, short=500, many_sessions=500, calls=30, rounds=3)


class Stage:
    """Hands out sessions of a given length, ours and the peer's, with the same messages in them."""

    def __init__(self, root: Path, scale: Scale) -> None:
        self.root = root
        self.scale = scale
        self._sessions: list[AwaitedSession] = []
        self._postgres: Database | None = None

    def workspace_of(self, count: int) -> Path:
        """The root of a workspace with one session of that many messages."""
        root = self.root / f"workspace-{count}"
        if not root.exists():
            tree = Workspace(root, durability="os").agent(AGENT).tree(SESSION)
            for batch in _chunks(count):
                tree.extend(batch)
        return root

    def copy_of(self, count: int, name: str) -> Path:
        """A copy of that workspace, for those who change it."""
        return Path(copytree(self.workspace_of(count), self.root / name))

    def peer_of(self, count: int, *, name: str = "peer", branches: bool = False) -> AgentsPeer:
        """The peer, with one session of that many messages."""
        database = self.root / f"{name}-{count}.db"
        fresh = not database.exists()
        peer = self.peer(database.stem, branches=branches)
        if fresh:
            peer.add(_chunks(count))
        return peer

    def peer(self, name: str, *, branches: bool = False) -> AgentsPeer:
        """The peer on a database of that name."""
        return self._kept(AgentsPeer(self.root / f"{name}.db", branches=branches))

    def agents_session(self, root: Path) -> AwaitedSession:
        """Our session for the peer's users, in a workspace of that root, durable as by default."""
        return self._kept(AwaitedSession(lambda: AgentsSession.open(root, SESSION, AGENT)))

    def _kept(self, session: S) -> S:
        self._sessions.append(session)
        return session

    def tree(self, name: str) -> SessionTree:
        """An open handle on a new session in a workspace of its own, durable as by default."""
        return Workspace(self.root / name).agent(AGENT).tree(SESSION)

    def crowded(self, sessions: int) -> Path:
        """The root of a workspace with that many sessions of one message each."""
        root = self.root / f"crowd-{sessions}"
        if not root.exists():
            agent = Workspace(root, durability="os").agent(AGENT)
            for number, item in enumerate(islice(corpus.stream(), sessions)):
                agent.tree(f"session-{number:05}").append(item)
        return root

    def postgres(self) -> Database:
        """The server that is used for the rows about Postgres."""
        if self._postgres is None:
            from benchmarks.postgres_stage import Database

            self._postgres = Database(self.root)
        return self._postgres

    def close(self) -> None:
        """Let go of all sessions that are awaited, and of the server."""
        for session in self._sessions:
            session.close()
        if self._postgres is not None:
            self._postgres.close()


def _chunks(count: int) -> Iterator[list[corpus.Item]]:
    size = min(count, _CHUNK)
    return islice(corpus.batches(size), count // size)
