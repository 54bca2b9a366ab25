"""`sessions.json`: what lists show, derived from the sessions' own files.

It may lag and never leads: a session counts as stale when the size of its log is not the one that was
written down, and only stale sessions are read again. Deleting the file loses nothing. Members that
this version does not know, of the root or of a session, survive every update.

Appending marks a session as changed and costs nothing more; the marks are written together, seldom.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from workspace_session.errors import SessionDeleted, UnsafePath, WorkspaceBusy, WorkspaceError
from workspace_session.files.atomic import (
    make_directories,
    remove_stale_temporaries,
    set_aside_corrupt,
    write_atomic,
)
from workspace_session.files.layout import AgentPlace
from workspace_session.files.locks import lock_at
from workspace_session.files.session_tree import SessionTree
from workspace_session.model.canonical import document, parse
from workspace_session.model.info import KNOWN_MEMBERS

logger = logging.getLogger("workspace_session")

VERSION = 1
_SECONDS_BETWEEN_WRITES = 2.0
_SHARE_OF_TIME = 100  # writing marks takes at most a hundredth of the time

Members = dict[str, dict[str, Any]]


class SessionIndex:
    """The index of one agent's sessions."""

    def __init__(
        self, place: AgentPlace, open_tree: Callable[[str], SessionTree], *, durable: bool
    ) -> None:
        self._place = place
        self._open_tree = open_tree
        self._durable = durable
        self._lock = lock_at(place.index_lock, shown=place.layout.shown(place.index))
        self.latest = ""  # no touch of any session may be older than one that is written down
        self._touched: dict[str, SessionTree] = {}
        self._next_write = 0.0

    # -- reading -----------------------------------------------------------------------------------

    def catch_up(self) -> Members:
        """The members of all sessions, those that changed derived anew and written down.

        Where nothing can be written, they are only derived.
        """
        known = self._read()
        times = [str(member.get("updatedAt") or "") for member in known.values()]
        self.latest = max(self.latest, *times, "")
        sizes = self._log_sizes()
        stale = [
            session_id
            for session_id, size in sizes.items()
            if known.get(session_id, {}).get("logBytes") != size
        ]
        gone = known.keys() - sizes.keys()
        if not stale and not gone and (self._place.index.exists() or not sizes):
            return known
        derived = self._derive(stale)
        try:
            members = self._merge(derived, gone)
            remove_stale_temporaries(self._place.sessions)
        except WorkspaceBusy:
            raise
        except OSError as error:
            logger.warning("the index of agent %r lags: %s", self._place.agent_id, error)
            known = {name: member for name, member in known.items() if name not in gone}
            return _united(known, derived)
        return members

    def rebuild(self) -> Members:
        """The members of all sessions, every one derived anew and written down."""
        sizes = self._log_sizes()
        return self._merge(self._derive(sizes), self._read().keys() - sizes.keys())

    def stale_sessions(self) -> list[str]:
        """The sessions whose member is missing, out of date or of no use, changing nothing."""
        known = self._read()
        sizes = self._log_sizes()
        differs = {name for name in sizes if known.get(name, {}).get("logBytes") != sizes[name]}
        return sorted(differs | (known.keys() - sizes.keys()))

    def _log_sizes(self) -> dict[str, int]:
        self._place.layout.check(self._place.sessions)
        sizes = {}
        for session_id in self._place.session_ids():
            try:
                sizes[session_id] = os.stat(self._place.log(session_id)).st_size  # noqa: PTH116 (speed)
            except FileNotFoundError:
                sizes[session_id] = 0  # lost; the working set still tells
        return sizes

    def _derive(self, session_ids: Iterable[str]) -> Members:
        members: Members = {}
        for session_id in session_ids:
            try:
                tree = self._open_tree(session_id)
                if tree.header() is not None or len(tree):  # else nothing in its files counts
                    members[session_id] = tree.member()
            except WorkspaceError as error:  # `verify` names it; the others are still listed
                logger.warning("session %r is left out of the index: %s", session_id, error)
        return members

    def _read(self) -> Members:
        try:
            return _members(parse(self._bytes()))
        except (FileNotFoundError, ValueError):
            return {}

    def _bytes(self) -> bytes:
        """The file as it is; a link that leads out of the workspace is none, and gives way to one."""
        try:
            self._place.layout.check(self._place.index)
        except UnsafePath:
            raise FileNotFoundError(self._place.index) from None
        return self._place.index.read_bytes()

    # -- writing -----------------------------------------------------------------------------------

    @property
    def is_due(self) -> bool:
        """Whether the next touch writes down what was touched."""
        return 0 < self._next_write <= time.monotonic()

    def touch(self, tree: SessionTree) -> None:
        """A session has changed; that is written down soon, together with others."""
        if not self._next_write:
            self._next_write = time.monotonic() + _SECONDS_BETWEEN_WRITES
        self.latest = max(self.latest, tree.latest)
        self._touched[tree.id] = tree
        if self.is_due:
            self.flush()

    def flush(self) -> None:
        """Write down what was touched. A failure is logged: the index may lag, writes may not fail."""
        started = time.monotonic()
        touched, self._touched = self._touched, {}
        try:
            members = _members_of(touched.values())
            if members:
                self._merge(members, ())
        except WorkspaceBusy:
            self._touched = {**touched, **self._touched}  # next time
        except (OSError, WorkspaceError) as error:
            logger.warning("the index of agent %r lags: %s", self._place.agent_id, error)
        ended = time.monotonic()
        pause = max(_SECONDS_BETWEEN_WRITES, _SHARE_OF_TIME * (ended - started))
        self._next_write = ended + pause

    def put(self, session_id: str, tree: SessionTree | None = None) -> dict[str, Any]:
        """Derive one session's member now and write it down; `tree` is a handle that is open.

        A failure is logged, as that of `flush` is.
        """
        members = {session_id: (tree or self._open_tree(session_id)).member()}
        try:
            members = self._merge(members, ())
        except (OSError, WorkspaceError) as error:
            logger.warning("the index of agent %r lags: %s", self._place.agent_id, error)
        return members[session_id]

    def remove(self, session_id: str) -> None:
        """A session is gone."""
        self._touched.pop(session_id, None)
        if self._place.index.exists():
            self._merge({}, (session_id,))

    def _merge(self, derived: Members, gone: Iterable[str]) -> Members:
        self._place.layout.check(self._place.sessions)
        make_directories(self._place.sessions, sync=self._durable)
        with self._lock:
            root = self._read_or_set_aside()
            before = document(root) if self._place.index.exists() else b""
            sessions = root["sessions"] = _united(root["sessions"], derived)
            for session_id in gone:
                sessions.pop(session_id, None)
            after = document(root)
            if after != before:
                write_atomic(self._place.index, after, sync=False)
        return sessions

    def _read_or_set_aside(self) -> dict[str, Any]:
        new: dict[str, Any] = {"sessions": {}, "version": VERSION}
        try:
            root = parse(self._bytes())
            _members(root)
        except FileNotFoundError:
            return new
        except ValueError as error:
            aside = set_aside_corrupt(self._place.index)
            logger.warning("sessions.json cannot be read (%s), kept as %s", error, aside.name)
            return new
        found: dict[str, Any] = {**new, **root, "sessions": _members(root)}
        return found


def _members(root: object) -> Members:
    if not isinstance(root, dict) or not isinstance(root.get("sessions"), dict):
        raise ValueError("it holds no sessions")
    return {name: found for name, found in root["sessions"].items() if isinstance(found, dict)}


def _members_of(trees: Iterable[SessionTree]) -> Members:
    members: Members = {}
    for tree in trees:
        with suppress(SessionDeleted):  # then there is nothing to write down
            members[tree.id] = tree.member()
    return members


def _united(known: Members, derived: Members) -> Members:
    """All members; of one that was derived anew, what this version does not know stays."""
    united = dict(known)
    for session_id, member in derived.items():
        before = known.get(session_id, {})
        unknown = {name: value for name, value in before.items() if name not in KNOWN_MEMBERS}
        united[session_id] = {**unknown, **member}
    return united
