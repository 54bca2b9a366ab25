"""Agents: what a harness wraps, and which of its parts have state.

An agent is a callable or has a `call`; it may have a `stream`. One that is built for each turn shares
nothing with other turns; the modules of any other are given the state of the session, turn by turn.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from workspace_session.files.modules import check_modules, is_module, take_state
from workspace_session.harness.calling import call_out, events_of, takes
from workspace_session.harness.context import BoundContext
from workspace_session.harness.sources import source_of

_PARTS = ("memory", "toolkit", "plan_notebook")


@dataclass(frozen=True)
class PerCall:
    """An agent that is built for each turn: `factory(ctx)` gives it and its modules."""

    factory: Callable[[BoundContext], Any]

    def __post_init__(self) -> None:
        if not callable(self.factory):
            raise TypeError(f"a factory is called with a context, and {self.factory!r} cannot be")

    async def built(self, ctx: BoundContext) -> Wrapped:
        """The agent of a turn."""
        found = await call_out(self.factory, ctx)
        if not isinstance(found, tuple) or len(found) != 2:
            raise TypeError("a factory gives an agent and its modules, as a pair")
        return Wrapped.of(*found)


@dataclass(frozen=True)
class Wrapped:
    """An agent and its modules, with the states that these begin with."""

    agent: Any
    modules: Mapping[str, object]
    initial: Mapping[str, Any]

    @classmethod
    def of(cls, agent: Any, modules: Mapping[str, object] | None) -> Wrapped:
        """An agent; without modules, those that it shows to have."""
        if not callable(agent) and not callable(getattr(agent, "call", None)):
            raise TypeError(f"an agent is a callable or has a call, and {agent!r} is neither")
        modules = dict(modules_of(agent) if modules is None else modules)
        check_modules(modules)
        initial = {name: take_state(name, module) for name, module in modules.items()}
        return cls(agent, modules, initial)

    def source(self) -> Any:
        """Where the conversation is, as far as the memory tells."""
        return source_of(self.modules.get("memory"))

    async def call(self, message: Any, ctx: BoundContext) -> Any:
        """The answer."""
        found = await self._asked("call", message, ctx)
        if not inspect.isasyncgen(found):
            return found
        events = Events()  # of an agent that can only stream
        async for event in events_of(found):
            events.add(event)
        return events.reply

    async def stream(self, message: Any, ctx: BoundContext) -> AsyncGenerator[Any]:
        """The answer, bit by bit, as far as the agent gives it so."""
        found = await self._asked("stream", message, ctx)
        async for event in events_of(found):
            yield event

    async def _asked(self, name: str, message: Any, ctx: BoundContext) -> Any:
        method = getattr(self.agent, name, None) or getattr(self.agent, "call", None) or self.agent
        if takes(method, "ctx"):
            return await call_out(method, message, ctx=ctx)
        return await call_out(method, message)


class Events:
    """What a stream has given so far, as the one reply that it amounts to."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._message: Any = None
        self._last: Any = None

    def add(self, event: Any) -> None:
        """Take an event in."""
        self._last = event
        if isinstance(event, str):
            self._texts.append(event)
        elif event.get("role") if isinstance(event, Mapping) else getattr(event, "role", None):
            self._message = event

    @property
    def reply(self) -> Any:
        """The last event that is a message, else the texts as one, else the last event."""
        if self._message is not None:
            return self._message
        return "".join(self._texts) if self._texts else self._last


def modules_of(agent: Any) -> dict[str, object]:
    """The parts of an agent that have state, else the agent itself, if it has."""
    parts = {name: getattr(agent, name, None) for name in _PARTS}
    found = {name: part for name, part in parts.items() if is_module(part)}
    return found or ({"agent": agent} if is_module(agent) else {})
