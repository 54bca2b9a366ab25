"""The transcript around a turn: what the agent remembers is offloaded before its state is saved."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from workspace_session.bridge import in_thread
from workspace_session.errors import SessionDeleted
from workspace_session.harness.calling import call
from workspace_session.harness.context import BoundContext
from workspace_session.harness.flush import offload
from workspace_session.harness.manager import note_facts
from workspace_session.harness.messages import as_message

Usage = dict[str, Any]

_INPUT = ("input_tokens", "inputTokens", "prompt_tokens")
_OUTPUT = ("output_tokens", "outputTokens", "completion_tokens")


class MemoryFlushHook:
    """Offloads the conversation, counts what it has cost, and says how the turn has ended."""

    order = 200

    async def before_call(self, ctx: BoundContext, message: Any) -> None:  # noqa: ARG002
        """Find the tool calls that no result was stored for."""
        ctx.dangling_tool_calls = tuple(await in_thread(ctx.tree.dangling_tool_calls))

    async def after_call(self, ctx: BoundContext, message: Any, reply: Any) -> None:  # noqa: ARG002
        """The turn has ended well."""
        await self.flush(ctx, end_reason=None, usage=usage_of(reply))

    async def on_error(self, ctx: BoundContext, message: Any, error: BaseException) -> None:  # noqa: ARG002
        """It has not, and what was said until then is stored as well."""
        cancelled = isinstance(error, asyncio.CancelledError)
        await self.flush(ctx, end_reason="cancelled" if cancelled else "error")

    async def flush(
        self, ctx: BoundContext, *, end_reason: str | None, usage: Usage | None = None
    ) -> None:
        """Offload, count, and write the index."""
        messages = [as_message(message) for message in await call(ctx.source.get_messages)]
        await in_thread(_write, ctx, messages, usage, end_reason)


def _write(
    ctx: BoundContext, messages: Sequence[Any], usage: Usage | None, end_reason: str | None
) -> None:
    try:
        offload(ctx.tree, messages, ctx)
    except SessionDeleted:  # while the agent ran: what it has said begins a new one
        del ctx.tree
        offload(ctx.tree, messages, ctx)
    if usage is not None:
        ctx.tree.add_usage(**usage)
    if end_reason is not None or ctx.tree.exists():
        note_facts(ctx.agent, ctx.tree, {"end_reason": end_reason})


def usage_of(reply: Any) -> Usage | None:
    """What a reply says it has cost, in any of the usual names; None when it says nothing."""
    said = _member(reply, "usage")
    counts = {
        "input_tokens": _number(said, int, *_INPUT),
        "output_tokens": _number(said, int, *_OUTPUT),
        "cost": _number(said, float, "cost"),
    }
    return counts if any(counts.values()) else None


def _number(said: Any, kind: type, *names: str) -> Any:
    for name in names:
        found = _member(said, name)
        if isinstance(found, int | float) and not isinstance(found, bool) and 0 <= found < 2**63:
            return kind(found)
    return kind()


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
