"""Building a manager: what each of its sessions is set up with when it is first obtained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, TypedDict

from workspace_session.errors import SharedPromptStore
from workspace_session.session import arguments
from workspace_session.session.builder import resolve_source
from workspace_session.session.calling import call, method
from workspace_session.session.context import ContextBlocks
from workspace_session.session.estimates import TokenCounter
from workspace_session.session.protocols import SessionStore
from workspace_session.session.session import Session

Setting = Callable[[Session, str], Any]


class Block(TypedDict):
    """What is said of a context block beside its label and its provider."""

    description: str | None
    max_tokens: int | None


class ManagerBuilder:
    """The store of a manager, and the settings of its sessions."""

    def __init__(self, store: Any) -> None:
        self._store = _as_store(store)
        self._settings: list[Setting] = []
        self._blocks = ContextBlocks(lambda _label: None)  # what sessions get, checked when given
        self._history_label: str | None = None

    def with_context(
        self,
        label: str,
        *,
        description: str | None = None,
        max_tokens: int | None = None,
        provider: Any = None,
    ) -> Self:
        """Give every session a context block.

        A provider object is shared by all of them; a function of the session id gives each its own.
        """
        own = callable(provider) and method(provider, "get") is None
        settings: Block = {"description": description, "max_tokens": max_tokens}
        self._blocks.register(label, provider=None if own else provider, **settings)

        async def setting(session: Session, session_id: str) -> None:
            made = await call(provider, session_id) if own else provider
            session.with_context(label, provider=made, **settings)

        self._settings.append(setting)
        return self

    def with_cached_prompt(self, provider: Callable[[str], Any] | None = None) -> Self:
        """Keep every session's frozen prompt; a provider must be a function of the session id."""
        if provider is not None and (not callable(provider) or method(provider, "get")):
            raise SharedPromptStore

        async def setting(session: Session, session_id: str) -> None:
            made = None if provider is None else await call(provider, session_id)
            session.with_cached_prompt(made)

        self._settings.append(setting)
        return self

    def on_compaction(self, function: Callable[..., Any]) -> Self:
        """Say how sessions are summarised."""
        arguments.function("a compaction function", function)
        self._settings.append(lambda session, _id: session.on_compaction(function))
        return self

    def compact_after(self, threshold: float, *, token_counter: TokenCounter | None = None) -> Self:
        """Have sessions compact by themselves above so many tokens."""
        arguments.number("a threshold", threshold)
        if token_counter is not None:
            arguments.function("a token_counter", token_counter)
        self._settings.append(
            lambda session, _id: session.compact_after(threshold, token_counter=token_counter)
        )
        return self

    def on_compaction_error(self, handler: Callable[[Exception], Any]) -> Self:
        """Call this with the exception of every compaction that fails."""
        arguments.function("an error handler", handler)
        self._settings.append(lambda session, _id: session.on_compaction_error(handler))
        return self

    def with_searchable_history(self, label: str) -> Self:
        """Give every session a last block that searches all sessions."""
        self._blocks.register(label)
        self._history_label = label
        return self

    async def _set_up(self, session_id: str) -> Session:
        session = Session(self._store, session_id=session_id)
        for setting in list(self._settings):
            await call(setting, session, session_id)
        return session


def _as_store(candidate: Any) -> SessionStore:
    try:
        store, _provider = resolve_source(candidate)
    except TypeError:
        store = None
    if store is None:
        raise TypeError(f"{type(candidate).__name__} is neither an AgentWorkspace nor a store")
    return store
