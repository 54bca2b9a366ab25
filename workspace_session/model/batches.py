"""Batches: entries that were written together count together or not at all.

A crash can cut a batch short. Its members then do not exist for readers; the next writer appends an
`abort` entry that names it, so that they stay out after later appends, merges and trims.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from workspace_session.model.entries import Abort, Entry, Trim


@dataclass(frozen=True, slots=True)
class Settled:
    """Which of a run of entries count. Those from `settled` on may yet be completed."""

    counted: list[Entry]
    settled: int
    cut: list[str] = field(default_factory=list)  # batches that lack members and no abort names


def settle(entries: Sequence[Entry]) -> Settled:
    """Sort out a run of entries, in the order of the file.

    What stands before a trim was settled when that was made, and has lost members since.
    """
    trims = [at for at, entry in enumerate(entries) if type(entry) is Trim]
    if trims:
        before, rest = entries[: trims[-1] + 1], settle(entries[trims[-1] + 1 :])
        return Settled([*before, *rest.counted], len(before) + rest.settled, rest.cut)
    members: dict[str, set[str]] = {}
    sizes: dict[str, int] = {}
    aborted: set[str] = set()
    for entry in entries:
        if entry.batch is not None:
            members.setdefault(entry.batch.id, set()).add(entry.id)
            sizes[entry.batch.id] = entry.batch.size
        elif type(entry) is Abort:
            aborted.add(entry.batch_id)
    if not members:
        return Settled(list(entries), len(entries))
    short = {batch for batch, ids in members.items() if len(ids) < sizes[batch]}
    out = short | aborted
    counted = [entry for entry in entries if entry.batch is None or entry.batch.id not in out]
    return Settled(counted, _end_of_settled(entries, short - aborted), sorted(short - aborted))


def _end_of_settled(entries: Sequence[Entry], open_batches: set[str]) -> int:
    """Where the last batch begins if it may still be being written: it then is the end of the run."""
    end = len(entries)
    last = entries[-1].batch if entries else None
    if last is None or last.id not in open_batches:
        return end
    while end > 0 and entries[end - 1].batch == last:
        end -= 1
    return end
