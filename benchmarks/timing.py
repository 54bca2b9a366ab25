"""Timing: two ways of doing one thing, taken in turns, so that both see the same weather.

A side is a function that does one round and returns the seconds one operation took, the median where
a round has many. Rounds of the two sides alternate; what is reported are medians of rounds, and the
ratio is the median of the rounds' ratios. Medians leave out what a side puts off to every hundredth
call (SQLite's checkpoints): that is to the peer's advantage, and on a busy machine worth it.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Side: TypeAlias = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds per operation, and how many times longer the other side took."""

    ours: float
    theirs: float
    ratio: float


def alternate(ours: Side, theirs: Side, rounds: int) -> Timing:
    """Run both sides in turns, after one round that only warms up."""
    ours(), theirs()
    pairs: list[tuple[float, float]] = []
    for number in range(rounds):
        # Whoever goes second finds warmer caches: take turns in that too.
        sides = (ours, theirs) if number % 2 == 0 else (theirs, ours)
        seconds = {side: _measured(side) for side in sides}
        pairs.append((seconds[ours], seconds[theirs]))
    return Timing(
        median(mine for mine, _ in pairs),
        median(other for _, other in pairs),
        median(other / mine for mine, other in pairs),
    )


def per_call(action: Callable[[T], object], inputs: Iterable[T]) -> float:
    """The median time of one call; what lies between calls does not count."""
    seconds = []
    for item in inputs:
        start = perf_counter()
        result = action(item)
        seconds.append(perf_counter() - start)
        del result  # throwing it away is not part of the call
    return median(seconds)


def per_await(action: Callable[[T], Awaitable[object]], inputs: Iterable[T]) -> float:
    """The same for a coroutine; starting the event loop does not count."""

    async def play() -> float:
        seconds = []
        for item in inputs:
            start = perf_counter()
            await action(item)
            seconds.append(perf_counter() - start)
        return median(seconds)

    return asyncio.run(play())


def once(action: Callable[[], object]) -> float:
    """The time of one call."""
    start = perf_counter()
    result = action()
    seconds = perf_counter() - start
    del result
    return seconds


@contextmanager
def collector_off() -> Iterator[None]:
    """Without the garbage collector, which looks at all objects again as a large result grows."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _measured(side: Side) -> float:
    gc.collect()  # the garbage of one side is not the other's business
    return side()
