"""The part of a session that keeps it short: estimates, status, compaction by hand and by itself."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any

from workspace_session.errors import InvalidCompaction, NoCompactionFunction
from workspace_session.session import arguments
from workspace_session.session.builder import logger
from workspace_session.session.calling import call
from workspace_session.session.compactor import FunctionFailed, compact_once
from workspace_session.session.context_api import SessionContext
from workspace_session.session.estimates import session_tokens
from workspace_session.session.flights import fly
from workspace_session.session.shapes import (
    Shown,
    as_messages,
    as_read,
    check_stretch,
    id_of,
    overlaid,
    still_shows,
)
from workspace_session.session.values import Compaction, CompactResult


class SessionCompaction(SessionContext):
    """Overlays, and when to make them."""

    _warned = False  # that nothing could be compacted

    # -- overlays ----------------------------------------------------------------------------------

    async def get_compactions(self) -> list[Compaction]:
        """All overlays, superseded ones too, in the order they were made."""
        await self._ready()
        found: list[Compaction] = await self._provider.get_compactions()
        return found

    async def add_compaction(self, summary: str, from_id: str, to_id: str) -> Compaction:
        """Store an overlay of your own making; the prompt stays as it is."""
        for what, value in (("a summary", summary), ("from_id", from_id), ("to_id", to_id)):
            arguments.text(what, value)
        await self._ready()
        if not summary.strip():
            raise InvalidCompaction(self.id, from_id, to_id, "the summary is blank")
        if self._shortcut("compact_range") is None:  # whose storage checks the range itself
            path = await self._provider.get_history(to_id)
            check_stretch(self.id, [id_of(message) for message in path], from_id, to_id)
        overlay: Compaction = await self._provider.add_compaction(summary, from_id, to_id)
        await self._events.emit("compaction", self.id, compaction=overlay)
        return overlay

    async def _shown(self, leaf_id: str | None) -> list[Shown]:
        """The path to a leaf with overlays applied, each summary as the overlay it comes from."""
        direct = self._shortcut("get_context")
        if direct is not None:
            items: list[Shown] = await direct(leaf_id or None)
            return items
        path = await self._provider.get_history(leaf_id or None)
        return overlaid(path, await self._provider.get_compactions())

    async def _store_overlay(
        self, summary: str, from_id: str, to_id: str, expected: Sequence[str]
    ) -> Compaction | None:
        """Store an overlay, if up to its end there still is shown what was expected."""
        at_once = self._shortcut("compact_range")
        if at_once is not None:
            stored: Compaction | None = await at_once(summary, from_id, to_id, expected)
            return stored
        if not still_shows(await self._shown(to_id), expected):
            return None
        overlay: Compaction = await self._provider.add_compaction(summary, from_id, to_id)
        return overlay

    # -- compacting --------------------------------------------------------------------------------

    async def compact(self, leaf_id: str | None = None) -> CompactResult | None:
        """Have history summarised by the registered function; None when there was nothing to do."""
        if self._function is None:
            raise NoCompactionFunction
        await self._ready()

        leaf = arguments.text_or_none("a leaf_id", leaf_id) or await self._latest_leaf_id()
        return await fly(self._flight_key, leaf, lambda: self._alone(leaf_id), wait=True)

    @property
    def _flight_key(self) -> Any:
        """What all objects for one session have in common, as far as they can know."""
        known = getattr(self._provider, "identity", None) if self._makes_ids else None
        if known is not None:
            return known
        return ("provider", id(self._given)) if self._store is None else (id(self._store), self.id)

    async def _alone(self, leaf_id: str | None, *, by_itself: bool = False) -> CompactResult | None:
        """Compact while other processes are kept from it, where the provider can do that."""
        lock = self._optional("lock")
        if lock is None:
            return await self._compact(leaf_id, by_itself)
        held = AsyncExitStack()
        try:
            had = await held.enter_async_context(lock())
        except Exception as error:
            await self._failed(error)
            raise
        try:
            return None if had is False else await self._compact(leaf_id, by_itself)
        finally:
            try:
                await held.aclose()
            except Exception:  # what was stored stands
                logger.exception("the lock of session %r could not be let go", self.id)

    async def _compact(self, leaf_id: str | None, by_itself: bool) -> CompactResult | None:
        closing: dict[str, Any] = {}
        failures = self._failures
        before = await self._status("compacting")
        try:
            result = await self._compacted(leaf_id)
            if result is not None:
                closing = {"compacted": {"tokens_before": before}}
            elif by_itself and failures == self._failures:
                self._warn_that_nothing_was_compacted()
            return result
        finally:  # whatever happens, a cancellation included
            await self._status("idle", **closing)

    async def _compacted(self, leaf_id: str | None) -> CompactResult | None:
        try:
            assert self._function is not None  # nothing unsets it
            shown = await self._shown(leaf_id)
            result = await compact_once(shown, self._function, self._counter, self._store_overlay)
        except FunctionFailed as failure:
            await self._failed(failure.error)
            return None
        except Exception as error:
            await self._failed(error)
            raise
        if result is not None:
            self._warned = False
            await self._refresh_after_compaction()
            await self._events.emit("compact", self.id, result=result)
        return result

    async def _latest_leaf_id(self) -> str | None:
        leaf = as_read([await self._provider.get_latest_leaf()])
        return leaf[0]["id"] if leaf else None

    async def _compact_by_itself(self, leaf: str) -> None:
        """After an append that brought the session above its threshold; it never fails the append."""
        with suppress(Exception):  # reported where it happened
            await fly(self._flight_key, leaf, lambda: self._alone(None, by_itself=True), wait=False)

    def _warn_that_nothing_was_compacted(self) -> None:
        if self._warned:
            return
        self._warned = True
        logger.warning(
            "session %r is above its threshold and nothing was compacted (%s configured)",
            self.id,
            "a token counter is" if self._counter else "no token counter is",
        )

    # -- estimates and status ----------------------------------------------------------------------

    _failures = 0

    @property
    def _armed(self) -> bool:
        return self._threshold is not None and self._function is not None

    async def _estimate(self) -> int:
        async def history() -> Any:
            return as_messages(await self._shown(None))

        try:
            return await session_tokens(
                self._shortcut("get_context_tokens"),
                history,
                self._prompt,
                self._blocks,
                self._counter,
            )
        except Exception as error:
            await self._failed(error)
            return 0

    async def _status(self, phase: str, **more: Any) -> int:
        """Tell the status, if anybody wants to know; returns the estimate, 0 if none was made."""
        if not self._armed and not self._events.wants_status():
            return 0
        estimate = await self._estimate()
        await self._events.emit(
            "status",
            self.id,
            phase=phase,
            token_estimate=estimate,
            token_threshold=self._threshold,
            **more,
        )
        return estimate

    async def _failed(self, error: Exception) -> None:
        """A compaction, or what belongs to one, has failed."""
        self._failures += 1
        if self._on_error is None:
            logger.warning("compacting session %r failed: %s", self.id, error)
        else:
            try:
                await call(self._on_error, error)
            except Exception:
                logger.warning("the error handler of session %r failed", self.id, exc_info=True)
        await self._tell_of(error)

    async def _tell_of(self, error: Exception) -> None:
        await self._events.emit("error", self.id, error=str(error) or type(error).__name__)

    async def _refresh_after_compaction(self) -> None:
        try:
            await self._prompt.refresh()
        except Exception as error:
            await self._failed(error)

    async def _refresh_after_clear(self) -> None:
        try:
            await self._prompt.refresh()
        except Exception as error:  # nothing was compacted: no business of the error handler
            logger.warning("the prompt of session %r is as before the clear: %s", self.id, error)
            await self._tell_of(error)
