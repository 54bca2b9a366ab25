"""Following logs: what happened in a workspace since it was looked at last.

Each entry that counts is told once, in order, however the file came to hold it. Half a line and half a
batch wait until they are whole. A log that was replaced (by git, by a restored session) is read from its
beginning, and only what is new in it is told. Looking takes no locks, writes nothing, and costs one
`stat` for a log that has not changed. When to look is the business of `watch`.
"""

from __future__ import annotations

import logging
import os
import time
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import NamedTuple, TypeAlias, TypedDict

from workspace_session.errors import UnsafePath
from workspace_session.files.jsonl import Lines, collector_paused, parse_lines, read_bytes
from workspace_session.files.layout import AgentPlace, Layout
from workspace_session.files.listings import LOG, transcript_id
from workspace_session.model.batches import Settled, settle
from workspace_session.model.entries import Entry, Trim
from workspace_session.model.purging import withheld

logger = logging.getLogger("workspace_session")

GRACE = 0.2  # seconds for which a log may be away: git takes a file away before it puts the new one
_LARGE = 1 << 20


# -- what is told ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """Something that happened to a session. `user_id` is None in the common namespace."""

    agent_id: str
    user_id: str | None
    session_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntriesAdded(Happening):
    """New entries, the oldest first; `existing` are those that were there when watching began."""

    entries: tuple[Entry, ...]
    existing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionReplaced(Happening):
    """The log is not the file it was: a merge, a checkout, a restored session.

    Entries may have gone from it. Those that are new in it are told right after this.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRemoved(Happening):
    """The session was deleted."""


WorkspaceEvent: TypeAlias = EntriesAdded | SessionReplaced | SessionRemoved


# -- one log ---------------------------------------------------------------------------------------


class Told:
    """Which entries were told: eight bytes for each, since a merge may bring any of them again."""

    def __init__(self) -> None:
        self._hashes = array("q")
        self._greatest = ("", "")

    def __len__(self) -> int:
        return len(self._hashes)

    def new_of(self, entries: Iterable[Entry]) -> tuple[Entry, ...]:
        """Those that were not told yet, in order; from now on they were."""
        fresh: list[Entry] = []
        known: set[int] | None = None  # made when something is not newer than everything
        for entry in sorted(entries, key=lambda entry: entry.key):
            hashed = hash(entry.key)
            if entry.key > self._greatest:
                self._greatest = entry.key
            else:
                known = set(self._hashes) if known is None else known
                if hashed in known:
                    continue
            if known is not None:
                known.add(hashed)
            self._hashes.append(hashed)
            fresh.append(entry)
        return tuple(fresh)


class _Mark(NamedTuple):
    """How far a log was read, the line before that, and the file as it was."""

    inode: int
    size: int
    modified: int
    end: int = 0
    last_length: int = 0
    last_line: bytes = b""

    def is_of(self, found: os.stat_result) -> bool:
        return self[:3] == (found.st_ino, found.st_size, found.st_mtime_ns)


class _Names(TypedDict):
    """Whom an event is about."""

    agent_id: str
    user_id: str | None
    session_id: str


class FollowedLog:
    """One session's log, and how far it has been told."""

    def __init__(self, place: AgentPlace, session_id: str) -> None:
        self._place, self._session_id = place, session_id
        self._path = place.log(session_id)
        self._mark: _Mark | None = None
        self._told = Told()
        self._away_since: float | None = None
        self.is_pending = False  # whether it is away, and it has yet to be seen if it comes back
        self._removed = False
        self._trouble = ""
        self._names: _Names = {
            "agent_id": place.agent_id,
            "user_id": "/".join(place.namespace) or None,
            "session_id": session_id,
        }

    def look(self, now: float) -> Iterator[WorkspaceEvent]:
        """What happened, given the time on a clock that never goes back."""
        try:
            found = self._stat()
            if found is None:
                yield from self._miss(now)
            else:
                self._away_since, self.is_pending = None, False
                if self._mark is None or self._removed or not self._mark.is_of(found):
                    yield from self._read()
            self._trouble = ""
        except (OSError, UnsafePath) as error:  # the others are followed on, and so is this one
            if str(error) != self._trouble:
                logger.warning("cannot follow session %r: %s", self._session_id, error)
            self._trouble = str(error)

    def _stat(self) -> os.stat_result | None:
        try:
            return os.stat(self._path)  # noqa: PTH116 (the method of a path takes twice as long)
        except FileNotFoundError:
            return None

    def _miss(self, now: float) -> Iterator[WorkspaceEvent]:
        self._away_since = now if self._away_since is None else self._away_since
        self.is_pending = now - self._away_since < GRACE
        if self._removed or self.is_pending:
            return
        if not self._place.tree(
            self._session_id
        ).exists():  # else the next writer makes the log anew
            self._removed = True
            if self._told:
                yield SessionRemoved(**self._names)

    def _read(self) -> Iterator[WorkspaceEvent]:
        self._place.layout.check(self._path)
        entries = None if self._removed else self._appended()
        if entries is None:
            entries = self._all()
            if entries is None:
                return  # gone again: the next look sees that
            self._removed = False
            if self._told:
                yield SessionReplaced(**self._names)
        if fresh := self._told.new_of(entries):
            yield EntriesAdded(**self._names, entries=fresh)

    def _appended(self) -> list[Entry] | None:
        """What was added behind the mark; None when more than that was done to the file."""
        mark = self._mark
        if mark is None:
            return None
        read = read_bytes(self._path, mark.end - mark.last_length)
        if read is None or read[1].st_ino != mark.inode:
            return None
        if _digest(read[0][: mark.last_length]) != mark.last_line and mark.end:
            return None
        return self._take(read[0][mark.last_length :], mark, read[1])

    def _all(self) -> list[Entry] | None:
        read = read_bytes(self._path)
        return None if read is None else self._take(read[0], _Mark(0, 0, 0), read[1])

    def _take(self, data: bytes, mark: _Mark, found: os.stat_result) -> list[Entry]:
        with collector_paused(len(data) > _LARGE):
            lines = parse_lines(data, mark.end)
        settled = settle(lines.entries)
        end = _end_of_settled(lines, settled, mark.end)
        mark = mark._replace(inode=found.st_ino, size=found.st_size, modified=found.st_mtime_ns)
        if end > mark.end:
            whole = data[: end - mark.end]
            last = whole[whole.rfind(b"\n", 0, -1) + 1 :]
            mark = mark._replace(end=end, last_length=len(last), last_line=_digest(last))
        self._mark = mark
        counted = withheld(settled.counted)
        return [entry for entry in counted if type(entry) is not Trim]


