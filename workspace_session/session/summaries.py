"""Summaries: a ready compaction function, and what a function of one's own needs.

The beginning and the end of a conversation stay as they are; what lies between is summarised together
with the summaries that its overlay will hide. No state is kept: earlier summaries are read from the
messages themselves, so they survive a restart.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from workspace_session.model.tokens import estimate_message_tokens
from workspace_session.session import arguments
from workspace_session.session.calling import call
from workspace_session.session.estimates import counted
from workspace_session.session.summary_prompt import summary_prompt, text_of
from workspace_session.session.tool_parts import align_backward, align_forward
from workspace_session.session.values import (
    CompactContext,
    CompactResult,
    SessionMessage,
    is_compaction_message,
)

Messages: TypeAlias = Sequence[SessionMessage]
CompactFunction: TypeAlias = Callable[..., Awaitable[CompactResult | None]]
Count: TypeAlias = Callable[[SessionMessage], Awaitable[int]]

_SMALLEST_BUDGET = 100

__all__ = ["absorbed_summaries", "create_compact_function", "summary_prompt", "tail_cut"]


def create_compact_function(
    *,
    summarize: Callable[[str], Any],
    protect_head: int = 3,
    tail_token_budget: float = 20_000,
    min_tail_messages: int = 2,
    token_counter: Callable[[list[SessionMessage]], Any] | None = None,
) -> CompactFunction:
    """A function for `on_compaction` that has `summarize(prompt)` sum up the middle."""
    arguments.function("summarize", summarize)
    arguments.count("protect_head", protect_head)
    arguments.number("tail_token_budget", tail_token_budget)
    arguments.count("min_tail_messages", min_tail_messages)
    if token_counter is not None:
        arguments.function("a token_counter", token_counter)

    async def compact(
        messages: Messages, context: CompactContext | None = None
    ) -> CompactResult | None:
        if len(messages) <= protect_head + min_tail_messages:
            return None
        count = _counter(token_counter, context)
        start = align_forward(messages, protect_head)
        cut = await tail_cut(messages, start, tail_token_budget, min_tail_messages, count)
        end = align_backward(messages, cut)
        real = [one for one in messages[start:end] if not is_compaction_message(one)]
        if not real:
            return None
        return await summarised(messages, real, summarize)

    return compact


async def summarised(
    messages: Messages, real: Messages, summarize: Callable[[str], Any]
) -> CompactResult | None:
    """What `summarize` makes of some of the messages; None when that is nothing."""
    first, last = real[0]["id"], real[-1]["id"]
    budget = max(_SMALLEST_BUDGET, estimate_message_tokens(real) // 5)
    prompt = summary_prompt(real, absorbed_summaries(messages, first, last), budget)
    summary = await call(summarize, prompt)
    if summary is None or (isinstance(summary, str) and not summary.strip()):
        return None
    if not isinstance(summary, str):
        raise TypeError(f"summarize gave {type(summary).__name__}, not text")
    return CompactResult(summary, first, last)


def absorbed_summaries(messages: Messages, from_id: str, to_id: str) -> list[str]:
    """The summaries that an overlay over this range would hide, oldest first.

    Those inside the range, and the unbroken run just before it: an overlay is stored from the start
    of that run on. A range that is not in `messages` hides none.
    """
    places = {message["id"]: place for place, message in enumerate(messages)}
    if from_id not in places or to_id not in places:
        return []
    start = places[from_id]
    while start > 0 and is_compaction_message(messages[start - 1]):
        start -= 1
    hidden = messages[start : places[to_id] + 1] if places[from_id] <= places[to_id] else []
    return [text_of(message) for message in hidden if is_compaction_message(message)]


async def tail_cut(
    messages: Messages, start: int, budget: float, min_tail_messages: int, count: Count
) -> int:
    """Where the tail begins that stays as it is: what fits the budget, but at least so many.

    The last message is part of it however large it is. Messages are counted from the end, and no
    more of them than it takes.
    """
    cut, total = len(messages), 0
    while cut > start:
        total += await count(messages[cut - 1])
        if total > budget and cut < len(messages):
            break
        cut -= 1
    least = len(messages) - min_tail_messages
    return min(cut, least) if least >= start else cut


def _counter(
    option: Callable[[list[SessionMessage]], Any] | None, context: CompactContext | None
) -> Count:
    """The function's own counter, else the session's, else the heuristic: for one message."""
    own = None if option is None else lambda given: option(list(given.messages))
    counter = own or getattr(context, "token_counter", None)

    async def count(message: SessionMessage) -> int:
        if counter is None:
            return estimate_message_tokens([message])
        return await counted(counter, [message])

    return count
