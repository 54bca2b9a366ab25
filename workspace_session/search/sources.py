"""The logs of a namespace, and which of them have changed since they were read.

A log that was only appended to has the inode it had, is longer, and still has the last line that is
known of it where that was. Everything else (a merge, a replacement, an edit) makes it a log to be read
from its beginning. Telling which logs have changed costs one `stat` each and reads none of them.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from workspace_session.errors import UnsafePath
from workspace_session.files.layout import Layout, decode_name
from workspace_session.files.listings import LOG, TREE
from workspace_session.search.engine import Log, Mark

logger = logging.getLogger("workspace_session")


@dataclass(frozen=True, slots=True)
class Source:
    """A log, as it was when it was looked at."""

    log: Log
    path: str
    inode: int
    size: int
    modified: int

    def is_at(self, mark: Mark | None) -> bool:
        """Whether nothing has happened to the file since the mark was set."""
        return mark is not None and mark[:3] == (self.inode, self.size, self.modified)

    def may_continue(self, mark: Mark) -> bool:
        """Whether something may have been appended, and nothing else done to it."""
        return mark.inode == self.inode and self.size > mark.end

    def now(self) -> Source | None:
        """The same log as it is now; None when there is none any more."""
        path = Path(self.path)
        try:
            return _source(self.log, path.parent, path.name, path.lstat())
        except FileNotFoundError:
            return None


def sources(layout: Layout, namespace: tuple[str, ...]) -> list[Source]:
    """All logs of a namespace."""
    return changed(layout, namespace, {})[0]


def changed(
    layout: Layout, namespace: tuple[str, ...], marks: Mapping[Log, Mark]
) -> tuple[list[Source], list[Log]]:
    """The logs that are not at their marks, and those that have marks and are no more."""
    stale: list[Source] = []
    gone = set(marks)
    for agent_id in layout.agent_ids(namespace):
        directory = layout.agent(agent_id, namespace).sessions
        try:
            layout.check(directory)
        except UnsafePath as error:
            logger.warning("agent %r is not searched: %s", agent_id, error)
            continue
        for session_id, name, found in _transcripts(directory):
            log = Log(agent_id, session_id)
            gone.discard(log)
            mark = marks.get(log)
            seen = (found.st_ino, found.st_size, found.st_mtime_ns)
            if mark is None or mark[:3] != seen:  # a `Source` for each would double the cost
                stale.append(_source(log, directory, name, found))
    return stale, sorted(gone)


def _source(log: Log, directory: Path, name: str, found: os.stat_result) -> Source:
    path = f"{directory}{os.sep}{name}"
    return Source(log, path, found.st_ino, found.st_size, found.st_mtime_ns)


def _transcripts(directory: Path) -> Iterator[tuple[str, str, os.stat_result]]:
    """Sessions, and the files to read them from; a symbolic link, which may lead anywhere, is none."""
    try:
        descriptor = os.open(directory, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        names = os.listdir(descriptor)  # noqa: PTH208 (relative to it, `stat` is quicker)
        for name, stem in _file_names(names):
            session_id = decode_name(stem)
            if session_id is None:
                continue
            try:
                found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            except FileNotFoundError:
                continue  # deleted since it was listed
            if stat.S_ISREG(found.st_mode):
                yield session_id, name, found
    finally:
        os.close(descriptor)


def _file_names(names: list[str]) -> Iterator[tuple[str, str]]:
    """The logs, and the working sets of sessions whose log was lost, each with its stem."""
    logs = {name.removesuffix(LOG): name for name in names if name.endswith(LOG)}
    for stem, name in logs.items():
        yield name, stem
    for name in names:
        if name.endswith(TREE) and not name.endswith(LOG):
            stem = name.removesuffix(TREE)
            if stem not in logs:
                yield name, stem


def digest(line: bytes) -> str:
    """What is remembered of a line."""
    return blake2b(line, digest_size=8).hexdigest()
