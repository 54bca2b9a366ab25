"""The stage: a directory with the sessions that rows are played on, each built once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import corpus
from benchmarks.peers import AgentsPeer
from workspace_session import Workspace

if TYPE_CHECKING:
    from workspace_session import SessionTree

AGENT, SESSION = "bench", "s"
_CHUNK = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How large, and how often."""

    long: int = 100_000
    middle: int = 10_000
    short: int = 1_000
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
        self._peers: list[AgentsPeer] = []

    def workspace_of(self, count: int) -> Path:
        """The root of a workspace with one session of that many messages."""
        root = self.root / f"workspace-{count}"
        if not root.exists():
            tree = Workspace(root, durability="os").agent(AGENT).tree(SESSION)
            for batch in _chunks(count):
                tree.extend(batch)
        return root

    def peer_of(self, count: int) -> AgentsPeer:
        """The peer, with one session of that many messages."""
        database = self.root / f"peer-{count}.db"
        fresh = not database.exists()
        peer = self.peer(database.stem)
        if fresh:
            peer.add(_chunks(count))
        return peer

    def peer(self, name: str) -> AgentsPeer:
        """The peer on a database of that name."""
        peer = AgentsPeer(self.root / f"{name}.db")
        self._peers.append(peer)
        return peer

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

    def close(self) -> None:
        """Let go of the peers' databases."""
        for peer in self._peers:
            peer.close()


def _chunks(count: int) -> Iterator[list[corpus.Item]]:
    size = min(count, _CHUNK)
    return islice(corpus.batches(size), count // size)
