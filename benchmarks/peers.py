"""Peers: what this package is measured against, used the way their own users use them."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import orjson

from benchmarks.corpus import Item
from benchmarks.timing import collector_off, once

if TYPE_CHECKING:
    from agents import SQLiteSession

_FULL = 2  # PRAGMA synchronous: in WAL mode a commit is on the disk from FULL on


class PeerMissing(Exception):
    """A peer is not installed, or is set up so that comparing would be unfair."""


class AgentsPeer:
    """The openai-agents `SQLiteSession` on a database file, awaited in a running event loop."""

    def __init__(self, database: Path) -> None:
        if find_spec("agents") is None:
            raise PeerMissing("openai-agents is missing: pip install 'workspace-session[bench]'")
        self._database = database
        self._runner = asyncio.Runner()
        self._session = self._open()
        self._check_durable()

    def add(self, batches: Iterable[list[Item]]) -> float:
        """The median time of `add_items`."""

        async def body() -> float:
            seconds = []
            for items in batches:
                start = perf_counter()
                await self._session.add_items(items)  # type: ignore[arg-type]
                seconds.append(perf_counter() - start)
            return median(seconds)

        return self._runner.run(body())

    def read_all(self) -> float:
        """The time of `get_items` on an open session."""

        async def body() -> float:
            start = perf_counter()
            items = await self._session.get_items()
            seconds = perf_counter() - start
            del items
            return seconds

        return self._runner.run(body())

    def read_tail_cold(self, limit: int, times: int) -> float:
        """The median time of opening the database anew and getting the last items."""

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
        """Let go of the database and the event loop."""
        self._session.close()
        self._runner.close()

    def _open(self) -> SQLiteSession:
        from agents import SQLiteSession

        return SQLiteSession("s", self._database)

    def _check_durable(self) -> None:
        row = self._session._get_connection().execute("PRAGMA synchronous").fetchone()
        if row[0] < _FULL:
            raise PeerMissing(
                f"SQLite {sqlite3.sqlite_version} does not sync each commit here "
                f"(synchronous={row[0]}): comparing durable writes with it would be unfair"
            )


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
