"""How stored values become text that is safe to print.

Stored text is never trusted: every character that could move the cursor, change colours or turn the
direction of writing is printed as an escape, and nothing here or in `screen` interprets markup.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.cells import cell_len, set_cell_size

from workspace_session import Problem
from workspace_session.model.messages import describe, one_line, role

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

GIST = 200  # characters of a message that stand on one line, where nothing else sets the limit

SHORT_ID = 8

# Controls, line separators, direction marks, half characters: what a terminal might obey.
_ACTIVE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)
# JSON escapes the first 32 by itself: a newline in it is one between members.
_ACTIVE_IN_JSON = re.compile(_ACTIVE.pattern.replace("\x00-\x1f", ""))


# -- text ------------------------------------------------------------------------------------------


def inert(text: str) -> str:
    """The text with every character that a terminal might obey written as an escape."""
    return _ACTIVE.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def gist(message: dict[str, Any], author: str | None = None) -> str:
    """A message on one line, after the name of its author if it has one."""
    said = one_line(describe(message), GIST)
    return inert(said if author is None else f"{one_line(author, 20)}: {said}")


def speaker(message: dict[str, Any]) -> str:
    """The role of a message, for a heading."""
    return inert(one_line(role(message), 20)) or "?"


def short(entry_id: str) -> str:
    """The end of a long id: the part that differs between messages of the same minute."""
    return inert(entry_id if len(entry_id) <= SHORT_ID + 2 else entry_id[-SHORT_ID:])


def moment(timestamp: str | None) -> str:
    """A time as people write it, in UTC and to the second."""
    return "" if timestamp is None else f"{datetime.fromisoformat(timestamp):%Y-%m-%d %H:%M:%S}"


def plural(count: int, noun: str) -> str:
    """`1 message`, `2 messages`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def problem_place(problem: Problem) -> str:
    """Where a problem is, as editors and `grep -n` write it."""
    return f"{problem.path}:{problem.line}" if problem.line else problem.path


def width_of(text: str) -> int:
    """How many terminal cells a text takes."""
    return cell_len(text)


def fit(text: str, width: int | None) -> str:
    """The text, cut to a number of terminal cells."""
    if width is None or cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 1, 0)).rstrip() + "…"


# -- printing --------------------------------------------------------------------------------------


def talk(text: str) -> None:
    """Say something to the person at the terminal: on stderr, since stdout is data."""
    click.echo(inert(text), err=True)


def echo_lines(lines: Iterable[str]) -> None:
    """Print lines as they come, in the colours they have: whether they may is known by now."""
    for line in lines:
        click.echo(line, color=True)


# -- JSON ------------------------------------------------------------------------------------------


def echo_json(value: Any, *, indent: int | None = 2) -> None:
    """Print a value as JSON: a document for people too, or with `indent=None` one line."""
    separators = None if indent else (",", ":")
    echo_json_text(json.dumps(value, ensure_ascii=False, indent=indent, separators=separators))


def as_json_object(value: DataclassInstance) -> dict[str, Any]:
    """The fields of a value, named as the files name them: `updated_at` is `updatedAt`."""
    return {_camel(name): _plain(member) for name, member in asdict(value).items()}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.title, others))


def _plain(member: Any) -> Any:
    return str(member) if isinstance(member, Path) else member


def echo_json_text(text: str) -> None:
    """Print JSON, which is UTF-8 everywhere; what a terminal might obey as JSON escapes it."""
    click.echo(_ACTIVE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode())
