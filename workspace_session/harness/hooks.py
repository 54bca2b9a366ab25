"""Hooks: what happens around an agent's turn, and in which order.

A hook has any of `before_call(ctx, message)`, `before_reasoning(ctx, messages) -> messages`,
`after_call(ctx, message, reply)` and `on_error(ctx, message, error)`, sync or async. By `order`, what is
before the agent runs upwards and what is after it downwards: what was loaded first is saved last. A hook
keeps nothing of a turn in itself, since many turns share it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from workspace_session.harness.calling import call
from workspace_session.harness.compaction import CompactionHook
from workspace_session.harness.conflicts import ConflictPolicy
from workspace_session.harness.context import BoundContext, Messages
from workspace_session.harness.flushing import MemoryFlushHook
from workspace_session.harness.persistence import SessionPersistenceHook
from workspace_session.harness.workspace_prompt import WorkspaceContextHook

METHODS = ("before_call", "before_reasoning", "after_call", "on_error")
_LAST = 500
_BUILT_IN = (SessionPersistenceHook, MemoryFlushHook, CompactionHook, WorkspaceContextHook)


class Hooks:
    """The hooks of a harness, in order."""

    def __init__(
        self,
        added: Iterable[Any],
        without: Iterable[type] | type,
        *,
        conflict_policy: ConflictPolicy,
        summarize: Callable[..., Any] | None,
    ) -> None:
        added, without = list(added), (without,) if isinstance(without, type) else tuple(without)
        for hook in added:
            if not any(callable(getattr(hook, name, None)) for name in METHODS):
                raise TypeError(f"{type(hook).__name__} is no hook: it has none of {METHODS}")
        defaults = [SessionPersistenceHook(conflict_policy), MemoryFlushHook()]
        defaults += [] if summarize is None else [CompactionHook(summarize)]
        defaults.append(WorkspaceContextHook())
        kept = [hook for hook in defaults if not _is_replaced(hook, added, without)]
        self._upwards = sorted([*kept, *added], key=lambda hook: getattr(hook, "order", _LAST))

    def of(self, kind: type) -> Any:
        """The hook of a kind, or None."""
        return next((hook for hook in self._upwards if isinstance(hook, kind)), None)

    async def before_call(self, ctx: BoundContext, message: Any) -> None:
        """Before the agent runs; the first failure ends it."""
        for method in self._methods("before_call"):
            await call(method, ctx, message)

    async def before_reasoning(self, ctx: BoundContext, messages: Sequence[Any]) -> Messages:
        """What to show the model; a hook that gives None leaves it as it is."""
        shown = list(messages)
        for method in self._methods("before_reasoning"):
            found = await call(method, ctx, shown)
            shown = shown if found is None else list(found)
        return shown

    async def close(
        self, name: str, ctx: BoundContext, message: Any, outcome: Any, failed: list[BaseException]
    ) -> None:
        """After the agent has run: every hook, whatever happens to others; `failed` gets what does."""
        for method in reversed(list(self._methods(name))):
            try:
                await call(method, ctx, message, outcome)
            except (Exception, asyncio.CancelledError) as error:
                failed.append(error)

    def _methods(self, name: str) -> Iterator[Callable[..., Any]]:
        methods = (getattr(hook, name, None) for hook in self._upwards)
        return (method for method in methods if callable(method))


def _is_replaced(hook: object, added: Sequence[object], without: tuple[type, ...]) -> bool:
    kind = next(kind for kind in _BUILT_IN if isinstance(hook, kind))
    return isinstance(hook, without) or any(isinstance(other, kind) for other in added)
