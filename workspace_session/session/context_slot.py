"""One context block: its provider, and the content that was last read from it or written to it.

Checks come first, then the provider, and memory changes only after the provider has succeeded. What
a block can do is read off its provider's methods. Reads and writes of one block take turns; blocks
do not wait for one another, so a provider may use the other blocks of its session.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cached_property
from typing import Any

from workspace_session.errors import BlockError
from workspace_session.model.tokens import estimate_tokens
from workspace_session.session.calling import call, method
from workspace_session.session.task_lock import TaskLock
from workspace_session.session.values import ContextBlock

logger = logging.getLogger("workspace_session")


class ContextSlot:
    """The place of one block in a session."""

    def __init__(
        self,
        label: str,
        description: str | None,
        max_tokens: int | None,
        given: object | None,
        wire: Callable[[str], object | None],
    ) -> None:
        self.label = label
        self.given = given
        self._description = description
        self._max_tokens = max_tokens
        self._wire = wire
        self._lock = TaskLock()
        self._is_prepared = False
        self._block: ContextBlock | None = None

    # -- what it can do ----------------------------------------------------------------------------

    @cached_property
    def provider(self) -> object | None:
        """Where the content is; not asked for before it is needed, as the session may be renamed."""
        return self._wire(self.label) if self.given is None else self.given

    @property
    def is_writable(self) -> bool:
        """Whether anything can be written."""
        return self._has("set")

    @property
    def is_skill(self) -> bool:
        """Whether it holds documents to be loaded by key."""
        return self._has("load")

    @property
    def is_searchable(self) -> bool:
        """Whether it can be searched."""
        return self._has("search")

    def _has(self, name: str) -> bool:
        return method(self.provider, name) is not None

    # -- reading -----------------------------------------------------------------------------------

    async def load(self) -> ContextBlock:
        """The block, read the first time."""
        if self._block is None:
            async with self._lock:
                if self._block is None:
                    self._block = await self._read()
        return self._block

    async def reread(self) -> tuple[ContextBlock | None, ContextBlock]:
        """The block as it is in memory and as its provider gives it anew; memory stays as it is."""
        async with self._lock:
            self._is_prepared = False
            return self._block, await self._read()

    def publish(self, seen: ContextBlock | None, fresh: ContextBlock) -> ContextBlock:
        """Make what `reread` gave the content, unless something newer was written since."""
        if self._block is seen:
            self._block = fresh
        return self._block or fresh

    async def ask(self, name: str, argument: str) -> str | None:
        """What the provider loads or finds."""
        if not self._is_prepared:
            async with self._lock:
                await self._prepare()
        found = await self._call(name, argument)
        return None if found is None else self._text(found)

    async def _read(self) -> ContextBlock:
        if self.provider is None:
            return self._with("")
        await self._prepare()
        return self._with(await self._content())

    async def _content(self) -> str:
        found = await self._call("get")
        return "" if found is None else self._text(found)

    async def _prepare(self) -> None:
        init = method(self.provider, "init")
        if init is not None and not self._is_prepared:
            await call(init, self.label)
        self._is_prepared = True

    # -- writing -----------------------------------------------------------------------------------

    async def replace(self, content: str) -> ContextBlock:
        """Write new content."""
        self._check_plain()
        self._check_size(content)
        async with self._lock:
            await self._prepare()
            await self._call("set", content)
            self._block = self._with(content)
            return self._block

    async def append(self, content: str) -> ContextBlock:
        """Write new content below what the provider has now."""
        self._check_plain()
        self._text(content)

        def change(old: str) -> str:
            whole = old + ("" if not old or content.startswith("\n") else "\n") + content
            self._check_size(whole)
            return whole

        async with self._lock:
            await self._prepare()
            self._block = self._with(await self._changed(change))
            return self._block

    async def _changed(self, change: Callable[[str], str]) -> str:
        # Read and write under the provider's own lock. `update` alone may mean anything.
        if self._has("update") and self._has("set_if_absent"):
            return self._text(await self._call("update", change))
        whole = change(await self._content())
        await self._call("set", whole)
        return whole

    async def set_entry(self, key: str, content: str, description: str | None) -> ContextBlock:
        """Write an entry of a keyed block; its kind has been checked."""
        if not self.is_writable:
            raise self.error("does not support writes")
        self._check_size(content)
        async with self._lock:
            await self._prepare()
            # Providers whose `set` has no use for a description need not take one.
            await self._call("set", key, content, *([] if description is None else [description]))
            return await self._relisted()

    async def _relisted(self) -> ContextBlock:
        try:
            self._block = await self._read()
        except Exception:  # the write stands, and a call that raises says that it does not
            logger.exception("the listing of block %r could not be read again", self.label)
        return self._block or self._with("")

    # -- checks ------------------------------------------------------------------------------------

    def error(self, reason: str) -> BlockError:
        """That this block cannot be written so."""
        return BlockError(self.label, f'Block "{self.label}" {reason}')

    def _check_plain(self) -> None:
        if not self.is_writable:
            raise self.error("is readonly")
        if self.is_skill or self.is_searchable:
            raise self.error("is a keyed provider. Use set_skill() or set_search_entry() instead.")

    def _check_size(self, content: str) -> None:
        tokens = estimate_tokens(self._text(content))
        if self._max_tokens is not None and tokens > self._max_tokens:
            raise self.error(f"exceeds max_tokens: {tokens} > {self._max_tokens}")

    def _text(self, value: object) -> str:
        if not isinstance(value, str):
            raise TypeError(f'block "{self.label}" holds text, not {type(value).__name__}')
        return value

    # -- making ------------------------------------------------------------------------------------

    async def _call(self, name: str, *arguments: object) -> Any:
        function = method(self.provider, name)
        assert function is not None, f'the provider of block "{self.label}" has no {name}()'
        return await call(function, *arguments)

    def _with(self, content: str) -> ContextBlock:
        return ContextBlock(
            label=self.label,
            description=self._description,
            content=content,
            tokens=estimate_tokens(content),
            max_tokens=self._max_tokens,
            writable=self.is_writable,
            is_skill=self.is_skill,
            is_searchable=self.is_searchable,
        )
