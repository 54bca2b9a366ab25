"""Checking a workspace: every problem with its place, what is wrong, and what would mend it.

Nothing is changed by looking. A problem is something a person would want to know of: lines that hold
no entry, entries that point nowhere, derived files that do not follow from the log. A file that any
reader understands, in whatever order its lines stand, is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from workspace_session.errors import StateCorrupt, UnsafePath
from workspace_session.files.jsonl import read_bytes
from workspace_session.files.layout import AgentPlace, Layout, decode_name
from workspace_session.files.state import JsonSession
from workspace_session.model.batches import settle
from workspace_session.model.canonical import parse
from workspace_session.model.entries import Entry, Message, Purge, Trim
from workspace_session.model.lines import NotAnEntry, decode
from workspace_session.model.purging import blank, reaches
from workspace_session.model.tree import Tree
from workspace_session.model.trim import plan

_BY_HAND = "remove the line by hand; nothing reads it"
_REBUILD = "workspace-session rebuild"
_NEXT_WRITE = "the next write to the session"
_STILL_HERE = "was purged and is still here"


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """Something that is not as it should be. `line` counts from 1; 0 is the file as a whole."""

    path: str
    line: int
    what: str
    mend: str

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else self.path
        return f"{where}: {self.what} ({self.mend})"


def is_purged_text(problem: Problem) -> bool:
    """Whether it is text that should be gone: no other problem may wait longer."""
    return problem.what.endswith(_STILL_HERE)


@dataclass(slots=True)
class _File:
    """One file of a session, line by line."""

    path: Path
    shown: str
    exists: bool
    entries: list[Entry]
    numbers: dict[tuple[str, str], int]
    problems: list[Problem]


def check_session(place: AgentPlace, session_id: str) -> list[Problem]:
    """The problems of one session's two files."""
    if escapes := _escapes(place.layout, place.log(session_id), place.tree(session_id)):
        return escapes  # what they lead to is not ours to read
    log = _read(place, place.log(session_id))
    tree = _read(place, place.tree(session_id))
    problems = [*log.problems, *tree.problems]
    if not log.exists and not tree.exists:
        return problems
    if not log.exists:
        mend = f"{_REBUILD} makes it anew from the working set, without what was trimmed"
        return [*problems, Problem(log.shown, 0, "the log is missing", mend)]
    settled = settle(log.entries)
    purges = [entry for entry in settled.counted if isinstance(entry, Purge)]
    problems += _purged(purges, log)
    problems += _purged(purges, tree)
    problems += _cut_batches(log, settled.cut)
    full = Tree.of_log(settled.counted)
    problems += _headers(log, full, session_id)
    problems += _broken_links(log, full)
    if tree.exists:
        problems += _working_set(log, tree, full)
    else:
        problems.append(Problem(tree.shown, 0, "the working set is missing", _REBUILD))
    return problems


def _escapes(layout: Layout, *paths: Path) -> list[Problem]:
    """Those of some paths that lead out of the workspace."""
    problems: list[Problem] = []
    for path in paths:
        try:
            layout.check(path)
        except UnsafePath:
            what = "this is a link that leads out of the workspace"
            problems.append(
                Problem(layout.shown(path), 0, what, "put what it leads to in its place")
            )
    return problems


def _read(place: AgentPlace, path: Path) -> _File:
    shown = place.layout.shown(path)
    found = read_bytes(path)
    file = _File(path, shown, found is not None, [], {}, [])
    if found is None:
        return file
    *lines, rest = found[0].split(b"\n")
    for number, line in enumerate(lines, 1):
        try:
            entry = decode(line)
        except NotAnEntry as error:
            if line:  # a blank line is what closing a whole one leaves
                file.problems.append(Problem(shown, number, str(error), _BY_HAND))
        else:
            file.entries.append(entry)
            file.numbers.setdefault(entry.key, number)
    if rest:
        what = "the last line is torn"
        file.problems.append(Problem(shown, len(lines) + 1, what, f"{_NEXT_WRITE} closes it"))
    return file


def _purged(purges: Sequence[Purge], file: _File) -> Iterator[Problem]:
    """Text that a merge without our driver, or a crash, has left where it was purged."""
    for entry in file.entries:
        if any(reaches(purge, entry) for purge in purges) and blank(entry) is not entry:
            what = f"the text of {entry.id!r} {_STILL_HERE}"
            yield Problem(file.shown, file.numbers[entry.key], what, _REBUILD)


def _cut_batches(log: _File, cut: list[str]) -> Iterator[Problem]:
    for batch_id in cut:
        members = [entry for entry in log.entries if entry.batch and entry.batch.id == batch_id]
        size = members[0].batch.size if members[0].batch else 0
        what = f"a batch was cut short: {len(members)} of {size} entries"
        number = log.numbers[members[0].key]
        yield Problem(log.shown, number, what, f"{_REBUILD} sets it aside")


