"""Where everything is: the only module that joins paths.

Every path is the root and names that `names` made, so nothing lands outside by its name. That
nothing does through a symbolic link is what `Layout.check` is for: call it before opening a file.
Listings give original ids, sorted by code point, and leave out what is not ours; `foreign_names` is
how `verify()` reports that.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from workspace_session.errors import InvalidId, UnsafePath
from workspace_session.files import listings
from workspace_session.files.listings import COMMIT_NAME, DOCUMENT, ITEMS, LOG, TREE
from workspace_session.files.names import (
    decode_name,
    decode_namespace_part,
    encode_id,
    encode_namespace_part,
    is_corrupt_leftover,
    temporary_name,
    utc_stamp,
)

__all__ = [
    "AgentPlace",
    "Layout",
    "StatePlace",
    "decode_name",
    "encode_id",
    "encode_namespace_part",
    "temporary_name",
    "utc_stamp",
    "workspace_above",
]

HIDDEN = ".workspace"

_DEEPEST_NAMESPACE = 3


@dataclass(frozen=True, slots=True)
class Layout:
    """The places below one root."""

    root: Path

    def __post_init__(self) -> None:
        # One spelling for one place: locks are shared between those who spell it differently.
        object.__setattr__(self, "root", Path(os.path.realpath(self.root)))

    # -- beside the agents --

    @property
    def hidden(self) -> Path:
        """What is never versioned."""
        return self.root / HIDDEN

    @property
    def trash(self) -> Path:
        """What was deleted."""
        return self.hidden / "trash"

    @property
    def cache(self) -> Path:
        """What can be derived again."""
        return self.hidden / "cache"

    @property
    def search(self) -> Path:
        """The search indexes."""
        return self.hidden / "search"

    @property
    def locks(self) -> Path:
        """The lock files, which mirror what they guard."""
        return self.hidden / "locks"

    def lock_of(self, path: Path) -> Path:
        """The lock file that guards a session: `path` is its place, without extension."""
        mirrored = self.mirrored(self.locks, path)
        return mirrored.with_name(f"{mirrored.name}.lock")

    def new_trash(self, now: datetime | None = None) -> Path:
        """A directory for what one deletion takes away; it does not exist yet."""
        return self.trash / f"{utc_stamp(now)}-{secrets.token_hex(4)}"

    def mirrored(self, base: Path, path: Path) -> Path:
        """The place below `base` that `path` has below the root."""
        return base / self.shown(path)

    def shown(self, path: Path) -> str:
        """The path below the root, with `/`: how texts name it."""
        below = os.fspath(path).removeprefix(os.fspath(self.root)).lstrip(os.sep)
        return below.replace(os.sep, "/") or "."

    # -- symbolic links --

    def check(self, path: Path) -> None:
        """Raise `UnsafePath` when a symbolic link in the path leads out of the root."""
        # Every time, since a link may take the place of anything at any moment. Where there is no
        # link below the root, which is itself resolved, nothing leads out.
        place = os.fspath(self.root)
        for name in self.shown(path).split("/"):
            place = f"{place}{os.sep}{name}"
            if os.path.islink(place):  # noqa: PTH114 (a Path for each name would double the cost)
                self._resolve(path)
                return

    def _resolve(self, path: Path) -> None:
        for place in (path.parent, path):
            if not Path(os.path.realpath(place)).is_relative_to(self.root):
                raise UnsafePath(self.shown(path))

    # -- agents --

    def namespace(self, parts: tuple[str, ...]) -> Path:
        """The directory of a namespace; the root for `()`."""
        if len(parts) > _DEEPEST_NAMESPACE:  # nothing that lists would ever come there
            reason = f"too deep ({len(parts)} parts, at most {_DEEPEST_NAMESPACE})"
            raise InvalidId("user", "/".join(map(str, parts)), reason)
        return self.root.joinpath(*map(encode_namespace_part, parts))

    def shared(self, namespace: tuple[str, ...] = ()) -> SharedPlace:
        """The places that the agents of a namespace share."""
        return SharedPlace(self, namespace)

    def agent(self, agent_id: str, namespace: tuple[str, ...] = ()) -> AgentPlace:
        """The places of one agent."""
        return AgentPlace(self, agent_id, namespace)

    def namespaces(self) -> list[tuple[str, ...]]:
        """Every namespace that has agents, to a depth that keeps this from walking a whole disk."""
        found: list[tuple[str, ...]] = []
        pending: list[tuple[str, ...]] = [()]
        while pending:
            parts = pending.pop()
            for name in listings.directory_names(self.namespace(parts)):
                part = decode_namespace_part(name)
                if part is not None and len(parts) < _DEEPEST_NAMESPACE:
                    pending.append((*parts, part))
                elif name == "agents" and listings.holds_agents(self.namespace(parts) / name):
                    found.append(parts)
        return sorted(found)

    def is_workspace(self) -> bool:
        """Whether there is a workspace here: a clone of one has no hidden directory yet."""
        if self.hidden.is_dir() or listings.holds_agents(self.root / "agents"):
            return True
        names = listings.directory_names(self.root)
        return any(
            listings.holds_agents(self.root / name / "agents")
            for name in names
            if decode_namespace_part(name) is not None
        )

    def agents(self, namespace: tuple[str, ...] = ()) -> Path:
        """The directory of the agents of a namespace."""
        return self.namespace(namespace) / "agents"

    def agent_ids(self, namespace: tuple[str, ...] = ()) -> list[str]:
        """The agents of a namespace."""
        names = listings.directory_names(self.agents(namespace))
        return listings.sorted_ids(map(decode_name, names))

    def beside_agents(self, namespace: tuple[str, ...] = ()) -> list[Path]:
        """What lies among the agents of a namespace under a name that is not ours, or as a link."""
        directory = self.agents(namespace)
        paths = (directory / name for name in listings.visible_names(directory))
        return sorted(path for path in paths if not decode_name(path.name) or path.is_symlink())


@dataclass(frozen=True, slots=True)
class SharedPlace:
    """What the agents of a namespace share: instructions, knowledge, memory."""

    layout: Layout
    namespace: tuple[str, ...] = ()

    @property
    def directory(self) -> Path:
        """The directory of the namespace."""
        return self.layout.namespace(self.namespace)

    @property
    def instructions(self) -> Path:
        """What all agents are told."""
        return self.directory / "AGENTS.md"

    @property
    def memory(self) -> Path:
        """What people and agents have written down; it is theirs alone."""
        return self.directory / "MEMORY.md"

    @property
    def knowledge(self) -> Path:
        """Files to look things up in."""
        return self.directory / "knowledge"

    @property
    def knowledge_guide(self) -> Path:
        """What says where to look."""
        return self.knowledge / "KNOWLEDGE.md"

    def notes(self, date: str) -> Path:
        """The notes of a day."""
        return self.directory / "memory" / f"{date}.md"

    @property
    def memory_lock(self) -> Path:
        """The lock of all notes."""
        return self.layout.mirrored(self.layout.locks, self.directory) / ".memory.lock"


@dataclass(frozen=True, slots=True)
class AgentPlace:
    """The places of one agent: its state, its transcripts and their index."""

    layout: Layout
    agent_id: str
    namespace: tuple[str, ...] = ()
    directory: Path = field(init=False, repr=False, compare=False)
    sessions: Path = field(init=False, repr=False, compare=False)
    context: Path = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        agents = self.layout.agents(self.namespace)
        directory = agents / encode_id("agent", self.agent_id)
        object.__setattr__(self, "directory", directory)
        object.__setattr__(self, "sessions", directory / "sessions")
        object.__setattr__(self, "context", directory / "context")

    @property
    def files(self) -> Path:
        """Payloads that were handed over."""
        return self.directory / "files"

    def payload(self, name: str) -> Path:
        """One of them; its name is made of what it holds."""
        return self.files / name

    @property
    def index(self) -> Path:
        """The derived index of the sessions."""
        return self.sessions / "sessions.json"

    @property
    def index_lock(self) -> Path:
        """The lock of the index."""
        return self.layout.mirrored(self.layout.locks, self.sessions) / ".index.lock"

    @property
    def states(self) -> StatePlace:
        """The places of the agent's state."""
        return StatePlace(self.layout, self.context)

    # -- one session --

    def tree(self, session_id: str) -> Path:
        """What the model sees."""
        return self.sessions / f"{encode_id('session', session_id)}{TREE}"

    def log(self, session_id: str) -> Path:
        """Everything that happened."""
        return self.sessions / f"{encode_id('session', session_id)}{LOG}"

    def session_lock(self, session_id: str) -> Path:
        """The lock of both files of a transcript."""
        return self.layout.lock_of(self.sessions / encode_id("session", session_id))

    def state(self, session_id: str) -> Path:
        """The directory of a session's state files."""
        return self.states.session(session_id)

    def state_lock(self, session_id: str) -> Path:
        """The lock of a session's state files."""
        return self.states.lock(session_id)

    # -- listings --

    def session_ids(self) -> list[str]:
        """The sessions that have a transcript."""
        names = listings.visible_names(self.sessions)
        return listings.sorted_ids(map(listings.transcript_id, names))

    def state_session_ids(self) -> list[str]:
        """The sessions that have state."""
        return self.states.session_keys()

    def case_twin(self, session_id: str) -> str | None:
        """A session of either track whose id differs from this one only in case."""
        name = encode_id("session", session_id)
        twin = listings.case_twin(self.sessions, (f"{name}{TREE}", f"{name}{LOG}"))
        found = None if twin is None else listings.transcript_id(twin)
        return found or self.states.case_twin(session_id)

    def refuse_twins(self, session_id: str) -> None:
        """Raise `InvalidId` when a session about to be made differs only in case from another.

        So do its agent and its user, when they are as new as the session is.
        """
        if not self.directory.exists():
            self._refuse_twins_above()
        _refuse("session", session_id, self.case_twin(session_id))

    def _refuse_twins_above(self) -> None:
        for depth, part in enumerate(self.namespace):
            above = self.layout.namespace(self.namespace[:depth])
            twin = listings.case_twin(above, (encode_namespace_part(part),))
            _refuse("user", part, None if twin is None else decode_namespace_part(twin))
        name = encode_id("agent", self.agent_id)
        twin = listings.case_twin(self.directory.parent, (name,))
        _refuse("agent", self.agent_id, None if twin is None else decode_name(twin))

    def foreign_names(self) -> list[Path]:
        """What lies among the transcripts and the states and is neither; dot-files do not count."""
        foreign = [
            self.sessions / name
            for name in listings.visible_names(self.sessions)
            if name != self.index.name and listings.transcript_id(name) is None
        ]
        foreign += self.states.foreign_names()
        return sorted(path for path in foreign if not is_corrupt_leftover(path.name))


