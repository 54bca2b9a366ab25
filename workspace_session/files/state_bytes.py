"""A state and its bytes: `<key>.json` is one value, `<key>.jsonl` a list, one item a line.

The bytes are what counts: the etag is their SHA-256, and two states are the same when their bytes
are. Only this module says what makes a state file readable. A last line that a crash cut short is
left out and named; anything else that does not parse raises `StateCorrupt`.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from workspace_session.errors import StateCorrupt, StateNotSerializable
from workspace_session.model.canonical import compact_sorted, document, parse

_log = logging.getLogger(__name__)


class Absent(Enum):
    """The etag of what is not there; `ABSENT` is the only one."""

    ABSENT = "absent"

    def __str__(self) -> str:
        return self.value

    def __repr__(self) -> str:
        return self.name


ABSENT = Absent.ABSENT
Etag = str | Absent


class Versioned(NamedTuple):
    """What one read found; `problems` names what had to be left out."""

    value: Any
    etag: Etag
    problems: tuple[str, ...] = ()


# -- to bytes --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rendered:
    """The bytes that a key is to have."""

    data: bytes
    is_list: bool

    @property
    def etag(self) -> str:
        """The SHA-256 of the bytes."""
        return hashlib.sha256(self.data).hexdigest()


def render_value(state: Any) -> Rendered:
    """The `.json` file of a state."""
    return Rendered(document(state), is_list=False)


def render_items(items: list[Any] | tuple[Any, ...]) -> Rendered:
    """The `.jsonl` file of a list."""
    if not isinstance(items, list | tuple):
        raise StateNotSerializable("$", f"{type(items).__name__} instead of a list")
    lines: list[bytes] = []
    try:
        lines.extend(compact_sorted(item) for item in items)
    except StateNotSerializable as error:
        path = f"$[{len(lines)}]{error.path.removeprefix('$')}"
        raise StateNotSerializable(path, error.reason) from None
    return Rendered(b"".join(line + b"\n" for line in lines), is_list=True)


# -- from bytes ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stored(Rendered):
    """The bytes that a key was found to have."""

    path: Path
    shown: str  # how texts name the file

    def versioned(self) -> Versioned:
        """The value, in objects of its own each time."""
        if not self.is_list:
            return Versioned(self._parsed(self.data, None), self.etag)
        items, problems = self._items()
        return Versioned(items, self.etag, problems)

    def is_corrupt(self) -> bool:
        """Whether the bytes cannot be read."""
        try:
            self.versioned()
        except StateCorrupt:
            return True
        return False

    def _items(self) -> tuple[list[Any], tuple[str, ...]]:
        numbered = [
            (number, line)
            for number, line in enumerate(self.data.split(b"\n"), 1)
            if line.strip()  # `\r` alone is an empty line too
        ]
        if not numbered:
            return [], ()
        items = [self._parsed(line, number) for number, line in numbered[:-1]]
        number, line = numbered[-1]
        try:
            items.append(self._last(line, number))
        except StateCorrupt as torn:
            problem = f"{torn.path}, line {number} was left out: {torn.reason}"
            _log.warning("%s", problem)
            return items, (problem,)
        return items, ()

    def _last(self, line: bytes, number: int) -> Any:
        value = self._parsed(line, number)
        # Of everything JSON, only a number that lost its end can still look whole.
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and not self.data.endswith(b"\n"):
            raise StateCorrupt(self.shown, number, "a number without the end of its line")
        return value

    def _parsed(self, data: bytes, line: int | None) -> Any:
        try:
            return parse(data)
        except ValueError as error:
            raise StateCorrupt(self.shown, line, str(error)) from None