def _headers(log: _File, full: Tree, session_id: str) -> Iterator[Problem]:
    if not full.headers and full.entries:
        yield Problem(log.shown, 1, "there is no header", f"{_NEXT_WRITE} adds one")
    for header in full.headers.values():
        if header.id != session_id:
            what = f"the header is that of session {header.id!r}"
            yield Problem(log.shown, log.numbers[header.key], what, "rename the file")


def _broken_links(log: _File, full: Tree) -> Iterator[Problem]:
    for orphan in full.orphans():
        what = f"message {orphan.id!r} names a parent that is nowhere: {orphan.parent_id!r}"
        mend = "merge the clone that has the parent; until then it stands as a root"
        yield Problem(log.shown, log.numbers[orphan.key], what, mend)
    for message_id in sorted(full.cycles):
        node = full.here(message_id)
        if node is not None:
            what = f"message {message_id!r} is its own ancestor"
            mend = "none needed; it stands as a root"
            yield Problem(log.shown, log.numbers[node.key], what, mend)
    for pointing in full.dangling_targets:
        what = f"the {pointing.type} {pointing.id!r} speaks of a message that is nowhere"
        mend = "merge the clone that has the message; until then it has no effect"
        yield Problem(log.shown, log.numbers[pointing.key], what, mend)
    seen: dict[str, Message] = {}
    for entry in full.entries:
        if isinstance(entry, Message):
            first = seen.setdefault(entry.id, entry)
            if not full.is_current(entry) and full.is_current(first):
                what = f"message {entry.id!r} is there twice; the older one is shown"
                mend = "none needed; the log keeps both"
                yield Problem(log.shown, log.numbers[entry.key], what, mend)


def _working_set(log: _File, tree: _File, full: Tree) -> Iterator[Problem]:
    trims = [entry for entry in tree.entries if isinstance(entry, Trim)]
    if len(trims) > 1:
        number = tree.numbers[trims[1].key]
        yield Problem(tree.shown, number, "the working set was trimmed twice over", _REBUILD)
    for entry in tree.entries:
        if entry.key not in log.numbers and not isinstance(entry, Trim):
            what = f"the {entry.type or 'entry'} {entry.id!r} is not in the log"
            yield Problem(tree.shown, tree.numbers[entry.key], what, _REBUILD)
    end = trims[0].end if trims else ("", "")
    needed = plan(full).kept if trims else full.entries
    lacking = [
        entry
        for entry in (*needed, *(entry for entry in full.entries if entry.key > end and trims))
        if entry.key not in tree.numbers
    ]
    if lacking:
        what = f"the working set lacks {len(lacking)} of the log's entries, first {lacking[0].id!r}"
        yield Problem(tree.shown, 0, what, f"{_REBUILD}, or {_NEXT_WRITE}")


# -- beside the transcripts ------------------------------------------------------------------------


def check_agents(layout: Layout, namespace: tuple[str, ...]) -> list[Problem]:
    """What lies beside the agents of a namespace under a name that is not ours, or leads out."""
    problems = _escapes(layout, layout.agents(namespace))
    for path in () if problems else layout.beside_agents(namespace):
        problems += _escapes(layout, path)
        if decode_name(path.name) is None:
            problems.append(_not_ours(layout.shown(path)))
    return problems


def check_agent(place: AgentPlace) -> list[Problem]:
    """The problems of one agent: its sessions, their index, its state, files that are not ours."""
    if escapes := _escapes(place.layout, place.sessions, place.context):
        return escapes
    problems = [
        problem
        for session_id in place.session_ids()
        for problem in check_session(place, session_id)
    ]
    problems += _index(place)
    problems += _states(place)
    problems += [_not_ours(place.layout.shown(path)) for path in place.foreign_names()]
    return sorted(problems)


def _not_ours(shown: str) -> Problem:
    return Problem(shown, 0, "this file is not ours", "move it elsewhere")


def _index(place: AgentPlace) -> Iterator[Problem]:
    """An index that lags is as it should be; one that cannot be read is not."""
    if escapes := _escapes(place.layout, place.index):
        yield from escapes
        return
    try:
        root = parse(place.index.read_bytes())
        broken = not isinstance(root, dict) or not isinstance(root.get("sessions"), dict)
    except FileNotFoundError:
        return
    except (ValueError, OSError):
        broken = True
    if broken:
        yield Problem(place.layout.shown(place.index), 0, "the index cannot be read", _REBUILD)


def _states(place: AgentPlace) -> Iterator[Problem]:
    store = JsonSession(place.context)
    for session_key in store.list_session_keys():
        for key in store.list_keys(session_key):
            try:
                problems = store.get_versioned(session_key, key).problems
            except StateCorrupt as error:
                mend = "the next save sets the file aside and writes a new one"
                yield Problem(error.path, error.line or 0, error.reason, mend)
            else:
                path = place.layout.shown(place.states.items(session_key, key))
                for what in problems:
                    yield Problem(path, 0, what.removeprefix(f"{path}, "), "the next save")
