"""The order in which a session's messages are drawn: straight down, with only branches indented.

Below a message with several continuations, all but one come first, each on a rail of its own; the one
left goes straight on. On the active branch that is the active one, elsewhere the longest, so the rails
never outnumber the logarithm of the messages. No recursion: 100,000 in a row is ordinary.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from workspace_session.model.entries import Compaction, Message
from workspace_session.model.tree import Tree


@dataclass(slots=True)
class Outline:
    """What there is to draw."""

    tip: str | None
    active: set[str]
    labels: dict[str, str]
    orphans: set[str]
    children: dict[str | None, list[Message]] = field(default_factory=dict)
    parents: dict[str, str | None] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    summaries: dict[str, Compaction] = field(default_factory=dict)  # by the first they hide
    hidden: dict[str, str] = field(default_factory=dict)  # message to the summary that hides it


class Row(NamedTuple):
    """A message, what stands to its left, and what stands to the left of the rows below it."""

    entry: Message
    rail: str = ""
    onward: str = ""

    @property
    def depth(self) -> int:
        """How many rails stand to its left."""
        return len(self.rail) // 2

    @property
    def starts_branch(self) -> bool:
        """Whether it is another continuation of a message than the one that goes straight on."""
        return self.rail.endswith("├─")


# -- collecting ------------------------------------------------------------------------------------


def outline(tree: Tree) -> Outline:
    """Everything about a session that a drawing shows."""
    found = Outline(
        tip=tree.tip,
        active={entry.id for entry in tree.path(tree.tip)},
        labels=tree.labels(),
        orphans={entry.id for entry in tree.orphans()},
    )
    _collect_children(tree, found)
    _measure(found)
    _collect_summaries(tree, found)
    return found


def _collect_children(tree: Tree, found: Outline) -> None:
    for message in tree.messages():
        found.children.setdefault(_place(message, tree, found), []).append(message)
    pending: list[str | None] = [None]
    while pending:
        parent = pending.pop()
        for child in found.children.setdefault(parent, []):
            found.parents[child.id] = parent
            pending.append(child.id)


def _place(message: Message, tree: Tree, found: Outline) -> str | None:
    """What a message hangs from. A range that went with its log has only the summary left."""
    parent = tree.parent(message.id)
    while parent is not None and (span := tree.span(parent)) is not None:
        found.summaries.setdefault(message.id, span)
        parent = tree.parent(parent)
    return parent


def _measure(found: Outline) -> None:
    """Count what hangs from each message: children were collected after their parents."""
    found.sizes = dict.fromkeys(found.parents, 1)
    for child, parent in reversed(found.parents.items()):
        if parent is not None:
            found.sizes[parent] += found.sizes[child]


def _collect_summaries(tree: Tree, found: Outline) -> None:
    """The ones in use: on the active branch those a model is shown, elsewhere the newest first."""
    shown = [item for item in tree.context(tree.tip) if isinstance(item, Compaction)]
    in_use = {summary.id for summary in shown}
    for summary in (*shown, *reversed(tree.overlays)):
        covered = _range(summary, found)
        if summary.id not in in_use:  # what the active branch shows is not hidden
            covered = [message_id for message_id in covered if message_id not in found.active]
        if covered:
            found.hidden.update(dict.fromkeys(covered, summary.id))
            found.summaries[covered[-1]] = summary


def _range(summary: Compaction, found: Outline) -> list[str]:
    """The messages that a summary stands in for, last first; none where another already does."""
    covered: list[str] = []
    at: str | None = summary.to_id
    while at is not None and at in found.parents and at not in found.hidden:
        covered.append(at)
        if at == summary.from_id:
            return covered
        at = found.parents[at]
    return []


# -- ordering --------------------------------------------------------------------------------------


def rows(found: Outline) -> Iterator[Row]:
    """The messages from the top down."""
    pending = [Row(root) for root in reversed(found.children[None])]
    while pending:
        row = pending.pop()
        yield row
        children = found.children[row.entry.id]
        if not children:
            continue
        straight = _straight(children, found)
        pending.append(Row(straight, row.onward, row.onward))
        pending += [
            Row(child, f"{row.onward}├─", f"{row.onward}│ ")
            for child in reversed(children)
            if child is not straight
        ]


def _straight(children: list[Message], found: Outline) -> Message:
    """The continuation that is not indented; of equals, the newest."""

    def rank(child: Message) -> tuple[bool, int]:
        return child.id in found.active, found.sizes[child.id]

    return max(reversed(children), key=rank)
