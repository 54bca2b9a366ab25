"""Calls of what is sync, by coroutines: in threads, and where they are made.

A call runs in a worker thread, and a caller that is cancelled waits until it has ended: what was begun
is seen through, then the cancellation goes on. A hop to a thread costs more than a short operation, so
one that will not wait, or for a quick disk only, may run where it is made; if it would have to wait for
another writer, it lets go before anything is changed and is run again in a thread.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import cache, partial
from typing import Any, ParamSpec, TypeVar

from workspace_session.bridge.threads import Call, Threads
from workspace_session.errors import WorkspaceBusy
from workspace_session.files.locks import no_waiting

P = ParamSpec("P")
T = TypeVar("T")

_WORKERS = 16
_MANY = 1000  # which wait for each other, and so must not wait for a thread


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of a call that may take its time."""
    return await _result(_pool().submit, partial(function, *args, **kwargs))


async def in_own_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of a call to the application, which may take as long as it likes.

    It has the context variables of its caller, and keeps no thread from the calls of others.
    """
    work = partial(function, *args, **kwargs)
    return await _result(_join_crowd, partial(copy_context().run, _without_stops, work))


async def seen_through(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that runs to its end, whatever happens to its caller meanwhile."""
    task = asyncio.get_running_loop().create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await ended(task)
        raise


async def at_once(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of a short call, from a thread only if it would have to wait."""
    try:
        with no_waiting():
            return function(*args, **kwargs)
    except WorkspaceBusy:
        return await in_thread(function, *args, **kwargs)


async def in_passing(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of a call that waits for a quick disk: here, unless a thread is at work already.

    Where several wait, threads get more done, and the loop would stand still for one after the other.
    For the same reason whatever else is ready has its turn before this goes on.
    """
    pool = _pool()
    if pool.stand_in():
        try:
            with no_waiting():
                result = function(*args, **kwargs)
            await asyncio.sleep(0)
            return result
        except WorkspaceBusy:
            pass
        finally:
            pool.leave()
    return await in_thread(function, *args, **kwargs)


def _without_stops(work: Callable[[], T]) -> T:
    try:
        return work()
    except StopIteration as error:  # which no future can hold: it would never be done
        raise RuntimeError("the call raised StopIteration") from error


async def _result(submit: Callable[[Call], object], work: Callable[[], T]) -> T:
    # `run_in_executor` and `shield` would do, but take half as long again, at every durable write.
    loop = asyncio.get_running_loop()
    answer, end = loop.create_future(), loop.create_future()
    submit(partial(_work, loop, work, answer, end))
    try:
        result: T = await answer
    except asyncio.CancelledError:
        await ended(end)
        raise
    return result


def _work(
    loop: asyncio.AbstractEventLoop,
    work: Callable[[], T],
    answer: asyncio.Future[T],
    end: asyncio.Future[None],
) -> Callable[[], None]:
    try:
        return partial(_tell, loop, answer, end, work(), None)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is the caller's
        return partial(_tell, loop, answer, end, None, error)


def _tell(loop: asyncio.AbstractEventLoop, *outcome: Any) -> None:
    with suppress(RuntimeError):  # the loop is closed: nobody is there to be told
        loop.call_soon_threadsafe(_settle, *outcome)


def _settle(
    answer: asyncio.Future[Any], end: asyncio.Future[None], result: Any, error: BaseException | None
) -> None:
    end.set_result(None)
    if answer.done():
        return  # its caller was cancelled, and waits for the end alone
    if error is None:
        answer.set_result(result)
    else:
        answer.set_exception(error)


async def ended(future: asyncio.Future[Any]) -> None:
    """Wait for the end of what runs already, however often the waiting is cancelled."""
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError:
            continue  # the first cancellation is the one that goes on
    if not future.cancelled():
        future.exception()  # looked at: the caller is told of its cancellation, not of this


def _join_crowd(call: Call) -> None:
    _crowd().submit(lambda: call()())


@cache
def _pool() -> Threads:
    return Threads(_WORKERS)


@cache
def _crowd() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_MANY, thread_name_prefix="workspace-session-call")


def _forget_threads() -> None:
    """In a forked child: they do not exist there."""
    _pool.cache_clear()
    _crowd.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
