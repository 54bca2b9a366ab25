"""Branches and turns: what goes beyond the SDK's protocol. Each method is one call on the tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workspace_session import Message, SearchHits, SessionTree
from workspace_session.adapters.openai_agents.handle import Handle
from workspace_session.adapters.openai_agents.items import Item, is_user_item, summary_item
from workspace_session.bridge import in_thread


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One way the conversation has gone; `entry_id` is its last entry, for `switch`."""

    entry_id: str
    item_count: int
    updated_at: str
    is_active: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a user said and what it led to; `entry_id` names the first item."""

    number: int
    entry_id: str
    items: list[Item]


class Branching(Handle):
    """What a session offers beyond the SDK's protocol."""

    async def branch_from(self, item: int | str) -> str:
        """Go on after this item: what is added next hangs from it, what came after it stays a branch.

        An item is named by its place in `get_items()`, also from the end, or by the id of its entry.
        Returns that id.
        """
        entry_id = await self._tree_calls.read_all(_entry_id, self.tree, item)
        await self._tree_calls.write(self.tree.set_leaf, entry_id)
        return entry_id

    async def switch(self, entry_id: str | None) -> None:
        """Go on after any entry: after the last of a branch, with that branch; None: from the start."""
        await self._tree_calls.write(self.tree.set_leaf, entry_id)

    async def branches(self) -> list[Branch]:
        """All branches, the one that ends first in front."""
        return await self._tree_calls.read_all(_branches, self.tree)

    async def turns(self) -> list[Turn]:
        """The active branch by turns of the user, counted from 1; what comes before the first is 0."""
        return await self._tree_calls.read_all(_turns, self.tree)

    async def history(self) -> list[Message]:
        """The entries of the active branch with ids and times, also those that a summary hides."""
        return await self._tree_calls.read_all(self.tree.path)

    async def search(self, query: str, limit: int | None = 20, **filters: Any) -> SearchHits:
        """The items of all branches that have all words of a query, the best first."""
        return await in_thread(self.tree.search, query, limit, **filters)

    async def undo(self) -> bool:
        """Take back the last pop, switch or clear, if nothing was added since."""
        return await in_thread(self.tree.undo)


def _entry_id(tree: SessionTree, item: int | str) -> str:
    if isinstance(item, str):
        return item
    if not isinstance(item, int) or isinstance(item, bool):
        raise TypeError(f"an item is named by its place or the id of its entry, not {item!r}")
    shown = tree.context()
    try:
        found = shown[item]
    except IndexError:
        raise IndexError(f"there is no item {item}: the session has {len(shown)}") from None
    return found.id if isinstance(found, Message) else found.to_id


def _branches(tree: SessionTree) -> list[Branch]:
    tip, leaves = tree.leaf, tree.leaves()
    ends = leaves if tip is None or tip in leaves else [*leaves, tip]
    return [
        Branch(
            entry_id=end,
            item_count=len(tree.context(end)),
            updated_at=tree.get(end).timestamp,
            is_active=end == tip,
        )
        for end in ends
    ]


def _turns(tree: SessionTree) -> list[Turn]:
    turns: list[Turn] = []
    number = 0
    for entry in tree.context():
        item = entry.message if isinstance(entry, Message) else summary_item(entry)
        is_users = is_user_item(item)
        number += is_users
        if is_users or not turns:
            turns.append(Turn(number=number, entry_id=entry.id, items=[item]))
        else:
            turns[-1].items.append(item)
    return turns
