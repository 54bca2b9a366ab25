"""The part of a session that is not messages: context blocks, the system prompt, tools, skills."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workspace_session.errors import MissingProvider, SessionDeleted
from workspace_session.session.builder import SessionBuilder, logger
from workspace_session.session.calling import listed
from workspace_session.session.shapes import as_read
from workspace_session.session.skills import LOAD
from workspace_session.session.tools import Tool, session_tools
from workspace_session.session.values import ContextBlock, SessionMessage

Change = Callable[[SessionMessage], SessionMessage | None]


class SessionContext(SessionBuilder):
    """Blocks, prompt, tools and skills of a session."""

    # -- blocks ------------------------------------------------------------------------------------

    async def get_context_block(self, label: str) -> ContextBlock | None:
        """A block, loaded on demand."""
        await self._there()
        return await self._blocks.block(label)

    async def get_context_blocks(self) -> list[ContextBlock]:
        """All blocks, in the order they were added."""
        await self._there()
        return await self._blocks.blocks()

    async def replace_context_block(self, label: str, content: str) -> ContextBlock:
        """Give a writable block new content; the frozen prompt stays as it is."""
        await self._ready()
        return await self._blocks.replace(label, content)

    async def append_context_block(self, label: str, content: str) -> ContextBlock:
        """Add to a writable block, on a line of its own."""
        await self._ready()
        return await self._blocks.append(label, content)

    async def set_skill(
        self, label: str, key: str, content: str, description: str | None = None
    ) -> ContextBlock:
        """Write a document of a skill block."""
        await self._ready()
        return await self._blocks.set_skill(label, key, content, description)

    async def set_search_entry(self, label: str, key: str, content: str) -> ContextBlock:
        """Write an entry of a search block."""
        await self._ready()
        return await self._blocks.set_search_entry(label, key, content)

    async def add_context(
        self,
        label: str,
        *,
        description: str | None = None,
        max_tokens: int | None = None,
        provider: Any = None,
    ) -> ContextBlock:
        """Add a block to a session in use."""
        await self._there()
        if provider is None and self._store is None and not self._blocks.is_registered(label):
            raise MissingProvider(label)
        had_skills = self._blocks.has_skills()
        block = await self._blocks.add(
            label, description=description, max_tokens=max_tokens, provider=provider
        )
        if not had_skills and self._blocks.has_skills():
            await self._restore_skills()
        return block

    def remove_context(self, label: str) -> bool:
        """Drop a block; what it stored stays where it is."""
        self._skills.drop_label(label)
        self._dropped.add(label)
        return self._blocks.remove(label)

    # -- the prompt --------------------------------------------------------------------------------

    async def freeze_system_prompt(self) -> str:
        """The system prompt, rendered once and the same from then on."""
        await self._there()
        return await self._prompt.freeze()

    async def refresh_system_prompt(self) -> str:
        """Render the system prompt anew from freshly loaded blocks."""
        await self._ready()
        return await self._prompt.refresh()

    # -- tools and skills --------------------------------------------------------------------------

    async def tools(self) -> dict[str, Tool]:
        """The tools a model may be given now, by name."""
        await self._there()
        return await session_tools(self._blocks, self._skills, self.unload_skill)

    async def get_loaded_skill_keys(self) -> set[str]:
        """The skills whose text is in the conversation, as `label:key`."""
        await self._there()
        return set(self._skills.keys)

    async def unload_skill(self, label: str, key: str) -> bool:
        """Take a skill's text out of the conversation again; False if it was not loaded."""
        await self._there()
        if not self._skills.is_loaded(label, key):
            return False

        def without(message: SessionMessage) -> SessionMessage | None:
            return self._skills.unloaded(message, label, key)

        for message in await self._with_skills(on_all_branches=True):
            if without(message) is not None:
                await self._update(message["id"], without)  # as it is by then
        self._skills.discard(label, key)
        return True

    async def _with_skills(self, *, on_all_branches: bool = False) -> list[SessionMessage]:
        """The messages that skills may have been loaded or unloaded in; others may be among them."""
        direct = self._shortcut("get_mentions")
        if direct is not None:
            # The name of one tool is a part of the other's.
            return as_read(await direct(LOAD, on_all_branches=on_all_branches))
        every = self._optional("iter_messages") if on_all_branches else None
        if every is not None:
            return as_read(await listed(every()))
        return as_read(await self._provider.get_history())

    async def _restore_skills(self) -> None:
        """See which skills the active branch has loaded; without a skill block nothing is read.

        A failure is only logged: what was written before stands.
        """
        if not self._blocks.has_skills():
            return
        try:
            history = await self._with_skills()
            self._skills.restore(history, but=self._dropped.difference(self._blocks.labels()))
        except Exception:
            logger.exception("could not restore the loaded skills of session %r", self.id)

    async def _ready(self) -> None:
        """First use: settle what the session runs on, and find out which skills are loaded."""
        if self._started:
            return
        async with self._starting:
            if self._started:
                return
            _ = self._provider
            await self._restore_skills()
            self._started = True

    async def _there(self) -> None:
        """Ready, for what is answered from memory: the session has not been deleted meanwhile."""
        await self._ready()
        if await self.is_deleted():
            raise SessionDeleted(self.id)

    async def _update(self, message_id: str, change: Change) -> SessionMessage | None:
        raise NotImplementedError
