"""Every error this package raises, one fact and one sentence each.

    WorkspaceError
    ├── InvalidId                ValueError      an id that cannot name a file
    ├── UnsafePath               ValueError      a path that leads out of the workspace
    ├── NotAWorkspace            ValueError      a directory that holds no workspace
    ├── NamespaceMismatch        ValueError      a store that belongs to another namespace
    ├── RuleBroken               AssertionError  a provider that does not keep a rule
    ├── WorkspaceBusy            TimeoutError    a lock that was not had in time
    ├── StateNotSerializable     TypeError       a state that is not JSON
    ├── StateCorrupt             ValueError      a state file that does not parse
    ├── StateLoadFailed                          a module that refused its state
    ├── StateConflict                            a state that changed since it was read
    │   ├── StateUnmergeable                     a list that both sides rewrote
    │   └── TurnConflict                         … and that is why a turn was not saved
    ├── TurnNotSaved                             a turn whose reply stands, and is not saved
    │   └── TurnConflict
    ├── ReentrantCall            RuntimeError    a turn that would wait for itself
    ├── HarnessClosed            RuntimeError    a turn that comes after the end
    ├── PostgresFailed           OSError         what the database complains about
    └── SessionError
        ├── UnknownParent        LookupError     a parent the session does not have
        ├── UnknownMessage       LookupError     a message the session does not have
        ├── UnknownSession       LookupError     a session that does not exist
        ├── SessionExists                        a session that is in the way of another
        ├── SessionDeleted                       a session deleted under its handle
        ├── SessionChanged                       a session that is not what a summary was made of
        ├── InvalidMessage       ValueError      a message that cannot be stored
        ├── InvalidCompaction    ValueError      a range that cannot be summarised
        ├── SessionInUse                         a setting that comes after first use
        ├── NoCompactionFunction                 a compaction without a function for it
        ├── DuplicateBlock                       a context block whose label is taken
        ├── MissingProvider                      a context block that nothing would store
        ├── SharedPromptStore                    one prompt store for many sessions
        ├── BlockError                           a context block that cannot be written so
        └── NotSupported                         something a provider does not offer
            └── SearchNotSupported               … and that is search

Texts name ids and paths below the root, never file contents.
"""

from __future__ import annotations

from collections.abc import Sequence


class WorkspaceError(Exception):
    """The base of every error of this package."""


# -- names and places ------------------------------------------------------------------------------


class InvalidId(WorkspaceError, ValueError):
    """An id that is not usable as a user, agent, session or key."""

    def __init__(self, kind: str, value: object, reason: str) -> None:
        super().__init__(kind, value, reason)
        self.kind, self.value, self.reason = kind, value, reason

    def __str__(self) -> str:
        return f"invalid {self.kind} id: {self.reason}"


class UnsafePath(WorkspaceError, ValueError):
    """A path inside the workspace leads out of it, through a symbolic link."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path} leads out of the workspace"


class NotAWorkspace(WorkspaceError, ValueError):
    """A directory was named that holds no workspace."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path} is not a workspace (workspace-session init makes one)"


class NamespaceMismatch(WorkspaceError, ValueError):
    """A store that is bound to one namespace was asked to serve another."""

    def __init__(self, bound: tuple[str, ...], asked: tuple[str, ...]) -> None:
        super().__init__(bound, asked)
        self.bound, self.asked = bound, asked

    def __str__(self) -> str:
        return f"the store belongs to namespace {self.bound!r}, not to {self.asked!r}"


class WorkspaceBusy(WorkspaceError, TimeoutError):
    """A lock was not had in time; `holder` says who has it, as far as that is known."""

    def __init__(self, path: str, holder: str, seconds: float) -> None:
        super().__init__(path, holder, seconds)
        self.path, self.holder, self.seconds = path, holder, seconds

    def __str__(self) -> str:
        return f"{self.path} is held by {self.holder}; gave up after {self.seconds:g} seconds"


