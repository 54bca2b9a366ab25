"""Compacting: asking a function for a summary and storing it as an overlay.

Whatever becomes hidden was in what the function was shown. The function runs outside every lock; what
it was shown is compared with what is there under the lock before anything is stored, so messages that
were appended meanwhile are never hidden.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Protocol

from workspace_session.session.calling import call
from workspace_session.session.shapes import Shown, as_messages
from workspace_session.session.values import (
    CompactContext,
    Compaction,
    CompactResult,
    SessionMessage,
)


class FunctionFailed(Exception):
    """The compaction function raised `error`."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class Store(Protocol):
    """Stores an overlay if up to its end there still is shown what was expected."""

    async def __call__(
        self, summary: str, from_id: str, to_id: str, expected: Sequence[str]
    ) -> Compaction | None: ...


async def compact_once(
    items: Sequence[Shown], function: Callable[..., Any], counter: Any, store: Store
) -> CompactResult | None:
    """Summarise a history; None when there was nothing to store.

    `FunctionFailed` when the function raised; anything else comes from storing.
    """
    if not items:
        return None
    messages = as_messages(items)
    ids = [message["id"] for message in messages]
    result = await _ask(function, messages, counter)
    if result is None:
        return None
    found = effective_range(items, ids, result)
    if found is None:
        return None
    start, expected = found
    overlay = await store(result.summary, start, result.to_message_id, expected)
    if overlay is None:
        return None
    return CompactResult(overlay.summary, overlay.from_message_id, overlay.to_message_id)


def effective_range(
    items: Sequence[Shown], ids: Sequence[str], result: CompactResult
) -> tuple[str, list[str]] | None:
    """Where the stored overlay starts, and the ids that must still be shown from there to its end.

    Summaries just before the range, and one that it starts with, are taken in: their overlays would
    else stand in front of the new one.
    """
    if result.to_message_id not in ids or result.from_message_id not in ids:
        return None
    end, start = ids.index(result.to_message_id), ids.index(result.from_message_id)
    if start > end or isinstance(items[end], Compaction):
        return None
    while start > 0 and isinstance(items[start - 1], Compaction):
        start -= 1
    first = items[start]
    from_id = first.from_message_id if isinstance(first, Compaction) else ids[start]
    return from_id, list(ids[start : end + 1])


async def _ask(
    function: Callable[..., Any], messages: list[SessionMessage], counter: Any
) -> CompactResult | None:
    try:
        arguments = (messages, CompactContext(counter)) if _takes_two(function) else (messages,)
        result = _as_result(await call(function, *arguments))
        return None if result is None or _is_blank(result.summary) else result
    except Exception as error:
        raise FunctionFailed(error) from error


def _as_result(outcome: object) -> CompactResult | None:
    if outcome is None or isinstance(outcome, CompactResult):
        return outcome
    if isinstance(outcome, Mapping):
        missing = [field.name for field in fields(CompactResult) if field.name not in outcome]
        if missing:
            raise TypeError(f"the mapping of a compaction function lacks {', '.join(missing)}")
        return CompactResult(
            outcome["summary"], outcome["from_message_id"], outcome["to_message_id"]
        )
    raise TypeError(f"a compaction function gives None or a CompactResult, not {outcome!r}")


def _is_blank(summary: object) -> bool:
    if summary is not None and not isinstance(summary, str):
        raise TypeError(f"a summary is a text, not {type(summary).__name__}")
    return not summary or not summary.strip()


def _takes_two(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return True  # a callable that does not tell: it gets all there is
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(positional) > 1 or any(p.kind is p.VAR_POSITIONAL for p in parameters)
