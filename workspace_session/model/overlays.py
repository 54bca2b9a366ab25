"""Overlays: which summaries stand in for which messages when a path is read.

Walking a path from its root, the overlays that start here and end further along this same path are
candidates; the newest of them is shown once in place of its range. Nothing is ever altered by this,
and doing it twice is the same as doing it once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar


class Range(Protocol):
    """What is known of an overlay: the first and the last message that it hides."""

    @property
    def from_id(self) -> str: ...
    @property
    def to_id(self) -> str: ...


O = TypeVar("O", bound=Range)  # noqa: E741 - an overlay


def cover(starts: Sequence[str], ends: Sequence[str], overlays: Sequence[O]) -> list[int | O]:
    """The path with overlays applied: indexes of what stays, overlays where they stand in.

    A path is given by the first and last message id of each of its items: twice the same id for a
    message, the two ends of the range for an item that already is a summary. `overlays` are in the
    order of their creation.
    """
    if not overlays:
        return list(range(len(starts)))
    by_start: dict[str, list[O]] = {}
    for overlay in overlays:
        by_start.setdefault(overlay.from_id, []).append(overlay)
    last_index = {end: index for index, end in enumerate(ends)}
    shown: list[int | O] = []
    index = 0
    while index < len(starts):
        chosen = _newest(by_start.get(starts[index], ()), last_index, index)
        shown.append(index if chosen is None else chosen)
        index = index + 1 if chosen is None else last_index[chosen.to_id] + 1
    return shown


def _newest(candidates: Sequence[O], last_index: dict[str, int], index: int) -> O | None:
    for overlay in reversed(candidates):
        if last_index.get(overlay.to_id, -1) >= index:
            return overlay
    return None
