"""The system prompt: rendered from the blocks once, then the same until it is refreshed.

It is frozen in memory and, with a store, where a restart and other processes find it; the first
prompt that gets into the store is everybody's. A refresh that fails changes neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary

from workspace_session.session.calling import call, method
from workspace_session.session.context import ContextBlocks
from workspace_session.session.task_lock import TaskLock
from workspace_session.session.values import ContextBlock

_RULE = "\u2550" * 46


# -- rendering -------------------------------------------------------------------------------------


def render_prompt(blocks: Sequence[ContextBlock]) -> str:
    """The blocks as one text, in order."""
    return "\n\n".join(
        f"{_RULE}\n{_header(block)}\n{_RULE}\n{block.content}"
        for block in blocks
        if block.content or block.writable or block.is_searchable or block.is_skill
    )


def usage_percent(tokens: int, limit: int) -> int:
    """How full a block is, rounded half up; `limit` is above 0."""
    return (200 * tokens + limit) // (2 * limit)


def _header(block: ContextBlock) -> str:
    words = [block.label.upper()]
    if block.description:
        words.append(f"({block.description})")
    if block.max_tokens is not None and block.max_tokens > 0:
        percent = usage_percent(block.tokens, block.max_tokens)
        words.append(f"[{percent}% \u2014 {block.tokens}/{block.max_tokens} tokens]")
    if tag := _tag(block):
        words.append(tag)
    return " ".join(words)


def _tag(block: ContextBlock) -> str:
    if block.is_searchable:
        return "[searchable]"
    if block.is_skill:
        return "[loadable]"
    return "" if block.writable else "[readonly]"


# -- freezing --------------------------------------------------------------------------------------

# Those of prompt stores, by identity: sessions that were given the same one take turns.
_locks: WeakValueDictionary[int, TaskLock] = WeakValueDictionary()


class SystemPrompt:
    """The prompt of one session."""

    def __init__(self, blocks: ContextBlocks) -> None:
        self.snapshot: str | None = None
        self._blocks = blocks
        self._store: object | None = None
        self._lock = TaskLock()

    def use_store(self, store: object | None) -> None:
        """Keep the frozen prompt with a provider; None keeps it in memory only."""
        missing = [name for name in ("get", "set") if method(store, name) is None]
        if store is not None and missing:
            raise TypeError(f"a prompt store needs get() and set(); this one lacks {missing[0]}()")
        self._store = store
        if store is not None:
            self._lock = _locks.setdefault(id(store), self._lock)

    async def freeze(self) -> str:
        """The stored prompt, else the one in memory, else a new one; from now on this one."""
        async with self._lock:
            text = await self._stored()
            if text is None:
                text = self.snapshot
                if text is None:
                    text = render_prompt(await self._blocks.blocks())
                text = await self._settle(text)
            self.snapshot = text
            return text

    async def refresh(self) -> str:
        """A new prompt from freshly read blocks, in place of the frozen one."""
        async with self._lock:
            text = render_prompt(await self._blocks.reload())
            if self._store is not None:
                await self._call("set", text)
            self.snapshot = text
            return text

    async def current(self) -> str:
        """What a model would be given now; nothing is frozen or written by asking."""
        if self.snapshot is not None:
            return self.snapshot
        stored = await self._stored()
        return render_prompt(await self._blocks.blocks()) if stored is None else stored

    async def _stored(self) -> str | None:
        if self._store is None:
            return None
        found: str | None = await self._call("get")
        return found

    async def _settle(self, text: str) -> str:
        """Store a first prompt; another process may have been faster, and then its prompt counts."""
        if self._store is None:
            return text
        if method(self._store, "set_if_absent") is None:
            await self._call("set", text)
            return text
        stored: str = await self._call("set_if_absent", text)
        return stored

    async def _call(self, name: str, *arguments: object) -> Any:
        function = method(self._store, name)
        assert function is not None  # checked when the store was given
        return await call(function, *arguments)
