"""Forks: a child has the memory of its parent, and of its threads only the one that forked.

What another thread held then, nobody in the child will ever let go; what it was changing is half changed
for good. So whoever keeps a `threading` lock, or memory that one guards, makes both anew in the child.
Files need none of this: locks between processes stay with the parent.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol
from weakref import WeakSet


class Keeper(Protocol):
    """Something that keeps a lock."""

    def renew_in_child(self) -> None: ...


_keepers: WeakSet[Keeper] = WeakSet()


def keep_over_forks(keeper: Keeper) -> None:
    """See that `keeper` is made anew in every child; it may be gone by then."""
    _keepers.add(keeper)


def after_fork(renew: Callable[[], None]) -> None:
    """The same for what a module keeps."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=renew)


@after_fork
def _renew_keepers() -> None:
    for keeper in list(_keepers):
        keeper.renew_in_child()
