"""Turns: those of one session run one at a time, first come first served.

A turn queues under several keys at once and runs when it is the first under each. That holds across
harnesses, threads and event loops of the process. Turns line up everywhere in the same order, so none
waits for one behind it; what could still wait for itself is a turn asked for from inside of another, and
that is refused.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Hashable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from contextvars import ContextVar

from workspace_session.errors import ReentrantCall

_mutex = threading.Lock()
_queues: dict[Hashable, deque[_Turn]] = {}
_inside: ContextVar[_Turn | None] = ContextVar("turn", default=None)


class _Turn:
    """A place in the queues."""

    def __init__(self, keys: Iterable[Hashable], parent: _Turn | None) -> None:
        self.keys = tuple(dict.fromkeys(keys))
        self.parent = parent
        self.children: set[_Turn] = set()  # asked for from inside of this one, and not over
        self.had: Future[None] = Future()
        self.over = False

    def itself_and_those_around(self) -> Iterator[_Turn]:
        turn: _Turn | None = self
        while turn is not None:
            yield turn
            turn = turn.parent


@asynccontextmanager
async def turn_of(keys: Iterable[Hashable], *, session_id: str) -> AsyncIterator[None]:
    """Wait for one's turn under all keys, and have it for the length of an `async with` block."""
    turn = _Turn(keys, _around())
    with _mutex:
        if _would_wait_for_itself(turn):
            raise ReentrantCall(session_id)
        _line_up(turn)
    try:
        await asyncio.wrap_future(turn.had)
        token = _inside.set(turn)
        try:
            yield
        finally:
            _inside.reset(token)
    finally:
        with _mutex:
            _leave(turn)


def _around() -> _Turn | None:
    """The turn that the caller is part of; one that is over has left its mark on what it started."""
    turn = _inside.get()
    while turn is not None and turn.over:
        turn = turn.parent
    return turn


# -- with the mutex held ---------------------------------------------------------------------------


def _line_up(turn: _Turn) -> None:
    for key in turn.keys:
        _queues.setdefault(key, deque()).append(turn)
    if turn.parent is not None:
        turn.parent.children.add(turn)
    _start_if_first(turn)


def _leave(turn: _Turn) -> None:
    turn.over = True
    if turn.parent is not None:
        turn.parent.children.discard(turn)
    for key in turn.keys:
        queue = _queues[key]
        queue.remove(turn)
        if not queue:
            del _queues[key]
    for key in turn.keys:
        if key in _queues:
            _start_if_first(_queues[key][0])


def _start_if_first(turn: _Turn) -> None:
    is_first = all(_queues[key][0] is turn for key in turn.keys)
    # One that was cancelled is done too: it leaves the queues by itself.
    if is_first and not turn.had.done() and turn.had.set_running_or_notify_cancel():
        turn.had.set_result(None)


def _would_wait_for_itself(turn: _Turn) -> bool:
    """Whether what is ahead of a turn waits, in the end, for the turn it was asked for from."""
    if turn.parent is None:
        return False
    around = set(turn.itself_and_those_around())
    pending = list(_ahead(turn))
    seen: set[_Turn] = set()
    while pending:
        other = pending.pop()
        if other in around:
            return True
        if other not in seen:
            seen.add(other)
            pending += other.children
            if not other.had.done():
                pending += _ahead(other)
    return False


def _ahead(turn: _Turn) -> Iterator[_Turn]:
    for key in turn.keys:
        for other in _queues.get(key, ()):
            if other is turn:
                break
            yield other


def _after_fork_in_child() -> None:
    """Whoever waits or runs in the parent does not exist here."""
    global _mutex
    _mutex = threading.Lock()
    _queues.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
