"""An index in one SQLite database: the quick one to build, from the standard library.

The full-text table is given tokens, not texts, and a tokenizer that does little more than cut at spaces,
so that analysis is ours alone. One transaction takes in documents and marks. In write-ahead mode readers
wait for nobody, and a process that dies leaves what was committed.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import orjson

from workspace_session.search.engine import (
    Change,
    Document,
    Found,
    IndexBroken,
    Log,
    Mark,
    Request,
    Row,
)

VERSION = 1
_FILE = "index.sqlite"
_BUSY_SECONDS = 30.0
_OF_THE_SYSTEM = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_BUSY: errno.EAGAIN,
    sqlite3.SQLITE_NOMEM: errno.ENOMEM,
}
_ROOM = 64 << 20  # bytes of tokens that are kept in memory until a transaction ends

_SCHEMA = """
    BEGIN;
    CREATE TABLE logs (
        number INTEGER PRIMARY KEY, agent TEXT NOT NULL, session TEXT NOT NULL, mark TEXT NOT NULL,
        UNIQUE (agent, session)
    );
    CREATE TABLE documents (
        number INTEGER PRIMARY KEY, log INTEGER NOT NULL, id TEXT NOT NULL, role TEXT NOT NULL,
        created TEXT NOT NULL, start INTEGER NOT NULL, length INTEGER NOT NULL
    );
    CREATE UNIQUE INDEX documents_by_id ON documents (log, id);
    CREATE VIRTUAL TABLE words USING fts5 (text, more, tokenize = 'ascii');
    INSERT INTO words (words, rank) VALUES ('hashsize', %d);
    PRAGMA user_version = %d;
    COMMIT;
