"""What a search gives back, whichever engine or store has searched."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias, TypedDict

from workspace_session.model.clock import as_time

Moment: TypeAlias = str | datetime
"""A time: in ISO form, of a day too, or a `datetime`; without a zone it is in UTC."""


class Filters(TypedDict, total=False):
    """What narrows a search down, and what widens it.

    `since` counts, `until` does not. `everything` looks through what tools were given and gave back,
    and through summaries, too. `newest_first` orders by time, and gives no scores.
    """

    role: str | None
    since: Moment | None
    until: Moment | None
    everything: bool
    newest_first: bool


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A message that was found. `snippet` shows its best part on one line, matches in `**`."""

    session_id: str
    agent_id: str | None
    user_id: str | None
    message_id: str
    role: str
    content: str
    snippet: str
    score: float
    created_at: str

    def __post_init__(self) -> None:
        if not isinstance(self.created_at, str):  # a driver may give a `datetime`
            object.__setattr__(self, "created_at", as_time(self.created_at))


class SearchHits(list[SearchHit]):
    """The best hits; `total` says how many there are beside them."""

    def __init__(self, hits: Iterable[SearchHit] = (), total: int = 0) -> None:
        super().__init__(hits)
        self.total = total
