"""Trimming: which entries a working set needs to show what the whole log would show.

Kept is what some reader can see: the messages that no overlay hides on every branch, the overlays that
stand in for the others, the newest labels and facts. The rest is summed up in one `Trim` entry. A tree
folded from the result gives the same context, tip, labels, facts, counts and sums as the log.
"""

from __future__ import annotations

from dataclasses import dataclass

from workspace_session.model import messages
from workspace_session.model.entries import (
    Compaction,
    Entry,
    Header,
    Info,
    Label,
    Message,
    Other,
    Purge,
    Said,
    Trim,
    Update,
)
from workspace_session.model.lines import compose
from workspace_session.model.tree import Tree


@dataclass(frozen=True, slots=True)
class Plan:
    """What a trimmed working set would hold."""

    kept: list[Entry]
    trim: Trim

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return sum(len(entry.line) + 1 for entry in (*self.kept, self.trim))


def plan(tree: Tree) -> Plan:
    """What to keep of a tree's entries."""
    visible, standing = _seen_by_readers(tree)
    kept = [entry for entry in tree.entries if _is_kept(entry, tree, visible, standing)]
    return Plan(kept, _summed_up(tree, visible, standing, len(kept)))


def _seen_by_readers(tree: Tree) -> tuple[set[str], dict[str, Compaction]]:
    """Ids of the messages shown on some branch, and the overlays that are, by id.

    Nothing below the last overlay on a branch can be hidden, so only one path for each place where
    an overlay ends has to be read in full.
    """
    ends = {overlay.to_id for overlay in tree.overlays}
    visible: set[str] = set()
    standing: dict[str, Compaction] = {}
    starts: set[str] = set()
    for head in tree.heads():
        at: str | None = head
        while at is not None and at not in visible and at not in ends:
            visible.add(at)
            at = tree.parent(at)
        if at is not None and at in ends:
            starts.add(at)
    for start in starts:
        for item in tree.context(start):
            if isinstance(item, Compaction):
                standing[item.id] = item
            else:
                visible.add(item.id)
    return visible, standing


def _is_kept(entry: Entry, tree: Tree, visible: set[str], standing: dict[str, Compaction]) -> bool:
    match entry:
        case Message():
            return entry.id in visible and tree.is_current(entry)
        case Update():
            return entry.target_id in visible and tree.is_current(entry)
        case Compaction():
            return entry.id in standing
        case Label() | Info():
            return tree.is_current(entry)
        case Header() | Purge() | Other():
            return True
        case _:
            return False


def _summed_up(tree: Tree, visible: set[str], standing: dict[str, Compaction], kept: int) -> Trim:
    newest_time, newest_id = tree.newest
    return compose(
        Trim,
        id=f"trim-{newest_id}",
        timestamp=newest_time,
        end_id=newest_id,
        leaf=tree.tip,
        created_at=tree.created_at,
        hidden=len(tree) - len(visible),
        first=_hidden_first(tree, visible),
        usage=tree.spent,
        parents=_moved(tree, visible, standing),
        inner=_inner(tree, visible, standing),
        kept=kept,
    )


def _hidden_first(tree: Tree, visible: set[str]) -> Said | None:
    """What the user said first of what is not kept."""
    node, before = tree.first_user_message(but=visible), tree.hidden_first
    if node is None or (before is not None and before.timestamp < node.timestamp):
        return before
    return Said(node.timestamp, messages.one_line(messages.text(node.message), 120))


def _inner(tree: Tree, visible: set[str], standing: dict[str, Compaction]) -> tuple[str, ...]:
    """What is kept and has children that are not: it must not pass for a leaf."""
    kept = visible | {overlay.to_id for overlay in standing.values()}
    found = {tree.parent(node) for node in tree.here_ids() if node not in visible}
    found |= tree.inner
    return tuple(sorted(node for node in found if node is not None and node in kept))


def _moved(tree: Tree, visible: set[str], standing: dict[str, Compaction]) -> dict[str, str | None]:
    """Where messages and summaries hang that do not hang where their own line says.

    Or that come before what they hang from, which only lines by other hands do.
    """
    moved: dict[str, str | None] = {}
    for message_id in visible:
        parent, node = tree.parent(message_id), tree.here(message_id)
        above = None if parent is None else tree.here(parent)
        comes_late = node is not None and above is not None and above.key > node.key
        if comes_late or (node is not None and parent != node.parent_id):
            moved[message_id] = parent
    for overlay in standing.values():
        parent = tree.parent_of_start(overlay.from_id)
        if parent != overlay.from_parent_id:
            moved[overlay.to_id] = parent
    return dict(sorted(moved.items()))
