"""Message sources: where an agent keeps the conversation that it shows its model.

A source has `get_messages()` and `set_messages(list)`. Memories of several kinds are made into one here,
told apart by what they have; an agent without any is known by what it was told and what it answered.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from workspace_session.errors import InvalidMessage
from workspace_session.harness.messages import as_message


class OwnMessages:
    """The two messages of a turn, of an agent that keeps none."""

    def __init__(self) -> None:
        self._said: list[Mapping[str, Any]] = []

    def add(self, message: Any, role: str) -> None:
        """Take a message in; it gets an id, so that it is stored once."""
        try:
            said = as_message(message, role)
        except InvalidMessage:
            said = {"role": role, "content": str(message)}
        if said.get("id") in (None, ""):
            said = {"id": str(uuid.uuid4()), **{k: v for k, v in said.items() if k != "id"}}
        self._said.append(said)

    def get_messages(self) -> list[Any]:
        """What was said so far."""
        return list(self._said)

    def set_messages(self, messages: Sequence[Any]) -> None:
        """Nothing to keep it in."""


class ListOfMessages:
    """A memory that has its messages in a list `messages`."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory

    def get_messages(self) -> list[Any]:
        """The messages."""
        return list(self._memory.messages)

    def set_messages(self, messages: Sequence[Any]) -> None:
        """Put others in their place."""
        self._memory.messages[:] = _of_one_kind(messages, self._memory.messages)


class MarkedMessages:
    """A memory that has its messages in a list `content`, each in a pair with its marks."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory

    def get_messages(self) -> list[Any]:
        """The messages without their marks."""
        return [pair[0] for pair in self._memory.content]

    def set_messages(self, messages: Sequence[Any]) -> None:
        """Put others in their place; those that stay keep their marks."""
        marks = {id(message): mark for message, mark in self._memory.content}
        before = [message for message, _marks in self._memory.content]
        self._memory.content[:] = [
            (message, marks.get(id(message), [])) for message in _of_one_kind(messages, before)
        ]


def source_of(memory: object) -> Any:
    """The source that a memory is; without one, the messages of the turn are all there is."""
    if all(callable(getattr(memory, name, None)) for name in ("get_messages", "set_messages")):
        return memory
    if isinstance(getattr(memory, "messages", None), list):
        return ListOfMessages(memory)
    content = getattr(memory, "content", None)
    if isinstance(content, list) and all(_is_pair(item) for item in content):
        return MarkedMessages(memory)
    return OwnMessages()


def _is_pair(item: object) -> bool:
    return isinstance(item, tuple | list) and len(item) == 2 and isinstance(item[1], list)


def _of_one_kind(messages: Sequence[Any], before: Sequence[Any]) -> list[Any]:
    """The messages, a new one made into what the others are."""
    kind = next((type(one) for one in before if not isinstance(one, Mapping | str)), None)
    if kind is None:
        return list(messages)
    return [_made(kind, one) if isinstance(one, Mapping) else one for one in messages]


def _made(kind: Any, message: Mapping[str, Any]) -> Any:
    named = {"name": message.get("role"), **message}
    for name in ("from_dict", "model_validate"):
        if callable(make := getattr(kind, name, None)):
            return make(named)
    return message
