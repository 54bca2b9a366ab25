"""Compaction around a turn: a long conversation gives way to a summary and its end.

The transcript loses nothing: what leaves the agent's memory has been offloaded, and the summary is one
more entry there. Whatever fails on the way leaves the conversation as it was, and the turn goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from workspace_session.bridge import in_thread
from workspace_session.harness.calling import call, call_out
from workspace_session.harness.context import BoundContext, Messages
from workspace_session.harness.flush import offload
from workspace_session.harness.messages import as_message
from workspace_session.harness.notes import extract_notes
from workspace_session.model import entries
from workspace_session.model.blocks import ToolResult
from workspace_session.model.messages import blocks, role, tool_calls, tool_results
from workspace_session.model.offloading import OVERLAY_PREFIX, is_summary
from workspace_session.model.tokens import estimate_message_tokens

logger = logging.getLogger("workspace_session")

Message = Any  # a mapping, as it is stored


class CompactionHook:
    """Puts a summary in the place of all but the end, once there are too many messages or tokens.

    `summarize(messages, previous_summary)` is sync or async, and gets messages as they are stored.
    """

    order = 300

    def __init__(
        self,
        summarize: Callable[..., Any],
        max_messages: int | None = 50,
        max_tokens: int | None = 80_000,
        keep_last: int = 20,
        count_tokens: Callable[[list[Any]], int] = estimate_message_tokens,
    ) -> None:
        if not callable(summarize):
            raise TypeError("summarize is a function of messages and the summary before")
        for name, limit in (("max_messages", max_messages), ("max_tokens", max_tokens)):
            if limit is not None and not (isinstance(limit, int) and limit >= 1):
                raise ValueError(f"{name} is at least 1, or None for no limit, not {limit!r}")
        if not isinstance(keep_last, int) or keep_last < 0:
            raise ValueError(f"keep_last is 0 or more, not {keep_last!r}")
        self._summarize = summarize
        self._max_messages = max_messages
        self._max_tokens = max_tokens
        self._keep_last = keep_last
        self._count_tokens = count_tokens

    async def before_reasoning(self, ctx: BoundContext, messages: Sequence[Any]) -> Messages:
        """A shorter list, when this one is too long."""
        return await self.compact(ctx, messages)

    async def compact(
        self, ctx: BoundContext, messages: Sequence[Any], force: bool = False
    ) -> Messages:
        """The same, and with `force` whatever its length."""
        stored = [as_message(message) for message in messages]
        if not (force or await self._is_too_long(stored)):
            return list(messages)
        start = tail_start(stored, self._keep_last)
        told = [message for message in stored[:start] if not is_summary(message.get("id"))]
        if not told:
            return list(messages)
        try:
            overlay = await self._summarized(ctx, stored, start, told)
            shorter = [summary_message(overlay), *messages[start:]]
            await call(ctx.source.set_messages, shorter)
        except Exception:
            logger.warning("session %r is not compacted", ctx.session_id, exc_info=True)
            return list(messages)
        return shorter

    async def _is_too_long(self, stored: list[Message]) -> bool:
        if self._max_messages is not None and len(stored) >= self._max_messages:
            return True
        return self._max_tokens is not None and self._count_tokens(stored) >= self._max_tokens

    async def _summarized(
        self, ctx: BoundContext, stored: list[Message], start: int, told: list[Message]
    ) -> entries.Compaction:
        await extract_notes(ctx, told)
        result = await in_thread(offload, ctx.tree, stored, ctx)
        first = await in_thread(_first_shown, ctx)
        previous = first.summary if isinstance(first, entries.Compaction) else None
        summary = await call_out(self._summarize, told, previous)
        if not isinstance(summary, str) or not summary.strip():
            raise ValueError("the summary is blank")
        from_id = first.from_id if isinstance(first, entries.Compaction) else first.id
        last = max(at for at in range(start) if not is_summary(stored[at].get("id")))
        overlay = await in_thread(ctx.tree.compact, summary, from_id, result.entry_ids[last])
        await in_thread(ctx.agent.index.put, ctx.session_id, ctx.tree)
        return overlay


def _first_shown(ctx: BoundContext) -> entries.Message | entries.Compaction:
    return ctx.tree.context()[0]


def summary_message(overlay: entries.Compaction) -> Message:
    """The summary as the message that takes the place of those it covers."""
    count = overlay.covers.messages
    return {
        "id": OVERLAY_PREFIX + overlay.id,
        "role": "user",
        "content": f"Summary of the earlier conversation ({count} messages):\n\n{overlay.summary}",
    }


def tail_start(messages: Sequence[Message], keep_last: int) -> int:
    """Where the end begins that stays: no call is parted from its result there."""
    start = max(0, len(messages) - keep_last)
    called: dict[str, int] = {}
    reaches: list[int] = []  # for each message, the earliest call that it has a result of
    for place, message in enumerate(messages):
        results = [called.get(result.call_id, place) for result in tool_results(message)]
        reaches.append(min(results, default=place))
        called |= {call.id: place for call in tool_calls(message)}
    place = len(messages)
    while place > start:
        place -= 1
        start = min(start, reaches[place])
        if 0 < start == place and _is_result(messages[place]):
            start -= 1
    return start


def _is_result(message: Message) -> bool:
    found = blocks(message)
    return role(message) == "tool" or (
        bool(found) and all(isinstance(block, ToolResult) for block in found)
    )
