"""The conversation of an agent, as its transcript has it: each message with all its blocks.

Compressing a context cuts a long reply in two: one part goes, the other stays under the same id. Neither
may take the place of both, so what is stored of a message comes before what is new.
"""

from __future__ import annotations

from typing import Any

from workspace_session import SessionTree, UnknownMessage
from workspace_session.bridge import in_thread

Message = dict[str, Any]


class Context:
    """A context as it was at the end of a reply, for the transcript."""

    def __init__(self, tree: SessionTree, messages: list[Message]) -> None:
        self._tree = tree
        self._messages = messages

    async def get_messages(self) -> list[Message]:
        return await in_thread(whole, self._tree, self._messages)


def dumped(message: Any) -> Message:
    """A message as JSON."""
    found: Message = message.model_dump(mode="json")
    return found


def whole(tree: SessionTree, messages: list[Message]) -> list[Message]:
    """Messages, completed by those of their blocks that only the transcript has."""
    return [_whole(tree, message) for message in messages] if tree.exists() else messages


def _whole(tree: SessionTree, message: Message) -> Message:
    try:
        stored = tree.get(message["id"]).message.get("content")
    except UnknownMessage:
        return message
    if not isinstance(stored, list):
        return message
    new = {_name_of(block): block for block in message["content"]}
    known = {_name_of(block) for block in stored}
    if known <= new.keys():
        return message
    kept = [new.get(_name_of(block), block) for block in stored]
    added = [block for name, block in new.items() if name not in known]
    return {**message, "content": kept + added}


def _name_of(block: Any) -> tuple[str, str]:
    """A call and its result have the same id."""
    return (str(block.get("type")), str(block.get("id"))) if isinstance(block, dict) else ("", "")
