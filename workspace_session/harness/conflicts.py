"""Conflict policies: what happens when somebody else has saved the state of a session meanwhile.

To overwrite is to ignore it, to fail is to say so, to merge is to save what both sides say: against what
was loaded, and under the etags of what is there, so that nobody is overwritten unseen.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from workspace_session.errors import StateConflict
from workspace_session.files.state import ABSENT, StateStore, Versioned
from workspace_session.model.merge import MISSING, merge_states

NOTHING = Versioned(MISSING, ABSENT)
_ROUNDS = 5


class ConflictPolicy(Enum):
    """What a turn does when the state it has loaded is not the newest any more."""

    OVERWRITE = "overwrite"
    FAIL = "fail"
    MERGE = "merge"


class TakenState:
    """The state of a module, taken: a module that has it and wants no other."""

    def __init__(self, state: Any = None) -> None:
        self._state = state

    def state_dict(self) -> Any:
        """The state."""
        return self._state

    def load_state_dict(self, state: Any) -> None:
        """What is stored is looked at by those who ask for it."""


def load_states(
    store: StateStore, session_key: str, names: Mapping[str, object]
) -> dict[str, Versioned]:
    """What is stored under some names, read at one moment; `MISSING` and `ABSENT` for what is not."""
    found = store.load_versioned(session_key, {name: TakenState() for name in names}) or {}
    there = {name: one for name, one in found.items() if one.etag is not ABSENT}
    return {name: there.get(name, NOTHING) for name in names}


def save_states(
    store: StateStore,
    session_key: str,
    states: Mapping[str, Any],
    loaded: Mapping[str, Versioned],
    policy: ConflictPolicy,
) -> None:
    """Save states of which `loaded` is what they grew from, and the etags that it had."""
    modules = {name: TakenState(state) for name, state in states.items()}
    if policy is ConflictPolicy.OVERWRITE:
        store.save_to(session_key, modules)
        return
    base = {name: loaded.get(name, NOTHING) for name in states}
    theirs = base
    for rounds_left in reversed(range(_ROUNDS + 1)):
        etags = {name: found.etag for name, found in theirs.items()}
        try:
            store.save_to(session_key, modules, if_match=etags)
            return
        except StateConflict:
            if policy is ConflictPolicy.FAIL or not rounds_left:
                raise
        theirs = load_states(store, session_key, states)
        modules = {
            name: TakenState(_merged(base[name], state, theirs[name], session_key, name))
            for name, state in states.items()
        }


def _merged(base: Versioned, ours: Any, theirs: Versioned, session_key: str, key: str) -> Any:
    if theirs.etag is ABSENT:  # the session was deleted: what the turn has made is all there is
        return ours
    return merge_states(base.value, ours, theirs.value, session_key=session_key, key=key).value
