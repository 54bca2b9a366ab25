"""From coroutines to threads: the one place where the async rim meets the sync core.

A call runs in a worker thread, and a caller that is cancelled waits until it has ended: what was begun
is seen through, then the cancellation goes on. A hop to a thread costs more than a short operation, so
one that will not wait for a disk runs where it is called; if it would have to wait for another writer,
it lets go before anything is changed and is run again in a thread.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any, ParamSpec, TypeVar

from workspace_session.errors import WorkspaceBusy
from workspace_session.files.locks import no_waiting

P = ParamSpec("P")
T = TypeVar("T")

_WORKERS = 16


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of a call that may take its time."""
    loop = asyncio.get_running_loop()
    future = loop.run_in_executor(_pool(), partial(function, *args, **kwargs))
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await _ended(future)
        raise


async def at_once(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of a short call, from a thread only if it would have to wait."""
    try:
        with no_waiting():
            return function(*args, **kwargs)
    except WorkspaceBusy:
        return await in_thread(function, *args, **kwargs)


async def _ended(future: asyncio.Future[Any]) -> None:
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError:
            continue  # the first cancellation is the one that goes on
    if not future.cancelled():
        future.exception()  # looked at: the caller is told of its cancellation, not of this


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_WORKERS, thread_name_prefix="workspace-session")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # its threads do not exist there
