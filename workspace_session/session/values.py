"""What the session API takes and gives: small frozen values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workspace_session.model.clock import as_time
from workspace_session.model.placing import LATEST, Parent

SessionMessage = dict[str, Any]
"""`{"id", "role", "parts", "createdAt"?, …}`; every further key comes back as it went in."""

SUMMARY_PREFIX = "compaction_"


@dataclass(frozen=True, slots=True)
class AppendResult:
    """The stored message, and whether this call stored it.

    A provider that knows what `LATEST` came to says so in `parent_id`, for events to tell.
    """

    message: SessionMessage
    inserted: bool
    parent_id: Parent = field(default=LATEST, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Compaction:
    """A stored overlay: a summary that stands in for a range of messages when history is read.

    A provider may tell that it is `retired`: one of its ends was deleted. Then it never applies
    again, though another message may have got that id since.
    """

    id: str
    summary: str
    from_message_id: str
    to_message_id: str
    created_at: str
    retired: bool = field(default=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.created_at, str):  # a driver may give a `datetime`
            object.__setattr__(self, "created_at", as_time(self.created_at))

    @property
    def from_id(self) -> str:
        """The first message it hides."""
        return self.from_message_id

    @property
    def to_id(self) -> str:
        """The last message it hides."""
        return self.to_message_id

    @property
    def message(self) -> SessionMessage:
        """The message that is shown in place of the range."""
        return {
            "id": SUMMARY_PREFIX + self.id,
            "role": "assistant",
            "parts": [{"type": "text", "text": self.summary}],
            "createdAt": self.created_at,
        }


@dataclass(frozen=True, slots=True)
class CompactResult:
    """What a compaction function gives: a summary of the messages from one to another."""

    summary: str
    from_message_id: str
    to_message_id: str


@dataclass(frozen=True, slots=True)
class TokenCountInput:
    """What a token counter is given."""

    messages: Sequence[SessionMessage]
    system_prompt: str = ""
    context_blocks: Sequence[ContextBlock] = ()


@dataclass(frozen=True, slots=True)
class CompactContext:
    """What a compaction function may use besides the messages: the session's counter, if it has one."""

    token_counter: Any = None


@dataclass(frozen=True, slots=True)
class RowStat:
    """One stored message without its content; `bytes` is its size as compact JSON."""

    id: str
    role: str
    bytes: int


@dataclass(frozen=True, slots=True)
class RecentHistory:
    """The end of the active path that fits a budget."""

    messages: list[SessionMessage]
    truncated: bool
    total_content_bytes: int


@dataclass(frozen=True, slots=True)
class ContextBlock:
    """A named part of the system prompt, as it is now."""

    label: str
    description: str | None = None
    content: str = ""
    tokens: int = 0
    max_tokens: int | None = None
    writable: bool = False
    is_skill: bool = False
    is_searchable: bool = False


@dataclass(frozen=True, slots=True)
class SessionEvent:
    """Something that was done through a `Session`, after it was stored."""

    type: str
    session_id: str
    data: Mapping[str, Any] = field(default_factory=dict)


def is_compaction_message(message: Mapping[str, Any]) -> bool:
    """Whether a message is a summary that an overlay put in the place of others."""
    message_id = message.get("id")
    return isinstance(message_id, str) and message_id.startswith(SUMMARY_PREFIX)
