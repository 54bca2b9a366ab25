"""An index in Whoosh, the default: pure Python, in a directory of its own.

Each commit adds a segment, the ledger of the next generation, and its table of contents, which comes
last and decides. Small segments are merged as they pile up, but never so many documents at a time that
a search would have to wait for it; `reindex` packs the rest.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from whoosh.index import TOC

from workspace_session.model.clock import micros_of, time_of
from workspace_session.search import whoosh_ledger
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
from workspace_session.search.whoosh_ledger import Ledger
from workspace_session.search.whoosh_merging import due
from workspace_session.search.whoosh_schema import (
    SCHEMA,
    Facts,
    FactsColumn,
    Kept,
    fields_of,
    key_of,
)
from workspace_session.search.whoosh_search import Filter, Part, best
from workspace_session.search.whoosh_segments import Codec, Files, Segment

T = TypeVar("T")

VERSION = 1
_NAME = "MAIN"
_TRIES = 20  # to find a generation whole while others commit new ones
_PAUSE_SECONDS = 0.01
_POOL_MEGABYTES = 256
# What the system is short of or forbids: not the fault of an index.
_OF_THE_SYSTEM = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EACCES, errno.EPERM, errno.EROFS}
    | {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EINTR}
)


@dataclass(slots=True)
class _State:
    """The index as of one generation."""

    generation: int = -1
    parts: list[Part] = field(default_factory=list)
    ledger: Ledger = field(default_factory=Ledger)


class WhooshEngine:
    """The index in one directory."""

    is_quick: ClassVar[bool] = False
    room: ClassVar[int] = 6 << 20

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files = Files(directory)
        self._state = _State()
        self._written = (-1, Ledger())  # the last generation of our own, and its ledger
        try:
            with _reading():
                if not any(directory.glob(f"_{_NAME}_*.toc")):
                    Ledger().write(directory, 0)
                    self._files.create_index(SCHEMA, _NAME)
                self._index = _whole(lambda: self._files.open_index(_NAME, SCHEMA))
        except BaseException:
            self._files.close()
            raise

    def close(self) -> None:
        """Let go of the files."""
        self._files.close()
        self._state = _State()

    # -- reading -----------------------------------------------------------------------------------

    def marks(self) -> Mapping[Log, Mark]:
        """How far each log was read, by any process, as of now."""
        with _reading():
            return self._current().ledger.marks

    def known(self, log: Log, ids: Iterable[str]) -> dict[str, str]:
        """Of these messages of a log, those that are in the index, and when each was created."""
        number = self._state.ledger.numbers.get(log)
        if number is None:
            return {}
        with _reading():
            return {
                message_id: time_of(part.segment.facts.created[found])
                for message_id in ids
                for part, found in self._holders(key_of(number, message_id))
            }

    def _holders(self, key: str) -> Iterator[tuple[Part, int]]:
        """The document that has a key, and the part it is in: one, or none."""
        for part in self._state.parts:
            found = part.segment.postings("key", key)
            for number in found.numbers if found is not None else ():
                if number not in part.deleted:
                    yield part, number

    def find(self, request: Request) -> Found:
        """What is asked for, as of now."""
        with _reading():
            state = self._current()
            found = best(
                state.parts,
                request.query,
                fields=("text", "more") if request.everything else ("text",),
                passing=_filter(request, state.ledger),
                limit=request.limit,
                scored=not request.newest_first,
            )
            logs = {number: log for log, number in state.ledger.numbers.items()}
            rows = []
            for score, created, part, number in found.documents:
                segment = state.parts[part].segment
                message_id, start, length, *_tokens = segment.kept(number)
                facts = segment.facts[number]
                role = state.ledger.roles[facts.role]
                rows.append(
                    Row(logs[facts.log], message_id, role, time_of(created), score, start, length)
                )
        ordered, total = Found.of(rows, found.total)
        return Found(ordered[: request.limit], total)

    # -- generations -------------------------------------------------------------------------------

    def _current(self) -> _State:
        """The newest generation, with what is open of the last one kept."""
        self._state = _whole(self._newest)
        return self._state

    def _newest(self) -> _State:
        generation = self._index.latest_generation()
        if generation == self._state.generation:
            return self._state
        written, ledger = self._written
        if generation != written:
            ledger = Ledger.read(self._directory, generation)
        contents = TOC.read(self._files, _NAME, gen=generation, schema=SCHEMA)
        open_already = {part.segment.id: part.segment for part in self._state.parts}
        parts = []
        for entry in contents.segments:
            segment = open_already.pop(entry.segment_id(), None) or Segment(self._files, entry)
            parts.append(Part(segment, frozenset(entry.deleted_docs())))
        for segment in open_already.values():
            segment.close()
        return _State(generation, parts, ledger)

    # -- writing -----------------------------------------------------------------------------------

    def write(self, changes: Iterable[Change]) -> None:
        """Take changes in, all of them at once."""
        with _reading():
            ledger = self._current().ledger.copy()
        with self._writing() as writer:
            entries = {entry.segment_id(): entry for entry in writer.segments}
            for change in changes:
                number = ledger.set_mark(change.log, change.mark)
                for part, gone in self._doomed(number, change):
                    entries[part.segment.id].delete_document(gone)
                for document in change.added:
                    writer.add_document(**_fields(document, number, ledger))
            ledger.write(self._directory, writer.generation)
            writer.commit(mergetype=self._merge)
        self._written = (writer.generation, ledger)
        whoosh_ledger.remove_others(self._directory, writer.generation)

    @contextmanager
    def _writing(self) -> Iterator[Any]:
        """A writer; when it comes to nothing, what it has written so far goes."""
        with _reading():
            writer = self._index.writer(codec=Codec(), limitmb=_POOL_MEGABYTES)
        try:
            with _reading():  # a merge reads what is there
                yield writer
        except BaseException:
            if not writer.is_closed:
                writer.cancel()
            raise

    def _doomed(self, log: int, change: Change) -> Iterator[tuple[Part, int]]:
        """The documents that a change removes."""
        if change.afresh:
            for part in self._state.parts:
                logs = part.segment.facts.logs
                yield from ((part, number) for number, of in enumerate(logs) if of == log)
        else:
            for message_id in change.removed:
                yield from self._holders(key_of(log, message_id))

    def _merge(self, writer: Any, entries: list[Any]) -> list[Any]:
        """Write documents of small segments once more, into the one that is being written."""
        merged = due(entries)
        segments = {part.segment.id: part.segment for part in self._state.parts}
        for entry in merged:
            segment = segments[entry.segment_id()]
            for number in range(segment.count):
                if not entry.is_deleted(number):
                    writer.add_document(**fields_of(segment.kept(number), segment.facts[number]))
        return [entry for entry in entries if entry not in merged and entry.doc_count()]


def _fields(document: Document, log: int, ledger: Ledger) -> dict[str, Any]:
    message_id, role, created_at, text, more, start, length = document
    size = text.count(" ") + bool(text) + more.count(" ") + bool(more)
    facts = Facts(log, ledger.role_number(role), micros_of(created_at), size)
    return fields_of(Kept(message_id, start, length, text, more), facts)


def _filter(request: Request, ledger: Ledger) -> Filter:
    logs = {number for log, number in ledger.numbers.items() if request.covers(log)}
    every_log = len(logs) == len(ledger.numbers)
    role = None if request.role is None else ledger.known_role(request.role)
    since = None if request.since is None else micros_of(request.since)
    until = None if request.until is None else micros_of(request.until)

    def passing(facts: FactsColumn.Reader, numbers: list[int]) -> list[int]:
        if not every_log:
            numbers = [number for number in numbers if facts.logs[number] in logs]
        if role is not None:
            numbers = [number for number in numbers if facts.roles[number] == role]
        if since is not None:
            numbers = [number for number in numbers if facts.created[number] >= since]
        if until is not None:
            numbers = [number for number in numbers if facts.created[number] < until]
        return numbers

    return passing


def _whole(read: Callable[[], T]) -> T:
    """What is read of the newest generation: while one looks for it, it may give way to another."""
    for _ in range(_TRIES):
        try:
            return read()
        except FileNotFoundError:
            time.sleep(_PAUSE_SECONDS)
    raise IndexBroken("no generation of it is whole")


@contextmanager
def _reading() -> Iterator[None]:
    """Whoosh reports a bad file by whatever it trips over, bare `Exception`s among it."""
    try:
        yield
    except IndexBroken:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _OF_THE_SYSTEM:
            raise
        raise IndexBroken(f"{type(error).__name__}: {error}") from error
