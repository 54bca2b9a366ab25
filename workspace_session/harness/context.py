"""Who is speaking, in which session: what a turn is given, and what binding makes of it.

A `RuntimeContext` says only what the caller knows, and is never changed. The `BoundContext` of a turn
has everything filled in, lives as long as the turn, and is what `current_context()` gives inside of it.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from workspace_session.agent import AgentWorkspace
from workspace_session.files.session_tree import SessionTree
from workspace_session.harness.sources import OwnMessages
from workspace_session.workspace import Workspace

Messages = list[Any]


@dataclass(frozen=True)
class RuntimeContext:
    """Whose turn it is; what is None is filled in by binding. `metadata` is never stored."""

    session_id: str | None = None
    user_id: str | None = None
    session: Any = field(default=None, hash=False)
    session_key: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class ChildContext(RuntimeContext):
    """A context for a session that another one has started."""

    parent_session: str | None = None


class BoundContext(RuntimeContext):
    """The context of one turn.

    Hooks fill in `workspace_prompt` and `dangling_tool_calls` before the agent runs, and may keep in
    `kept` what they want to find again after it has.
    """

    session_id: str
    session_key: str

    def __init__(
        self,
        given: RuntimeContext,
        *,
        workspace: Workspace,
        agent_id: str,
        namespace: tuple[str, ...],
        session: Any,
        session_id: str,
        session_key: str,
    ) -> None:
        super().__init__(session_id, given.user_id, session, session_key, given.metadata)
        self.given = given
        self.workspace = workspace
        self.agent_id = agent_id
        self.namespace = namespace
        self.parent_session = given.parent_session if isinstance(given, ChildContext) else None
        self.modules: Mapping[str, object] = {}
        self.workspace_prompt = ""
        self.dangling_tool_calls: tuple[str, ...] = ()
        self.kept: dict[object, Any] = {}
        # Of the harness: the states that modules begin with, where the conversation is, what notes
        # are taken with, and what the two methods below do.
        self.initial: Mapping[str, Any] = {}
        self.source: Any = OwnMessages()
        self.harness: object = None
        self.extract: Callable[..., Any] | None = None
        self.on_reasoning: Callable[[Sequence[Any]], Awaitable[Messages]] = _as_they_are
        self.on_compact: Callable[[Sequence[Any], bool], Awaitable[Messages]] = _as_they_are

    def __repr__(self) -> str:
        return (
            f"BoundContext(agent_id={self.agent_id!r}, session_id={self.session_id!r}, "
            f"session_key={self.session_key!r}, namespace={self.namespace!r})"
        )

    @cached_property
    def agent(self) -> AgentWorkspace:
        """The agent's part of the workspace, in the namespace of this turn."""
        return self.workspace.agent(self.agent_id, namespace=self.namespace)

    @cached_property
    def tree(self) -> SessionTree:
        """The transcript of the session."""
        return self.agent.tree(self.session_id)

    @property
    def turn_keys(self) -> list[Hashable]:
        """What its turn queues under: the session, and its state where that goes by another name."""
        place = (os.fspath(self.workspace.root), self.namespace, self.agent_id)
        return [(*place, self.session_id), (*place, self.session_key)]

    async def before_reasoning(self, messages: Sequence[Any]) -> Messages:
        """What to show the model: to be called before each further call of it."""
        return await self.on_reasoning(messages)

    async def compact(self, messages: Sequence[Any], force: bool = False) -> Messages:
        """A shorter list, if one is due or, with `force`, if one can be made."""
        return await self.on_compact(messages, force)

    def child(self, session_id: str | None = None) -> RuntimeContext:
        """A context of the same user for a session that this one starts."""
        return ChildContext(
            session_id=f"sub-{uuid.uuid4()}" if session_id is None else session_id,
            user_id=self.user_id,
            session=self.given.session,
            metadata=self.metadata,
            parent_session=self.session_id,
        )


async def _as_they_are(messages: Sequence[Any], _force: bool = False) -> Messages:
    return list(messages)


_current: ContextVar[BoundContext | None] = ContextVar("current_context", default=None)


def current_context() -> BoundContext | None:
    """The context of the turn that the running code is part of, or None outside of one."""
    return _current.get()


@contextmanager
def made_current(ctx: BoundContext) -> Iterator[None]:
    """Make a context the current one for the length of a `with` block."""
    token = _current.set(ctx)
    try:
        yield
    finally:
        _current.reset(token)
