"""Whole files, replaced at once: a reader sees the old bytes or the new ones, never a part.

A file is written under a temporary name in its own directory and renamed. With `sync` the bytes are
on disk before the name is, and the name before the call returns. What a crash leaves is a temporary
file, which `remove_stale_temporaries` takes away an hour later.

New files and directories are the owner's alone. The usual umask (022) is what a system sets when
nobody has thought about it, so its read permission counts for nothing; a umask that lets the group,
or others, *write* is somebody's decision to share, and they get to read and write.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from datetime import datetime
from functools import cache
from pathlib import Path

from workspace_session.files.names import is_temporary, temporary_name, utc_stamp


def write_atomic(path: Path, data: bytes, *, sync: bool) -> None:
    """Make `data` the content of the file. A symbolic link of that name gives way to a file."""
    temporary = write_temporary(path, data, sync=sync)
    try:
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if sync:
        sync_directory(path.parent)


def write_temporary(path: Path, data: bytes, *, sync: bool) -> Path:
    """The first half of a replacement: the new content of `path`, under a temporary name."""
    temporary = path.with_name(temporary_name(path.name))
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, file_mode())
    try:
        try:
            _keep_mode(path, temporary)
            write_all(descriptor, data)
            if sync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte: the system may take fewer at a time."""
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, data[written:])


def _keep_mode(path: Path, temporary: Path) -> None:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return  # a new file
    temporary.chmod(mode)


# -- directories -----------------------------------------------------------------------------------


def make_directories(path: Path, *, sync: bool) -> None:
    """Make the directory and those above it that are missing."""
    missing: list[Path] = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for directory in reversed(missing):
        try:
            directory.mkdir(directory_mode())
        except FileExistsError:
            if not directory.is_dir():
                raise
        if sync:  # also when another process was faster: it may not have come to this yet
            sync_directory(directory.parent)


def sync_directory(path: Path) -> None:
    """See to it that the names in a directory are on disk."""
    if os.name == "nt":
        return  # where a directory cannot be opened, and renames are journalled
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# -- what crashes leave behind ---------------------------------------------------------------------


def remove_stale_temporaries(
    directory: Path, older_than_seconds: float = 3600, *, of: Path | None = None
) -> None:
    """Remove temporary files, `of` one file or all, that nobody is going to finish; under the lock."""
    oldest = time.time() - older_than_seconds
    prefix = "." if of is None else f".{of.name}.tmp-"
    for name in os.listdir(directory):  # noqa: PTH208 (a directory may hold very many sessions)
        if name.startswith(prefix) and is_temporary(name):
            path = directory / name
            with suppress(FileNotFoundError):  # somebody else was faster
                found = path.lstat()
                if stat.S_ISREG(found.st_mode) and found.st_mtime < oldest:
                    path.unlink()


def set_aside_corrupt(path: Path, now: datetime | None = None) -> Path:
    """Rename a file that cannot be read, so that a new one can take its place; under its lock."""
    aside = first = path.with_name(f"{path.name}.corrupt-{utc_stamp(now)}")
    number = 2
    while os.path.lexists(aside):
        aside = first.with_name(f"{first.name}-{number}")
        number += 1
    path.rename(aside)
    return aside


# -- permissions -----------------------------------------------------------------------------------


@cache
def file_mode() -> int:
    """The permissions of a new file."""
    return 0o600 | _shared() * 0o6


@cache
def directory_mode() -> int:
    """The permissions of a new directory."""
    return 0o700 | _shared() * 0o7


def _shared() -> int:
    """0o10 and 0o1 for the group and the others, when the umask lets them write."""
    # Read once: to read the umask is to set it, for every thread, if only for a moment.
    umask = os.umask(0o077)
    os.umask(umask)
    return (0 if umask & 0o020 else 0o10) | (0 if umask & 0o002 else 0o1)
