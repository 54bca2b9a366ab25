"""Which segments of a Whoosh index are merged: few stay, and no merge is long."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from workspace_session.search.whoosh_merging import due, kind_of


@dataclass(eq=False)
class Entry:
    """A segment in a table of contents."""

    documents: int
    deleted: int = 0

    def doc_count_all(self) -> int:
        return self.documents

    def doc_count(self) -> int:
        return self.documents - self.deleted


def grown(sizes) -> tuple[list[Entry], int, int]:
    """The segments after commits of these sizes, the largest merge, and all that was written."""
    entries: list[Entry] = []
    largest = written = 0
    for size in sizes:
        merged = due(entries)
        again = sum(entry.doc_count() for entry in merged)
        entries = [entry for entry in entries if entry not in merged]
        entries.append(Entry(size + again))
        largest, written = max(largest, again), written + size + again
    return entries, largest, written


def test_segments_stay_few_when_messages_come_one_by_one():
    entries, largest, written = grown([1] * 50_000)

    assert len(entries) < 50
    assert largest <= 5000
    assert written < 50_000 * 6  # each message a handful of times


@pytest.mark.parametrize("most", [10, 300, 3000])
def test_segments_stay_few_when_messages_come_in_batches(most):
    rng = random.Random(most)
    sizes = [rng.randint(1, most) for _ in range(1000)]

    entries, largest, _written = grown(sizes)

    assert largest <= 5000
    assert len(entries) < 50 + sum(sizes) / 1000


def test_what_is_large_stays():
    assert due([Entry(10_000) for _ in range(20)]) == []


def test_a_few_small_ones_stay():
    assert due([Entry(1) for _ in range(7)]) == []
    assert len(due([Entry(1) for _ in range(8)])) == 8


def test_deleted_documents_take_no_time_to_merge():
    entries = [Entry(4000, deleted=3900) for _ in range(8)]

    assert due(entries) == entries


@pytest.mark.parametrize(
    ("documents", "kind"), [(0, 0), (7, 0), (8, 1), (63, 1), (64, 2), (512, 3)]
)
def test_kinds_grow_eightfold(documents, kind):
    assert kind_of(documents) == kind
