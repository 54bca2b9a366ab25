"""Events: what was done through a session, told after it was stored and outside every lock.

A listener that fails is logged; the write stands, the call succeeds and later listeners still run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from workspace_session.model.canonical import compact
from workspace_session.session import arguments
from workspace_session.session.calling import call
from workspace_session.session.values import SessionEvent

logger = logging.getLogger("workspace_session")

Listener = Callable[[SessionEvent], Any]


class Events:
    """The listeners of one session, and the broadcast of its agent."""

    def __init__(self, broadcast: Callable[[], Callable[[str], Any] | None]) -> None:
        self._broadcast = broadcast  # asked each time: an agent may get one at any moment
        self._listeners: dict[object, Listener] = {}  # the same function may subscribe twice

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add a listener; call what comes back to remove it."""
        key = object()
        self._listeners[key] = arguments.function("a listener", listener)

        def unsubscribe() -> None:
            self._listeners.pop(key, None)

        return unsubscribe

    def has_listeners(self) -> bool:
        """Whether anybody is told of what is done."""
        return bool(self._listeners)

    def wants_status(self) -> bool:
        """Whether anybody would hear of a status."""
        return self.has_listeners() or self._broadcast() is not None

    async def emit(self, kind: str, session_id: str, **data: Any) -> None:
        """Tell everybody."""
        event = SessionEvent(kind, session_id, data)
        for key in list(self._listeners):
            if (listener := self._listeners.get(key)) is not None:  # None: unsubscribed meanwhile
                await self._tell(listener, event)
        if kind in ("status", "error") and (broadcast := self._broadcast()) is not None:
            await self._tell(broadcast, _as_text(event))

    @staticmethod
    async def _tell(listener: Callable[[Any], Any], what: object) -> None:
        try:
            await call(listener, what)
        except Exception:
            logger.exception("a listener of a session failed")


def _as_text(event: SessionEvent) -> str:
    if event.type == "error":
        wire = {"type": "session_error", "sessionId": event.session_id, **event.data}
    else:
        wire = {
            "type": "session_status",
            "sessionId": event.session_id,
            "phase": event.data["phase"],
            "tokenEstimate": event.data["token_estimate"],
            "tokenThreshold": event.data["token_threshold"],
        }
        if "compacted" in event.data:
            wire["compacted"] = {"tokensBefore": event.data["compacted"]["tokens_before"]}
    return compact(wire).decode()
