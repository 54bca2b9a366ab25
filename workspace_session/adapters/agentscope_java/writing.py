"""Writing the steps of an import: messages in batches, and nothing that is there already.

"There" is what the log holds: a message that was deleted, or hidden by a clear, does not come back.
One that says something else in the transcript by now gets new content, unless it said that before:
whoever has edited it since then keeps the edit.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from workspace_session import SessionTree
from workspace_session.adapters.agentscope_java.notes import CUSTOM_TYPE, as_data, noted
from workspace_session.adapters.agentscope_java.planning import Add, Note, Step, Summarise
from workspace_session.adapters.agentscope_java.reading import Transcript
from workspace_session.adapters.agentscope_java.shapes import kept_of
from workspace_session.adapters.agentscope_java.times import entry_times
from workspace_session.model.clock import dated
from workspace_session.model.entries import Compaction, Message, Update


class Writer:
    """Writes to one session, and counts."""

    def __init__(self, tree: SessionTree, transcript: Transcript) -> None:
        self.added = self.known = self.updated = 0
        self.alive: dict[str, str | None] = {}  # the messages of the session, and their parents
        self._tree = tree
        self._transcript = transcript
        self._parents: dict[str, str | None] = {}  # the same, of all that the log holds
        self._said: dict[str, list[dict[str, Any]]] = defaultdict(list)  # and every revision
        self._notes: set[str] = set()
        self._overlays: set[tuple[str, str]] = set()
        self._run: list[Add] = []
        self._placed: set[str] = set()
        self._tip = tree.leaf
        if tree.exists():
            self._read()

    def _read(self) -> None:
        self.alive = {entry.id: entry.parent_id for entry in self._tree.all_messages()}
        for entry in self._tree.log():
            if isinstance(entry, Message):
                self._parents.setdefault(entry.id, entry.parent_id)
                self._said[entry.id].append(entry.message)
            elif isinstance(entry, Update):
                self._said[entry.target_id].append(entry.message)
            elif isinstance(entry, Compaction):
                self._overlays.add((entry.to_id, entry.summary))
            elif note := noted(entry):
                self._notes.add(note.id)

    def take(self, step: Step) -> None:
        """Write a step, or let it wait for more of its kind."""
        match step:
            case Add() if step.line.id in self._parents:
                self._compare(step)
            case Add():
                if self._run and step.parent != self._run[-1].line.id:
                    self._flush()
                self._run.append(step)
                self.added += 1
            case Note(line):
                self._note(line.id, as_data(line))
            case Summarise(summary, to_id):
                self._summarise(summary, to_id)

    def finish(self, last: str | None) -> None:
        """Write what waits. The tip is the end of the transcript if that is new, else as it was."""
        self._flush()
        if self._placed:
            self._tree.set_leaf(last if last in self._placed else self._tip)

    # -- messages ----------------------------------------------------------------------------------

    def _flush(self) -> None:
        if not self._run:
            return
        parent = self._run[0].parent
        while parent is not None and parent not in self.alive:
            parent = self._parents.get(parent)
        with dated(*entry_times(step.line.timestamp for step in self._run)):
            self._tree.extend([step.message for step in self._run], parent)
        for step in self._run:
            self.alive[step.line.id] = step.parent
            self._placed.add(step.line.id)
        self._run = []

    def _compare(self, step: Add) -> None:
        line = step.line
        self.known += 1
        if line.id not in self.alive or any(_same(said, step) for said in self._said[line.id]):
            return
        if not all(kept_of(said) for said in self._said[line.id]):
            reason = f"the session has another message {line.id!r}, which stays as it is"
            self._transcript.doubt(line.id, reason)
            return
        self._tree.update(line.id, step.message)
        self.known, self.updated = self.known - 1, self.updated + 1

    # -- summaries ---------------------------------------------------------------------------------

    def _note(self, entry_id: str, data: dict[str, Any]) -> None:
        if entry_id in self._notes:
            self.known += 1
            return
        self._flush()
        self._tree.add_custom(CUSTOM_TYPE, data)
        self._notes.add(entry_id)
        self.added += 1

    def _summarise(self, summary: str, to_id: str) -> None:
        self._flush()
        if (to_id, summary) not in self._overlays and to_id in self.alive:
            self._tree.compact(summary, self._tree.path(to_id)[0].id, to_id)


def _same(said: dict[str, Any], step: Add) -> bool:
    """Whether a message says what a step would say; the rest may differ."""
    return all(said.get(name) == step.message[name] for name in ("role", "content"))
