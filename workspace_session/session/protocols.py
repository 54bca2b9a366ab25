"""What sessions need of the world: a provider for one session, a store for many.

Structural: nothing has to inherit from these. A provider stores and finds; overlays, message shapes,
prompts and events are the business of `Session`, the same for every provider.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from workspace_session.model.hits import SearchHit
from workspace_session.model.info import SessionInfo
from workspace_session.model.placing import LATEST, Parent
from workspace_session.session.values import AppendResult, Compaction, SessionMessage

Infos = list[SessionInfo]
Hits = list[SearchHit]

REQUIRED = (
    "get_message",
    "get_history",
    "get_latest_leaf",
    "get_branches",
    "get_path_length",
    "append_message",
    "update_message",
    "delete_messages",
    "clear_messages",
    "add_compaction",
    "get_compactions",
)


class SessionProvider(Protocol):
    """The storage of one session. `get_history` gives the raw path, without overlays.

    Methods may be sync as well. Optional, detected by presence: `session_id`, `set_leaf`,
    `search_messages`, `get_row_stats`, `get_recent_history`, `iter_messages` and `lock`.

    One whose `makes_ids` is true names messages without an id itself, and may have shortcuts:
    `get_context`, `get_context_tokens`, `get_mentions` and `compact_range` for what can be had cheaper
    than from the raw path, `is_deleted` if others can delete the session, and `identity`, the same for
    all providers of one session in a process. Without `makes_ids` these names mean nothing here.
    """

    async def get_message(self, message_id: str) -> SessionMessage | None: ...
    async def get_history(self, leaf_id: str | None = None) -> list[SessionMessage]: ...
    async def get_latest_leaf(self) -> SessionMessage | None: ...
    async def get_branches(self, message_id: str | None) -> list[SessionMessage]: ...
    async def get_path_length(self, leaf_id: str | None = None) -> int: ...
    async def append_message(
        self, message: SessionMessage, parent_id: Parent = LATEST
    ) -> AppendResult: ...
    async def update_message(self, message: SessionMessage) -> SessionMessage | None: ...
    async def delete_messages(self, message_ids: Sequence[str]) -> list[str]: ...
    async def clear_messages(self) -> None: ...
    async def add_compaction(self, summary: str, from_id: str, to_id: str) -> Compaction: ...
    async def get_compactions(self) -> list[Compaction]: ...


@runtime_checkable
class SessionStore(Protocol):
    """A place for the sessions of one agent and user; `Session` and `SessionManager` run on it."""

    def provider(self, session_id: str) -> Any:
        """The provider of a session, there or not. Nothing is read yet."""

    def block_provider(self, session: Any, label: str) -> Any:
        """Where a context block is kept that came without a provider.

        `session` is what `provider` gave, so that both go by one handle; None: for all sessions.
        """

    def prompt_provider(self, session: Any) -> Any:
        """Where a session's frozen prompt is kept; `session` is what `provider` gave."""

    async def create(self, session_id: str, **facts: Any) -> SessionInfo:
        """A new session without messages: `name`, `model`, `source`, `parent_session_id`."""

    async def exists(self, session_id: str) -> bool:
        """Whether there is a record of a session; cheaper than the record."""

    async def info(self, session_id: str) -> SessionInfo | None:
        """A session's record."""

    async def list(self) -> Infos:
        """All records, the one touched last first."""

    async def annotate(self, session_id: str, **facts: Any) -> SessionInfo:
        """Set facts of a session."""

    async def add_usage(
        self, session_id: str, input_tokens: int, output_tokens: int, cost: float
    ) -> SessionInfo:
        """Add to what a session has used."""

    async def delete(self, session_id: str) -> None:
        """Take a session away, all its parts at once; its handles raise `SessionDeleted`."""

    async def fork(
        self, session_id: str, at_message_id: str, new_id: str, **facts: Any
    ) -> SessionInfo:
        """A new session with the path to a message, its overlays and labels."""

    async def search(self, query: str, limit: int) -> Hits:
        """Hits in all sessions."""


def missing_methods(candidate: object) -> list[str]:
    """The required methods of a `SessionProvider` that an object lacks."""
    return [name for name in REQUIRED if not callable(getattr(candidate, name, None))]
