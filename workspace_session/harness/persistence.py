"""State around a turn: loaded before the agent runs, saved after everything else."""

from __future__ import annotations

from typing import Any

from workspace_session.bridge import in_thread
from workspace_session.files.modules import copy_of, load_module, take_state
from workspace_session.files.state import StateStore
from workspace_session.harness.calling import call_out
from workspace_session.harness.conflicts import (
    NOTHING,
    ConflictPolicy,
    TakenState,
    load_states,
    save_states,
)
from workspace_session.harness.context import BoundContext
from workspace_session.model.merge import MISSING


class SessionPersistenceHook:
    """Gives the modules the state of the session, and saves what they have made of it."""

    order = 100

    def __init__(self, conflict_policy: ConflictPolicy = ConflictPolicy.MERGE) -> None:
        self.conflict_policy = ConflictPolicy(conflict_policy)

    async def before_call(self, ctx: BoundContext, message: Any) -> None:  # noqa: ARG002
        """Load the stored states; a module without one begins with its initial state."""
        store = ctx.session
        if not ctx.modules:
            return
        if not isinstance(store, StateStore):
            await call_out(store.load_if_exists, ctx.session_key, ctx.modules, initial=ctx.initial)
            return
        loaded = await in_thread(load_states, store, ctx.session_key, ctx.modules)
        for name, found in loaded.items():
            if found is NOTHING and name in ctx.initial:
                loaded[name] = NOTHING._replace(value=copy_of(ctx.initial[name]))
        ctx.kept[self] = loaded
        # Everything has been parsed before the first module is touched.
        for name, found in loaded.items():
            if found.value is not MISSING:
                load_module(name, ctx.modules[name], copy_of(found.value))

    async def after_call(self, ctx: BoundContext, message: Any, reply: Any) -> None:  # noqa: ARG002
        """Save the states under the conflict policy."""
        store = ctx.session
        if not ctx.modules:
            return
        # Taken here and not in a thread: the agent may have left tasks that go on.
        states = {name: take_state(name, module) for name, module in ctx.modules.items()}
        if isinstance(store, StateStore):
            loaded = ctx.kept.get(self, {})
            await in_thread(
                save_states, store, ctx.session_key, states, loaded, self.conflict_policy
            )
        else:
            modules = {name: TakenState(state) for name, state in states.items()}
            await call_out(store.save_to, ctx.session_key, modules)

    async def on_error(self, ctx: BoundContext, message: Any, error: BaseException) -> None:
        """The same: what an agent has done until it failed was done."""
        await self.after_call(ctx, message, error)
