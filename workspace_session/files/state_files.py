"""The state files of one session; whoever writes them, or completes a change, holds its lock.

A value is replaced at once, a list may grow at its end, several keys change together or not at all.
A key has one kind at a time. A file that cannot be read is set aside before another takes its name:
nothing that a person could still repair is overwritten.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from workspace_session.errors import InvalidId
from workspace_session.files.atomic import (
    make_directories,
    remove_stale_temporaries,
    set_aside_corrupt,
    sync_directory,
    write_all,
    write_atomic,
)
from workspace_session.files.commit import complete, replace_together
from workspace_session.files.layout import StatePlace
from workspace_session.files.state_bytes import Rendered, Stored


class StateFiles:
    """The files of one session in one store."""

    def __init__(self, place: StatePlace, session_key: str, *, sync: bool) -> None:
        self._place = place
        self._session_key = session_key
        self._sync = sync
        self.directory = place.session(session_key)
        self._note = place.commit(session_key)

    # -- reading --

    def is_unsettled(self) -> bool:
        """Whether a change of several files was begun and is not finished."""
        return self._note.exists()

    def settle(self) -> None:
        """Finish a change that was begun."""
        self._place.layout.check(self._note)
        complete(self._note, sync=self._sync)

    def keys(self) -> list[str]:
        """The keys that have a file."""
        self._place.layout.check(self.directory)
        return self._place.keys(self._session_key)

    def read_value(self, key: str) -> Stored | None:
        """The file of a key that is a value. It is replaced at once, so this needs no lock."""
        return self._read(self._place.document(self._session_key, key), is_list=False)

    def read(self, key: str) -> Stored | None:
        """The file of a key of either kind. Lists grow and kinds change: this needs the lock."""
        items = self._place.items(self._session_key, key)
        return self.read_value(key) or self._read(items, is_list=True)

    def _read(self, path: Path, *, is_list: bool) -> Stored | None:
        self._place.layout.check(path)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        return Stored(data, is_list, path, self._place.layout.shown(path))

    # -- writing --

    def put(self, new: Mapping[str, Rendered], found: Mapping[str, Stored | None]) -> None:
        """Give keys their new bytes; `found` is what `read` gives for each of them."""
        changed = {key: to for key, to in new.items() if not self._is_as_is(key, to, found[key])}
        if not changed:
            return
        self._refuse_twins(changed)
        make_directories(self.directory, sync=self._sync)
        remove_stale_temporaries(self.directory)
        if len(changed) == 1:
            ((key, rendered),) = changed.items()
            if self._append(rendered, found[key]):
                return
        self._set_aside_corrupt(changed)
        self._replace(changed)

    def _is_as_is(self, key: str, to: Rendered, found: Stored | None) -> bool:
        if found is None or found.data != to.data:
            return False
        return not self._path(key, is_list=not to.is_list).exists()

    def _refuse_twins(self, changed: Iterable[str]) -> None:
        keys = self.keys()
        known = {key.casefold(): key for key in keys}
        for key in changed:
            other = known.setdefault(key.casefold(), key)
            if other != key and key not in keys:
                raise InvalidId("key", key, f'differs only in case from "{other}"')

    def _append(self, to: Rendered, found: Stored | None) -> bool:
        """Write only the end of a list, when the file is the beginning of it."""
        if found is None or not (found.is_list and to.is_list and to.data.startswith(found.data)):
            return False
        descriptor = os.open(found.path, os.O_WRONLY | os.O_APPEND)
        try:
            write_all(descriptor, to.data[len(found.data) :])
            if self._sync:
                os.fsync(descriptor)
        except BaseException:
            os.ftruncate(descriptor, len(found.data))
            raise
        finally:
            os.close(descriptor)
        return True

    def _set_aside_corrupt(self, changed: Iterable[str]) -> None:
        for key in changed:
            for is_list in (False, True):
                stored = self._read(self._path(key, is_list=is_list), is_list=is_list)
                if stored is not None and stored.is_corrupt():
                    set_aside_corrupt(stored.path)

    def _replace(self, changed: Mapping[str, Rendered]) -> None:
        contents = {self._path(key, is_list=to.is_list): to.data for key, to in changed.items()}
        others = (self._path(key, is_list=not to.is_list) for key, to in changed.items())
        removed = [path for path in others if path.exists()]
        if len(contents) == 1 and not removed:
            for path, data in contents.items():
                write_atomic(path, data, sync=self._sync)
        else:
            replace_together(self._note, contents, removed, sync=self._sync)

    # -- deleting --

    def remove(self, key: str) -> bool:
        """Remove the file of a key, whichever kind it is; whether there was one."""
        paths = [self._path(key, is_list=is_list) for is_list in (False, True)]
        found = [path for path in paths if os.path.lexists(path)]
        for path in found:
            self._place.layout.check(path)
            path.unlink()
        if found and self._sync:
            sync_directory(self.directory)
        return bool(found)

    def move_to(self, trash: Path) -> None:
        """Move the whole directory into a directory of the trash."""
        layout = self._place.layout
        target = layout.mirrored(trash, self.directory)
        layout.check(self.directory)
        layout.check(target)
        make_directories(target.parent, sync=self._sync)
        self.directory.rename(target)
        if self._sync:
            sync_directory(target.parent)
            sync_directory(self.directory.parent)

    def _path(self, key: str, *, is_list: bool) -> Path:
        place = self._place.items if is_list else self._place.document
        return place(self._session_key, key)
