"""A middleware that saves what an agent has said and become, in a turn of the session.

The transcript comes first: after a crash between the two it knows more than the state. `agent.state` is
never changed: what others have saved meanwhile is merged in the store, and comes to an agent when its
state is loaded again.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any

from agentscope.message import Msg
from agentscope.middleware import MiddlewareBase

from workspace_session import (
    ConflictPolicy,
    RuntimeContext,
    Versioned,
    Workspace,
)
from workspace_session.adapters.agentscope_v2.conversation import Context, dumped
from workspace_session.adapters.agentscope_v2.state import KEY, grown_from, remember
from workspace_session.bridge import ended, in_thread, seen_through
from workspace_session.files.modules import take_state
from workspace_session.files.state_bytes import render_value
from workspace_session.harness.binding import bind
from workspace_session.harness.channel import Channel
from workspace_session.harness.conflicts import save_states
from workspace_session.harness.context import BoundContext, made_current
from workspace_session.harness.flushing import MemoryFlushHook, Usage, usage_of
from workspace_session.harness.turns import turn_of
from workspace_session.harness.unsaved import not_saved, tell

_END_REASONS = {"interrupted": "cancelled", "error": "error"}


class PersistenceMiddleware(MiddlewareBase):
    """Saves the conversation and the state of an agent when a reply has ended, however it has."""

    def __init__(
        self,
        workspace: Workspace | str | os.PathLike[str],
        user_id: str | None = None,
        conflict_policy: ConflictPolicy = ConflictPolicy.MERGE,
    ) -> None:
        self.workspace = workspace if isinstance(workspace, Workspace) else Workspace(workspace)
        self.user_id = user_id
        self.conflict_policy = ConflictPolicy(conflict_policy)

    async def on_reply(
        self, agent: Any, input_kwargs: dict[str, Any], next_handler: Callable[..., Any]
    ) -> AsyncGenerator[Any]:
        """Pass on every event of a reply; then save."""
        given = RuntimeContext(session_id=agent.state.session_id, user_id=self.user_id)
        ctx = bind(given, workspace=self.workspace, agent_id=agent.name)
        channel = Channel()
        work = self._turn(ctx, agent, channel, partial(next_handler, **input_kwargs))
        task = channel.closed_by(asyncio.get_running_loop().create_task(work))
        try:
            while await _has_more(channel, task):
                yield channel.item
            await task
        finally:
            if not task.done():  # whoever reads has had enough
                task.cancel()
                await ended(task)

    async def _turn(
        self, ctx: BoundContext, agent: Any, channel: Channel, reply_of: Callable[[], Any]
    ) -> None:
        """The turn has a task of its own: a stream that nobody reads any more ends with its loop."""
        async with turn_of(ctx.turn_keys, session_id=ctx.session_id):
            with made_current(ctx):
                reply, finished, costs = None, "", _costs(agent)
                try:
                    async with aclosing(reply_of()) as events:
                        async for event in events:
                            reply = event if isinstance(event, Msg) else reply
                            finished = getattr(event, "finished_reason", finished)
                            await channel.send(event)
                except BaseException as error:
                    await seen_through(self._failed(ctx, agent, costs, error))
                    raise
                end_reason = _END_REASONS.get(finished)
                errors = await seen_through(self._save(ctx, agent, costs, end_reason))
                if errors:
                    raise not_saved(reply, errors) from errors[0]

    async def _failed(
        self, ctx: BoundContext, agent: Any, costs: Mapping[str, Usage], error: BaseException
    ) -> None:
        stopped = isinstance(error, asyncio.CancelledError)
        end_reason = "cancelled" if stopped else "error"
        tell(ctx, error, await self._save(ctx, agent, costs, end_reason))

    async def _save(
        self, ctx: BoundContext, agent: Any, costs: Mapping[str, Usage], end_reason: str | None
    ) -> list[Exception]:
        """The transcript, then the state; what went wrong with the one does not stop the other."""
        errors: list[Exception] = []
        state = agent.state
        try:
            ctx.source = Context(ctx.tree, [dumped(message) for message in state.context])
            usage = _spent(costs, _costs(agent))
            await MemoryFlushHook().flush(ctx, end_reason=end_reason, usage=usage)
        except Exception as error:
            errors.append(error)
        try:
            await self._save_state(ctx, state)
        except Exception as error:
            errors.append(error)
        return errors

    async def _save_state(self, ctx: BoundContext, state: Any) -> None:
        taken = take_state(KEY, state)
        before = grown_from(state, ctx.session_key)
        await in_thread(
            save_states,
            ctx.session,
            ctx.session_key,
            {KEY: taken},
            {KEY: before},
            self.conflict_policy,
        )
        # Where it was merged, the store has another etag, and the next turn is merged against this.
        remember(state, ctx.session_key, Versioned(taken, render_value(taken).etag))


async def _has_more(channel: Channel, task: asyncio.Task[Any]) -> bool:
    """Wait for the next event. To be cancelled is for the agent, which may have more to say of it."""
    while True:
        try:
            return await channel.has_more()
        except asyncio.CancelledError:
            if task.done():
                raise
            task.cancel()


def _costs(agent: Any) -> dict[str, Usage]:
    """What each message has cost so far: a reply that waited for its user goes on, and counts on."""
    found = {message.id: usage_of(message) for message in agent.state.context}
    return {message_id: usage for message_id, usage in found.items() if usage is not None}


def _spent(before: Mapping[str, Usage], after: Mapping[str, Usage]) -> Usage | None:
    """What was spent between two moments; None for nothing."""
    total: Usage = {}
    for message_id, usage in after.items():
        known = before.get(message_id, {})
        for name, count in usage.items():
            total[name] = total.get(name, 0) + max(count - known.get(name, 0), 0)
    return total if any(total.values()) else None
