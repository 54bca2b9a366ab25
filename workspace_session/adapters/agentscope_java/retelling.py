"""A session's log, told again as entries of AgentScope for Java.

There a compaction is one more link of the chain: it hangs from the message that was the last one when
it was made, and what came after hangs from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from workspace_session.adapters.agentscope_java.flattening import Flattener
from workspace_session.adapters.agentscope_java.lines import Line
from workspace_session.adapters.agentscope_java.notes import noted
from workspace_session.adapters.agentscope_java.shapes import original, time_of
from workspace_session.adapters.agentscope_java.times import of_entry
from workspace_session.model.entries import Compaction, Entry, Leaf, Message, Update
from workspace_session.model.messages import tool_calls


@dataclass(slots=True)
class Told:
    """The entries in their order, and which of them each message or overlay has become."""

    everything: list[Line] = field(default_factory=list)
    lines: dict[str, list[Line]] = field(default_factory=dict)


def retell(log: Sequence[Entry], path: Sequence[Message], *, tool_entries: bool) -> Told:
    """Tell a log again; `path` leads to the tip."""
    teller = _Teller(log, path, tool_entries=tool_entries)
    for entry in log:
        teller.take(entry)
    teller.name_first_kept()
    return teller.told


class _Teller:
    def __init__(
        self, log: Sequence[Entry], path: Sequence[Message], *, tool_entries: bool
    ) -> None:
        self.told = Told()
        self._newest = {entry.target_id: entry for entry in log if isinstance(entry, Update)}
        names = {
            call.id: call.name
            for entry in log
            if isinstance(entry, Message | Update)
            for call in tool_calls(entry.message)
        }
        self._flattener = Flattener(tool_entries, names)
        self._next = {one.id: other.id for one, other in pairwise(path)}
        self._parents: dict[str, str | None] = {}
        self._ends: dict[str, str] = {}  # of each message, the entry that others hang from
        self._tip: str | None = None
        self._notes: dict[str, Line] = {}
        self._imported: dict[str, list[Line]] = {}  # summaries whose overlay is still to come
        self._kept: list[tuple[Line, str]] = []  # compactions, and the first message that is kept

    def take(self, entry: Entry) -> None:
        """Tell one entry."""
        match entry:
            case Message() if entry.id not in self.told.lines:
                self._say(entry)
            case Leaf(target_id=target):
                self._tip = target
            case Compaction():
                self._summarise(entry)
            case _:
                if note := noted(entry):
                    self._give_back(note)

    def _say(self, entry: Message) -> None:
        message = self._newest.get(entry.id, entry).message
        known = original(message)
        if known is not None and known.id == entry.id:
            lines = [known]
        else:
            time = time_of(message) or of_entry(entry.timestamp)
            above = self._ends.get(entry.parent_id) if entry.parent_id is not None else None
            lines = self._flattener.lines(entry.id, message, above, time)
        self.told.everything += lines
        self.told.lines[entry.id] = lines
        self._parents[entry.id] = entry.parent_id
        self._ends[entry.id] = lines[-1].id
        self._tip = entry.id

    # -- summaries ---------------------------------------------------------------------------------

    def _give_back(self, note: Line) -> None:
        self.told.everything.append(note)
        self._notes[note.id] = note
        summary = self._notes.get(str(note.fields.get("summaryEntryId")))
        text = None if summary is None else summary.fields.get("summary")
        if summary is not None and isinstance(text, str):
            self._imported[text] = [summary, note]

    def _summarise(self, overlay: Compaction) -> None:
        last, kept = self._where(overlay)
        lines = self._imported.pop(overlay.summary, None)
        if lines is None:
            lines = self._made(overlay, self._ends.get(last))
            self.told.everything += lines
            self._kept.append((lines[1], kept or self._next.get(overlay.to_id, "")))
        self.told.lines[overlay.id] = lines
        self._ends[last] = lines[1].id

    def _where(self, overlay: Compaction) -> tuple[str, str | None]:
        """The last message when an overlay was made, and the first that it does not hide."""
        first, at = None, self._tip
        seen: set[str] = set()
        while at is not None and at != overlay.to_id and at not in seen:
            seen.add(at)
            first, at = at, self._parents.get(at)
        if at != overlay.to_id or self._tip is None:
            return overlay.to_id, None
        return self._tip, first

    def _made(self, overlay: Compaction, above: str | None) -> list[Line]:
        time = of_entry(overlay.timestamp)
        summary = Line(
            type="summary",
            id=f"{overlay.id}:summary",
            parent_id=above,
            timestamp=time,
            fields={"summary": overlay.summary},
        )
        compaction = Line(
            type="compaction",
            id=overlay.id,
            parent_id=summary.id,
            timestamp=time,
            fields={"firstKeptEntryId": overlay.id, "summaryEntryId": summary.id},
        )
        return [summary, compaction]

    def name_first_kept(self) -> None:
        """Say of each compaction what is kept; of one after which nothing came, itself."""
        for line, kept in self._kept:
            if kept in self.told.lines:
                line.fields["firstKeptEntryId"] = self.told.lines[kept][0].id
