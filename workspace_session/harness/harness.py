"""The harness: wraps an agent so that one call loads, answers, and saves.

    bind ─▶ wait for the turn ─▶ load ─▶ the agent ─▶ transcript ─▶ state

What fails before the agent runs leaves nothing behind. What follows it is seen through, whatever
happens to the caller: the transcript first, so that after a crash it knows more than the state.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
)
from contextlib import aclosing
from functools import partial
from types import TracebackType
from typing import Any, Self

from workspace_session.bridge import ended, in_thread, seen_through
from workspace_session.errors import ReentrantCall
from workspace_session.files.modules import copy_of, load_module
from workspace_session.files.names import encode_id
from workspace_session.harness.agents import Events, PerCall, Wrapped
from workspace_session.harness.binding import bind
from workspace_session.harness.calling import call
from workspace_session.harness.channel import Channel
from workspace_session.harness.compaction import CompactionHook
from workspace_session.harness.conflicts import ConflictPolicy
from workspace_session.harness.context import (
    BoundContext,
    Messages,
    RuntimeContext,
    current_context,
    made_current,
)
from workspace_session.harness.flushing import MemoryFlushHook
from workspace_session.harness.gate import Gate
from workspace_session.harness.hooks import Hooks
from workspace_session.harness.messages import as_message
from workspace_session.harness.notes import extract_notes
from workspace_session.harness.persistence import SessionPersistenceHook
from workspace_session.harness.sources import OwnMessages, source_of
from workspace_session.harness.turns import turn_of
from workspace_session.harness.unsaved import not_saved, tell
from workspace_session.model.offloading import is_summary
from workspace_session.workspace import Workspace

logger = logging.getLogger("workspace_session")

Run = Callable[[Wrapped, BoundContext], Awaitable[Any]]


class Harness:
    """An agent with a memory that outlives the process, for any number of users and sessions."""

    def __init__(
        self,
        agent: Any,
        name: str,
        workspace: Workspace | str | os.PathLike[str],
        session: Any = None,
        *,
        modules: Mapping[str, object] | None = None,
        messages: Any = None,
        hooks: Iterable[Any] = (),
        without: Iterable[type] = (),
        conflict_policy: ConflictPolicy = ConflictPolicy.MERGE,
        summarize: Callable[..., Any] | None = None,
        extract: Callable[..., Any] | None = None,
    ) -> None:
        encode_id("agent", name)
        self.name = name
        self._own = None if isinstance(workspace, Workspace) else Workspace(workspace)
        self.workspace: Workspace = workspace if self._own is None else self._own  # type: ignore[assignment]
        self._session = session
        self._messages = messages
        self._extract = extract
        if isinstance(agent, PerCall) and modules is not None:
            raise TypeError("with PerCall, the factory gives the modules")
        if messages is not None and source_of(messages) is not messages:
            raise TypeError("a message source has get_messages and set_messages")
        if extract is not None and not callable(extract):
            raise TypeError("extract is a function of messages")
        self._per_call = agent
        self._wrapped = None if isinstance(agent, PerCall) else Wrapped.of(agent, modules)
        self._hooks = Hooks(
            hooks, without, conflict_policy=ConflictPolicy(conflict_policy), summarize=summarize
        )
        self._gate = Gate(name)

    def __repr__(self) -> str:
        return f"Harness({self.name!r})"

    # -- turns -------------------------------------------------------------------------------------

    async def call(self, message: Any, ctx: RuntimeContext | None = None) -> Any:
        """The agent's reply, and all that belongs to it stored."""
        bound = self._bind(ctx)
        return await self._turn(bound, message, partial(_answer, message))

    def call_sync(self, message: Any, ctx: RuntimeContext | None = None) -> Any:
        """The same for a synchronous program."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.call(message, ctx))
        raise RuntimeError("call_sync() would block the event loop that is running: await call()")

    def stream(self, message: Any, ctx: RuntimeContext | None = None) -> AsyncGenerator[Any]:
        """The agent's events as they come; the turn ends with the stream."""
        return self._stream(self._bind(ctx), message)

    async def _stream(self, ctx: BoundContext, message: Any) -> AsyncGenerator[Any]:
        channel = Channel()
        work = self._turn(ctx, message, partial(_stream, channel, message))
        task = channel.closed_by(asyncio.get_running_loop().create_task(work))
        try:
            while await channel.has_more():
                yield channel.item
            await task
        finally:
            if not task.done():
                task.cancel()
                await ended(task)

    async def end_session(self, ctx: RuntimeContext | None = None, reason: str = "ended") -> None:
        """Store what a session still has to say, take notes of it, and say why it ended."""
        if not isinstance(reason, str) or not reason:
            raise ValueError("a reason is a text that is not empty")
        bound = self._bind(ctx)
        with self._gate:
            async with self._turn_of(bound):
                if await in_thread(_is_there, bound):
                    await self._end(bound, reason)

    async def close(self) -> None:
        """Refuse new turns and wait for those that there are."""
        ctx = current_context()
        if ctx is not None and ctx.harness is self:
            raise ReentrantCall(ctx.session_id)
        await self._gate.close()
        if self._own is not None:
            await in_thread(self._own.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    # -- one turn ----------------------------------------------------------------------------------

    def _bind(self, given: RuntimeContext | None) -> BoundContext:
        ctx = bind(given, workspace=self.workspace, agent_id=self.name, session=self._session)
        ctx.harness = self
        ctx.extract = self._extract
        ctx.on_reasoning = partial(self._hooks.before_reasoning, ctx)
        if (compaction := self._hooks.of(CompactionHook)) is not None:
            ctx.on_compact = partial(compaction.compact, ctx)
        return ctx

    def _turn_of(self, ctx: BoundContext) -> Any:
        keys = ctx.turn_keys
        if self._wrapped is not None:  # objects that turns share have one state at a time
            keys += [id(module) for module in self._wrapped.modules.values()]
        return turn_of(keys, session_id=ctx.session_id)

    async def _turn(self, ctx: BoundContext, message: Any, run: Run) -> Any:
        with self._gate:
            async with self._turn_of(ctx):
                with made_current(ctx):
                    wrapped = await self._begun(ctx, message)
                    return await self._run(ctx, message, wrapped, run)

    async def _begun(self, ctx: BoundContext, message: Any) -> Wrapped:
        """The agent, with the state of the session; or an error, and everything as it was."""
        wrapped = await self._prepared(ctx)
        if isinstance(ctx.source, OwnMessages):
            ctx.source.add(message, "user")
        try:
            await self._hooks.before_call(ctx, message)
            await ctx.before_reasoning(list(await call(ctx.source.get_messages)))
        except BaseException:
            _reset(wrapped)
            raise
        return wrapped

    async def _prepared(self, ctx: BoundContext) -> Wrapped:
        wrapped = self._wrapped or await self._per_call.built(ctx)
        ctx.modules, ctx.initial = wrapped.modules, wrapped.initial
        ctx.source = wrapped.source() if self._messages is None else self._messages
        return wrapped

    async def _run(self, ctx: BoundContext, message: Any, wrapped: Wrapped, run: Run) -> Any:
        try:
            reply = await run(wrapped, ctx)
        except GeneratorExit:  # nothing can be awaited any more
            raise
        except BaseException as error:
            await seen_through(self._failed(ctx, message, error))
            raise
        if isinstance(ctx.source, OwnMessages) and reply is not None:
            ctx.source.add(reply, "assistant")
        errors: list[BaseException] = []
        closing = self._hooks.close("after_call", ctx, message, reply, errors)
        try:
            await seen_through(closing)
        except asyncio.CancelledError as error:
            tell(ctx, error, errors)
            raise
        if errors:
            raise not_saved(reply, errors) from errors[0]
        return reply

    async def _failed(self, ctx: BoundContext, message: Any, error: BaseException) -> None:
        errors: list[BaseException] = []
        await self._hooks.close("on_error", ctx, message, error, errors)
        tell(ctx, error, errors)

    async def _end(self, ctx: BoundContext, reason: str) -> None:
        persistence = self._hooks.of(SessionPersistenceHook)
        flush = self._hooks.of(MemoryFlushHook)
        with made_current(ctx):
            wrapped = await self._prepared(ctx)
            try:
                if persistence is not None:
                    await persistence.before_call(ctx, None)
            except BaseException:
                _reset(wrapped)
                raise
            if flush is not None:
                await flush.flush(ctx, end_reason=reason)
            await extract_notes(ctx, await _conversation(ctx))
            if persistence is not None:
                await persistence.after_call(ctx, None, None)


async def _answer(message: Any, wrapped: Wrapped, ctx: BoundContext) -> Any:
    return await wrapped.call(message, ctx)


async def _stream(channel: Channel, message: Any, wrapped: Wrapped, ctx: BoundContext) -> Any:
    events = Events()
    async with aclosing(wrapped.stream(message, ctx)) as stream:
        async for event in stream:
            events.add(event)
            await channel.send(event)
    return events.reply


def _reset(wrapped: Wrapped) -> None:
    """Give the modules back what they began with."""
    for name, module in wrapped.modules.items():
        try:
            load_module(name, module, copy_of(wrapped.initial[name]))
        except Exception:
            logger.exception("module %r does not take its own initial state", name)


def _is_there(ctx: BoundContext) -> bool:
    has_state = getattr(ctx.session, "exists", None)
    return ctx.tree.exists() or has_state is None or bool(has_state(ctx.session_key))


async def _conversation(ctx: BoundContext) -> Messages:
    """What notes are taken of at the end: what the agent remembers, else what was said."""
    found = list(await call(ctx.source.get_messages))
    if not found:
        found = await in_thread(ctx.tree.messages)
    stored = (as_message(message) for message in found)
    return [message for message in stored if not is_summary(message.get("id"))]
