"""The tree: what can be asked of a session.

A tree may be partial, folded from a working set that was trimmed. What it cannot answer raises
`NeedsLog`, and its owner then asks a tree of the whole log instead.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any, NamedTuple

from workspace_session.model import messages
from workspace_session.model.entries import Compaction, Info, Label, Message, Said, Update
from workspace_session.model.fold import Fold, NeedsLog
from workspace_session.model.overlays import cover

__all__ = ["NeedsLog", "Shown", "Tree"]

Shown = Message | Compaction
_MANY_NEW = 1000
# In every dialect, calls and results have one of these; escaped letters might spell any of them.
_OF_TOOLS = (b"tool", b"call", b"Call", b"function", b"program", b"_output", b"\\u00")


class _Walk(NamedTuple):
    """The way to a message as it was when there had been so many upheavals."""

    upheavals: int
    leaf: str | None
    items: list[Shown]


_NOT_WALKED = _Walk(-1, None, [])


class Tree(Fold):
    """The meaning of one session's entries."""

    _walked = _NOT_WALKED

    def __len__(self) -> int:
        """Messages on all branches; deleted and cleared ones do not count."""
        return len(self._nodes) + self._hidden

    def here_ids(self) -> Iterable[str]:
        """The ids of what this tree holds: messages, and the ends of trimmed ranges."""
        return self._parents.keys()

    def __contains__(self, message_id: object) -> bool:
        return message_id in self._nodes

    def has(self, message_id: str) -> bool:
        """Whether a message may be pointed at: as a parent, as the tip."""
        if message_id in self._nodes or message_id in self._spans:
            return True
        if self.partial:
            raise NeedsLog(message_id)
        return False

    def get(self, message_id: str) -> Message | None:
        """A message, or None."""
        node = self._nodes.get(message_id)
        if node is None and self.partial:
            raise NeedsLog(message_id)
        return node

    def here(self, message_id: str) -> Message | None:
        """A message that this tree holds, whatever the log may hold besides."""
        return self._nodes.get(message_id)

    def is_gone(self, message_id: str) -> bool:
        """Whether a message was deleted or cleared, as far as this tree goes back."""
        return message_id in self._gone

    def is_current(self, entry: Message | Update | Label | Info) -> bool:
        """Whether what an entry says still holds: not repeated, replaced or deleted since."""
        match entry:
            case Message():
                node = self._nodes.get(entry.id)
                return node is not None and node.timestamp == entry.timestamp
            case Update():
                node = self._nodes.get(entry.target_id)
                return node is not None and node.revision is entry
            case Label():
                return self._labels.get(entry.target_id) is entry
            case Info():
                return any(self._facts.get(name) is entry for name in entry.facts)

    def parent_of_start(self, message_id: str) -> str | None:
        """What the first message of a range hangs from; it may be that of a trimmed range."""
        if message_id in self._nodes:
            return self._parents[message_id]
        for end, span in self._spans.items():
            if span.from_id == message_id:
                return self._parents[end]
        if self.partial:
            raise NeedsLog(message_id)
        return None

    def parent(self, message_id: str) -> str | None:
        """The message it hangs from, deleted ones stepped over."""
        return self._parents[message_id]

    def span(self, message_id: str) -> Compaction | None:
        """The summary of a trimmed range, if that is what ends in this message."""
        return self._spans.get(message_id)

    def children(self, message_id: str | None) -> list[Message]:
        """What hangs directly from a message, or the roots for None, in the order of appending."""
        if message_id is not None and self.get(message_id) is None:
            return []
        if self.partial and (message_id in self.inner or (message_id is None and self._hidden)):
            raise NeedsLog("a child that was trimmed")
        ids = self._child_index().get(message_id, [])
        if self.partial and any(child in self._spans for child in ids):
            raise NeedsLog("a child that was trimmed")
        return [self._nodes[child] for child in ids if child in self._nodes]

    def leaves(self) -> list[str]:
        """The messages that have no children, oldest first."""
        inner = self.inner.union(self._parents.values())
        ids = [message_id for message_id in self._parents if message_id not in inner]
        if self.partial and len(ids) > 1 and any(leaf in self._spans for leaf in ids):
            raise NeedsLog("the order of a leaf that was trimmed")
        return ids

    def heads(self) -> list[str]:
        """Where a reader may stand: the leaves, and the tip if it is none of them."""
        leaves = self.leaves()
        return leaves if self.tip is None or self.tip in leaves else [*leaves, self.tip]

    def newest_below(self, message_id: str) -> str:
        """The newest leaf that a message leads to: itself, if nothing hangs from it."""
        children, pending, leaves = self._child_index(), [message_id], []
        while pending:
            at = pending.pop()
            below = children.get(at, [])
            pending += below
            leaves += [] if below else [at]
        return max(leaves, key=self._order)

    def walk(self, leaf: str | None) -> list[Shown]:
        """The items from the root to a message; a trimmed range is one item, its summary.

        What was walked last is remembered: it is often asked for again, or a little more of it.
        """
        known = self._walked if self._walked.upheavals == self.upheavals else _NOT_WALKED
        items: list[Shown] = []
        at = leaf
        while at is not None and at != known.leaf:
            items.append(self._nodes.get(at) or self._spans[at])
            at = self._parents[at]
        items.reverse()
        if at is not None:
            items = known.items + items
        self._walked = _Walk(self.upheavals, leaf, items)
        return items.copy()

    def path(self, leaf: str | None) -> list[Message]:
        """The messages from the root to one of them, as they were said."""
        items = self.walk(leaf)
        found = [item for item in items if isinstance(item, Message)] if self._spans else items
        if self.partial and len(found) < len(items):
            raise NeedsLog("a range that was trimmed")
        return found  # type: ignore[return-value]  # only messages are left

    def context(self, leaf: str | None) -> list[Shown]:
        """The same with overlays applied: what a model is shown."""
        items = self.walk(leaf)
        if not self.overlays:
            return items
        starts = [_start(item) for item in items]
        ends = [_end(item) for item in items]
        return [
            items[shown] if isinstance(shown, int) else shown
            for shown in cover(starts, ends, self.overlays)
        ]

    def tail(self, leaf: str | None, count: int) -> list[Shown]:
        """The last items of `context`; without overlays, only they are walked."""
        if self.overlays or self._spans:
            return self.context(leaf)[-count:]
        items: list[Shown] = []
        while leaf is not None and len(items) < count:
            items.append(self._nodes[leaf])
            leaf = self._parents[leaf]
        items.reverse()
        return items

    def dangling_tool_calls(self) -> list[str]:
        """The ids of calls that no message of the present context answers."""
        # Most messages are plain talk: a look at their bytes costs far less than to understand them.
        said = (item for item in self.context(self.tip) if type(item) is Message)
        return messages.dangling_tool_calls(
            item.message for item in said if _may_speak_of_tools((item.revision or item).line)
        )

    def appended_since(self, tip: str | None) -> list[Message] | None:
        """The messages between an earlier tip and this one; None if it is no ancestor of it.

        None, too, if a summary that was of no account at the earlier tip ends among them.
        """
        new: list[Message] = []
        ends = {overlay.to_id for overlay in self.overlays}
        at = self.tip
        while at != tip:
            node = None if at is None or at in ends else self._nodes.get(at)
            if node is None or len(new) > _MANY_NEW:
                return None
            new.append(node)
            at = self._parents[node.id]
        return new

    def messages(self) -> list[Message]:
        """The messages of all branches, oldest first."""
        if self.partial:
            raise NeedsLog("what was trimmed")
        return list(self._nodes.values())

    def compactions(self) -> list[Compaction]:
        """All overlays since the last clear, in the order they were made."""
        if self.partial:
            raise NeedsLog("overlays that were trimmed")
        return sorted((*self.overlays, *self.retired), key=lambda overlay: overlay.key)

    def labels(self) -> dict[str, str]:
        """Bookmarks: message id to text, in the order they were set."""
        return {target: entry.label or "" for target, entry in self._labels.items()}

    def label_entries(self) -> list[Label]:
        """The entries that set the bookmarks."""
        return list(self._labels.values())

    def facts(self) -> dict[str, Any]:
        """What is known about the session: the newest value of each fact."""
        return {name: entry.facts[name] for name, entry in self._facts.items()}

    def orphans(self) -> list[Message]:
        """Messages whose parent is nowhere: they stand as roots."""
        waiting = (child for children in self._waiting.values() for child in children)
        return [self._nodes[child] for child in waiting if child in self._nodes]

    @property
    def newest(self) -> tuple[str, str]:
        """Time and id of the newest entry; new ones must come after it."""
        return self._latest

    @property
    def hidden(self) -> int:
        """How many messages a trimmed working set does not hold."""
        return self._hidden

    @property
    def created_at(self) -> str | None:
        """The least time of any entry."""
        if self.trim is not None:
            return self.trim.created_at
        return self.entries[0].timestamp if self.entries else None

    def first_user_text(self) -> str | None:
        """What the user said first, on one line, for lists of sessions."""
        first = self.first_user_message()
        hidden = self.hidden_first
        if hidden is not None and (first is None or hidden.timestamp < first.timestamp):
            return hidden.text
        return None if first is None else messages.one_line(messages.text(first.message), 120)

    @property
    def hidden_first(self) -> Said | None:
        """What the user said first of what was trimmed."""
        return self.trim.first if self.trim is not None and self._hidden else None

    def first_user_message(self, *, but: Container[str] = ()) -> Message | None:
        """The first message here, `but` some, in which a user said something."""
        for node in self._nodes.values():
            if node.id not in but:
                message = node.message
                if messages.role(message) == "user" and messages.text(message).strip():
                    return node
        return None


def _may_speak_of_tools(line: bytes) -> bool:
    return any(mark in line for mark in _OF_TOOLS)


def _start(item: Shown) -> str:
    return item.from_id if isinstance(item, Compaction) else item.id


def _end(item: Shown) -> str:
    return item.to_id if isinstance(item, Compaction) else item.id
