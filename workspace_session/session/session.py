"""A conversation with branches, for agents.

The provider stores; this checks what is to be stored, shows what a model is to see, tells listeners
what was done, and compacts when it is time. No lock of the storage is held while any callable of the
application runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from workspace_session.errors import NotSupported, SearchNotSupported, UnknownMessage
from workspace_session.model.canonical import compact_sorted
from workspace_session.model.clock import fresh_id
from workspace_session.model.placing import LATEST, Parent
from workspace_session.session import arguments
from workspace_session.session.builder import logger
from workspace_session.session.compacting import SessionCompaction
from workspace_session.session.context_api import Change
from workspace_session.session.events import Listener
from workspace_session.session.protocols import Hits
from workspace_session.session.shapes import (
    as_messages,
    as_read,
    checked,
    overlaid,
    stored_size,
)
from workspace_session.session.tool_parts import sanitize_tool_pairs
from workspace_session.session.values import AppendResult, RecentHistory, RowStat, SessionMessage


class Session(SessionCompaction):
    """One session; `Session.create(agent).for_session("chat-1")` is usable at once.

    Builders, `subscribe` and `remove_context` are called as they are; everything else is awaited.
    """

    _warned_of_recent = False

    def __repr__(self) -> str:
        return f"Session({self.id!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} cannot be pickled: open it anew where it is needed")

    # -- writing -----------------------------------------------------------------------------------

    async def append_message(
        self, message: Mapping[str, Any], parent_id: Parent = LATEST
    ) -> AppendResult:
        """Store a message under `parent_id`: `LATEST`, None for a new root, or a message's id."""
        draft, parent_id = checked(message), arguments.parent(parent_id)
        await self._ready()
        if "id" not in draft and not self._makes_ids:
            draft["id"] = fresh_id()
        before = await self._tip_for_skills()
        result: AppendResult = await self._provider.append_message(draft, parent_id)
        if before is not None and parent_id is not LATEST and parent_id != before:
            await self._restore_skills()
        await self._events.emit(
            "append",
            self.id,
            message=result.message,
            parent_id=await self._parent_of(result, parent_id),
            inserted=result.inserted,
        )
        estimate = await self._status("idle")
        if result.inserted and self._armed and estimate > (self._threshold or 0):
            await self._compact_by_itself(result.message["id"])
        return result

    async def _parent_of(self, result: AppendResult, asked: Parent) -> Parent:
        """What a message hangs from, looked up only for those who are told and if need be.

        `LATEST` if that is not to be had.
        """
        if result.parent_id is not LATEST:
            return result.parent_id
        if result.inserted and asked is not LATEST:
            return asked
        if not self._events.has_listeners():
            return None
        try:
            path = await self._provider.get_history(result.message["id"])
        except Exception:  # the write stands
            logger.exception("what a message of session %r hangs from is not known", self.id)
            return LATEST
        parents = as_read(path[-2:-1])
        return parents[0]["id"] if parents else None

    async def _tip_for_skills(self) -> str | None:
        """The tip before an append, if it matters: on another branch other skills are loaded."""
        return await self._latest_leaf_id() if self._blocks.has_skills() else None

    async def update_message(self, message: Mapping[str, Any]) -> SessionMessage | None:
        """Give a stored message new content; None if there is no such message."""
        draft = checked(message)
        await self._ready()
        return await self._update(draft.get("id", ""), lambda _stored: draft)

    async def _update(self, message_id: str, change: Change) -> SessionMessage | None:
        stored = _or_none(await self._provider.get_message(message_id))
        message = None if stored is None else change(stored)
        if stored is None or message is None or _same(stored, message):
            return stored
        if "createdAt" in stored:
            message = {**message, "createdAt": stored["createdAt"]}
        updated: SessionMessage | None = await self._provider.update_message(message)
        if updated is not None:
            await self._events.emit("update", self.id, message=updated)
            await self._status("idle")
        return updated

    async def delete_messages(self, message_ids: Iterable[str]) -> list[str]:
        """Remove messages; returns the ids of those that were there."""
        if isinstance(message_ids, str):
            raise TypeError("delete_messages takes a list of ids, not one id")
        ids = [arguments.text("a message id", message_id) for message_id in message_ids]
        await self._ready()
        removed: list[str] = await self._provider.delete_messages(ids)
        if removed:
            await self._restore_skills()
            await self._events.emit("delete", self.id, message_ids=removed)
            await self._status("idle")
        return removed

    async def clear_messages(self) -> None:
        """Remove all messages and overlays; context blocks stay."""
        await self._ready()
        await self._provider.clear_messages()
        self._skills.clear()
        await self._refresh_after_clear()
        await self._events.emit("clear", self.id)
        await self._status("idle")

    async def set_leaf(self, message_id: str) -> SessionMessage:
        """Make a message the tip until the next append or move."""
        arguments.text("a message id", message_id)
        await self._ready()
        move = self._optional("set_leaf")
        if move is None:
            raise NotSupported("set_leaf")
        if await self._provider.get_message(message_id) is None:
            raise UnknownMessage(self.id, message_id)
        message: SessionMessage = await move(message_id)
        await self._restore_skills()
        await self._events.emit("leaf", self.id, message_id=message_id)
        await self._status("idle")
        return message

    # -- reading -----------------------------------------------------------------------------------

    async def get_message(self, message_id: str) -> SessionMessage | None:
        """A message of this session, or None."""
        arguments.text("a message id", message_id)
        await self._ready()
        return _or_none(await self._provider.get_message(message_id))

    async def get_history(
        self, leaf_id: str | None = None, *, sanitize_tools: bool = False
    ) -> list[SessionMessage]:
        """The path to a leaf with summaries in place of what they cover."""
        arguments.text_or_none("a leaf_id", leaf_id)
        await self._ready()
        messages = as_messages(await self._shown(leaf_id))
        return sanitize_tool_pairs(messages) if sanitize_tools else messages

    async def get_latest_leaf(self) -> SessionMessage | None:
        """The tip of the active branch; of one that cannot be read, the last that can."""
        await self._ready()
        found = _or_none(await self._provider.get_latest_leaf())
        if found is not None:
            return found
        path = as_read(await self._provider.get_history())
        return path[-1] if path else None

    async def get_branches(self, message_id: str | None) -> list[SessionMessage]:
        """The direct children of a message, or the roots for None, in the order of appending."""
        arguments.text_or_none("a message id", message_id)
        await self._ready()
        return as_read(await self._provider.get_branches(message_id))

    async def get_path_length(self, leaf_id: str | None = None) -> int:
        """How many messages the path has, summaries not counted."""
        arguments.text_or_none("a leaf_id", leaf_id)
        await self._ready()
        return int(await self._provider.get_path_length(leaf_id or None))

    async def get_history_row_stats(self) -> list[RowStat] | None:
        """Sizes of the messages of the active path; None if the provider does not tell."""
        await self._ready()
        stats = self._optional("get_row_stats")
        return None if stats is None else await stats()

    async def get_recent_history(
        self, max_content_bytes: int, min_recent_messages: int = 1
    ) -> RecentHistory:
        """The longest end of the active path that fits."""
        arguments.number("max_content_bytes", max_content_bytes)
        arguments.number("min_recent_messages", min_recent_messages)
        await self._ready()
        recent = self._optional("get_recent_history")
        if recent is None:
            return await self._all_as_recent()
        found: RecentHistory = await recent(max_content_bytes, min_recent_messages)
        compactions = await self._provider.get_compactions()
        shown = as_messages(overlaid(found.messages, compactions))
        return RecentHistory(shown, found.truncated, found.total_content_bytes)

    async def _all_as_recent(self) -> RecentHistory:
        if not self._warned_of_recent:
            self._warned_of_recent = True
            logger.warning("the provider of session %r reads history only whole", self.id)
        size = sum(map(stored_size, await self._provider.get_history()))
        return RecentHistory(await self.get_history(), False, size)

    async def search(self, query: str, limit: int = 20) -> Hits:
        """Messages of this session that hold all words of the query, the best first."""
        arguments.text("a query", query)
        arguments.number("a limit", limit)
        await self._ready()
        search = self._optional("search_messages")
        if search is None:
            raise SearchNotSupported
        found: Hits = await search(query, limit)
        return found

    # -- events ------------------------------------------------------------------------------------

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Have a listener told what is done through this object; call the result to stop it."""
        return self._events.subscribe(listener)


def _or_none(found: object) -> SessionMessage | None:
    """A message, if a provider gave one."""
    messages = as_read([found])
    return messages[0] if messages else None


def _same(stored: SessionMessage, message: SessionMessage) -> bool:
    """Whether an update would change nothing; the time of creation is not up for change."""
    # As JSON: to Python, False is 0.
    return compact_sorted({**stored, "createdAt": ""}) == compact_sorted(
        {**message, "createdAt": ""}
    )
