"""The end of the active branch: taking the newest message back, replacing the last ones, undoing that.

Nothing is removed by any of this. The tip moves, what it leaves behind stays in the log as a branch, and
what is replaced is compared under the lock with what the caller saw.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from workspace_session.files.session_writer import SessionWriter
from workspace_session.model.entries import Clear, Compaction, Delete, Entry, Leaf
from workspace_session.model.placing import Appended, drafts, place
from workspace_session.model.tree import Shown, Tree
from workspace_session.model.undoing import last_step, restored, taken_back


class TipWriter(SessionWriter):
    """A session whose newest messages can be taken back."""

    def pop(self) -> Shown | None:
        """Move the tip before the last of `context()`, and return that; None when there is none."""

        def make(tree: Tree, after: str) -> tuple[list[Entry], Shown | None]:
            shown = tree.tail(tree.tip, 2)
            if not shown:
                return [], None
            return [self._entry(Leaf, after, target_id=_before(shown, 1))], shown[-1]

        return self._write(make)

    def replace_tail(
        self,
        tail: Sequence[Shown],
        messages: Iterable[Mapping[str, Any]],
        *,
        without: Iterable[str] = (),
        all_of_it: bool = False,
    ) -> list[Appended] | None:
        """Put messages in the place of the last of `context()`, if they still are as in `tail`.

        One batch, on a new branch from what stands before them; of that, the messages named by
        `without` are deleted with the same write. With `all_of_it` nothing may stand before them. None,
        and nothing written, when somebody else was there first. The messages get fresh ids, whatever
        they say.
        """
        new = drafts(messages, own_ids=False)
        wanted, unwanted = list(tail), list(dict.fromkeys(without))

        def make(tree: Tree, after: str) -> tuple[Sequence[Entry], list[Appended] | None]:
            shown = tree.tail(tree.tip, len(wanted) + 1)
            before = max(len(shown) - len(wanted), 0)
            if shown[before:] != wanted or (all_of_it and before):
                return [], None
            doomed = [one for one in unwanted if tree.get(one) is not None]
            parent = _before(shown, len(wanted))
            placed = place(tree, new, parent=parent, author=None, session_id=self.id, after=after)
            written: list[Entry] = [result.entry for result in placed]
            if not new and tree.tip != (stays := _nearest_left(tree, parent, doomed)):
                written.append(self._entry(Leaf, after, target_id=stays))
            if doomed:
                latest = written[-1].timestamp if written else after
                written.append(self._entry(Delete, latest, target_ids=tuple(doomed)))
            return written, placed

        return self._write(make)

    def undo(self) -> bool:
        """Take back the last move of the tip (a pop, a switch) or the last clear.

        Only what nothing was appended after; False when there is nothing of the kind. What a clear
        hid comes back whole, branches included, as new entries.
        """

        def make(_tree: Tree, after: str) -> tuple[list[Entry], bool]:
            whole = self._whole()
            step = last_step(whole.entries)
            if step is None:
                return [], False
            if isinstance(whole.entries[step.at], Clear):
                if whole.trim is not None:  # the log was lost, and what was cleared with it
                    return [], False
                return restored(Tree.of_log(whole.entries[: step.at]), after), True
            return [taken_back(step, after)], True

        return self._write(make)


def _nearest_left(tree: Tree, message_id: str | None, doomed: Container[str]) -> str | None:
    """A message, or its nearest ancestor that is not about to be deleted."""
    while message_id is not None and message_id in doomed:
        message_id = tree.parent(message_id)
    return message_id


def _before(shown: Sequence[Shown], count: int) -> str | None:
    """What the last `count` items hang from, on the path as it is shown."""
    if len(shown) <= count:
        return None
    item = shown[-count - 1]
    return item.to_id if isinstance(item, Compaction) else item.id
