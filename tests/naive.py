"""A session in dictionaries: what the specification says, in the most obvious way.

It is written from the text alone, shares no code with the store and is slow on purpose. Whatever the
store does with files, handles, trims and crashes, it must show what this shows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


class Refused(Exception):
    """The operation has to fail and change nothing."""


LATEST = object()


@dataclass
class Overlay:
    from_id: str
    to_id: str
    summary: str
    disabled: bool = False  # an end of it was deleted: another message of that id does not count


@dataclass
class NaiveSession:
    parents: dict[str, str | None] = field(default_factory=dict)  # in the order of appending
    contents: dict[str, dict[str, Any]] = field(default_factory=dict)
    tip: str | None = None
    overlays: list[Overlay] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    usage: list[float] = field(default_factory=lambda: [0, 0, 0.0])

    # -- writing --

    def append(self, message_id: str, content: dict[str, Any], parent: Any = LATEST) -> bool:
        if message_id in self.parents:
            return False
        if parent is LATEST:
            parent = self.tip
        elif parent is not None and parent not in self.parents:
            raise Refused(parent)
        self.parents[message_id] = parent
        self.contents[message_id] = content
        self.tip = message_id
        return True

    def extend(
        self, messages: list[tuple[str, dict[str, Any]]], parent: Any = LATEST
    ) -> list[bool]:
        """Each under the one before; a duplicate parents the next. All of them or none."""
        before = dict(self.parents), dict(self.contents), self.tip
        inserted = []
        try:
            for message_id, content in messages:
                inserted.append(self.append(message_id, content, parent))
                parent = message_id
        except Refused:
            self.parents, self.contents, self.tip = before
            raise
        return inserted

    def update(self, message_id: str, content: dict[str, Any]) -> bool:
        if message_id not in self.parents:
            raise Refused(message_id)
        changed = self.contents[message_id] != content
        self.contents[message_id] = content
        return changed

    def purge(self, message_id: str) -> None:
        if message_id in self.contents:
            content = self.contents[message_id]
            left = {name: content[name] for name in ("id", "role") if name in content}
            self.contents[message_id] = {**left, "parts": [{"type": "text", "text": "[purged]"}]}

    def delete(self, message_ids: list[str]) -> list[str]:
        gone = [one for one in dict.fromkeys(message_ids) if one in self.parents]
        tip = self._surviving(self.tip, gone)
        for child in self.parents:
            self.parents[child] = self._surviving(self.parents[child], gone)
        for one in gone:
            del self.parents[one], self.contents[one]
            self.labels.pop(one, None)
        for overlay in self.overlays:
            overlay.disabled |= overlay.from_id in gone or overlay.to_id in gone
        if self.tip in gone:
            self.tip = tip if tip is not None else next(reversed(self.parents), None)
        return gone

    def _surviving(self, message_id: str | None, gone: list[str]) -> str | None:
        while message_id in gone:
            message_id = self.parents[message_id]
        return message_id

    def clear(self) -> None:
        self.parents, self.contents, self.labels = {}, {}, {}
        self.tip, self.overlays = None, []

    def set_leaf(self, message_id: str | None) -> None:
        if message_id is not None and message_id not in self.parents:
            raise Refused(message_id)
        self.tip = message_id

    def pop(self) -> str | None:
        """The last of the context, given back; the tip goes to the end of what comes before it."""
        shown = self.context(self.tip)
        if not shown:
            return None
        ends = self.ends(self.tip)
        self.tip = ends[-2] if len(ends) > 1 else None
        return shown[-1]

    def ends(self, leaf: str | None) -> list[str]:
        """The last message of each item of the context."""
        by_summary = {f"summary:{overlay.summary}": overlay.to_id for overlay in self.overlays}
        return [by_summary.get(item, item) for item in self.context(leaf)]

    def compact(self, summary: str, from_id: str, to_id: str) -> None:
        if to_id not in self.parents or from_id not in self.path(to_id):
            raise Refused(from_id, to_id)
        self.overlays.append(Overlay(from_id, to_id, summary))

    def label(self, message_id: str, label: str | None) -> None:
        if message_id not in self.parents:
            raise Refused(message_id)
        if label is None:
            self.labels.pop(message_id, None)
        else:
            self.labels[message_id] = label

    def annotate(self, facts: dict[str, Any]) -> None:
        self.facts = {**self.facts, **facts}
        self.facts = {name: value for name, value in self.facts.items() if value is not None}

    def add_usage(self, input_tokens: int, output_tokens: int, cost: float) -> None:
        for place, value in enumerate((input_tokens, output_tokens, cost)):
            self.usage[place] += value

    # -- reading --

    def path(self, leaf: str | None) -> list[str]:
        ids: list[str] = []
        while leaf is not None:
            ids.insert(0, leaf)
            leaf = self.parents[leaf]
        return ids

    def context(self, leaf: str | None) -> list[str]:
        """Ids of messages, and `summary:<text>` where an overlay stands in."""
        path = self.path(leaf)
        shown, index = [], 0
        while index < len(path):
            candidates = [
                overlay
                for overlay in self.overlays
                if overlay.from_id == path[index]
                and overlay.to_id in path[index:]
                and not overlay.disabled
            ]
            if candidates:
                shown.append(f"summary:{candidates[-1].summary}")
                index = path.index(candidates[-1].to_id) + 1
            else:
                shown.append(path[index])
                index += 1
        return shown

    def children(self, message_id: str | None) -> list[str]:
        return [child for child, parent in self.parents.items() if parent == message_id]

    def leaves(self) -> list[str]:
        return [one for one in self.parents if one not in self.parents.values()]

    def first_user_text(self) -> str:
        for content in self.contents.values():
            if content["role"] == "user" and content["parts"][0]["text"].strip():
                return content["parts"][0]["text"]
        return ""
