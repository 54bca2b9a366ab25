"""Sessions out of an SQLite file of the SDK, with and without branches. The file is only read.

Each item keeps its time, and gets an id that is made of its content and of the item before it. What is
there already is therefore known again, from whatever copy of the file it comes, and branches that begin
alike share their beginning here as they do there.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from workspace_session import AgentWorkspace, InvalidId, SessionTree, WorkspaceError
from workspace_session.model.clock import dated, normal_time, plausible
from workspace_session.model.lines import message_json

MAIN = "main"
_PREFIX = "item_"  # of the ids of what was imported
_LOOSE = "no branch"  # rows from before a file had branches; there they are in none
_MESSAGES = frozenset({"id", "session_id", "message_data"})
_STRUCTURE = "message_structure"
_CREATED = "created_at"
_BARRED = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY_DIRECTORY})


class NotASessionFile(WorkspaceError, ValueError):
    """A file that sessions of the SDK cannot be read from; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What has become of one session of the file."""

    session_id: str
    items: int  # in the file, those that branches share counted once
    added: int
    branches: int
    unreadable: int  # rows that hold no JSON object, in no branch
    refused: str | None = None  # why it stayed behind: its id cannot be one here


class InvalidRename(WorkspaceError, ValueError):
    """New ids for sessions of a file that it does not have, or that would make two sessions one."""


class _Entry(NamedTuple):
    """An item as it is written; `number` is that of its row, or of a later one before it."""

    number: int
    entry_id: str
    parent: str | None
    item: dict[str, Any]
    time: str | None


class _Branch(NamedTuple):
    name: str
    entries: list[_Entry]

    @property
    def end(self) -> str:
        return self.entries[-1].entry_id


def import_database(
    agent: AgentWorkspace,
    path: str | os.PathLike[str],
    *,
    table: str | None = None,
    new_ids: Mapping[str, str] | None = None,
) -> list[Imported]:
    """Copy all sessions of a file to an agent; those that are there already are brought up to date.

    `table` is where the items are, for a file with more than one such table. A session whose id cannot
    be one here stays behind, unless `new_ids` has another for it.
    """
    path = Path(path)
    try:
        with closing(_opened(path)) as database:
            database.text_factory = _text
            database.execute("BEGIN")  # everything is read as of now
            messages = _message_table(database, path, table)
            ids = _ids_here(database, messages, new_ids or {})
            return [_import_session(agent, database, messages, *pair) for pair in ids.items()]
    except sqlite3.DatabaseError as error:
        raise NotASessionFile(f"{path} cannot be read as an SQLite file: {error}") from None


def _opened(path: Path) -> sqlite3.Connection:
    """The file, for reading alone.

    SQLite wants to make files beside one that was written with a write-ahead log. Where it cannot, the
    file is read as it lies there; unless a log or a journal lies beside it: then it is not whole alone.
    """
    uri = path.absolute().as_uri()
    database = sqlite3.connect(f"{uri}?mode=ro", uri=True)
    try:
        database.execute("SELECT 1 FROM sqlite_master").close()
    except sqlite3.DatabaseError as error:
        database.close()
        beside = (path.with_name(f"{path.name}{end}") for end in ("-wal", "-journal"))
        if error.sqlite_errorcode not in _BARRED or any(file.exists() for file in beside):
            raise
        database = sqlite3.connect(f"{uri}?immutable=1", uri=True)
    return database


def _ids_here(
    database: sqlite3.Connection, messages: str, new_ids: Mapping[str, str]
) -> dict[str, str]:
    """The sessions of a file, each with the id that it gets."""
    found = database.execute(
        f"SELECT DISTINCT session_id FROM {messages} ORDER BY session_id"  # noqa: S608
    )
    ids = {session_id: new_ids.get(session_id, session_id) for (session_id,) in found}
    for unknown in new_ids.keys() - ids.keys():
        raise InvalidRename(f"there is no session {unknown!r} in the file")
    for one in new_ids.values():
        if not one:
            raise InvalidRename("the id of a session is not empty")
        if list(ids.values()).count(one) > 1:
            raise InvalidRename(f"two sessions of the file would be {one!r}")
    return ids


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")  # a row that is not UTF-8 is no JSON either


def _message_table(database: sqlite3.Connection, path: Path, wanted: str | None) -> str:
    """The table of items, quoted, whatever it is called; branches point to theirs."""
    found = [
        table for table in _tables(database) if _columns(database, _quoted(table)) >= _MESSAGES
    ]
    if wanted is not None:
        found = [table for table in found if table == wanted]
    elif _STRUCTURE in _tables(database):
        found = [table for table in found if table == _owner(database)] or found
    if not found:
        what = "sessions of the OpenAI Agents SDK" if wanted is None else f"items in {wanted!r}"
        raise NotASessionFile(f"{path} holds no {what}")
    if len(found) > 1:
        names = ", ".join(found)
        raise NotASessionFile(f"{path} holds items in several tables, name one of them: {names}")
    return _quoted(found[0])


def _owner(database: sqlite3.Connection) -> str | None:
    """The table whose rows are in branches."""
    keys = database.execute(f"PRAGMA foreign_key_list({_STRUCTURE})")
    return next((table for _, _, table, column, *_ in keys if column == "message_id"), None)


def _tables(database: sqlite3.Connection) -> list[str]:
    rows = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    return [name for (name,) in rows]


def _columns(database: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in database.execute(f"PRAGMA table_info({table})")}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# -- one session -----------------------------------------------------------------------------------


def _import_session(
    agent: AgentWorkspace, database: sqlite3.Connection, messages: str, there: str, here: str
) -> Imported:
    branches, unreadable = _branches(database, messages, there)
    entries = _in_order(branches)
    added, refused = 0, None
    try:
        added = _bring_in(agent.tree(here), branches, entries)
    except InvalidId as error:  # which is known at the latest when the first item is written
        refused = str(error)
    return Imported(
        session_id=there,
        items=len(entries),
        added=added,
        branches=len(branches),
        unreadable=unreadable,
        refused=refused,
    )


def _bring_in(tree: SessionTree, branches: Sequence[_Branch], entries: Sequence[_Entry]) -> int:
    """Write what a session does not have yet; returns how many items that were."""
    if not branches:
        return 0
    tip = tree.leaf
    went_on_here = tip is not None and not tip.startswith(_PREFIX)
    dates = plausible(one.time for one in entries)  # perhaps none
    times = dict(zip([one.entry_id for one in entries], dates, strict=False))
    added = 0
    known = {entry.id for entry in tree.all_messages()}
    for run in _runs(entries):
        ids = [one.entry_id for one in run]
        with dated(*[times[new] for new in ids if new in times and new not in known]):
            placed = tree.extend([one.item for one in run], run[0].parent, ids=ids)
        added += sum(result.inserted for result in placed)
    with dated(*sorted(times.values())[-1:]):
        _mark_branches(tree, branches)
        is_begun = not went_on_here and "source" not in tree.facts()  # or it was killed
        if (added or is_begun) and not went_on_here:
            current = next((one for one in branches if one.name == MAIN), branches[0])
            tree.set_leaf(current.end)
        elif added:
            tree.set_leaf(tip)
        if is_begun:
            tree.annotate(source="openai-agents")
    return added


def _in_order(branches: Sequence[_Branch]) -> list[_Entry]:
    """The items of all branches, each once, as they were said one after the other."""
    found: dict[str, _Entry] = {}
    for one in (entry for branch in branches for entry in branch.entries):
        if one.number < found.setdefault(one.entry_id, one).number:
            found[one.entry_id] = one
    return sorted(found.values(), key=lambda one: one.number)


def _runs(entries: Sequence[_Entry]) -> Iterator[list[_Entry]]:
    """Items that follow one another on one branch, to be written together."""
    run: list[_Entry] = []
    for one in entries:
        if run and one.parent != run[-1].entry_id:
            yield run
            run = []
        run.append(one)
    yield run


def _mark_branches(tree: SessionTree, branches: Sequence[_Branch]) -> None:
    """The ends of branches bear their names, one after the other where several end in one place."""
    named: dict[str, list[str]] = {}
    for branch in branches:
        if branch.name != MAIN:
            named.setdefault(branch.end, []).append(branch.name)
    wanted = {entry_id: ", ".join(names) for entry_id, names in named.items()}
    names = {branch.name for branch in branches}
    before = tree.labels()
    for entry_id in dict.fromkeys(one.entry_id for branch in branches for one in branch.entries):
        given = before.get(entry_id)
        is_ours = given is None or given in names or names.issuperset(given.split(", "))
        if is_ours and given != wanted.get(entry_id):
            tree.label(entry_id, wanted.get(entry_id))


def _branches(
    database: sqlite3.Connection, messages: str, session_id: str
) -> tuple[list[_Branch], int]:
    """The branches that hold anything; and how many rows hold no item."""
    by_branch: dict[str, list[tuple[int, dict[str, Any], str | None]]] = {}
    bad: set[int] = set()
    for branch, number, data, created in _rows(database, messages, session_id):
        item = _item(data)
        if item is None:
            bad.add(number)
        else:
            by_branch.setdefault(branch, []).append((number, item, normal_time(created)))
    return [_Branch(name, _chained(rows)) for name, rows in by_branch.items()], len(bad)


def _chained(rows: Iterable[tuple[int, dict[str, Any], str | None]]) -> list[_Entry]:
    """The items of a branch, each under the one before."""
    entries: list[_Entry] = []
    latest, parent, before = 0, None, b""
    for number, item, time in rows:
        latest = max(latest, number)
        digest = hashlib.sha256(before + json.dumps(item).encode()).hexdigest()
        entry = _Entry(latest, _PREFIX + digest[:32], parent, item, time)
        entries.append(entry)
        parent, before = entry.entry_id, digest.encode()
    return entries


def _rows(database: sqlite3.Connection, messages: str, session_id: str) -> list[Any]:
    """Branch, number, content and time of each row, in the order of the conversation."""
    created = "m.created_at" if _CREATED in _columns(database, messages) else "NULL"
    columns = f"m.id, m.message_data, {created} FROM {messages} m"
    in_branches: list[Any] = []
    beside = ""
    if _STRUCTURE in _tables(database) and messages == _quoted(_owner(database) or ""):
        in_branches = database.execute(
            f"SELECT s.branch_id, {columns} "
            f"JOIN {_STRUCTURE} s ON m.id = s.message_id "
            "WHERE m.session_id = :session ORDER BY s.sequence_number",
            {"session": session_id},
        ).fetchall()
        beside = " AND m.id NOT IN (SELECT message_id FROM message_structure)"
    name = _LOOSE if in_branches else MAIN
    found = database.execute(
        f"SELECT :name, {columns} WHERE m.session_id = :session{beside} ORDER BY m.id",
        {"name": name, "session": session_id},
    )
    return [*in_branches, *found]


def _item(data: object) -> dict[str, Any] | None:
    """The item of a row; None for what the SDK itself skips, and for what no session can hold."""
    try:
        item = json.loads(data, parse_constant=_refuse) if isinstance(data, str) else None
        if isinstance(item, dict):
            message_json(item)
            return item
    except (ValueError, RecursionError):  # `InvalidMessage` is a ValueError
        pass
    return None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
