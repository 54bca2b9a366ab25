"""Peers: what this package is measured against, used the way their own users use them."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import orjson

from benchmarks.corpus import Item
from benchmarks.timing import collector_off, once

if TYPE_CHECKING:
    from agents import SQLiteSession

_FULL = 2  # PRAGMA synchronous: in WAL mode a commit is on the disk from FULL on


class PeerMissing(Exception):
    """A peer is not installed, or is set up so that comparing would be unfair."""


class AwaitedSession:
    """A session of the openai-agents protocol, awaited in a running event loop."""

    def __init__(self, opened: Callable[[], Any]) -> None:
        self._open = opened
        self._runner = asyncio.Runner()
        self._session = opened()

    def add(self, batches: Iterable[list[Item]]) -> float:
        """The median time of `add_items`."""
        return self._median(self._session.add_items, batches)

    def pop(self, times: int) -> float:
        """The median time of `pop_item`."""
        return self._median(lambda _: self._session.pop_item(), range(times))

    def read_tail(self, limit: int, times: int) -> float:
        """The median time of getting the last items of an open session."""
        return self._median(lambda _: self._session.get_items(limit), range(times))

    def read_all(self) -> float:
        """The time of `get_items` on an open session."""
        return self._median(lambda _: self._session.get_items(), range(1))

    def read_tail_cold(self, limit: int, times: int) -> float:
        """The median time of opening the session anew and getting the last items."""

        async def body() -> float:
            seconds = []
            for _ in range(times):
                start = perf_counter()
                session = self._open()
                items = await session.get_items(limit)
                seconds.append(perf_counter() - start)
                assert len(items) == limit
                session.close()
            return median(seconds)

        return self._runner.run(body())

    def close(self) -> None:
        """Let go of the session and the event loop."""
        self._session.close()
        self._runner.close()

    def _median(self, action: Callable[[Any], Awaitable[object]], inputs: Iterable[Any]) -> float:
        async def body() -> float:
            seconds = []
            for given in inputs:
                start = perf_counter()
                result = await action(given)
                seconds.append(perf_counter() - start)
                del result  # throwing it away is not part of the call
            return median(seconds)

        return self._runner.run(body())


class AgentsPeer(AwaitedSession):
    """The openai-agents `SQLiteSession` on a database file; with branches, its advanced one."""

    def __init__(self, database: Path, *, branches: bool = False) -> None:
        if find_spec("agents") is None:
            raise PeerMissing("openai-agents is missing: pip install 'workspace-session[bench]'")
        super().__init__(partial(_advanced if branches else _plain, database))
        self._check_durable()

    def _check_durable(self) -> None:
        row = self._session._get_connection().execute("PRAGMA synchronous").fetchone()
        if row[0] < _FULL:
            raise PeerMissing(
                f"SQLite {sqlite3.sqlite_version} does not sync each commit here "
                f"(synchronous={row[0]}): comparing durable writes with it would be unfair"
            )


def _plain(database: Path) -> SQLiteSession:
    from agents import SQLiteSession

    return SQLiteSession("s", database)


def _advanced(database: Path) -> SQLiteSession:
    from agents.extensions.memory import AdvancedSQLiteSession

    return AdvancedSQLiteSession(session_id="s", db_path=database, create_tables=True)


def parse_lines(path: Path) -> float:
    """The floor for reading a file of JSON lines: its bytes through orjson, no collector."""
    with collector_off():
        return once(lambda: [orjson.loads(line) for line in path.read_bytes().split(b"\n") if line])


def versions() -> dict[str, str]:
    """What the figures were taken with."""
    known = {"sqlite": sqlite3.sqlite_version, "orjson": version("orjson")}
    if find_spec("agents") is not None:
        known["openai-agents"] = version("openai-agents")
    return known
