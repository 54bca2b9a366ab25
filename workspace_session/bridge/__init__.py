"""From coroutines to threads: the one place where the async rim meets the sync core."""

from workspace_session.bridge.calls import (
    at_once,
    ended,
    in_own_thread,
    in_passing,
    in_thread,
    seen_through,
)
from workspace_session.bridge.tree_calls import TreeCalls

__all__ = [
    "TreeCalls",
    "at_once",
    "ended",
    "in_own_thread",
    "in_passing",
    "in_thread",
    "seen_through",
]
