"""Folding: what a set of entries amounts to.

The entries are taken in the order of (timestamp, id): whoever holds the same set arrives at the same
tree, tip, labels and facts, whatever order the lines stood in. Entries that arrive in order cost a
constant each; one that arrives late makes the fold run again. No recursion: a chain of 100,000 is
ordinary. What can be asked of the result is in `tree`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, Self

from workspace_session.model.entries import (
    Clear,
    Compaction,
    Delete,
    Entry,
    Header,
    Info,
    Label,
    Leaf,
    Message,
    Purge,
    Spent,
    Trim,
    Update,
    Usage,
)
from workspace_session.model.purging import withheld

_serials = count()


class NeedsLog(LookupError):
    """The working set does not hold what was asked for; the log may."""


def nearest_left(
    targets: Iterable[str], parents: Mapping[str, str | None]
) -> dict[str, str | None]:
    """For each message to be deleted, its nearest ancestor that stays; None without one."""
    doomed, homes = set(targets), dict[str, str | None]()
    for target in targets:
        trail: list[str] = []
        at: str | None = target
        while at in doomed and at not in homes:
            trail.append(at)
            at = parents[at]
        home = homes[at] if at is not None and at in homes else at
        homes.update(dict.fromkeys(trail, home))
    return homes


class Fold:
    """What a session's entries amount to, kept up while more of them come."""

    def __init__(self) -> None:
        self.trim: Trim | None = None
        self.partial = False  # whether the log knows more
        self._restoring = False
        self.entries: list[Entry] = []
        self.in_order = True  # whether the entries came in the order they have
        self.withheld = False  # whether text was among them that a purge takes away
        self.serial = next(_serials)  # no two trees of a process have the same
        self.upheavals = 0  # how often something else happened than an append
        self._start_over()

    def _start_over(self) -> None:
        self.headers: dict[str, Header] = {}  # by time: two clones may each have made the session
        self.tip: str | None = None
        self.overlays: list[Compaction] = []
        self.retired: list[Compaction] = []  # those that a deleted end has put out of use
        self._facts: dict[str, Info] = {}
        self.spent = Spent()
        self.dangling_targets: list[Entry] = []  # entries that speak of messages nobody has
        self.cycles: set[str] = set()
        self.peculiar = False  # whether an id came twice, or a message before its parent
        self.inner: set[str | None] = set()  # what has children that were trimmed
        self._latest = ("", "")
        self._hidden = 0
        self._labels: dict[str, Label] = {}
        self._nodes: dict[str, Message] = {}
        self._parents: dict[str, str | None] = {}
        self._children: dict[str | None, list[str]] | None = None  # made when first needed
        self._gone: dict[str, str | None] = {}  # deleted: where its children went
        self._waiting: dict[str, list[str]] = {}  # by the parent that is not here
        self._left_parents: set[str | None] = set()  # that lines of a working set still name
        self._spans: dict[str, Compaction] = {}  # by the last message of a range that was trimmed

    # -- growing -----------------------------------------------------------------------------------

    @classmethod
    def of(cls, entries: Iterable[Entry], trim: Trim | None = None) -> Self:
        """The tree of a session's entries; with `trim`, of those that a trimmed working set kept."""
        tree = cls()
        if trim is not None:
            tree.partial = True
            tree._restore(list(entries), trim)
        else:
            tree.add(list(entries))
        return tree

    @classmethod
    def of_log(cls, entries: Sequence[Entry]) -> Self:
        """The tree of a log. One that was lost and made anew begins with a trimmed working set."""
        trims = [entry for entry in entries if isinstance(entry, Trim)]
        if not trims:
            return cls.of(entries)
        end = trims[-1].end
        tree = cls()
        tree._restore([entry for entry in entries if entry.key <= end], trims[-1])
        tree.add([entry for entry in entries if entry.key > end and not isinstance(entry, Trim)])
        return tree

    def add(self, entries: Sequence[Entry]) -> None:
        """Take in more entries. `NeedsLog` leaves a partial tree unusable."""
        for position, entry in enumerate(entries):
            if (entry.timestamp, entry.id) <= self._latest:
                self._fold_again(entries[position:])
                return
            self._take(entry)

    def _take(self, entry: Entry) -> None:
        self.entries.append(entry)
        self._latest = (entry.timestamp, entry.id)
        apply = _APPLY.get(type(entry))
        if apply is not None:
            apply(self, entry)
            self.upheavals += type(entry) in _UPHEAVALS

    def _fold_again(self, late: Sequence[Entry]) -> None:
        self.in_order = False
        self.upheavals += 1
        if self.partial:
            known = {entry.key for entry in self.entries}
            if any(entry.key not in known for entry in late):
                raise NeedsLog("entries older than the trimmed working set")
            return
        every = self._without_purged([*self.entries, *late])
        together = {entry.key: entry for entry in every}
        self._fold([together[key] for key in sorted(together)])

    def _fold(self, in_order: Sequence[Entry]) -> None:
        """Make everything anew from entries that are in order."""
        trim, self.entries = self.trim, []
        self._start_over()
        if trim is not None:
            self._restore([entry for entry in in_order if entry.key <= trim.end], trim)
            in_order = [entry for entry in in_order if entry.key > trim.end]
        for entry in in_order:
            self._take(entry)

    def _restore(self, kept: Sequence[Entry], trim: Trim) -> None:
        self.trim = trim
        kept = self._without_purged(kept)
        here = {entry.id for entry in kept if isinstance(entry, Message)}
        for entry in kept:
            # Its range is not here: the summary itself is a node that paths step over.
            if isinstance(entry, Compaction) and entry.to_id not in here:
                self._spans[entry.to_id] = entry
                self._parents[entry.to_id] = trim.parents.get(entry.to_id, entry.from_parent_id)
        self._hidden, self.spent, self.inner = trim.hidden, trim.usage, set(trim.inner)
        self._restoring = True  # what was kept was looked at then: it speaks of what there is
        for entry in sorted(kept, key=lambda entry: entry.key):
            if not isinstance(entry, Trim):
                self._take(entry)
        self._restoring = False
        self._left_parents = {
            node.parent_id for node in self._nodes.values() if node.id in trim.parents
        }
        self.tip = trim.leaf
        self._latest = max(self._latest, trim.end)

    # -- what each entry does ----------------------------------------------------------------------

    def _apply_header(self, entry: Header) -> None:
        self.headers.setdefault(entry.timestamp, entry)

    def _apply_message(self, entry: Message) -> None:
        message_id, nodes = entry.id, self._nodes
        if message_id in nodes:
            self.peculiar = True
            return  # the same id again, from another writer: the first stays
        if self.partial and (message_id in self._spans or message_id in self._left_parents):
            raise NeedsLog(message_id)  # the same, and the first was trimmed; or an orphan's parent
        if message_id in self._spans:
            return
        parent = entry.parent_id
        if self._restoring or parent not in nodes:
            parent = self._resolve(entry)
        nodes[message_id] = entry
        self._parents[message_id] = parent
        self._gone.pop(message_id, None)
        if message_id in self._waiting:
            self._adopt(message_id)
        elif self._children is not None:
            self._children.setdefault(parent, []).append(message_id)
        self.tip = message_id

    def _resolve(self, entry: Message) -> str | None:
        parent = entry.parent_id
        if self._restoring and self.trim is not None and entry.id in self.trim.parents:
            return self.trim.parents[entry.id]
        if parent is None or parent in self._nodes or parent in self._spans:
            return parent
        if parent in self._gone:
            return self._survivor(parent)
        if self.partial:
            raise NeedsLog(parent)
        self._waiting.setdefault(parent, []).append(entry.id)
        return None

    def _survivor(self, message_id: str | None) -> str | None:
        while message_id in self._gone:
            message_id = self._gone[message_id]
        return message_id

    def _adopt(self, parent: str) -> None:
        """Messages that came before their parent find it. The newest edge of a cycle is cut."""
        self.peculiar = True
        self.upheavals += 1
        children = self._waiting.pop(parent)
        ancestor: str | None = parent
        seen: set[str] = set()
        while ancestor is not None and ancestor not in seen:
            seen.add(ancestor)
            ancestor = self._parents[ancestor]
        if not seen.isdisjoint(children):
            self._parents[parent] = None
            self.cycles.add(parent)
        for child in children:
            if child != parent and child in self._nodes:
                self._parents[child] = parent
        self._children = None

    def _apply_update(self, entry: Update) -> None:
        node = self._nodes.get(entry.target_id)
        if node is None:
            self._miss(entry, entry.target_id)
        else:
            self._nodes[entry.target_id] = replace(node, revision=entry)

    def _apply_delete(self, entry: Delete) -> None:
        if self.partial:
            raise NeedsLog("a delete after a trim")
        self._miss(entry, *entry.target_ids)
        targets = dict.fromkeys(target for target in entry.target_ids if target in self._nodes)
        children = self._child_index()
        homes = nearest_left(targets, self._parents)
        for target in targets:
            self._gone[target] = homes[target]
            del self._nodes[target], self._parents[target]
            self._labels.pop(target, None)
        for target, home in homes.items():
            self._move(children.pop(target, []), home, children)
        for home in set(homes.values()):
            children[home] = [child for child in children.get(home, ()) if child in self._parents]
        self._retire_overlays(targets)
        if self.tip in targets:
            self.tip = homes[self.tip] or next(reversed(self._nodes), None)

    def _retire_overlays(self, targets: Mapping[str, None]) -> None:
        """For good: a message that later gets the same id is another one."""
        gone = [o for o in self.overlays if o.from_id in targets or o.to_id in targets]
        if gone:
            self.retired += gone
            self.overlays = [overlay for overlay in self.overlays if overlay not in gone]

    def _move(
        self, moved: list[str], home: str | None, children: dict[str | None, list[str]]
    ) -> None:
        moved = [child for child in moved if child in self._parents]
        if moved:
            self._parents.update(dict.fromkeys(moved, home))
            siblings = [child for child in children.get(home, ()) if child in self._parents]
            children[home] = sorted((*siblings, *moved), key=self._order)

    def _order(self, message_id: str) -> tuple[str, str]:
        return (self._nodes.get(message_id) or self._spans[message_id]).key

    def _apply_clear(self, _entry: Clear) -> None:
        self._gone.update(dict.fromkeys((*self._nodes, *self._spans)))
        self._nodes, self._parents, self._children = {}, {}, None
        self._spans, self._waiting, self._labels = {}, {}, {}
        self.overlays, self.retired, self.cycles = [], [], set()
        self.tip, self._hidden, self.inner = None, 0, set()

    def _apply_compaction(self, entry: Compaction) -> None:
        if self._restoring or self._knows_range(entry):
            self.overlays.append(entry)
        else:
            self._miss(entry, entry.from_id, entry.to_id)
            self.retired.append(entry)

    def _knows_range(self, overlay: Compaction) -> bool:
        """Whether it is plain what a range covers.

        In a trimmed tree it may begin with a trimmed range. If it ends where another branch goes on
        into one, it may end in the middle of that, which only the log can tell.
        """
        starts = (span.from_id for span in self._spans.values())
        if overlay.from_id not in self._nodes and overlay.from_id not in starts:
            return False
        return overlay.to_id in self._nodes and not any(
            self._is_above(overlay.to_id, inner) for inner in self.inner
        )

    def _is_above(self, ancestor: str, message_id: str | None) -> bool:
        while message_id is not None and message_id != ancestor:
            message_id = self._parents.get(message_id)
        return message_id is not None

    def _apply_leaf(self, entry: Leaf) -> None:
        target = entry.target_id
        if target is None or target in self._nodes or target in self._spans:
            self.tip = target
        elif target in self._gone:
            self.tip = self._survivor(target) or next(reversed(self._nodes), None)
        else:
            self._miss(entry, target)

    def _apply_label(self, entry: Label) -> None:
        if entry.target_id not in self._nodes and not self._restoring:
            self._miss(entry, entry.target_id)
        elif entry.label is None:
            self._labels.pop(entry.target_id, None)
        else:
            self._labels[entry.target_id] = entry

    def _apply_info(self, entry: Info) -> None:
        for name, value in entry.facts.items():
            if value is None:
                self._facts.pop(name, None)
            else:
                self._facts[name] = entry

    def _apply_purge(self, entry: Purge) -> None:
        if self._restoring:
            return  # seen to before
        if self.partial:
            raise NeedsLog(entry.target_id)
        known = self.entries
        entries = self._without_purged(known, entry)
        if entries is not known:
            self._fold(entries)

    def _without_purged(self, entries: Sequence[Entry], *purges: Purge) -> Sequence[Entry]:
        shown = withheld(entries, purges or None)
        self.withheld |= shown is not entries
        return shown

    def _apply_usage(self, entry: Usage) -> None:
        self.spent = Spent(
            self.spent.input_tokens + entry.input_tokens,
            self.spent.output_tokens + entry.output_tokens,
            self.spent.cost + entry.cost,
        )

    def _miss(self, entry: Entry, *targets: str) -> None:
        if self.partial:
            raise NeedsLog(*targets)
        if any(target not in self._gone and target not in self._nodes for target in targets):
            self.dangling_targets.append(entry)

    def _child_index(self) -> dict[str | None, list[str]]:
        if self._children is None:
            self._children = {}
            for child, parent in self._parents.items():
                self._children.setdefault(parent, []).append(child)
        return self._children


_APPLY: Mapping[type[Entry], Callable[[Fold, Any], None]] = {
    Header: Fold._apply_header,
    Message: Fold._apply_message,
    Update: Fold._apply_update,
    Delete: Fold._apply_delete,
    Clear: Fold._apply_clear,
    Compaction: Fold._apply_compaction,
    Leaf: Fold._apply_leaf,
    Label: Fold._apply_label,
    Info: Fold._apply_info,
    Usage: Fold._apply_usage,
    Purge: Fold._apply_purge,
}
_UPHEAVALS = frozenset({Update, Delete, Clear, Compaction, Leaf, Purge})
