"""Single flight: one compaction of a session at a time, over all its handles in this process.

A second call for the same leaf waits for the first and shares its result; one for another leaf waits
its turn; one from inside the compaction function would wait for itself and is turned away.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class _Outcome(NamedTuple):
    """How a flight ended: with a result, with an error, or, when it was cancelled, with neither."""

    result: Any = None
    error: Exception | None = None
    cancelled: bool = False


@dataclass(slots=True, eq=False)
class _Flight:
    leaf: str | None
    # Not an asyncio future: the handles of a session may live on different event loops.
    landed: Future[_Outcome] = field(default_factory=Future)


_flights: dict[Hashable, _Flight] = {}
_mutex = threading.Lock()
# Those that the running code is part of: the compaction function, and what it has started.
_inside: ContextVar[frozenset[_Flight]] = ContextVar("compacting", default=frozenset())


async def fly(
    key: Hashable, leaf: str | None, work: Callable[[], Awaitable[T]], *, wait: bool
) -> T | None:
    """The result of `work`, done once for all who ask at the same time; None if turned away."""
    mine = _Flight(leaf)
    while True:
        with _mutex:
            other = _flights.setdefault(key, mine)
        if other is mine:
            return await _lead(key, mine, work)
        if not wait or other in _inside.get():
            return None
        outcome = await asyncio.shield(asyncio.wrap_future(other.landed))
        if other.leaf == leaf and not outcome.cancelled:
            if outcome.error is not None:
                raise outcome.error
            shared: T | None = outcome.result
            return shared


async def _lead(key: Hashable, mine: _Flight, work: Callable[[], Awaitable[T]]) -> T:
    token = _inside.set(_inside.get() | {mine})
    outcome = _Outcome(cancelled=True)  # those who wait start again
    try:
        result = await work()
        outcome = _Outcome(result)
        return result
    except Exception as error:
        outcome = _Outcome(error=error)
        raise
    finally:
        _inside.reset(token)
        with _mutex:
            del _flights[key]
        mine.landed.set_result(outcome)


def _after_fork_in_child() -> None:
    """The flights of the parent never land here, and its threads hold no lock."""
    global _mutex
    _mutex = threading.Lock()
    _flights.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