class RuleBroken(WorkspaceError, AssertionError):
    """A provider was checked and does not keep a rule; `detail` says how."""

    def __init__(self, rule: str, detail: str) -> None:
        super().__init__(rule, detail)
        self.rule, self.detail = rule, detail

    def __str__(self) -> str:
        return f"{self.rule}: {self.detail}"


# -- state -----------------------------------------------------------------------------------------


class StateNotSerializable(WorkspaceError, TypeError):
    """A value that is to be stored is not JSON; `path` leads to the part that is not."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path, self.reason = path, reason

    def __str__(self) -> str:
        return f"state is not JSON at {self.path}: {self.reason}"


class StateCorrupt(WorkspaceError, ValueError):
    """A state file does not parse; `line` is 1-based, or None for the file as a whole."""

    def __init__(self, path: str, line: int | None, reason: str) -> None:
        super().__init__(path, line, reason)
        self.path, self.line, self.reason = path, line, reason

    def __str__(self) -> str:
        where = self.path if self.line is None else f"{self.path}, line {self.line}"
        return f"{where} is corrupt: {self.reason}"


class StateLoadFailed(WorkspaceError):
    """A state module refused the state that was stored for it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"module {self.name!r} could not load its stored state"


class StateConflict(WorkspaceError):
    """A state was changed by somebody else since it was read."""

    def __init__(self, session_key: str, key: str, expected: object, actual: object) -> None:
        super().__init__(session_key, key, expected, actual)
        self.session_key, self.key = session_key, key
        self.expected, self.actual = expected, actual

    def __str__(self) -> str:
        return (
            f"state {self.key!r} of session {self.session_key!r} has changed: "
            f"expected {self.expected}, found {self.actual}"
        )


class StateUnmergeable(StateConflict):
    """Two sides rewrote one list, so that neither is the other with something added."""

    def __init__(self, session_key: str, key: str, path: str) -> None:
        super().__init__(session_key, key, None, None)
        self.args = (session_key, key, path)
        self.path = path

    def __str__(self) -> str:
        return (
            f"state {self.key!r} of session {self.session_key!r} cannot be merged: "
            f"both sides rewrote the list at {self.path}"
        )


# -- databases -------------------------------------------------------------------------------------


class PostgresFailed(WorkspaceError, OSError):
    """A command could not do its work because of the database; `reason` is what that says."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"Postgres: {self.reason}"


# -- turns -----------------------------------------------------------------------------------------


class TurnNotSaved(WorkspaceError):
    """An agent has answered, and what was to follow has failed; `reply` is what it said."""

    def __init__(self, reply: object, errors: Sequence[BaseException]) -> None:
        Exception.__init__(self, reply, errors)  # whatever else a subclass is
        self.reply, self.errors = reply, tuple(errors)

    def __str__(self) -> str:
        failed = "; ".join(f"{type(error).__name__}: {error}" for error in self.errors)
        return f"the agent has answered, but its turn is not saved: {failed}"


class TurnConflict(TurnNotSaved, StateConflict):
    """… because somebody else has changed the state of the session meanwhile."""

    def __init__(self, reply: object, errors: Sequence[BaseException]) -> None:
        TurnNotSaved.__init__(self, reply, errors)
        conflict = next(error for error in self.errors if isinstance(error, StateConflict))
        self.session_key, self.key = conflict.session_key, conflict.key
        self.expected, self.actual = conflict.expected, conflict.actual


class ReentrantCall(WorkspaceError, RuntimeError):
    """A call from inside a turn would have to wait for that turn to end."""

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id)
        self.session_id = session_id

    def __str__(self) -> str:
        return f"a turn of session {self.session_id!r} would wait for itself"


class HarnessClosed(WorkspaceError, RuntimeError):
    """A turn was asked of a harness that is closed."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"the harness of agent {self.name!r} is closed"


# -- sessions --------------------------------------------------------------------------------------


class SessionError(WorkspaceError):
    """The base of the errors about one session and its messages."""


