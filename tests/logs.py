"""Random sessions as the lines of a log, for the properties of the model.

`logs` are what writers of this package leave: every entry speaks of messages that are there. `wild`
logs are what merges and other hands can leave: unknown parents and targets, an id more than once,
ranges that are none.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from workspace_session.model.entries import Compaction, Entry
from workspace_session.model.lines import decode
from workspace_session.model.tree import NeedsLog, Tree

Wire = dict[str, Any]


def timestamp(number: int) -> str:
    return f"2026-05-15T08:{number // 60:02d}:{number % 60:02d}.000000Z"


def wire(number: int, kind: str, entry_id: str | None = None, **fields: Any) -> Wire:
    """An entry as it stands on a line; `number` is its time."""
    return {"type": kind, "id": entry_id or f"e{number}", "timestamp": timestamp(number), **fields}


def line(entry: Wire) -> bytes:
    return json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode()


def entries_of(wires: list[Wire]) -> list[Entry]:
    return [decode(line(one)) for one in wires]


def header(number: int = 0, session_id: str = "s") -> Wire:
    return wire(number, "session", session_id, version=1, agent="a")


def message(number: int, message_id: str, parent: str | None, **content: Any) -> Wire:
    content = content or {"role": "user", "parts": [{"type": "text", "text": f"says {message_id}"}]}
    return wire(number, "message", message_id, parentId=parent, message=content)


def compaction(number: int, from_id: str, to_id: str, parent: str | None = None) -> Wire:
    return wire(
        number, "compaction", fromId=from_id, toId=to_id, fromParentId=parent, summary=f"S{number}"
    )


def chain(length: int) -> list[Wire]:
    """A header and m0, m1, … each under the one before."""
    messages = [message(n + 1, f"m{n}", f"m{n - 1}" if n else None) for n in range(length)]
    return [header(), *messages]


class Writer:
    """Draws the next entry of a session, knowing what is there as a writer would."""

    def __init__(self, draw: st.DrawFn, *, wild: bool, repeats: bool = True) -> None:
        self.draw, self.wild, self.repeats = draw, wild, wild and repeats
        self.tree = Tree()
        self.wires: list[Wire] = []
        self.write(header())

    def write(self, entry: Wire) -> None:
        self.wires.append(entry)
        self.tree.add(entries_of([entry]))

    def there(self) -> list[str]:
        return [found.id for found in every_message(self.tree)]

    def pick(self) -> str:
        """A message that is there; in a wild log, any id."""
        there = self.there()
        if not there or (self.wild and self.draw(st.integers(0, 4)) == 0):
            return self.draw(st.sampled_from([f"m{number}" for number in range(12)]))
        return self.draw(st.sampled_from(there))

    def step(self) -> None:
        number = len(self.wires)
        kind = self.draw(st.sampled_from(_STEPS))
        if kind == "message":
            self.write(self.a_message(number))
        elif kind == "root":
            self.write({**self.a_message(number), "parentId": None})
        elif not self.there() and not self.wild:
            self.write(wire(number, "info", name=f"name {number}"))
        else:
            self.write(getattr(self, f"a_{kind}")(number))

    def a_message(self, number: int) -> Wire:
        free = [f"m{n}" for n in range(40) if self.repeats or f"m{n}" not in self.there()]
        message_id = self.draw(st.sampled_from(free[:12]))
        under = self.draw(st.integers(0, 2))
        parent = self.pick() if under == 0 and (self.there() or self.wild) else self.tree.tip
        role = self.draw(st.sampled_from(["user", "assistant"]))
        parts = [{"type": "text", "text": self.draw(st.sampled_from(["", "hi", "two\nlines"]))}]
        return message(number, message_id, parent, role=role, parts=parts)

    def a_branch(self, number: int) -> Wire:
        return {**self.a_message(number), "parentId": self.pick()}

    def a_update(self, number: int) -> Wire:
        parts = [{"type": "text", "text": f"new {number}"}]
        content = {"role": "user", "parts": parts}
        return wire(number, "update", targetId=self.pick(), message=content)

    def a_delete(self, number: int) -> Wire:
        targets = [self.pick() for _ in range(self.draw(st.integers(1, 3)))]
        return wire(number, "delete", targetIds=targets)

    def a_clear(self, number: int) -> Wire:
        return wire(number, "clear")

    def a_leaf(self, number: int) -> Wire:
        nowhere = self.draw(st.integers(0, 4)) == 0
        return wire(number, "leaf", targetId=None if nowhere else self.pick())

    def a_compaction(self, number: int) -> Wire:
        to_id = self.pick()
        if self.tree.here(to_id) is None:
            return compaction(number, self.pick(), to_id)
        path = [found.id for found in self.tree.path(to_id)]
        from_id = self.draw(st.sampled_from(path))
        return compaction(number, from_id, to_id, self.tree.parent(from_id))

    def a_label(self, number: int) -> Wire:
        text = self.draw(st.sampled_from(["good", "bad", None]))
        return wire(number, "label", targetId=self.pick(), label=text)

    def a_info(self, number: int) -> Wire:
        name = self.draw(st.sampled_from(["name", "summary", "model"]))
        return wire(number, "info", **{name: self.draw(st.sampled_from(["x", "y", None]))})

    def a_usage(self, number: int) -> Wire:
        return wire(number, "usage", inputTokens=number, outputTokens=1, cost=0.25)

    def a_purge(self, number: int) -> Wire:
        """Its target still has its text, as in a log that was merged without us."""
        return wire(number, "purge", targetId=self.pick())

    def a_custom(self, number: int) -> Wire:
        return wire(number, "custom", customType="x", data={"n": number})


_STEPS = [
    *["message"] * 6, *["branch"] * 3, *["compaction"] * 5, "root", "update", "delete", "clear",
    *["leaf"] * 2, "label", "info", "usage", "custom", "purge",
]  # fmt: skip


@st.composite
def logs(draw: st.DrawFn, *, wild: bool = False, max_size: int = 24) -> list[Wire]:
    """The lines of a log, oldest first."""
    writer = Writer(draw, wild=wild)
    for _ in range(draw(st.integers(1, max_size))):
        writer.step()
    return writer.wires


# -- what can be asked of a tree --------------------------------------------------------------------


def every_message(tree: Tree) -> list[Any]:
    found, pending = [], list(tree.children(None))
    while pending:
        node = pending.pop()
        found.append(node)
        pending += tree.children(node.id)
    return sorted(found, key=lambda node: node.key)


def shown(items: list[Any]) -> list[str]:
    return [item.summary if isinstance(item, Compaction) else item.id for item in items]


def answers(tree: Tree, ids: list[str]) -> dict[str, Any]:
    """Everything a reader can ask, by question. What a trimmed tree leaves to the log is left out."""
    questions: dict[str, Any] = {
        "tip": lambda: tree.tip,
        "context": lambda: shown(tree.context(tree.tip)),
        "len": lambda: len(tree),
        "leaves": tree.leaves,
        "roots": lambda: shown(tree.children(None)),
        "labels": tree.labels,
        "facts": tree.facts,
        "spent": lambda: tree.spent,
        "newest": lambda: tree.newest,
        "created": lambda: tree.created_at,
        "first text": tree.first_user_text,
    }
    for one in ids:
        questions |= _about(tree, one)
    given: dict[str, Any] = {}
    for question, answer in questions.items():
        try:
            given[question] = answer()
        except NeedsLog:
            continue
    return given


def _about(tree: Tree, message_id: str) -> dict[str, Any]:
    def content() -> Any:
        node = tree.get(message_id)
        return None if node is None else node.message

    def below(question: Any) -> Any:
        return lambda: shown(question(message_id)) if tree.has(message_id) else None

    return {
        f"has {message_id}": lambda: tree.has(message_id),
        f"content of {message_id}": content,
        f"children of {message_id}": lambda: shown(tree.children(message_id)),
        f"path to {message_id}": below(tree.path),
        f"context of {message_id}": below(tree.context),
    }


ALL_IDS = [f"m{number}" for number in range(13)]
