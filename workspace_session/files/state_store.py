"""What every state store does: snapshots of an agent's modules, by session and key.

A store holds nothing in memory. A value is read without a lock, since its file is replaced at once;
everything else runs under the lock of its session, for as long as its files are read or written and
no longer: modules are asked for their states before it is taken, and given them after it is let go,
because nobody else's code may run while others wait. That changes nothing that can be observed: what
`save_to` writes is what it had rendered, and what `load_from` loads was all read at one moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from workspace_session.errors import (
    InvalidId,
    NamespaceMismatch,
    StateConflict,
    StateCorrupt,
    UnknownSession,
)
from workspace_session.files.layout import StatePlace, encode_id
from workspace_session.files.locks import lock_at
from workspace_session.files.modules import check_modules, copy_of, load_module, render_modules
from workspace_session.files.state_bytes import (
    ABSENT,
    Etag,
    Rendered,
    Stored,
    Versioned,
    render_items,
    render_value,
)
from workspace_session.files.state_files import StateFiles


class StateStore:
    """State files below one directory; where that is, a subclass says."""

    def __init__(self, *, durability: str, namespace: tuple[str, ...] | None) -> None:
        if durability not in ("disk", "os"):
            raise ValueError(f"durability is 'disk' or 'os', not {durability!r}")
        self.durability = durability
        self.namespace = namespace  # None until it is scoped to one

    def _place(self) -> StatePlace:
        raise NotImplementedError

    def _view(self, namespace: tuple[str, ...]) -> Self:
        raise NotImplementedError

    def _refuse_twins(self, session_key: str) -> None:
        twin = self._place().case_twin(session_key)
        if twin is not None:
            raise InvalidId("session", session_key, f'differs only in case from "{twin}"')

    def scoped(self, parts: Iterable[str]) -> Self:
        """This store for one namespace; `NamespaceMismatch` when it already belongs to another."""
        namespace = tuple(parts)
        if self.namespace is None:
            return self._view(namespace)
        if self.namespace != namespace:
            raise NamespaceMismatch(self.namespace, namespace)
        return self

    # -- one key --

    def save(self, session_key: str, key: str, state: Any, *, if_match: Etag | None = None) -> str:
        """Store a state; the etag of what was written."""
        return self._write(session_key, {key: render_value(state)}, {key: if_match})[key]

    def save_list(
        self,
        session_key: str,
        key: str,
        items: list[Any] | tuple[Any, ...],
        *,
        if_match: Etag | None = None,
    ) -> str:
        """Store a list, given whole, one item a line; the etag of what it now is."""
        return self._write(session_key, {key: render_items(items)}, {key: if_match})[key]

    def get(self, session_key: str, key: str, default: Any = None) -> Any:
        """The state of a key, or `default`."""
        return self.get_versioned(session_key, key, default).value

    def get_versioned(self, session_key: str, key: str, default: Any = None) -> Versioned:
        """The state of a key and its etag, of one read."""
        return _versioned(self._read(session_key, key), default)

    def get_list(self, session_key: str, key: str) -> list[Any]:
        """The list of a key, `[]` when there is none."""
        items: list[Any] = self.get_list_versioned(session_key, key).value
        return items

    def get_list_versioned(self, session_key: str, key: str) -> Versioned:
        """The list of a key and its etag, of one read."""
        stored = self._read(session_key, key)
        if stored is None:
            return Versioned([], ABSENT)
        found = stored.versioned()
        if not isinstance(found.value, list):
            raise StateCorrupt(stored.shown, None, "not a list")
        return found

    # -- what there is --

    def exists(self, session_key: str, key: str | None = None) -> bool:
        """Whether a session has any state, or that of a key."""
        if key is None:
            return bool(self.list_keys(session_key))
        return self._read(session_key, key) is not None

    def list_session_keys(self) -> list[str]:
        """The sessions that have state."""
        place = self._place()
        place.layout.check(place.directory)
        keys = place.session_keys()
        settled = [key for key in keys if self._settle(self._files(key), key)]
        return place.session_keys() if settled else keys

    def list_keys(self, session_key: str) -> list[str]:
        """The keys of a session."""
        files = self._files(session_key)
        self._settle(files, session_key)
        return files.keys()

    def delete(
        self, session_key: str, key: str | None = None, *, trash: Path | None = None
    ) -> bool:
        """Remove a key, or move a whole session to the trash; whether there was anything.

        `trash` is a directory of the trash that the caller also moves other things to.
        """
        if not self.exists(session_key, key):
            return False
        with self.locked(session_key):
            files = self._files(session_key)
            if key is not None:
                return files.remove(key)
            if not files.keys():
                return False  # somebody else was faster
            files.move_to(trash or self._place().layout.new_trash())
            return True

    # -- modules --

    def save_to(
        self,
        session_key: str,
        modules: Mapping[str, object],
        *,
        if_match: Mapping[str, Etag | None] | None = None,
    ) -> dict[str, str]:
        """Store the states of modules, all or none; the etag of each."""
        return self._write(session_key, render_modules(modules), if_match or {})

    def load_from(self, session_key: str, modules: Mapping[str, object]) -> dict[str, Etag]:
        """Give modules their stored states; the etag of each, `ABSENT` for one left alone."""
        found = self.load_versioned(session_key, modules)
        if found is None:
            raise UnknownSession(session_key)
        return {name: versioned.etag for name, versioned in found.items()}

    def load_if_exists(
        self,
        session_key: str,
        modules: Mapping[str, object],
        *,
        initial: Mapping[str, Any] | None = None,
    ) -> bool:
        """Give modules their stored states, or a copy of those in `initial`."""
        return self.load_versioned(session_key, modules, initial=initial) is not None

    def load_versioned(
        self,
        session_key: str,
        modules: Mapping[str, object],
        *,
        initial: Mapping[str, Any] | None = None,
    ) -> dict[str, Versioned] | None:
        """As `load_if_exists`; what was loaded, in objects that no module has; None when absent."""
        check_modules(modules)
        stored = self._read_all(session_key, modules)
        states = {name: copy_of(state) for name, state in (initial or {}).items()}
        states |= {name: file.versioned().value for name, file in (stored or {}).items() if file}
        # Everything has been parsed before the first module is touched.
        for name, module in modules.items():
            if name in states:
                load_module(name, module, states[name])
        if stored is None:
            return None
        return {name: _versioned(file) for name, file in stored.items()}

    # -- under the lock --

    @contextmanager
    def locked(self, session_key: str) -> Iterator[None]:
        """Hold the lock of a session, so that several calls are one change to all others."""
        place = self._place()
        lock = lock_at(
            place.lock(session_key), shown=place.layout.shown(place.session(session_key))
        )
        with lock:
            files = self._files(session_key)
            if files.is_unsettled():
                files.settle()
            yield

    def _settle(self, files: StateFiles, session_key: str) -> bool:
        """Finish a change that a crash cut short; whether there was one."""
        if not files.is_unsettled():
            return False
        with self.locked(session_key):
            return True

    def _read(self, session_key: str, key: str) -> Stored | None:
        files = self._files(session_key)
        if not files.is_unsettled():
            stored = files.read_value(key)
            if stored is not None or not files.directory.exists():
                return stored
        with self.locked(session_key):
            return files.read(key)

    def _read_all(self, session_key: str, keys: Iterable[str]) -> dict[str, Stored | None] | None:
        """The files of several keys at one moment; None when the session has no state at all."""
        files = self._files(session_key)
        if not files.directory.exists():
            return None
        with self.locked(session_key):
            return {key: files.read(key) for key in keys} if files.keys() else None

    def _write(
        self,
        session_key: str,
        rendered: Mapping[str, Rendered],
        if_match: Mapping[str, Etag | None],
    ) -> dict[str, str]:
        for key in {**rendered, **if_match}:
            encode_id("key", key)  # refused before a lock file is made for it
        with self.locked(session_key):
            files = self._files(session_key)
            found = {key: files.read(key) for key in {**rendered, **if_match}}
            for key, expected in if_match.items():
                _check_match(session_key, key, expected, found[key])
            if not files.directory.exists():
                self._refuse_twins(session_key)
            files.put(rendered, found)
        return {key: new.etag for key, new in rendered.items()}

    def _files(self, session_key: str) -> StateFiles:
        return StateFiles(self._place(), session_key, sync=self.durability == "disk")


def _versioned(stored: Stored | None, default: Any = None) -> Versioned:
    return Versioned(default, ABSENT) if stored is None else stored.versioned()


def _check_match(session_key: str, key: str, expected: Etag | None, found: Stored | None) -> None:
    actual = ABSENT if found is None else found.etag
    if expected is not None and expected != actual:
        raise StateConflict(session_key, key, expected, actual)
