"""Who is speaking, in which session: what a turn is given, and what it makes of that.

A `RuntimeContext` says only what the caller knows, and is never changed. Binding makes a `BoundContext`
of it, with everything filled in, which lives as long as the turn and is what `current_context()` gives
inside of one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workspace_session.workspace import Workspace

Messages = list[Any]
Think = Callable[["BoundContext", Sequence[Any]], Awaitable[Messages]]


@dataclass(frozen=True)
class RuntimeContext:
    """Whose turn it is; what is None is filled in by binding. `metadata` is never stored."""

    session_id: str | None = None
    user_id: str | None = None
    session: Any = field(default=None, compare=False)
    session_key: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class ChildContext(RuntimeContext):
    """A context for a session that another one has started."""

    parent_session: str | None = None


class BoundContext(RuntimeContext):
    """The context of one turn.

    `workspace_prompt` and `dangling_tool_calls` are filled in by hooks before the agent runs; `notes` is
    a dictionary for hooks that have something to remember until it has.
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
        self.notes: dict[object, Any] = {}
