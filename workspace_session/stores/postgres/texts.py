"""What columns can hold: no NUL, no half of a character, in a key no more than an index can take.

Text is searched as far as a tsvector can take it; what is longer is stored whole all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workspace_session.errors import InvalidId, InvalidMessage
from workspace_session.files.names import encode_id, encode_namespace_part
from workspace_session.model import messages
from workspace_session.model.canonical import compact
from workspace_session.search.analysis import tokens

SEARCHABLE = 250_000  # bytes; a tsvector over 1 MB would fail the insert
_LONGEST_KEY = 800  # bytes; an index entry has room for 2,700, and up to three such keys


# -- keys ------------------------------------------------------------------------------------------


def session_key(user_id: str | None, agent_id: str, session_id: str) -> str:
    """The name of an agent's session in all tables: of no other user, agent or session.

    What can name nothing on files names nothing here.
    """
    if user_id is not None:
        encode_namespace_part(user_id)
    encode_id("agent", agent_id)
    encode_id("session", session_id)
    return compact([user_id, agent_id, session_id]).decode()


def check_key(kind: str, value: object) -> str:
    """A text that can be part of a primary key; `InvalidId` says why another cannot."""
    reason = _why_not_a_key(value)
    if reason is not None:
        raise InvalidId(kind, value, reason)
    assert isinstance(value, str)
    return value


def check_message_id(message_id: str) -> None:
    """See that an id can be that of a message."""
    reason = _why_not_a_key(message_id)
    if reason is not None:
        raise InvalidMessage(f"the id of a message for Postgres: {reason}")


def sought(value: object) -> str | None:
    """A text to be looked for; None, which nothing is equal to, for what no column can hold."""
    return value if isinstance(value, str) and _why_not_text(value) is None else None


def _why_not_a_key(value: object) -> str | None:
    if not isinstance(value, str):
        return "not a string"
    reason = _why_not_text(value)
    if reason is None and len(value.encode()) > _LONGEST_KEY:
        reason = f"too long (at most {_LONGEST_KEY} bytes)"
    return reason


def check_text(what: str, value: object) -> str:
    """A text that a column can hold; `ValueError` says why another cannot."""
    if not isinstance(value, str):
        raise TypeError(f"{what} is a text, not {type(value).__name__}")
    reason = _why_not_text(value)
    if reason is not None:
        raise ValueError(f"{what} cannot be stored in Postgres: {reason}")
    return value


def _why_not_text(value: str) -> str | None:
    if "\0" in value:
        return "contains NUL"
    try:
        value.encode()
    except UnicodeEncodeError:
        return "not valid Unicode"
    return None


# -- texts for search ------------------------------------------------------------------------------


def content_columns(message: Mapping[str, Any], data: bytes) -> dict[str, str]:
    """The columns that say what a message says; `data` are the bytes that stand for it."""
    text = messages.text(message)
    role = message.get("role")
    return {
        "role": role.replace("\0", "") if isinstance(role, str) else "",
        "content": data.decode(),
        "text_content": beginning(text.replace("\0", "")),
        "search_text": search_text(text),
    }


def beginning(text: str) -> str:
    """The part of a text that is not too long to be indexed."""
    return text[:SEARCHABLE].encode()[:SEARCHABLE].decode(errors="ignore")


def search_text(text: str) -> str:
    """The tokens that a text is found by, as many as can be indexed, none of them cut."""
    part = beginning(text)
    found = list(tokens(part))
    if len(part) < len(text):
        del found[-1:]  # which may be the beginning of a word
    joined = " ".join(found)
    if len(joined.encode()) <= SEARCHABLE:
        return joined
    return beginning(joined + " ").rpartition(" ")[0]
