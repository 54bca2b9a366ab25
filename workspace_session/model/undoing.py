"""Undoing: which move of the tip can be taken back, and what a cleared session held.

A tip moves when a message is appended, when it is set elsewhere, and when everything is cleared. The
last two lose sight of something, and can be taken back as long as nothing has been appended since.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from workspace_session.model.clock import Stamp, stamps
from workspace_session.model.entries import (
    Batch,
    Clear,
    Compaction,
    Delete,
    Entry,
    Label,
    Leaf,
    Message,
)
from workspace_session.model.lines import compose, compose_message, message_json
from workspace_session.model.tree import Tree

E = TypeVar("E", bound=Entry)


class Step(NamedTuple):
    """A move of the tip: its place among the entries, and where the tip was before."""

    at: int
    before: str | None


def last_step(entries: Sequence[Entry]) -> Step | None:
    """The newest move that can be taken back; one that was taken back already does not count."""
    steps: list[Step] = []
    tip: str | None = None
    for at, entry in enumerate(entries):
        match entry:
            case Message():
                steps, tip = [], entry.id
            case Delete():
                steps = []  # the tip may have been among what was deleted
            case Leaf(batch=batch, target_id=target):
                # Only what takes a step back moves the tip in a batch.
                steps, tip = (steps[:-1] if batch else [*steps, Step(at, tip)]), target
            case Clear():
                steps.append(Step(at, tip))
                tip = None
    return steps[-1] if steps else None


def taken_back(step: Step, after: str) -> Leaf:
    """The entry that moves the tip to where it was."""
    ((timestamp, fresh_id),) = stamps(1, after)
    return _made(Leaf, (timestamp, fresh_id), Batch(fresh_id, 1), target_id=step.before)


def restored(before: Tree, after: str) -> list[Entry]:
    """Entries that bring back all that a tree held: one batch, the messages under their own ids."""
    nodes, overlays, labels = before.messages(), before.overlays, before.label_entries()
    size = len(nodes) + len(overlays) + len(labels) + 1
    times = stamps(size, after)
    batch = Batch(times[0][1], size)
    fresh = iter(times)
    entries: list[Entry] = [_message(node, before, next(fresh)[0], batch) for node in nodes]
    entries += [_overlay(overlay, before, next(fresh), batch) for overlay in overlays]
    entries += [
        _made(Label, next(fresh), batch, target_id=entry.target_id, label=entry.label)
        for entry in labels
    ]
    return [*entries, _made(Leaf, next(fresh), batch, target_id=before.tip)]


def _message(node: Message, tree: Tree, timestamp: str, batch: Batch) -> Message:
    return compose_message(
        message_json(node.message),
        id=node.id,
        timestamp=timestamp,
        parent_id=tree.parent(node.id),
        author=node.author,
        batch=batch,
    )


def _overlay(overlay: Compaction, tree: Tree, stamp: Stamp, batch: Batch) -> Compaction:
    return _made(
        Compaction,
        stamp,
        batch,
        from_id=overlay.from_id,
        to_id=overlay.to_id,
        from_parent_id=tree.parent_of_start(overlay.from_id),
        summary=overlay.summary,
        covers=overlay.covers,
    )


def _made(kind: type[E], stamp: Stamp, batch: Batch, **fields: Any) -> E:
    timestamp, fresh_id = stamp
    return compose(kind, id=fresh_id, timestamp=timestamp, batch=batch, **fields)
