"""The end of a session, from its newest entries alone.

Given the entries newest first, this finds the tip and the last messages before it without the rest.
What cannot be told that way (an overlay or a deleted tip in reach, a trimmed range) gives None, and
the caller folds the whole working set instead. It never guesses. Batches need no look: a working set
holds only entries that count.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from workspace_session.model.entries import (
    Clear,
    Compaction,
    Delete,
    Entry,
    Leaf,
    Message,
    Purge,
    Trim,
    Update,
)
from workspace_session.model.purging import withheld


def last_messages(newest_first: Iterable[Entry], count: int) -> list[Message] | None:
    """The last messages of the active branch, oldest first; None when that takes more reading."""
    scan = _Scan(count)
    for entry in newest_first:
        if not scan.take(entry):
            return None
        if scan.done:
            break
    else:
        scan.finish()
    return None if scan.wanted is not _NOTHING else scan.found[::-1]


_UNKNOWN = object()  # the tip has not been met yet
_NOTHING = None  # the path has reached its root, or is long enough


class _Scan:
    """Walks from the tip towards the root while entries go by."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.found: list[Message] = []
        self.wanted: object = _UNKNOWN
        self.done = False
        self._updates: dict[str, Update] = {}
        self._hidden_ends: set[str] = set()
        self._purges: list[Purge] = []

    def take(self, entry: Entry) -> bool:
        """Go past one entry; False when this is more than a walk can tell."""
        if self._purges:
            (entry,) = withheld([entry], self._purges)
        match entry:
            case Message():
                return self._message(entry)
            case Leaf():
                if self.wanted is _UNKNOWN:
                    self._want(entry.target_id)
            case Update():
                self._updates.setdefault(entry.target_id, entry)
            case Compaction():
                self._hidden_ends.add(entry.to_id)
            case Purge():
                self._purges.append(entry)
            case Delete() | Trim():
                return False
            case Clear():
                self.finish()
        return True

    def finish(self) -> None:
        """Nothing older counts: a tip that was never met does not exist."""
        if self.wanted is _UNKNOWN:
            self.wanted = _NOTHING
        self.done = True

    def _message(self, entry: Message) -> bool:
        if self.wanted is _UNKNOWN:
            self.wanted = entry.id
        if entry.id != self.wanted:
            return True
        if entry.id in self._hidden_ends:
            return False
        revision = self._updates.get(entry.id)
        self.found.append(entry if revision is None else replace(entry, revision=revision))
        self._want(entry.parent_id)
        return True

    def _want(self, message_id: str | None) -> None:
        self.wanted = _NOTHING if len(self.found) >= self.count else message_id
        self.done = self.wanted is _NOTHING
