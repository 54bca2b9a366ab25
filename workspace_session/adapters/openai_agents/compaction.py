"""`LocalCompactionSession`: compaction by any model, as an overlay: nothing is cleared or rewritten.

The SDK's runner calls `run_compaction` after each response. The summary stands in for the older items
when they are read; all that was said stays in the session, and its branches stay as they are. A call is
never parted from its output, and one that waits for an approval is never hidden.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from workspace_session import Message, SessionTree
from workspace_session.adapters.openai_agents.items import (
    Item,
    cut_before,
    is_sealed,
    is_user_item,
    sealed_summary,
    summary_item,
)
from workspace_session.adapters.openai_agents.sealing import opened, sealed
from workspace_session.adapters.openai_agents.session import AgentsSession
from workspace_session.bridge import in_thread

logger = logging.getLogger("workspace_session")

MANY_ITEMS = 10  # as the SDK's own compaction counts

Summarize = Callable[[list[Item]], str | Awaitable[str | None] | None]
ShouldTrigger = Callable[[dict[str, Any]], bool]


def many_new_items(context: Mapping[str, Any]) -> bool:
    """The default trigger: so many items, those of users left out, since the last summary."""
    return len(context["compaction_candidate_items"]) >= MANY_ITEMS


class LocalCompactionSession:
    """A session whose older items give way to a summary.

    `session` is an `AgentsSession`, or the SDK's `EncryptedSession` over one: then the summary is
    made of what its key opens, and sealed with it.

    `summarize` is given the items, an earlier summary among them, and returns a text, None if there
    is to be no summary now, or a coroutine for either. `should_trigger` is asked as that of the SDK's
    own compaction session is. The newest `keep_recent` items stay as they are.
    """

    def __init__(
        self,
        session: Any,
        summarize: Summarize,
        *,
        should_trigger: ShouldTrigger | None = None,
        keep_recent: int = 4,
    ) -> None:
        store = getattr(session, "underlying_session", session)
        if not isinstance(store, AgentsSession):
            raise TypeError(f"an AgentsSession is compacted, not a {type(session).__name__}")
        trigger = should_trigger or many_new_items
        for given in (summarize, trigger):
            if not callable(given):
                raise TypeError(f"a function is needed to compact, not {given!r}")
        if keep_recent < 0:
            raise ValueError("keep_recent is zero or more")
        self.underlying_session = session
        self._store = store
        self._summarize = summarize
        self._should_trigger = trigger
        self._keep_recent = keep_recent
        self._warned = False

    def __getattr__(self, name: str) -> Any:
        """Branches, search, usage and all the rest are those of the session."""
        if name.startswith("_"):  # the SDK's own compaction is not to rewrite what this one hides
            raise AttributeError(name)
        return getattr(self.underlying_session, name)

    # -- the protocol of the SDK -------------------------------------------------------------------

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self._store.session_id

    @property
    def session_settings(self) -> Any:
        """The settings of the session."""
        return self.underlying_session.session_settings

    @session_settings.setter
    def session_settings(self, settings: Any) -> None:
        self.underlying_session.session_settings = settings

    async def get_items(self, limit: int | None = None, *, wrapper: Any = None) -> list[Any]:
        """The items, with summaries in place of what they cover."""
        items: list[Any] = await self.underlying_session.get_items(limit, wrapper=wrapper)
        return items

    async def add_items(self, items: list[Any], *, wrapper: Any = None) -> None:
        """Add items."""
        await self.underlying_session.add_items(items, wrapper=wrapper)

    async def pop_item(self, *, wrapper: Any = None) -> Any:
        """Take the newest item back; a summary goes with all that it covers."""
        return await self.underlying_session.pop_item(wrapper=wrapper)

    async def clear_session(self, *, wrapper: Any = None) -> None:
        """Hide all items."""
        await self.underlying_session.clear_session(wrapper=wrapper)

    # -- compaction --------------------------------------------------------------------------------

    async def run_compaction(self, args: Any = None, *, wrapper: Any = None) -> None:  # noqa: ARG002
        """Let a summary stand in for the older items, if it is time; with `force`, in any case.

        What is added meanwhile comes after it. If the older items change, the summary is dropped.
        """
        given: Mapping[str, Any] = args or {}
        store = self._store
        shown = await store._tree_calls.read_all(store.tree.context)
        items = await self._readable(shown)
        start = len(shown) - len(items)
        if not given.get("force") and not self._should_trigger(_asked(given, shown[start:], items)):
            return
        count = cut_before(items, max(len(items) - self._keep_recent, 0))
        if count == 0 or (count == 1 and not isinstance(shown[start], Message)):
            return  # nothing, or a summary that no item would be added to
        if any(is_sealed(item) for item in items[:count]):
            if not self._warned:
                logger.warning("session %r is encrypted: it is not summarised", store.session_id)
            self._warned = True
            return
        made = self._summarize(items[:count])
        summary = await made if inspect.isawaitable(made) else made
        if summary is None:
            return
        if not self._is_open and isinstance(summary, str) and summary.strip():
            item = {"role": "assistant", "content": summary}
            summary = sealed_summary(await sealed(self.underlying_session, item))
        await in_thread(_overlay, store.tree, summary, shown[: start + count], start)

    async def _readable(self, shown: list[Any]) -> list[Item]:
        """The items; of an encrypted session those behind the last that its key does not open."""
        raw = [one.message if isinstance(one, Message) else summary_item(one) for one in shown]
        if self._is_open:
            return raw
        items: list[Item] = []
        for item in reversed(await opened(self.underlying_session, raw)):
            if item is None:
                break
            items.append(item)
        return items[::-1]

    @property
    def _is_open(self) -> bool:
        return self._store is self.underlying_session


def _asked(given: Mapping[str, Any], shown: list[Any], items: list[Item]) -> dict[str, Any]:
    """What a trigger is told."""
    last = max((one.key for one in shown if not isinstance(one, Message)), default=("", ""))
    candidates = [
        item
        for one, item in zip(shown, items, strict=True)
        if isinstance(one, Message)
        and one.key > last
        and not is_user_item(item)
        and item.get("type") != "compaction"  # the SDK's own summary
    ]
    return {
        "response_id": given.get("response_id"),
        "compaction_mode": given.get("compaction_mode"),
        "compaction_candidate_items": candidates,
        "session_items": items,
    }


def _overlay(tree: SessionTree, summary: str, seen: list[Any], start: int) -> None:
    """Put a summary in the place of what was seen from `start` on, if all of it is still so."""
    first, last = seen[start], seen[-1]
    from_id = first.id if isinstance(first, Message) else first.from_id
    to_id = last.id if isinstance(last, Message) else last.to_id
    if tree.compact_if(summary, from_id, to_id, lambda shown: shown == seen) is None:
        logger.warning("session %r changed while it was summarised: left as it is", tree.id)
