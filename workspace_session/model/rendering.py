"""The careful way to write a JSON value: any type, any depth, every refusal with its path.

`canonical` comes here with what orjson does not write, or not as it should: tuples, some subclasses,
surrogates, deep nesting, huge numbers, and whatever is not JSON at all. The bytes are those that
orjson would give. Containers are kept on a list of levels, not on the stack.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import orjson

from workspace_session.errors import StateNotSerializable

MAX_LEVELS = 500


def render(value: Any, *, sort: bool, indent: bool) -> bytes:
    """The bytes of a value, or `StateNotSerializable`."""
    return _Writer(sort=sort, indent=indent).write(value)


def path_step(step: str | int) -> str:
    """One step of a path that starts at `$`: `.name`, `["any text"]` or `[0]`."""
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if step.isidentifier() else f"[{orjson.dumps(step).decode()}]"


class _NotJson(Exception):
    """Why the value being looked at is refused; the writer knows where it stands."""


class _Level:
    """A list or an object that is being written."""

    __slots__ = ("end", "identity", "members", "step")

    def __init__(self, value: Any, members: Iterator[tuple[str | int, Any]], end: bytes) -> None:
        self.identity = id(value)
        self.members = members
        self.end = end
        self.step: str | int | None = None  # the member being written


class _Writer:
    """Writes one value."""

    def __init__(self, *, sort: bool, indent: bool) -> None:
        self._sort = sort
        self._indent = indent
        self._out: list[bytes] = []
        self._levels: list[_Level] = []
        self._open: set[int] = set()  # the identities of the levels: one met again is a cycle

    def write(self, value: Any) -> bytes:
        try:
            self._put(value)
            while self._levels:
                self._continue(self._levels[-1])
        except _NotJson as refused:
            steps = (path_step(level.step) for level in self._levels if level.step is not None)
            raise StateNotSerializable("$" + "".join(steps), str(refused)) from None
        return b"".join(self._out)

    def _continue(self, level: _Level) -> None:
        is_first = level.step is None
        member = next(level.members, None)
        if member is None:
            self._levels.pop()
            self._open.remove(level.identity)
            self._out.append((b"" if is_first else self._line()) + level.end)
            return
        level.step, value = member
        self._out.append((b"" if is_first else b",") + self._line())
        if isinstance(level.step, str):
            self._out.append(orjson.dumps(level.step) + (b": " if self._indent else b":"))
        self._put(value)

    def _line(self) -> bytes:
        return b"\n" + b"  " * len(self._levels) if self._indent else b""

    def _put(self, value: Any) -> None:
        """Write a scalar, or begin a container: its members are the next to be written."""
        text = _scalar(value)
        if text is not None:
            self._out.append(text)
            return
        if id(value) in self._open:
            raise _NotJson("cycle")
        if len(self._levels) == MAX_LEVELS:
            raise _NotJson(f"more than {MAX_LEVELS} levels")
        # Through the base class: a subclass is written as its base, whatever it overrides.
        if isinstance(value, dict):
            self._begin(value, _named(list(dict.items(value)), sort=self._sort), b"{", b"}")
        elif isinstance(value, list):
            self._begin(value, enumerate(list.__iter__(value)), b"[", b"]")
        else:
            self._begin(value, enumerate(tuple.__iter__(value)), b"[", b"]")

    def _begin(
        self, value: Any, members: Iterator[tuple[str | int, Any]], start: bytes, end: bytes
    ) -> None:
        self._out.append(start)
        self._levels.append(_Level(value, members, end))
        self._open.add(id(value))


def _named(items: list[tuple[Any, Any]], *, sort: bool) -> Iterator[tuple[str, Any]]:
    named: dict[str, Any] = {}
    for key, item in items:
        if not isinstance(key, str):
            raise _NotJson(f"key of type {type(key).__name__}")
        name = _whole(key)
        if name in named:
            raise _NotJson("two keys that are the same text")
        named[name] = item
    return iter(sorted(named.items(), key=lambda pair: pair[0]) if sort else named.items())


def _scalar(value: Any) -> bytes | None:
    """The bytes of a scalar; None for a container."""
    match value:
        case None | True | False:
            return orjson.dumps(value)
        case str():
            return orjson.dumps(_whole(value))
        case int():
            return _digits(value)
        case float():
            if not math.isfinite(value):
                raise _NotJson(f"float {float.__repr__(value)}")
            return orjson.dumps(float.__float__(value))
        case list() | tuple() | dict():
            return None
    raise _NotJson(type(value).__name__)


def _digits(value: int) -> bytes:
    try:
        return int.__repr__(value).encode("ascii")
    except ValueError:  # the interpreter's limit, which would stop the reader too
        raise _NotJson("int of too many digits") from None


def _whole(text: str) -> str:
    """The text with surrogate pairs joined and U+FFFD for a lone one; an exact `str`."""
    text = str.__str__(text)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
