"""Documents: messages as they are searched.

`text` is what was said. `more` is what only those look through who ask for everything: what tools were
given and gave back, and summaries, which are documents without a text. Every message is a document,
also one that says nothing: an update may yet give it words.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from workspace_session.model import messages
from workspace_session.model.blocks import Text, ToolCall, ToolResult
from workspace_session.model.clock import normal_time
from workspace_session.model.entries import Compaction, Entry, Message, Update
from workspace_session.search.analysis import tokens
from workspace_session.search.engine import Document
from workspace_session.search.stretches import Item

SUMMARY_PREFIX = "compaction_"  # no message's id begins with it


class Words(NamedTuple):
    """What can be found of an entry."""

    text: str
    more: str


def document(item: Item) -> Document:
    """The document of a message, an update or a summary."""
    entry, start, end = item
    assert isinstance(entry, Message | Update | Compaction)
    message = entry.message
    text, more = _summary(entry) if type(entry) is Compaction else _words(message)
    return Document(
        document_id(entry),
        messages.role(message),
        created_at(message, entry),
        " ".join(tokens(text)),
        " ".join(tokens(more)) if more else "",
        start,
        end - start - 1,
    )


def document_id(entry: Entry) -> str:
    """The message that an entry brings or changes; a summary goes by the id that readers see."""
    if type(entry) is Update:
        return entry.target_id
    return SUMMARY_PREFIX + entry.id if type(entry) is Compaction else entry.id


def words_of(entry: Entry) -> Words:
    """What can be found of an entry."""
    if isinstance(entry, Compaction):
        return _summary(entry)
    return _words(entry.message) if isinstance(entry, Message | Update) else Words("", "")


def created_at(message: dict[str, Any], entry: Entry) -> str:
    """When a message was made: as it says itself, else when it was appended."""
    given = message.get("createdAt")
    return entry.timestamp if given is None else normal_time(given) or entry.timestamp


def _words(message: dict[str, Any]) -> Words:
    texts: list[str] = []
    tools = False
    for block in messages.blocks(message):
        if type(block) is Text:
            texts.append(block.text)
        elif type(block) is ToolCall or type(block) is ToolResult:
            tools = True
    return Words("\n".join(texts), messages.tool_text(message) if tools else "")


def _summary(overlay: Compaction) -> Words:
    return Words("", overlay.summary)