class UnknownParent(SessionError, LookupError):
    """A message names a parent that this session does not have."""

    def __init__(self, session_id: str, parent_id: str) -> None:
        super().__init__(session_id, parent_id)  # so that it pickles
        self.session_id, self.parent_id = session_id, parent_id

    def __str__(self) -> str:
        return f"session {self.session_id!r} has no message {self.parent_id!r} to be a parent"


class UnknownMessage(SessionError, LookupError):
    """A message is named that this session does not have."""

    def __init__(self, session_id: str, message_id: str) -> None:
        super().__init__(session_id, message_id)
        self.session_id, self.message_id = session_id, message_id

    def __str__(self) -> str:
        return f"session {self.session_id!r} has no message {self.message_id!r}"


class UnknownSession(SessionError, LookupError):
    """A session is named that does not exist."""

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id)
        self.session_id = session_id

    def __str__(self) -> str:
        return f"there is no session {self.session_id!r}"


class SessionExists(SessionError):
    """A session is to be restored where there is one of the same name."""

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id)
        self.session_id = session_id

    def __str__(self) -> str:
        return f"there already is a session {self.session_id!r}"


class SessionChanged(SessionError):
    """A summary was made, and what it was made of is not there any more as it was."""

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id)
        self.session_id = session_id

    def __str__(self) -> str:
        return f"session {self.session_id!r} changed meanwhile; the summary was not stored"


class SessionDeleted(SessionError):
    """A session was deleted while this handle to it was open."""

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id)
        self.session_id = session_id

    def __str__(self) -> str:
        return f"session {self.session_id!r} was deleted"


class InvalidMessage(SessionError, ValueError):
    """A message that cannot be stored; `reason` says what is wrong with it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"invalid message: {self.reason}"


class InvalidCompaction(SessionError, ValueError):
    """A range of messages that no summary can stand in for."""

    def __init__(self, session_id: str, from_id: str, to_id: str, reason: str) -> None:
        super().__init__(session_id, from_id, to_id, reason)
        self.session_id, self.from_id, self.to_id, self.reason = session_id, from_id, to_id, reason

    def __str__(self) -> str:
        return (
            f"session {self.session_id!r} cannot compact {self.from_id!r}..{self.to_id!r}: "
            f"{self.reason}"
        )


# -- the session API -------------------------------------------------------------------------------


class SessionInUse(SessionError):
    """A builder was called on a session that has already been used."""

    def __init__(self, session_id: str, builder: str) -> None:
        super().__init__(session_id, builder)
        self.session_id, self.builder = session_id, builder

    def __str__(self) -> str:
        return f"session {self.session_id!r} is in use: {self.builder}() comes too late"


class NoCompactionFunction(SessionError):
    """A session is to be compacted and nobody has said how."""

    def __str__(self) -> str:
        return "No compaction function registered. Call on_compaction() first."


class BlockError(SessionError):
    """A context block cannot be written that way; the text is the reason, for models to read."""

    def __init__(self, label: str, reason: str) -> None:
        super().__init__(label, reason)
        self.label, self.reason = label, reason

    def __str__(self) -> str:
        return self.reason


class DuplicateBlock(SessionError):
    """A context block is to be added under a label that is taken."""

    def __init__(self, label: str) -> None:
        super().__init__(label)
        self.label = label

    def __str__(self) -> str:
        return f'Block "{self.label}" already exists'


class MissingProvider(SessionError):
    """A context block is to be added that nothing would store."""

    def __init__(self, label: str) -> None:
        super().__init__(label)
        self.label = label

    def __str__(self) -> str:
        return (
            f'add_context("{self.label}") requires an explicit provider '
            "when Session uses a SessionProvider"
        )


class SharedPromptStore(SessionError):
    """One prompt store was given for all the sessions of a manager."""

    def __str__(self) -> str:
        return (
            "with_cached_prompt() on a manager takes a function of the session id: "
            "sessions cannot share one prompt"
        )


class NotSupported(SessionError):
    """A provider does not offer what was asked for."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"Session provider does not support {self.what}"


class SearchNotSupported(NotSupported):
    """A provider does not offer search."""

    def __init__(self, what: str = "search") -> None:
        super().__init__(what)
