"""Engines: what an index must be able to do, whoever keeps it.

An index holds the documents of one namespace and, for each log, the mark up to which it was read.
`write` changes both at once or, if the process dies, neither: that is all that catching up relies on.
An engine never reads a log and never takes a lock; writers are kept apart by `Index`.
`tests/search_contract.py` is what every engine must pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol

from workspace_session.search.query import Query


class IndexBroken(Exception):
    """An index cannot be read as what it should be: it is to be thrown away."""


class Log(NamedTuple):
    """A session's log, as an index knows it."""

    agent_id: str
    session_id: str


class Mark(NamedTuple):
    """How far a log was read, and how to tell that it is still the same log."""

    inode: int
    size: int
    modified: int
    end: int  # everything before it has been taken in
    last_line: str  # a digest of the line that ends there
    last_length: int
    timestamp: str  # of the newest entry taken in, and its id
    entry_id: str


class Document(NamedTuple):
    """A message as it is searched: its tokens, joined by spaces, and where its line is in the log."""

    id: str
    role: str
    created_at: str
    text: str
    more: str  # what only those look through who ask for everything
    start: int
    length: int


@dataclass(frozen=True, slots=True)
class Change:
    """What reading on in one log means for the index. Removing comes before adding."""

    log: Log
    mark: Mark | None  # None: the log is gone
    afresh: bool = False  # whether everything it had goes first
    removed: Sequence[str] = ()
    added: Sequence[Document] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is looked for. Times are in the fixed form; `since` counts, `until` does not."""

    query: Query
    limit: int
    agent: str | None = None
    session: str | None = None
    role: str | None = None
    since: str | None = None
    until: str | None = None
    everything: bool = False
    newest_first: bool = False  # and without scores

    def covers(self, log: Log) -> bool:
        """Whether a log is one of those to look in."""
        return self.agent in (None, log.agent_id) and self.session in (None, log.session_id)


class Row(NamedTuple):
    """A document that was found."""

    log: Log
    id: str
    role: str
    created_at: str
    score: float
    start: int
    length: int


class Found(NamedTuple):
    """The first rows, and how many there are in all."""

    rows: list[Row]
    total: int

    @classmethod
    def of(cls, rows: list[Row], total: int) -> Found:
        """Rows in their order: by score, then the newest, then by session and id."""
        rows.sort(key=lambda row: (row.log.session_id, row.id))
        rows.sort(key=lambda row: (row.score, row.created_at), reverse=True)
        return cls(rows, total)


class Engine(Protocol):
    """An open index. One thread at a time may use it; any number of processes have it open."""

    is_quick: ClassVar[bool]  # whether it takes documents in faster than one process reads them
    room: ClassVar[int]  # bytes of logs to take in at a time: a second's work, more or less

    def __init__(self, directory: Path) -> None:
        """Open the index in a directory, or make an empty one in an empty directory."""

    def marks(self) -> Mapping[Log, Mark]:
        """How far each log was read, by any process, as of now."""

    def known(self, log: Log, ids: Iterable[str]) -> dict[str, str]:
        """Of these messages of a log, those that are in the index, and when each was created."""

    def write(self, changes: Iterable[Change]) -> None:
        """Take changes in, all of them at once. Only one process may do so at a time."""

    def find(self, request: Request) -> Found:
        """What is asked for, as of now."""

    def close(self) -> None:
        """Let go of the files."""
