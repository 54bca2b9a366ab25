"""A `SessionProvider` on a `SessionTree`: what both the file and the memory store give.

It translates between entries and session messages and decides where a call runs; the rules of the
tree are the tree's.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from filelock import lock_descriptor

from workspace_session.bridge import TreeCalls, in_thread
from workspace_session.errors import InvalidCompaction, SessionDeleted, UnknownMessage
from workspace_session.files.atomic import file_mode, make_directories
from workspace_session.files.locks import Mutex
from workspace_session.files.session_tree import SessionTree
from workspace_session.model import entries
from workspace_session.model.placing import LATEST, Parent
from workspace_session.model.tokens import estimate_message_tokens
from workspace_session.model.tree import Tree
from workspace_session.session.shapes import (
    RecentWindow,
    Shown,
    as_messages,
    is_readable,
    still_shows,
    stored_size,
)
from workspace_session.session.values import (
    AppendResult,
    Compaction,
    RecentHistory,
    RowStat,
    SessionMessage,
)

_SHORT = 1000  # messages; reading more takes longer than going to a thread
Search = Callable[[str, int, str], Any]


class TreeProvider:
    """One session, for `Session`."""

    makes_ids = True

    def __init__(
        self,
        tree: SessionTree,
        *,
        search: Search | None = None,
        compaction_lock: Path | None = None,
    ) -> None:
        self.tree = tree
        self._calls = TreeCalls(tree, short=_SHORT)
        self._search = search
        self._compaction_lock = compaction_lock
        self._tokens = _ContextTokens()

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self.tree.id

    @property
    def identity(self) -> object:
        """What all handles of one session have in common, in this process."""
        return self.tree.identity

    # -- messages ----------------------------------------------------------------------------------

    async def append_message(
        self, message: SessionMessage, parent_id: Parent = LATEST
    ) -> AppendResult:
        """Store a message; finding the tip and writing are one step."""
        entry, inserted = await self._calls.write(self.tree.append, message, parent_id)
        # What a message that was there hangs from may have been deleted since.
        parent = entry.parent_id if inserted else LATEST
        return AppendResult(as_message(entry), inserted, parent)

    async def update_message(self, message: SessionMessage) -> SessionMessage | None:
        """Give a message new content; None if there is no such message."""
        try:
            result = await self._calls.write(self.tree.update, message["id"], message)
        except UnknownMessage:
            return None
        return as_message(result.entry)

    async def delete_messages(self, message_ids: Sequence[str]) -> list[str]:
        """Remove messages; returns the ids of those that were there."""
        return await in_thread(self.tree.delete, list(message_ids))

    async def clear_messages(self) -> None:
        """Remove all messages and overlays."""
        await in_thread(self.tree.clear)

    async def set_leaf(self, message_id: str) -> SessionMessage:
        """Make a message the tip."""
        await self._calls.write(self.tree.set_leaf, message_id)
        return as_message(await self._calls.read(self.tree.get, message_id))

    # -- reading -----------------------------------------------------------------------------------

    async def is_deleted(self) -> bool:
        """Whether the session was deleted under this handle."""
        try:
            await self._calls.read(self.tree.check)
        except SessionDeleted:
            return True
        return False

    async def get_message(self, message_id: str) -> SessionMessage | None:
        """A message, or None."""
        try:
            entry = await self._calls.read(self.tree.get, message_id)
        except UnknownMessage:
            return None
        return _if_readable(entry)

    async def get_history(self, leaf_id: str | None = None) -> list[SessionMessage]:
        """The raw path."""
        try:
            return await self._calls.read_all(self._messages, self.tree.path, leaf_id or None)
        except UnknownMessage:
            return []

    async def get_context(self, leaf_id: str | None = None) -> list[Shown]:
        """The path with overlays applied, without reading what they hide."""
        try:
            return await self._calls.read_all(self._shown, leaf_id or None)
        except UnknownMessage:
            return []

    async def get_latest_leaf(self) -> SessionMessage | None:
        """The tip."""
        leaf = await self._calls.read(lambda: self.tree.leaf_message)
        return None if leaf is None else _if_readable(leaf)

    async def get_branches(self, message_id: str | None) -> list[SessionMessage]:
        """Direct children, or the roots."""
        return await self._calls.read(self._messages, self.tree.children, message_id)

    async def get_path_length(self, leaf_id: str | None = None) -> int:
        """How many messages the raw path has."""
        try:
            return await self._calls.read(self.tree.path_length, leaf_id or None)
        except UnknownMessage:
            return 0

    async def get_row_stats(self) -> list[RowStat]:
        """Sizes of the messages of the active path."""
        return await in_thread(self._row_stats)

    async def get_recent_history(
        self, max_content_bytes: int, min_recent_messages: int = 1
    ) -> RecentHistory:
        """The raw end of the active path that fits; `Session` applies the overlays inside it."""
        return await in_thread(self._recent, max_content_bytes, min_recent_messages)

    async def iter_messages(self) -> AsyncIterator[SessionMessage]:
        """Every message of every branch."""
        for message in await in_thread(self._all_messages):
            yield message

    async def get_mentions(
        self, word: str, *, on_all_branches: bool = False
    ) -> list[SessionMessage]:
        """The messages of the raw path, or of all branches, less many that lack an ASCII word."""
        ask = self.tree.all_messages if on_all_branches else self.tree.path
        return await self._calls.read_all(self._mentions, ask, word.encode())

    async def search_messages(self, query: str, limit: int) -> Any:
        """Hits in this session."""
        return await in_thread(self._searched, query, limit)

    # -- overlays ----------------------------------------------------------------------------------

    async def add_compaction(self, summary: str, from_id: str, to_id: str) -> Compaction:
        """Store an overlay."""
        return as_compaction(await in_thread(self.tree.compact, summary, from_id, to_id))

    async def get_compactions(self) -> list[Compaction]:
        """All overlays, oldest first."""
        return await self._calls.read(self.tree.whole, _compactions)

    async def compact_range(
        self, summary: str, from_id: str, to_id: str, expected: Sequence[str]
    ) -> Compaction | None:
        """Store an overlay if the range still shows what it was made from, in one step."""

        def is_as_expected(shown: Sequence[entries.Message | entries.Compaction]) -> bool:
            return still_shows(readable(shown), expected)

        try:
            stored = await in_thread(self.tree.compact_if, summary, from_id, to_id, is_as_expected)
        except InvalidCompaction:
            return None
        return None if stored is None else as_compaction(stored)

    async def get_context_tokens(self) -> int:
        """The estimate of the active history; appending adds to it and costs no more."""
        return await self._calls.read(self._tokens.estimate, self.tree)

    @asynccontextmanager
    async def lock(self) -> AsyncIterator[bool]:
        """Keep other processes from compacting this session; gives False if one is at it."""
        if self._compaction_lock is None:
            yield True
            return
        make_directories(self._compaction_lock.parent, sync=False)
        descriptor = os.open(self._compaction_lock, os.O_RDWR | os.O_CREAT, file_mode())
        try:
            yield lock_descriptor(descriptor, blocking=False)
        finally:
            os.close(descriptor)  # which lets the lock go

    # -- in a thread -------------------------------------------------------------------------------

    @staticmethod
    def _messages(
        ask: Callable[[str | None], Sequence[entries.Message]], message_id: str | None
    ) -> list[SessionMessage]:
        return _readable(ask(message_id))

    @staticmethod
    def _mentions(
        ask: Callable[[], Sequence[entries.Message]], word: bytes
    ) -> list[SessionMessage]:
        # To look at the bytes of a message costs far less than to read it.
        lines = ((one, (one.revision or one).line) for one in ask())
        return _readable(one for one, line in lines if word in line or b"\\u" in line)

    def _shown(self, leaf_id: str | None) -> list[Shown]:
        return readable(self.tree.context(leaf_id))

    def _row_stats(self) -> list[RowStat]:
        stats = []
        for entry in self.tree.path():
            message = entry.message
            role = message.get("role")
            stats.append(
                RowStat(entry.id, role if isinstance(role, str) else "", stored_size(message))
            )
        return stats

    def _recent(self, max_content_bytes: int, min_recent_messages: int) -> RecentHistory:
        path = self.tree.path()
        sizes = [stored_size(entry.message) for entry in path]
        window = RecentWindow(max_content_bytes, min_recent_messages)
        start = len(path)
        while start > 0 and window.takes(sizes[start - 1]):
            start -= 1
        return RecentHistory(_readable(path[start:]), start > 0, sum(sizes))

    def _searched(self, query: str, limit: int) -> Any:
        assert self._search is not None
        self.tree.check()
        return self._search(query, limit, self.tree.id)

    def _all_messages(self) -> list[SessionMessage]:
        return _readable(self.tree.all_messages())


def _readable(found: Iterable[entries.Message]) -> list[SessionMessage]:
    return [message for message in map(_if_readable, found) if message is not None]


def _if_readable(entry: entries.Message) -> SessionMessage | None:
    message = as_message(entry)
    return message if is_readable(message) else None


def readable(items: Sequence[entries.Message | entries.Compaction]) -> list[Shown]:
    """Stored items as the session API shows them, without what it cannot read."""
    shown: list[Shown] = []
    for item in items:
        if isinstance(item, entries.Compaction):
            shown.append(as_compaction(item))
        elif is_readable(message := as_message(item)):
            shown.append(message)
    return shown


def as_message(entry: entries.Message) -> SessionMessage:
    """A stored message as the session API shows it: with its id and the time of its making."""
    message = entry.message
    first = message if entry.revision is None else entries.message_of(entry.line)
    message["id"] = entry.id
    message["createdAt"] = first.get("createdAt", entry.timestamp)
    return message


def _compactions(tree: Tree) -> list[Compaction]:
    retired = {overlay.id for overlay in tree.retired}
    found = map(as_compaction, tree.compactions())
    return [replace(one, retired=True) if one.id in retired else one for one in found]


def as_compaction(overlay: entries.Compaction) -> Compaction:
    """A stored overlay as the session API shows it."""
    return Compaction(
        overlay.id, overlay.summary, overlay.from_id, overlay.to_id, overlay.timestamp
    )


class _ContextTokens:
    """The estimate of what a model is shown, kept up while messages are only appended."""

    def __init__(self) -> None:
        self._mutex = Mutex("an estimate of tokens")
        self._known: dict[tuple[str, str, str, int], int] = {}
        self._tip: str | None = None
        self._version = (0, -1)
        self._total = 0

    def estimate(self, tree: SessionTree) -> int:
        """The tokens of the active history."""
        with self._mutex:
            version, tip, new = tree.appended_since(self._tip)
            if version != self._version or new is None:
                self._total = sum(map(self._of, tree.context()))
            else:
                self._total += sum(map(self._of, new))
            self._version, self._tip = version, tip
            return self._total

    def _of(self, item: entries.Message | entries.Compaction) -> int:
        said = getattr(item, "revision", None) or item
        key = (*item.key, said.id, len(said.line))  # a text that was purged leaves a shorter line
        if key not in self._known:
            self._known[key] = estimate_message_tokens(as_messages(readable([item])))
        return self._known[key]
