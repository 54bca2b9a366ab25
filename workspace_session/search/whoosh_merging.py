"""Which segments are merged: those that are small, and many of a kind, as far as there is time.

A search waits for a merge, and a merge takes about 0.2 ms a document. So each is of a bounded number
of documents; each document is merged a handful of times, as its segments grow eightfold. Segments that
have grown large stay, and so do those that a catch-up has made large at once.
"""

from __future__ import annotations

from typing import Any

_FAN = 8  # so many segments of a kind are merged: of less than 8, 64, 512, 4096 documents
_KINDS = 4
_AT_ONCE = 5000  # documents: a second's work


def due(entries: list[Any]) -> list[Any]:
    """Of the segments in a table of contents, those to be merged."""
    kinds: dict[int, list[Any]] = {}
    for entry in sorted(entries, key=lambda entry: entry.doc_count_all()):
        kinds.setdefault(kind_of(entry.doc_count_all()), []).append(entry)
    chosen: list[Any] = []
    left = _AT_ONCE
    for kind in range(_KINDS):
        alike = kinds.get(kind, [])
        fitting = _fitting(alike, left) if len(alike) >= _FAN else []
        if len(fitting) > 1:
            chosen += fitting
            left -= sum(entry.doc_count() for entry in fitting)
    return chosen


def kind_of(documents: int) -> int:
    """How many times a segment of so many documents is eight times larger than one of one."""
    kind = 0
    while documents >= _FAN:
        documents //= _FAN
        kind += 1
    return kind


def _fitting(entries: list[Any], room: int) -> list[Any]:
    found = []
    for entry in entries:
        room -= entry.doc_count()
        if room < 0:
            break
        found.append(entry)
    return found
