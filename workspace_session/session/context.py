"""Context blocks: the named parts of a system prompt, each kept by a provider.

Blocks stand in the order they were registered. Registering reads nothing; a block is read once, when
it is first needed, and again only on a reload. A reload that fails leaves every block as it was.
"""

from __future__ import annotations

from collections.abc import Callable

from workspace_session.errors import BlockError, DuplicateBlock
from workspace_session.session import arguments
from workspace_session.session.calling import method
from workspace_session.session.context_slot import ContextSlot
from workspace_session.session.keys import entry_key
from workspace_session.session.values import ContextBlock


class ContextBlocks:
    """The blocks of one session; `wire` gives the provider of a block that came without one."""

    def __init__(self, wire: Callable[[str], object | None]) -> None:
        self._wire = wire
        self._slots: dict[str, ContextSlot] = {}

    # -- which there are ---------------------------------------------------------------------------

    def register(
        self,
        label: str,
        *,
        description: str | None = None,
        max_tokens: int | None = None,
        provider: object | None = None,
    ) -> None:
        """Add a block under a label that is free."""
        arguments.text("a label", label)
        arguments.text_or_none("a description", description)
        if label in self._slots:
            raise DuplicateBlock(label)
        if max_tokens is not None and not isinstance(max_tokens, int):
            raise TypeError(f"max_tokens is a whole number, not {type(max_tokens).__name__}")
        if provider is not None and method(provider, "get") is None:
            raise TypeError(f'the provider of block "{label}" has no get()')
        self._slots[label] = ContextSlot(label, description, max_tokens, provider, self._wire)

    async def add(
        self,
        label: str,
        *,
        description: str | None = None,
        max_tokens: int | None = None,
        provider: object | None = None,
    ) -> ContextBlock:
        """Add a block and read it; one that cannot be read is not added."""
        self.register(label, description=description, max_tokens=max_tokens, provider=provider)
        slot = self._slots[label]
        try:
            return await slot.load()
        except BaseException:
            if self._slots.get(label) is slot:
                del self._slots[label]
            raise

    def remove(self, label: str) -> bool:
        """Drop a block, if there is one; what it stored stays."""
        return self._slots.pop(label, None) is not None

    def labels(self) -> list[str]:
        """The labels, in order."""
        return list(self._slots)

    def is_registered(self, label: str) -> bool:
        """Whether there is such a block."""
        return label in self._slots

    def has_skills(self) -> bool:
        """Whether one of the providers given loads documents."""
        return any(method(slot.given, "load") is not None for slot in self._slots.values())

    def skill_labels(self) -> list[str]:
        """The blocks that documents can be loaded from."""
        return [label for label, slot in self._slots.items() if slot.is_skill]

    def search_labels(self) -> list[str]:
        """The blocks that can be searched."""
        return [label for label, slot in self._slots.items() if slot.is_searchable]

    # -- reading -----------------------------------------------------------------------------------

    async def blocks(self) -> list[ContextBlock]:
        """All blocks, in order."""
        return [await slot.load() for slot in list(self._slots.values())]

    async def block(self, label: str) -> ContextBlock | None:
        """One block; None if there is none."""
        slot = self._slots.get(label)
        return None if slot is None else await slot.load()

    async def reload(self) -> list[ContextBlock]:
        """All blocks, read anew. All are read before the first one changes."""
        slots = list(self._slots.values())
        read = [await slot.reread() for slot in slots]
        return [slot.publish(*one) for slot, one in zip(slots, read, strict=True)]

    async def load_entry(self, label: str, key: str) -> str | None:
        """A document of a skill block; None when it has none of that key."""
        return await self._kind(label, "skill").ask("load", key)

    async def search(self, label: str, query: str) -> str | None:
        """What a search block finds; None for nothing."""
        return await self._kind(label, "search").ask("search", query)

    # -- writing -----------------------------------------------------------------------------------

    async def replace(self, label: str, content: str) -> ContextBlock:
        """Give a writable block new content."""
        return await self._slot(label).replace(content)

    async def append(self, label: str, content: str) -> ContextBlock:
        """Add to a writable block, on a line of its own."""
        return await self._slot(label).append(content)

    async def set_skill(
        self, label: str, key: str, content: str, description: str | None = None
    ) -> ContextBlock:
        """Write a document of a skill block; the block comes back with its new listing."""
        return await self._kind(label, "skill").set_entry(key, content, description)

    async def set_search_entry(self, label: str, key: str, content: str) -> ContextBlock:
        """Write an entry of a search block; the block comes back with its new summary."""
        return await self._kind(label, "search").set_entry(key, content, None)

    async def write_entry(
        self, label: str, content: str, *, title: str | None = None, description: str | None = None
    ) -> str:
        """Write an entry of a keyed block under the key of its title or content; gives the key."""
        key = entry_key(title, content)
        if not self._slot(label).is_skill:
            await self.set_search_entry(label, key, content)
            return key
        fallback = title if title and title.strip() else None
        await self.set_skill(label, key, content, fallback if description is None else description)
        return key

    def _slot(self, label: str) -> ContextSlot:
        if label not in self._slots:
            raise BlockError(label, f'Block "{label}" not found')
        return self._slots[label]

    def _kind(self, label: str, kind: str) -> ContextSlot:
        slot = self._slots.get(label)
        if slot is None or not (slot.is_skill if kind == "skill" else slot.is_searchable):
            raise BlockError(label, f'Block "{label}" is not a {kind} provider')
        return slot
