"""Reading a log on from a mark: what its new entries mean for the index.

Entries in order are taken in one after another, as many at a time as there is room for. Those that are
not newer than what was taken in before came by a merge: then the log is read from its beginning, and
where its lines themselves are out of order, `Tree` says what they mean.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from workspace_session.model.entries import (
    Clear,
    Compaction,
    Delete,
    Message,
    Update,
    message_of,
)
from workspace_session.model.tree import Tree
from workspace_session.search.documents import created_at, document, document_id
from workspace_session.search.engine import Change, Document, Log, Mark
from workspace_session.search.sources import Source
from workspace_session.search.stretches import Item, Stretch

Known: TypeAlias = Callable[[Log, Iterable[str]], dict[str, str]]
"""Of some messages of a log, those that the index holds, and when each was created."""


class Reading:
    """The new part of one log, given out in pieces."""

    def __init__(self, log: Log, stretch: Stretch) -> None:
        self._log = log
        self._stretch = stretch
        self._afresh = stretch.before is None
        self._in_order = stretch.is_in_order()
        self._ends = {
            item.entry.batch.id: number
            for number, item in enumerate(stretch.items, 1)
            if item.entry.batch is not None
        }
        self._taken = 0
        self._there: dict[str, str] = {}  # what the pieces so far have put into the index

    @classmethod
    def on(cls, source: Source, mark: Mark | None) -> Reading | None:
        """What a log holds beyond a mark, or all of it; None when it has vanished."""
        stretch = None if mark is None else Stretch.after(source, mark)
        stretch = Stretch.whole(source) if stretch is None else stretch
        return None if stretch is None else cls(source.log, stretch)

    @property
    def finished(self) -> bool:
        """Whether all of it has been given out."""
        return self._taken == len(self._stretch.items)

    @property
    def left(self) -> int:
        """How many bytes of it have not been given out."""
        items = self._stretch.items
        return 0 if self.finished else items[-1].end - items[self._taken].start

    @property
    def mark(self) -> Mark:
        """How far it has been given out."""
        return self._stretch.mark(self._taken)

    def piece(self, room: int, known: Known) -> Change:
        """What about `room` further bytes mean for the index."""
        first = self._taken == 0
        if not self._in_order:
            self._taken = len(self._stretch.items)
            added = tuple(_of_tree(self._stretch.items))
            return Change(self._log, self.mark, afresh=True, added=added)
        items = self._next(room)
        there = self._there if self._afresh else known(self._log, _named(items))
        fold = _Fold(there)
        for item in items:
            fold.take(item)
        there.update((one.id, one.created_at) for one in fold.added.values())
        return Change(
            self._log,
            self.mark,
            afresh=fold.cleared or (self._afresh and first),
            removed=tuple(fold.removed),
            added=tuple(fold.added.values()),
        )

    def _next(self, room: int) -> list[Item]:
        """The next items, with all of every batch: a mark inside of one would tear it apart."""
        items, start = self._stretch.items, self._taken
        if self.finished:
            return []
        fitting = bisect_right(items, items[start].start + room, lo=start, key=_end_of)
        at, end = start, max(fitting, start + 1)
        while at < end:
            batch = items[at].entry.batch
            if batch is not None:
                end = max(end, self._ends[batch.id])
            at += 1
        self._taken = end
        return items[start:end]


def _end_of(item: Item) -> int:
    return item.end


def _named(items: Iterable[Item]) -> Iterator[str]:
    """The messages that entries bring or change: whether they are there makes a difference."""
    for item in items:
        if isinstance(item.entry, Message):
            yield item.entry.id
        elif isinstance(item.entry, Update):
            yield item.entry.target_id


@dataclass(slots=True)
class _Fold:
    """What entries, one after another, do to the documents of a log."""

    there: dict[str, str]  # in the index: id and time of creation
    added: dict[str, Document] = field(default_factory=dict)
    removed: dict[str, None] = field(default_factory=dict)
    cleared: bool = False

    def take(self, item: Item) -> None:
        entry = item.entry
        if type(entry) is Message:  # nearly every one
            if entry.id not in self.there and entry.id not in self.added:
                self.added[entry.id] = document(item)
        elif isinstance(entry, Update):
            self._update(entry.target_id, item)
        elif isinstance(entry, Delete):
            for target in entry.target_ids:
                self._remove(target)
        elif isinstance(entry, Clear):
            self.cleared = True
            for held in (self.there, self.added, self.removed):
                held.clear()
        elif isinstance(entry, Compaction):
            self.added[document_id(entry)] = document(item)

    def _update(self, target: str, item: Item) -> None:
        before = self.added.get(target)
        created = self.there.get(target) if before is None else before.created_at
        if created is not None:
            self._remove(target)
            self.added[target] = document(item)._replace(created_at=created)

    def _remove(self, target: str) -> None:
        if self.added.pop(target, None) is None:
            self.removed[target] = None
            self.there.pop(target, None)


def _of_tree(items: Iterable[Item]) -> Iterator[Document]:
    """The documents of a whole log whose lines are out of order."""
    places = {id(item.entry): item for item in items}
    tree = Tree.of(item.entry for item in items)
    for node in tree.messages():
        if node.revision is None:
            yield document(places[id(node)])
        else:
            revised = document(places[id(node.revision)])
            created = created_at(message_of(node.line), node)
            yield revised._replace(created_at=created)
    for overlay in tree.compactions():
        yield document(places[id(overlay)])
