"""Where the index of a namespace is, and whether what is there is one of ours.

An index is a directory with a note about it, written last: which engine made it, in which version, and
the inode of the directory. Without the right note it is nothing, and is thrown away: an index that was
copied, or came with a directory from elsewhere, is not read at all. To throw an index away is to rename
it first, so that nobody meets it half gone.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from workspace_session.files.atomic import make_directories, write_atomic
from workspace_session.files.layout import Layout
from workspace_session.files.locks import PathLock, lock_at
from workspace_session.search import analysis
from workspace_session.search.engines import Kind

logger = logging.getLogger("workspace_session")

# Dot-names, as no namespace has them: below the index of a namespace are those of others.
_INDEX, _NEW, _GONE, _NOTE = ".index", ".new-", ".gone-", "about.json"


@dataclass(frozen=True, slots=True)
class IndexPlace:
    """The place of one namespace's index."""

    layout: Layout
    namespace: tuple[str, ...]

    @property
    def _home(self) -> Path:
        return self.layout.mirrored(self.layout.search, self.layout.namespace(self.namespace))

    @property
    def directory(self) -> Path:
        """Where the index is."""
        return self._home / _INDEX

    @property
    def lock(self) -> PathLock:
        """Held by whoever writes to the index; sessions' locks come before it."""
        return self._lock(".search.lock")

    @property
    def reindex_lock(self) -> PathLock:
        """Held by whoever makes the index anew, beside the one in use."""
        return self._lock(".reindex.lock")

    def _lock(self, name: str) -> PathLock:
        locks = self.layout.mirrored(self.layout.locks, self.layout.namespace(self.namespace))
        return lock_at(locks / name, shown=self.layout.shown(self.directory))

    # -- the index in use --

    def identity(self) -> object:
        """What tells this index from one that takes its place; None when there is none."""
        try:
            found = (self.directory / _NOTE).stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return found.st_ino, found.st_mtime_ns

    def holds(self, kind: Kind) -> bool:
        """Whether there is an index that this engine has made."""
        try:
            note = orjson.loads((self.directory / _NOTE).read_bytes())
        except (OSError, ValueError):
            return False
        return bool(note == _note(kind, self.directory))

    def create(self, kind: Kind) -> None:
        """Make an empty index where there is none of the kind; under the lock."""
        if not self.holds(kind):
            self.throw_away()
            self._make(kind, self.directory)

    def throw_away(self) -> None:
        """Remove the index; under the lock."""
        if os.path.lexists(self.directory):
            self.directory.rename(self._home / f"{_GONE}{secrets.token_hex(4)}")
        self._sweep(_GONE)

    # -- a new one beside it --

    def create_aside(self, kind: Kind) -> Path:
        """Make an empty index beside the one in use; under the lock for making anew."""
        self._sweep(_NEW)
        directory = self._home / f"{_NEW}{secrets.token_hex(4)}"
        self._make(kind, directory)
        return directory

    def put_in_place(self, directory: Path) -> None:
        """Let an index that was made aside take the place of the one in use; under the lock."""
        self.throw_away()
        directory.rename(self.directory)

    def _make(self, kind: Kind, directory: Path) -> None:
        make_directories(directory, sync=False)
        kind.open(directory).close()
        write_atomic(directory / _NOTE, orjson.dumps(_note(kind, directory)), sync=False)

    def _sweep(self, prefix: str) -> None:
        for left in self._home.glob(f"{prefix}*"):
            try:
                shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
            except OSError as error:  # it is in nobody's way; the next one to come here tries again
                logger.warning("could not remove %s: %s", self.layout.shown(left), error)


def _note(kind: Kind, directory: Path) -> dict[str, Any]:
    return {
        "engine": kind.name,
        "version": kind.version,
        "analysis": analysis.VERSION,
        "inode": directory.stat().st_ino,
    }
