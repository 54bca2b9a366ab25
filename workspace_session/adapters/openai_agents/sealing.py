"""Sealing: items of an encrypted session as their owner reads them, and summaries sealed like them.

The SDK's `EncryptedSession` opens and seals what a session holds. Here it is given a session of its own
in memory, so that single items go through it; the key stays where it is.
"""

from __future__ import annotations

from typing import Any

from workspace_session.adapters.openai_agents.items import Item
from workspace_session.adapters.openai_agents.session import AgentsSession


async def opened(owner: Any, items: list[Item]) -> list[Item | None]:
    """What is in each envelope; None for what has expired, or another key has sealed."""
    found: list[Item | None] = []
    for item in items:
        scratch = AgentsSession.in_memory()
        await scratch.add_items([item])
        found.append(next(iter(await _over(owner, scratch).get_items()), None))
    return found


async def sealed(owner: Any, item: Item) -> Item:
    """An item in an envelope."""
    scratch = AgentsSession.in_memory()
    await _over(owner, scratch).add_items([item])
    (envelope,) = await scratch.get_items()
    return dict(envelope)


def _over(owner: Any, scratch: AgentsSession) -> Any:
    """The same owner of another session. Its `__getattr__` keeps `copy` from making it."""
    other = object.__new__(type(owner))
    other.__dict__.update(owner.__dict__, underlying_session=scratch)
    return other