def _end_of_settled(lines: Lines, settled: Settled, start: int) -> int:
    if settled.settled == len(lines.entries):
        return lines.end
    return lines.ends[settled.settled - 1] if settled.settled else start


def _digest(line: bytes) -> bytes:
    return blake2b(line, digest_size=16).digest()


# -- all logs --------------------------------------------------------------------------------------


class Chosen(TypedDict, total=False):
    """How callers say which sessions they mean; the user `""` is the common namespace."""

    agent: str | None
    user: str | None
    session: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which sessions are followed; None means any."""

    agent: str | None = None
    user: str | None = None
    session: str | None = None

    def has_agent(self, place: AgentPlace) -> bool:
        """Whether sessions of this agent may be meant."""
        user = "/".join(place.namespace)
        return self.agent in (None, place.agent_id) and self.user in (None, user)

    def has_session(self, session_id: str) -> bool:
        """Whether sessions of this id are meant."""
        return self.session in (None, session_id)


class Following:
    """The logs of a workspace, and how far each has been told. For one thread at a time."""

    def __init__(self, layout: Layout, choice: Choice) -> None:
        self._layout, self._choice = layout, choice
        self._places: dict[str, AgentPlace] = {}  # by the directory of the transcripts
        self._logs: dict[str, FollowedLog] = {}  # by path; those of removed sessions too
        self._troubles: set[str] = set()  # what could not be listed, and was said

    @property
    def is_pending(self) -> bool:
        """Whether it is worth looking again soon: a log is away and may come back."""
        return any(log.is_pending for log in self._logs.values())

    def begin(self) -> Iterator[WorkspaceEvent]:
        """The first look: everything that is there already."""
        for event in self.look():
            yield replace(event, existing=True) if isinstance(event, EntriesAdded) else event

    def look(self) -> Iterator[WorkspaceEvent]:
        """What happened anywhere."""
        self._find_places()
        missing = dict(self._logs)
        for directory in list(self._places):
            for path in self._logs_in(directory):
                missing.pop(path, None)
                yield from self.look_at(path)
        for path in missing:
            yield from self.look_at(path)

    def look_at(self, path: str) -> Iterator[WorkspaceEvent]:
        """What happened to the log at a path; nothing, if no session has its log there."""
        log = self._log_at(path)
        if log is not None:
            yield from log.look(time.monotonic())

    def _find_places(self) -> None:
        for namespace in self._layout.namespaces():
            for agent_id in self._layout.agent_ids(namespace):
                place = self._layout.agent(agent_id, namespace)
                if self._choice.has_agent(place):
                    self._places.setdefault(os.fspath(place.sessions), place)

    def _log_at(self, path: str) -> FollowedLog | None:
        known = self._logs.get(path)
        if known is not None or not path.endswith(LOG):
            return known
        directory, name = os.path.split(path)
        place, session_id = self._places.get(directory), transcript_id(name)
        if place is None or session_id is None or not self._choice.has_session(session_id):
            return None
        return self._logs.setdefault(path, FollowedLog(place, session_id))

    def _logs_in(self, directory: str) -> list[str]:
        try:
            with os.scandir(directory) as entries:
                return [one.path for one in entries if one.name.endswith(LOG)]
        except FileNotFoundError:
            return []
        except OSError as error:
            if directory not in self._troubles:
                logger.warning("cannot follow the sessions in %s: %s", directory, error)
            self._troubles.add(directory)
            return []
