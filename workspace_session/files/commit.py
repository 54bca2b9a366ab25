"""Several files of one directory that change together: after a crash, all of them or none.

The new contents are written under temporary names, then `.commit.json` says which of them becomes
which file, then they are renamed, then the note is removed. The note is what decides: without it
nothing has happened, with it whoever comes next finishes the work. All of this runs under the lock
of the directory. Doing the second half twice does no harm.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workspace_session.files.atomic import (
    set_aside_corrupt,
    sync_directory,
    write_atomic,
    write_temporary,
)
from workspace_session.files.listings import state_key
from workspace_session.files.names import is_temporary
from workspace_session.model.canonical import compact, parse

_log = logging.getLogger(__name__)


def replace_together(
    note: Path, contents: Mapping[Path, bytes], removed: Iterable[Path], *, sync: bool
) -> None:
    """Give several files beside `note` new contents, and remove others, as one change."""
    temporaries: dict[str, Path] = {}
    try:
        for path, data in contents.items():
            temporaries[path.name] = write_temporary(path, data, sync=sync)
        if sync:
            sync_directory(note.parent)  # the note must not be there before what it names
        write_atomic(note, compact(_plan_of(temporaries, removed)), sync=sync)
    except BaseException:
        note.unlink(missing_ok=True)  # first, or the next reader would take the rest as done
        for temporary in temporaries.values():
            temporary.unlink(missing_ok=True)
        raise
    complete(note, sync=sync)


def _plan_of(temporaries: Mapping[str, Path], removed: Iterable[Path]) -> dict[str, Any]:
    files = {name: temporary.name for name, temporary in temporaries.items()}
    names = [path.name for path in removed]
    return {"files": files, "remove": names} if names else {"files": files}


def complete(note: Path, *, sync: bool) -> None:
    """Finish the change that the note describes, if there is one."""
    plan = _read_plan(note)
    if plan is None:
        return
    for name, temporary in plan.files.items():
        with suppress(FileNotFoundError):  # it was renamed before the crash
            note.with_name(temporary).replace(note.with_name(name))
    for name in plan.removed:
        note.with_name(name).unlink(missing_ok=True)
    if sync:
        sync_directory(note.parent)
    note.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class _Plan:
    files: dict[str, str]  # name -> the temporary name of what becomes its content
    removed: list[str]


def _read_plan(note: Path) -> _Plan | None:
    try:
        plan = parse(note.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        # It is written whole, so this one came from elsewhere; it names nothing that can be trusted.
        _log.warning("%s does not parse and was set aside", note.name)
        set_aside_corrupt(note)
        return None
    return _trusted(plan if isinstance(plan, dict) else {})


def _trusted(plan: dict[str, Any]) -> _Plan:
    """A note may come from wherever a clone does: it moves state files of its directory only."""
    files, removed = plan.get("files"), plan.get("remove")
    pairs = files.items() if isinstance(files, dict) else ()
    names = removed if isinstance(removed, list) else ()
    return _Plan(
        {name: new for name, new in pairs if _is_state(name) and _is_new_content(new)},
        [name for name in names if _is_state(name)],
    )


def _is_state(name: object) -> bool:
    return isinstance(name, str) and state_key(name) is not None


def _is_new_content(name: object) -> bool:
    return isinstance(name, str) and is_temporary(name)
