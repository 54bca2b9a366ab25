"""A provider on trial: the rules that providers keep, and what it takes to state them.

A rule is a sentence and a function that plays it on a provider that is fresh and empty; what it finds
otherwise than it should be raises `Differs`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from workspace_session.model.placing import LATEST, Parent
from workspace_session.session.values import SessionMessage


class Differs(Exception):
    """Something is not what a rule says."""


class Trial:
    """A provider, with shorthands for what is done to it and asked of it."""

    def __init__(self, provider: Any) -> None:
        self.provider = provider

    async def say(self, message_id: str, parent: Parent = LATEST, **more: Any) -> Any:
        """Append a message."""
        return await self.provider.append_message(says(message_id, **more), parent)

    async def fill(self, count: int) -> None:
        """Append m0, m1, …"""
        for number in range(count):
            await self.say(f"m{number}")

    async def path(self, leaf: str | None = None) -> list[str]:
        """The ids of the raw path."""
        return ids(await self.provider.get_history(leaf))

    async def children(self, message_id: str | None) -> list[str]:
        """The ids of the children."""
        return ids(await self.provider.get_branches(message_id))

    async def tip(self) -> str | None:
        """The id of the latest leaf."""
        leaf = await self.provider.get_latest_leaf()
        return None if leaf is None else leaf["id"]

    async def text(self, message_id: str) -> str | None:
        """What a message says."""
        found = await self.provider.get_message(message_id)
        return None if found is None else found["parts"][0]["text"]


Play = Callable[[Trial], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Rule:
    """What a provider keeps to; one with an optional method `needs` is only for those that have it."""

    sentence: str
    play: Play
    needs: str | None = None


class Rules(list[Rule]):
    """Rules, in the order in which they are checked."""

    def rule(self, sentence: str, *, needs: str | None = None) -> Callable[[Play], Play]:
        """Put a function on the list."""

        def register(play: Play) -> Play:
            self.append(Rule(sentence, play, needs))
            return play

        return register


def same(what: str, found: object, wanted: object) -> None:
    """Say so when something is not as it should be."""
    if found != wanted:
        raise Differs(f"{what} is {found!r} and should be {wanted!r}")


def says(message_id: str, text: str = "hello", **more: Any) -> SessionMessage:
    """A message."""
    return {"id": message_id, "role": "user", "parts": [{"type": "text", "text": text}], **more}


def ids(messages: Sequence[SessionMessage]) -> list[str]:
    """The ids of messages."""
    return [message["id"] for message in messages]
