"""The state of an agent: one value in a state store, under the key `agent_state`.

A state object remembers what it has last been in the store, so that a later save knows what both sides
have grown from when somebody else has saved meanwhile.
"""

from __future__ import annotations

import weakref
from typing import Any, TypeVar

from workspace_session import ABSENT, StateLoadFailed, Versioned
from workspace_session.files.modules import take_state
from workspace_session.files.state_bytes import Etag
from workspace_session.files.state_store import StateStore
from workspace_session.harness.conflicts import NOTHING

KEY = "agent_state"

S = TypeVar("S")

_grown_from: dict[tuple[int, str], Versioned] = {}  # by identity and by the session's key


def load_agent_state(store: StateStore, session_key: str, kind: type[S]) -> S:
    """The stored state of a session, or a new one of its name; `kind` is `AgentState`."""
    found = store.get_versioned(session_key, KEY)
    if found.etag is ABSENT:
        return kind(session_id=session_key)  # type: ignore[call-arg]
    try:
        state: S = kind.model_validate(found.value)  # type: ignore[attr-defined]
    except ValueError as error:
        raise StateLoadFailed(KEY) from error
    remember(state, session_key, found)
    return state


def save_agent_state(
    store: StateStore, session_key: str, state: Any, if_match: Etag | None = None
) -> str:
    """Store a state; the etag of what was written."""
    taken = take_state(KEY, state)
    etag = store.save(session_key, KEY, taken, if_match=if_match)
    remember(state, session_key, Versioned(taken, etag))
    return etag


def remember(state: Any, session_key: str, found: Versioned) -> None:
    """Note what a state object is in the store."""
    place = (id(state), session_key)
    if place not in _grown_from:
        weakref.finalize(state, _grown_from.pop, place, None).atexit = False
    _grown_from[place] = found


def grown_from(state: Any, session_key: str) -> Versioned:
    """What a state object has last been in the store; nothing, for one that never was."""
    return _grown_from.get((id(state), session_key), NOTHING)
