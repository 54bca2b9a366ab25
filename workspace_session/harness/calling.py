"""Calling what the application supplied: agents, hooks, summarisers, message sources.

What is async is awaited; what is sync and may take long, an agent or a model's summary, runs in a thread
of its own, in which the turn's context variables are set.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from workspace_session.bridge import in_own_thread

_END = object()


async def call(function: Callable[..., Any], *args: Any) -> Any:
    """The result of a short call, awaited when it can be."""
    result = function(*args)
    return await result if inspect.isawaitable(result) else result


async def call_out(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of a call that may take its time."""
    if is_async(function):
        result = function(*args, **kwargs)
    else:
        result = await in_own_thread(function, *args, **kwargs)
    return await result if inspect.isawaitable(result) else result


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling this gives something to be awaited or iterated without a thread."""
    for one in (function, getattr(function, "__call__", None)):  # noqa: B004 (its own, not whether)
        if inspect.iscoroutinefunction(one) or inspect.isasyncgenfunction(one):
            return True
    return False


def takes(function: Callable[..., Any], name: str) -> bool:
    """Whether a callable has a parameter of that name."""
    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):  # some built-in ones do not tell
        return False


async def events_of(found: Any) -> AsyncGenerator[Any]:
    """What an agent gives, one by one; an answer that is no stream is one event."""
    if hasattr(found, "__aiter__"):
        iterator = found.__aiter__()
        if hasattr(iterator, "aclose"):
            async with aclosing(iterator):
                async for event in iterator:
                    yield event
        else:
            async for event in iterator:
                yield event
    elif inspect.isgenerator(found):
        try:
            while (event := await in_own_thread(next, found, _END)) is not _END:
                yield event
        finally:
            await in_own_thread(found.close)
    else:
        yield found
