"""How quick disks are, as far as the last writes of this process tell.

Whoever would rather not wait for a disk asks before it writes. The answer is a guess from what was
measured; when it is wrong, one write waits, and those that follow know better.
"""

from __future__ import annotations

_QUICK_SECONDS = 0.0005
_ENOUGH = 8

_quick_in_a_row: dict[int, int] = {}  # by device


def note(device: int, seconds: float) -> None:
    """A sync took so long."""
    before = _quick_in_a_row.get(device, 0)
    _quick_in_a_row[device] = before + 1 if seconds < _QUICK_SECONDS else 0


def is_quick(device: int) -> bool:
    """Whether the last syncs were all quick, and there were enough of them to tell."""
    return _quick_in_a_row.get(device, 0) >= _ENOUGH