"""


class SqliteEngine:
    """The index in one directory."""

    is_quick: ClassVar[bool] = True
    room: ClassVar[int] = 6 << 20

    def __init__(self, directory: Path) -> None:
        with _at_work():
            self._db = _connect(directory / _FILE)
        self._logs: dict[int, Log] = {}
        self._marks: dict[Log, Mark] | None = None
        self._seen = -1

    def close(self) -> None:
        """Let go of the files."""
        self._db.close()

    # -- reading -----------------------------------------------------------------------------------

    def marks(self) -> Mapping[Log, Mark]:
        """How far each log was read, by any process, as of now."""
        with _at_work():
            (seen,) = self._db.execute("PRAGMA data_version").fetchone()  # of other connections
            if self._marks is None or seen != self._seen:
                rows = self._db.execute("SELECT number, agent, session, mark FROM logs").fetchall()
                self._logs = {number: Log(agent, session) for number, agent, session, _ in rows}
                self._marks = {self._logs[row[0]]: Mark(*orjson.loads(row[3])) for row in rows}
                self._seen = seen
            return self._marks

    def known(self, log: Log, ids: Iterable[str]) -> dict[str, str]:
        """Of these messages of a log, those that are in the index, and when each was created."""
        with _at_work():
            return dict(
                self._db.execute(
                    "SELECT d.id, d.created FROM json_each(?) AS wanted, logs AS l"
                    " JOIN documents AS d ON d.log = l.number AND d.id = wanted.value"
                    " WHERE l.agent = ? AND l.session = ?",
                    (_json(list(ids)), *log),
                )
            )

    def find(self, request: Request) -> Found:
        """What is asked for."""
        score, order = "-w.rank", "w.rank, d.created DESC"
        if request.newest_first:
            session = "(SELECT session FROM logs WHERE number = d.log)"
            score, order = "0.0", f"d.created DESC, {session}, d.id"
        columns = f"d.log, d.id, d.role, d.created, {score}, d.start, d.length"
        with _at_work(), self._transaction("DEFERRED"):  # so that all of it sees one state
            self.marks()
            source, values = self._source(request)
            statement = f"SELECT {columns} {source} ORDER BY {order} LIMIT ?"
            found = self._db.execute(statement, (*values, request.limit)).fetchall()
            total = len(found)
            if total == request.limit:
                (total,) = self._db.execute(f"SELECT count(*) {source}", values).fetchone()
            return Found.of([Row(self._logs[log], *rest) for log, *rest in found], total)

    def _source(self, request: Request) -> tuple[str, list[Any]]:
        """What is selected from, and the values that belong in it."""
        conditions, values = ["words MATCH ?"], [_match(request)]
        if request.agent is not None or request.session is not None:
            conditions.append("d.log IN (SELECT value FROM json_each(?))")
            values.append(_json([n for n, log in self._logs.items() if request.covers(log)]))
        for condition, value in (
            ("d.role = ?", request.role),
            ("d.created >= ?", request.since),
            ("d.created < ?", request.until),
        ):
            if value is not None:
                conditions.append(condition)
                values.append(value)
        joined = "FROM words AS w JOIN documents AS d ON d.number = w.rowid"
        return f"{joined} WHERE {' AND '.join(conditions)}", values

    # -- writing -----------------------------------------------------------------------------------

    def write(self, changes: Iterable[Change]) -> None:
        """Take changes in, all of them at once."""
        marks, logs = dict(self.marks()), dict(self._logs)
        with _at_work(), self._transaction("IMMEDIATE"):
            for change in changes:
                number = self._take(change)
                if change.mark is None:
                    marks.pop(change.log, None)
                    logs.pop(number, None)
                else:
                    marks[change.log], logs[number] = change.mark, change.log
        self._marks, self._logs = marks, logs

    def _take(self, change: Change) -> int:
        number = self._marked(change.log, change.mark)
        if change.afresh:
            self._remove("log = ?", number)
        elif change.removed:
            some = "log = ? AND id IN (SELECT value FROM json_each(?))"
            self._remove(some, number, _json(list(change.removed)))
        self._add(number, change.added)
        if change.mark is None:
            self._db.execute("DELETE FROM logs WHERE number = ?", (number,))
        return number

    def _marked(self, log: Log, mark: Mark | None) -> int:
        """The number of a log, its mark set."""
        self._db.execute(
            "INSERT INTO logs (agent, session, mark) VALUES (?, ?, ?)"
            " ON CONFLICT (agent, session) DO UPDATE SET mark = excluded.mark",
            (*log, _json(list(mark or ()))),
        )
        select = "SELECT number FROM logs WHERE agent = ? AND session = ?"
        number: int = self._db.execute(select, log).fetchone()[0]
        return number

    def _remove(self, which: str, *values: Any) -> None:
        numbers = f"SELECT number FROM documents WHERE {which}"  # noqa: S608 (which: see above)
        self._db.execute(f"DELETE FROM words WHERE rowid IN ({numbers})", values)  # noqa: S608
        self._db.execute(f"DELETE FROM documents WHERE {which}", values)  # noqa: S608

    def _add(self, log: int, documents: Iterable[Document]) -> None:
        (last,) = self._db.execute("SELECT coalesce(max(number), 0) FROM documents").fetchone()
        numbered = list(enumerate(documents, last + 1))
        self._db.executemany(
            "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?)",
            ((n, log, d.id, d.role, d.created_at, d.start, d.length) for n, d in numbered),
        )
        self._db.executemany(
            "INSERT INTO words (rowid, text, more) VALUES (?, ?, ?)",
            ((n, d.text, d.more) for n, d in numbered),
        )

    @contextmanager
    def _transaction(self, kind: str) -> Iterator[None]:
        self._db.execute(f"BEGIN {kind}")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # a full disk may have ended it already
                self._db.execute("ROLLBACK")
            raise


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        for setting in ("journal_mode = WAL", "synchronous = NORMAL", "cache_size = -32000"):
            db.execute(f"PRAGMA {setting}")
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version == 0:
            db.executescript(_SCHEMA % (_ROOM, VERSION))
        elif version != VERSION:
            raise IndexBroken(f"it is of version {version}")
    except BaseException:
        db.close()
        raise
    return db


@contextmanager
def _at_work() -> Iterator[None]:
    """Whatever SQLite has against a file, it is the file that is at fault; if not the system is."""
    try:
        yield
    except (sqlite3.Error, ValueError, TypeError) as error:
        code = _OF_THE_SYSTEM.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
        if code is not None:
            raise OSError(code, str(error)) from error
        raise IndexBroken(str(error)) from error


def _match(request: Request) -> str:
    """The query in the syntax of FTS5: tokens are letters and digits, so nothing needs escaping."""
    clauses = " AND ".join(f'"{" ".join(clause)}"' for clause in request.query.clauses)
    return clauses if request.everything else f"{{text}} : ({clauses})"


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
