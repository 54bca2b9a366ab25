"""Deleting a session moves it, and restoring moves it back; only `erase` takes away for good.

Each deletion has a directory of its own below `.workspace/trash/`, in which files keep their path below
the root. The working set goes first and the log second: a crash in between leaves the session whole.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree

from workspace_session.errors import SessionExists, UnknownSession
from workspace_session.files.atomic import make_directories, sync_directory
from workspace_session.files.layout import AgentPlace, Layout
from workspace_session.files.locks import lock_at


@dataclass(frozen=True, slots=True)
class Trashed:
    """A deleted session: where it is, and when it was deleted (`20260515T080003Z`)."""

    session_id: str
    directory: Path
    deleted_at: str

    @property
    def moment(self) -> datetime:
        """When it was deleted."""
        return datetime.strptime(self.deleted_at, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)


def delete(place: AgentPlace, session_id: str, *, durable: bool) -> Trashed:
    """Move a session, its transcript and its state, to the trash."""
    session_lock = lock_at(place.session_lock(session_id))
    state_lock = lock_at(place.state_lock(session_id))
    for directory in (place.sessions, place.context):
        place.layout.check(directory)  # a link that is a file itself is moved as it is
    with session_lock, state_lock:
        present = [path for path in _parts(place, session_id) if path.exists()]
        if not present:
            raise UnknownSession(session_id)
        directory = place.layout.new_trash()
        for path in present:
            _move(path, place.layout.mirrored(directory, path), durable=durable)
    return Trashed(session_id, directory, directory.name[:16])


def trashed(place: AgentPlace, session_id: str | None = None) -> list[Trashed]:
    """The deleted sessions of an agent, newest first; all of them, or those of one id."""
    found = []
    for directory in sorted(place.layout.trash.glob("*-*"), key=_when, reverse=True):
        there = Layout(directory).agent(place.agent_id, place.namespace)
        ids = {*there.session_ids(), *there.state_session_ids()}
        found += [
            Trashed(one, directory, directory.name[:16])
            for one in sorted(ids)
            if session_id in (None, one)
        ]
    return found


def restore(place: AgentPlace, session_id: str, *, durable: bool) -> Trashed:
    """Move the newest deletion of a session back to where it was."""
    candidates = trashed(place, session_id)
    if not candidates:
        raise UnknownSession(session_id)
    newest = candidates[0]
    session_lock = lock_at(place.session_lock(session_id))
    state_lock = lock_at(place.state_lock(session_id))
    with session_lock, state_lock:
        for path in _parts(place, session_id):
            if path.exists():
                raise SessionExists(session_id)
        # The log first: a working set alone would pass for a session whose log was lost.
        for path in (place.log(session_id), place.tree(session_id), place.state(session_id)):
            source = place.layout.mirrored(newest.directory, path)
            if source.exists():
                _move(source, path, durable=durable)
    return newest


def erase(place: AgentPlace, gone: Trashed) -> None:
    """Remove a deleted session for good."""
    session_lock = lock_at(place.session_lock(gone.session_id))
    with session_lock, suppress(FileNotFoundError):  # nobody restores it meanwhile
        rmtree(gone.directory)


def _when(directory: Path) -> tuple[str, int]:
    """The moment of a deletion. Its name has only the second, and many fit into one."""
    return directory.name[:16], directory.stat().st_mtime_ns


def _parts(place: AgentPlace, session_id: str) -> tuple[Path, Path, Path]:
    return place.tree(session_id), place.log(session_id), place.state(session_id)


def _move(source: Path, target: Path, *, durable: bool) -> None:
    make_directories(target.parent, sync=durable)
    source.rename(target)
    if durable:
        sync_directory(target.parent)
        sync_directory(source.parent)
