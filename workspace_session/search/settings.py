"""Which engine a workspace uses: kept beside its indexes, so that all its processes use the same."""

from __future__ import annotations

import logging
from typing import Any

import orjson

from workspace_session.files.atomic import make_directories, write_atomic
from workspace_session.files.layout import Layout
from workspace_session.search.engines import DEFAULT, EngineName, checked_name

logger = logging.getLogger("workspace_session")

_FILE, _MEMBER = "settings.json", "search"


def kept_engine(layout: Layout) -> EngineName:
    """The engine that was chosen for a workspace; the default one when none was."""
    try:
        return checked_name(_read(layout).get(_MEMBER, DEFAULT))
    except ValueError as error:
        logger.warning("%s/%s is of no use: %s", layout.hidden.name, _FILE, error)
        return DEFAULT


def keep_engine(layout: Layout, name: object) -> None:
    """Choose an engine for a workspace; `ValueError` if there is no such engine."""
    chosen = checked_name(name)
    if kept_engine(layout) != chosen:
        try:
            others = _read(layout)
        except ValueError:
            others = {}
        make_directories(layout.hidden, sync=False)
        data = orjson.dumps({**others, _MEMBER: chosen}, option=orjson.OPT_INDENT_2) + b"\n"
        write_atomic(layout.hidden / _FILE, data, sync=False)


def _read(layout: Layout) -> dict[str, Any]:
    try:
        found = orjson.loads((layout.hidden / _FILE).read_bytes())
    except FileNotFoundError:
        return {}
    if not isinstance(found, dict):
        raise ValueError("it is no JSON object")
    return found
