"""Building a session: what it runs on and how it is set up, all of it settled at first use."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

from workspace_session.errors import SessionInUse
from workspace_session.session import arguments
from workspace_session.session.calling import AwaitableProvider
from workspace_session.session.context import ContextBlocks
from workspace_session.session.estimates import TokenCounter
from workspace_session.session.events import Events
from workspace_session.session.prompt import SystemPrompt
from workspace_session.session.protocols import SessionStore, missing_methods
from workspace_session.session.skills import LoadedSkills
from workspace_session.session.task_lock import TaskLock

logger = logging.getLogger("workspace_session")

DEFAULT_ID = "default"


class SessionBuilder:
    """The settings of a session and the parts they are settled into."""

    def __init__(
        self,
        source: Any,
        *,
        session_id: str | None = None,
        context: Iterable[Mapping[str, Any]] = (),
        prompt_store: Any = None,
        on_compaction: Callable[..., Any] | None = None,
        compact_after: float | None = None,
        token_counter: TokenCounter | None = None,
        on_compaction_error: Callable[[Exception], Any] | None = None,
    ) -> None:
        self._store, self._given = resolve_source(source)
        self._session_id = arguments.text_or_none("a session id", session_id)
        self._blocks = ContextBlocks(self._wire)
        self._prompt = SystemPrompt(self._blocks)
        self._skills = LoadedSkills()
        self._dropped: set[str] = set()  # labels of removed blocks: what they loaded does not count
        self._events = Events(lambda: getattr(self._store, "broadcast", None))
        self._caches_prompt = False
        self._prompt_store = prompt_store
        self._prompt.use_store(prompt_store)
        self._function: Callable[..., Any] | None = None
        self._threshold: float | None = None
        self._counter: TokenCounter | None = None
        self._on_error: Callable[[Exception], Any] | None = None
        if on_compaction is not None:
            self.on_compaction(on_compaction)
        if token_counter is not None:
            self._counter = arguments.function("a token_counter", token_counter)
        if compact_after is not None:
            self.compact_after(compact_after)
        if on_compaction_error is not None:
            self.on_compaction_error(on_compaction_error)
        self._resolved: Any = None
        self._started = False
        self._starting = TaskLock()
        for block in context:
            self._blocks.register(**block)

    @classmethod
    def create(cls, source: Any) -> Self:
        """A session on an `AgentWorkspace`, another store, or a provider of your own."""
        return cls(source)

    @property
    def id(self) -> str:
        """The session's id."""
        if self._session_id is not None:
            return self._session_id
        if self._store is not None:
            return DEFAULT_ID
        return str(getattr(self._given, "session_id", None) or "")

    # -- builders ----------------------------------------------------------------------------------

    def for_session(self, session_id: str) -> Self:
        """Name the session."""
        self._refuse_when_used("for_session")
        self._session_id = arguments.text("a session id", session_id)
        return self

    def with_context(
        self,
        label: str,
        *,
        description: str | None = None,
        max_tokens: int | None = None,
        provider: Any = None,
    ) -> Self:
        """Add a context block."""
        self._refuse_when_used("with_context")
        self._blocks.register(
            label, description=description, max_tokens=max_tokens, provider=provider
        )
        return self

    def with_cached_prompt(self, provider: Any = None) -> Self:
        """Keep the frozen prompt where a restart finds it."""
        self._refuse_when_used("with_cached_prompt")
        self._prompt.use_store(provider)  # one that cannot be is refused here
        self._caches_prompt, self._prompt_store = True, provider
        return self

    def on_compaction(self, function: Callable[..., Any]) -> Self:
        """Say how to summarise; see `create_compact_function`."""
        self._function = arguments.function("a compaction function", function)
        return self

    def compact_after(self, threshold: float, *, token_counter: TokenCounter | None = None) -> Self:
        """Compact by itself when an append brings the session above so many tokens."""
        threshold = arguments.number("a threshold", threshold)
        if token_counter is not None:
            self._counter = arguments.function("a token_counter", token_counter)
        self._threshold = threshold
        return self

    def on_compaction_error(self, handler: Callable[[Exception], Any]) -> Self:
        """Call this with the exception of every compaction that fails."""
        self._on_error = arguments.function("an error handler", handler)
        return self

    def _refuse_when_used(self, builder: str) -> None:
        if self._resolved is not None:
            raise SessionInUse(self.id, builder)

    # -- first use ---------------------------------------------------------------------------------

    @property
    def _provider(self) -> Any:
        """The storage, settled at first use."""
        if self._resolved is None:
            self._resolved = self._settled()
        return self._resolved

    def _settled(self) -> Any:
        if self._store is None:
            return AwaitableProvider(self._given)
        provider = self._store.provider(self.id)
        if self._caches_prompt and self._prompt_store is None:
            self._prompt.use_store(self._store.prompt_provider(provider))
        return provider

    def _wire(self, label: str) -> Any:
        """Where a block is kept that came without a provider."""
        return None if self._store is None else self._store.block_provider(self._provider, label)

    async def is_deleted(self) -> bool:
        """Whether the session was deleted under this object; a new one for its id would work."""
        ask = None if self._resolved is None else self._shortcut("is_deleted")
        return ask is not None and bool(await ask())

    @property
    def _makes_ids(self) -> bool:
        """Whether the provider is of those that may have shortcuts, see `SessionProvider`."""
        return bool(getattr(self._provider, "makes_ids", False))

    def _shortcut(self, name: str) -> Callable[..., Any] | None:
        """A method that has a meaning here only on a provider that makes ids."""
        return self._optional(name) if self._makes_ids else None

    def _optional(self, name: str) -> Callable[..., Any] | None:
        """A method that providers need not have."""
        found = getattr(self._provider, name, None)
        return found if callable(found) else None


def resolve_source(source: Any) -> tuple[SessionStore | None, Any]:
    """What a session was given: a store, or else a provider."""
    if inspect.isclass(source):
        raise TypeError(f"{source.__name__} is a class; a session runs on an object of it")
    as_store = getattr(source, "session_store", None)
    if callable(as_store):
        return as_store(), None
    if isinstance(source, SessionStore):
        return source, None
    missing = missing_methods(source)
    if missing:
        raise TypeError(
            f"{type(source).__name__} is neither an AgentWorkspace nor a SessionProvider: "
            f"it lacks {', '.join(missing)}"
        )
    return None, source
