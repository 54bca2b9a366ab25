"""What an import is going to write, decided in full before anything is written.

Summaries and compactions are no messages: what hangs from one hangs from the message it stands at.
Together they hide everything from the first message to the one before the first that was kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workspace_session.adapters.agentscope_java.lineage import (
    Lineage,
    is_summary,
    parents_first,
    settle,
)
from workspace_session.adapters.agentscope_java.lines import Line
from workspace_session.adapters.agentscope_java.reading import Transcript
from workspace_session.adapters.agentscope_java.shapes import to_message


@dataclass(frozen=True, slots=True)
class Add:
    """A message, and the one it hangs from."""

    line: Line
    message: dict[str, Any]
    parent: str | None


@dataclass(frozen=True, slots=True)
class Note:
    """An entry that is no message: it is kept, so that an export can give it back."""

    line: Line


@dataclass(frozen=True, slots=True)
class Summarise:
    """A summary that stands in for everything up to a message."""

    summary: str
    to_id: str


Step = Add | Note | Summarise


class Plan:
    """The steps of one import; what is doubtful is added to the problems of the transcript."""

    def __init__(self, transcript: Transcript, stored: Mapping[str, str | None]) -> None:
        self.steps: list[Step] = []
        self._transcript = transcript
        self._stored = stored  # the messages that the session has, and their parents
        self._lineage: Lineage = settle(transcript, stored)
        self._at: dict[str, str | None] = {}  # entries placed, and the message each stands at
        self._above: dict[str, str | None] = {}  # messages placed, and what each hangs from
        self._late: list[Line] = []
        self._in_front = self._summaries_in_front()
        for line in parents_first(self._lineage, transcript):
            self._place(line)
        for line in self._late:
            self._summarise(line)

    @property
    def last(self) -> str | None:
        """The message that the transcript ends at."""
        return self._lineage.last

    @property
    def repeated(self) -> int:
        """How many entries are earlier ones, sent again."""
        return len(self._lineage.same)

    def _place(self, line: Line) -> None:
        parent = self._stands_at(self._lineage.parents[line.id])
        if is_summary(line):
            self._at[line.id] = parent
            if line not in self._in_front.values():
                self.steps.append(Note(line))
            if line.type == "compaction":
                self._summarise(line)
            return
        if summary := self._in_front.get(line.id):
            self.steps.append(Add(summary, to_message(summary), None))
            parent = summary.id
        self.steps.append(Add(line, to_message(line), parent))
        self._at[line.id], self._above[line.id] = line.id, parent

    def _stands_at(self, entry_id: str | None) -> str | None:
        return self._at.get(entry_id, entry_id) if entry_id is not None else None

    # -- summaries ---------------------------------------------------------------------------------

    def _summarise(self, line: Line) -> None:
        summary = self._summary_of(line)
        kept = self._first_kept(line)
        if summary is None:
            self._transcript.doubt(line.id, "there is no summary for it; nothing is hidden")
        elif kept is None:
            wanted = line.fields.get("firstKeptEntryId")
            reason = f"there is no entry {wanted!r} to be the first that is kept; nothing is hidden"
            self._transcript.doubt(line.id, reason)
        elif kept in self._lineage.lines and kept not in self._at:
            self._late.append(line)
        elif kept not in self._in_front:
            end = self._before(kept)
            if end is None:
                reason = f"nothing comes before {kept!r}; nothing is hidden"
                self._transcript.doubt(line.id, reason)
            else:
                self.steps.append(Summarise(summary.fields["summary"], end))

    def _before(self, kept: str) -> str | None:
        """The last message that is hidden when this entry is the first that is kept."""
        if kept in self._above:
            return self._above[kept]
        return self._at[kept] if kept in self._at else self._stored[kept]

    def _first_kept(self, line: Line) -> str | None:
        wanted = line.fields.get("firstKeptEntryId")
        kept = self._lineage.same.get(wanted, wanted) if isinstance(wanted, str) else None
        return kept if kept in self._lineage.lines or kept in self._stored else None

    def _summary_of(self, line: Line) -> Line | None:
        found = self._lineage.lines.get(line.fields.get("summaryEntryId", ""))
        text = None if found is None else found.fields.get("summary")
        return found if isinstance(text, str) and text.strip() else None

    def _summaries_in_front(self) -> dict[str, Line]:
        """Summaries of what is not in the transcript, by the message that is the first of it.

        There is nothing that they could stand in for, so they become messages.
        """
        found: dict[str, Line] = {}
        for line in self._lineage.lines.values():
            if line.type != "compaction":
                continue
            kept, summary = self._first_kept(line), self._summary_of(line)
            if kept is None or summary is None:
                continue
            if kept in self._stored and summary.id not in self._stored:
                continue  # it was imported before this was its first message
            if not is_summary(self._lineage.lines[kept]) and not self._has_message_above(kept):
                found[kept] = summary
        return found

    def _has_message_above(self, entry_id: str) -> bool:
        seen: set[str] = set()
        above = self._lineage.parents[entry_id]
        while above is not None and above not in seen:
            line = self._lineage.lines.get(above)
            if line is None or not is_summary(line):
                return True
            seen.add(above)
            above = self._lineage.parents[above]
        return False
