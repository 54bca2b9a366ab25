"""AgentScope 1.x: a session that keeps the states of its modules in a state store.

One state file for each module, so that what two programs save of one session stays apart. Modules are
asked for their states, and given them, where the caller runs; only files are touched elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from workspace_session import ABSENT, JsonSession
from workspace_session.bridge import in_thread
from workspace_session.files.modules import check_modules, copy_of, load_module, take_state
from workspace_session.files.state_store import StateStore
from workspace_session.harness.conflicts import TakenState

try:
    from agentscope.session import SessionBase
except ImportError as error:
    raise ImportError(
        "AgentScope 1.x cannot be imported: pip install 'workspace-session[agentscope-v1]'"
    ) from error


class AgentScopeSession(SessionBase):
    """What AgentScope calls a session, on a state store, or on the one at a directory."""

    def __init__(self, store_or_path: StateStore | str | os.PathLike[str]) -> None:
        if not isinstance(store_or_path, StateStore):
            store_or_path = JsonSession(store_or_path)
        self.store: StateStore = store_or_path

    async def save_session_state(self, session_id: str, user_id: str = "", **modules: Any) -> None:
        """Save the states that modules have now; those of other modules stay."""
        check_modules(modules)
        taken = {name: TakenState(take_state(name, module)) for name, module in modules.items()}
        await in_thread(self._store(user_id).save_to, session_id, taken)

    async def load_session_state(
        self, session_id: str, user_id: str = "", allow_not_exist: bool = True, **modules: Any
    ) -> None:
        """Give modules the states that are stored for them; others are left alone."""
        check_modules(modules)
        looked_at = {name: TakenState() for name in modules}
        found = await in_thread(self._store(user_id).load_versioned, session_id, looked_at)
        if found is None:
            _absent(session_id, allow_not_exist)
        for name, stored in (found or {}).items():
            if stored.etag is not ABSENT:
                load_module(name, modules[name], stored.value)

    async def update_session_state(
        self,
        session_id: str,
        key: str | Sequence[str],
        value: Any,
        user_id: str = "",
        create_if_not_exist: bool = True,
    ) -> None:
        """Set one member of a stored state.

        `key` is `module.member.member`, or the same as a sequence, where names may hold dots. What
        is missing on the way, or is no object, becomes an object.
        """
        steps = _steps(key)
        await in_thread(
            _update, self._store(user_id), session_id, steps, copy_of(value), create_if_not_exist
        )

    async def get_session_state_dict(
        self, session_id: str, user_id: str = "", allow_not_exist: bool = True
    ) -> dict[str, Any]:
        """The states of all modules, by name."""
        states = await in_thread(_states, self._store(user_id), session_id)
        if not states:
            _absent(session_id, allow_not_exist)
        return states

    def _store(self, user_id: str) -> StateStore:
        return self.store.scoped((user_id,)) if user_id else self.store


def _absent(session_id: str, allowed: bool) -> None:
    if not allowed:
        raise ValueError(f"session does not exist: {session_id}")


def _steps(key: str | Sequence[str]) -> tuple[str, ...]:
    steps = tuple(key.split(".")) if isinstance(key, str) else tuple(key)
    if not steps or not steps[0] or (isinstance(key, str) and "" in steps):
        raise ValueError("the key of a state is empty, or a part of it is")
    if not all(isinstance(step, str) for step in steps):
        raise TypeError("the key of a state is a text or a sequence of texts")
    return steps


def _update(
    store: StateStore, session_id: str, steps: tuple[str, ...], value: Any, create: bool
) -> None:
    module, *members = steps
    with store.locked(session_id):
        if not create and not store.exists(session_id):
            _absent(session_id, allowed=False)
        state = store.get(session_id, module) if members else value
        if members:
            state = state if isinstance(state, dict) else {}
            _set(state, members, value)
        store.save(session_id, module, state)


def _set(state: dict[str, Any], members: list[str], value: Any) -> None:
    *way, last = members
    for step in way:
        inner = state.get(step)
        if not isinstance(inner, dict):
            inner = state[step] = {}
        state = inner
    state[last] = value


def _states(store: StateStore, session_id: str) -> dict[str, Any]:
    if not store.exists(session_id):  # without a lock file for what is not there
        return {}
    with store.locked(session_id):
        return {key: store.get(session_id, key) for key in store.list_keys(session_id)}