@dataclass(frozen=True, slots=True)
class StatePlace:
    """The places of one state store: a directory for a session, a file for a key."""

    layout: Layout
    directory: Path

    def scoped(self, parts: tuple[str, ...]) -> StatePlace:
        """The store of a namespace below this one."""
        names = (f"@{encode_namespace_part(part)}" for part in parts)
        return StatePlace(self.layout, self.directory.joinpath(*names))

    def session(self, session_key: str) -> Path:
        """The directory of a session."""
        return self.directory / encode_id("session", session_key)

    def lock(self, session_key: str) -> Path:
        """The lock of a session's state."""
        return self.layout.lock_of(self.session(session_key))

    def commit(self, session_key: str) -> Path:
        """The note that several files of a session are being replaced."""
        return self.session(session_key) / COMMIT_NAME

    def document(self, session_key: str, key: str) -> Path:
        """The file of a key whose state is one value."""
        return self.session(session_key) / f"{encode_id('key', key)}{DOCUMENT}"

    def items(self, session_key: str, key: str) -> Path:
        """The file of a key whose state is a list, one item a line."""
        return self.session(session_key) / f"{encode_id('key', key)}{ITEMS}"

    def session_keys(self) -> list[str]:
        """The sessions that have a state file."""
        names = listings.directory_names(self.directory)
        return listings.sorted_ids(
            decode_name(name) for name in names if listings.holds_state(self.directory / name)
        )

    def keys(self, session_key: str) -> list[str]:
        """The keys of a session."""
        return listings.state_keys(self.session(session_key))

    def case_twin(self, session_key: str) -> str | None:
        """A session whose key differs from this one only in case."""
        twin = listings.case_twin(self.directory, (encode_id("session", session_key),))
        if twin is None or not listings.holds_state(self.directory / twin):
            return None
        return decode_name(twin)

    def foreign_names(self) -> list[Path]:
        """What lies here and is no state."""
        foreign: list[Path] = []
        for name in listings.visible_names(self.directory):
            place = self.directory / name
            if not place.is_dir() or decode_name(name.removeprefix("@")) is None:
                foreign.append(place)
            elif not name.startswith("@"):
                names = listings.visible_names(place)
                foreign += [place / key for key in names if listings.state_key(key) is None]
        return foreign


def workspace_above(directory: Path) -> Path | None:
    """The nearest directory, this one or above, that has a `.workspace/`."""
    for place in (directory, *directory.parents):
        if (place / HIDDEN).is_dir():
            return place
    return None


def root_above(directory: Path) -> Path | None:
    """The root of the nearest workspace, from a directory upwards; a fresh clone counts too."""
    for place in (directory, *directory.parents):
        if (place / HIDDEN).is_dir() or listings.holds_agents(place / "agents"):
            return place
    return None


def _refuse(kind: str, value: str, twin: str | None) -> None:
    if twin is not None:
        raise InvalidId(kind, value, f'differs only in case from "{twin}"')
