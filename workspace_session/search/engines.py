"""The engines there are, by name. None is imported before an index of its kind is opened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from workspace_session.search.engine import Engine

EngineName = Literal["whoosh", "sqlite"]
DEFAULT: EngineName = "whoosh"


@dataclass(frozen=True, slots=True)
class Kind:
    """An engine in its present version."""

    name: EngineName
    version: int
    open: Callable[[Path], Engine]


def kind_of(name: EngineName) -> Kind:
    """The engine of a name."""
    if name == "sqlite":
        from workspace_session.search import sqlite_engine

        return Kind(name, sqlite_engine.VERSION, sqlite_engine.SqliteEngine)
    from workspace_session.search import whoosh_engine

    return Kind(name, whoosh_engine.VERSION, whoosh_engine.WhooshEngine)


def checked_name(name: object) -> EngineName:
    """The name of an engine, or `ValueError`."""
    for known in get_args(EngineName):
        if name == known:
            return known  # type: ignore[no-any-return]
    raise ValueError(f"search is 'whoosh' or 'sqlite', not {name!r}")
