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

from workspace_session.errors import WorkspaceBusy
from workspace_session.files.locks import no_waiting

P = ParamSpec("P")
T = TypeVar("T")

_WORKERS = 64  # some of which may wait for other processes
_MANY = 1000  # which wait for each other, and so must not wait for a thread

# One object for each call that is not over. Adding and discarding take no lock, which matters where
# the collector closes a coroutine that nobody waits for any more: it may do so anywhere.
_at_work: set[object] = set()


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of a call that may take its time."""
    return await _result(_pool(), _counted(partial(function, *args, **kwargs)))


async def in_own_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of a call to the application, which may take as long as it likes.

    It has the context variables of its caller, and keeps no thread from the calls of others.
    """
    work = partial(function, *args, **kwargs)
    return await _result(_crowd(), partial(copy_context().run, work))


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
    if not _at_work:
        standing_in = object()
        _at_work.add(standing_in)
        try:
            with no_waiting():
                result = function(*args, **kwargs)
            await asyncio.sleep(0)
            return result
        except WorkspaceBusy:
            pass
        finally:
            _at_work.discard(standing_in)
    return await in_thread(function, *args, **kwargs)


def _counted(work: Callable[[], T]) -> Callable[[], T]:
    """A call that is known to be at work, from now until it is over."""
    mark = object()
    _at_work.add(mark)

    def counted() -> T:
        try:
            return work()
        finally:
            _at_work.discard(mark)

    return counted


async def _result(pool: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    # `run_in_executor` and `shield` would do, but take half as long again, at every durable write.
    loop = asyncio.get_running_loop()
    answer, end = loop.create_future(), loop.create_future()
    call = _Call(loop, work, answer, end)
    try:
        pool.submit(call)
    except RuntimeError:  # no thread can be started, if only because the process is about to end
        call()
    try:
        result: T = await answer
    except asyncio.CancelledError:
        await ended(end)
        raise
    return result


class _Call:
    """Work for whoever comes first, a thread or its caller; the others find nothing to do."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Callable[[], T],
        answer: asyncio.Future[T],
        end: asyncio.Future[None],
    ) -> None:
        self._todo: list[Callable[[], Any]] = [work]
        self._loop, self._answer, self._end = loop, answer, end

    def __call__(self) -> None:
        try:
            work = self._todo.pop()
        except IndexError:
            return
        result: Any = None
        failure: BaseException | None = None
        try:
            result = work()
        except StopIteration as error:  # which no future can hold: it would never be done
            failure = RuntimeError("the call raised StopIteration")
            failure.__cause__ = error
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is the caller's
            failure = error
        with suppress(RuntimeError):  # the loop is closed: nobody is there to be told
            self._loop.call_soon_threadsafe(_settle, self._answer, self._end, result, failure)
        del work, result, failure  # which may hold much, and each other


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


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_WORKERS, thread_name_prefix="workspace-session")


@cache
def _crowd() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_MANY, thread_name_prefix="workspace-session-call")


def _forget_threads() -> None:
    """In a forked child: they do not exist there."""
    _pool.cache_clear()
    _crowd.cache_clear()
    _at_work.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
