"""What lies in a directory, as the ids it stands for.

A directory that is missing is an empty one. Dot-files are left out, and names that are not ours
stand for no id. Symbolic links to directories are not listed: an alias would show a session twice,
and one that leads up would never end. They still work for those who name them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from workspace_session.files.names import decode_name

COMMIT_NAME = ".commit.json"  # in a state directory: several of its files are being replaced
LOG, TREE = ".log.jsonl", ".jsonl"
ITEMS, DOCUMENT = ".jsonl", ".json"


def visible_names(directory: Path) -> list[str]:
    """The names in a directory, without dot-files."""
    return [name for name in _listdir(directory) if not name.startswith(".")]


def directory_names(directory: Path) -> Iterator[str]:
    """The names of the directories in a directory, without dot-files."""
    try:
        entries = os.scandir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return
    with entries:
        for entry in entries:
            if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                yield entry.name


def files_below(directory: Path) -> list[Path]:
    """The files in a directory and in those below it, sorted by their paths; no dot-files."""
    found: list[Path] = []
    pending = [directory]
    while pending:
        above = pending.pop()
        pending += [above / name for name in directory_names(above)]
        found += [above / name for name in visible_names(above) if (above / name).is_file()]
    return sorted(found, key=lambda path: path.relative_to(directory).as_posix())


def holds_agents(directory: Path) -> bool:
    """Whether this is a directory of agents: one of them has sessions or state."""
    return any(
        (directory / name / part).is_dir()
        for name in directory_names(directory)
        for part in ("sessions", "context")
    )


def sorted_ids(ids: Iterable[str | None]) -> list[str]:
    """Each id once, by code point."""
    return sorted({found for found in ids if found is not None})


def transcript_id(name: str) -> str | None:
    """The session that a file of `sessions/` belongs to."""
    for suffix in (LOG, TREE):  # the longer one first
        if name.endswith(suffix):
            return decode_name(name.removesuffix(suffix))
    return None


def state_key(name: str) -> str | None:
    """The key that a file of `context/<session>/` holds the state of."""
    for suffix in (ITEMS, DOCUMENT):
        if name.endswith(suffix):
            return decode_name(name.removesuffix(suffix))
    return None


def state_keys(directory: Path) -> list[str]:
    """The keys that have a state file in the directory of a session."""
    return sorted_ids(map(state_key, visible_names(directory)))


def holds_state(directory: Path) -> bool:
    """Whether there is a state file, or a change that will make one when it is completed."""
    return any(
        name == COMMIT_NAME or (not name.startswith(".") and state_key(name) is not None)
        for name in _listdir(directory)
    )


def _listdir(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)  # noqa: PTH208 (a path for each name would cost ten times as much)
    except (FileNotFoundError, NotADirectoryError):
        return []


# -- names that differ only in case ----------------------------------------------------------------

# Creating a session looks for its twin. Reading a large directory for each of many new sessions
# would cost the square of their number, so a reading serves until it has paid for itself. A twin
# that another process makes meanwhile is missed: where case counts it is a file of its own, and
# where it does not, the header of the file tells.
_PAYS_FOR = 20
_REMEMBERED = 100


@dataclass(slots=True)
class _Reading:
    names: dict[str, str]  # folded -> as it is
    good_until: float


_readings: dict[str, _Reading] = {}


def case_twin(directory: Path, names: tuple[str, ...]) -> str | None:
    """A name in the directory that differs from one of `names` only in case.

    `names` count as there from now on: they are what the caller is about to make.
    """
    known = _readings.get(os.fspath(directory))
    if known is not None and time.monotonic() < known.good_until and not _twin(known, names):
        return None
    return _twin(_read(directory), names)  # what seemed to be a twin may be gone


def _twin(reading: _Reading, names: tuple[str, ...]) -> str | None:
    found = (reading.names.setdefault(name.casefold(), name) for name in names)
    return next((twin for twin in found if twin not in names), None)


def _read(directory: Path) -> _Reading:
    started = time.monotonic()
    names = {name.casefold(): name for name in _listdir(directory)}
    ended = time.monotonic()
    if len(_readings) >= _REMEMBERED:
        _readings.clear()
    reading = _Reading(names, ended + _PAYS_FOR * (ended - started))
    _readings[os.fspath(directory)] = reading
    return reading
