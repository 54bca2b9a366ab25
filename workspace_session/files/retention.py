"""Retention: which sessions are due to go, and taking them away: to the trash first, then for good.

Choosing changes nothing. A session that was written to since it was chosen stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from workspace_session.files.trash import Trashed
from workspace_session.model.info import SessionInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """What is kept. A session goes when it is too old, or when too many of its agent are newer."""

    older_than: timedelta | None = None  # since it was last written to
    keep: int | None = None  # of each agent, the ones written to last
    spare_labelled: bool = False  # those with a bookmark do not go, and do not count
    spare_tagged: bool = False
    trash_older_than: timedelta | None = None  # since it was deleted; then it is erased

    def due(self, infos: Sequence[SessionInfo], now: datetime) -> Iterator[tuple[SessionInfo, str]]:
        """The sessions of one agent, the newest first, that are to go to the trash, and why."""
        counted = 0
        for info in infos:
            if info.updated_at is None or self._spares(info):
                continue  # what has only state has no age
            counted += 1
            age = now - datetime.fromisoformat(info.updated_at)
            if self.older_than is not None and age > self.older_than:
                yield info, f"not written to for {age.days} days"
            elif self.keep is not None and counted > self.keep:
                yield info, f"number {counted} of its agent"

    def _spares(self, info: SessionInfo) -> bool:
        return bool(self.spare_labelled and info.labels) or bool(self.spare_tagged and info.tags)

    def erasable(self, trashed: Sequence[Trashed], now: datetime) -> Iterator[tuple[Trashed, str]]:
        """What has been in the trash for too long."""
        if self.trash_older_than is None:
            return
        for gone in trashed:
            age = now - gone.moment
            if age > self.trash_older_than:
                yield gone, f"deleted {age.days} days ago"
