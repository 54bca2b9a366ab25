"""Calling what the application supplied: sync or async, an object's method or a mapping's."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

_NOT_CALLS = frozenset({"iter_messages", "lock"})  # what they give is iterated and entered


async def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of a callable, awaited when it can be."""
    result = function(*args, **kwargs)
    return await result if inspect.isawaitable(result) else result


def method(provider: object, name: str) -> Callable[..., Any] | None:
    """A provider's method: a callable attribute, or a callable member of a mapping."""
    found = provider.get(name) if isinstance(provider, Mapping) else getattr(provider, name, None)
    return found if callable(found) else None


class AwaitableProvider:
    """A session provider of the application's, every method of which can be awaited."""

    def __init__(self, provider: object) -> None:
        self._provider = provider

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._provider, name)
        return partial(call, found) if callable(found) and name not in _NOT_CALLS else found


async def listed(items: Any) -> list[Any]:
    """The items of an iterable of either kind, or of what gives one when awaited."""
    if inspect.isawaitable(items):
        items = await items
    if hasattr(items, "__aiter__"):
        return [item async for item in items]
    return list(items)
