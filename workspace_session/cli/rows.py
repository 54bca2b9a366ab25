"""Rows about messages, for tables and as data: the heads, the history, the context of a session."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from workspace_session import Message, SessionTree, estimate_message_tokens
from workspace_session.cli.render import (
    GIST,
    gist,
    inert,
    moment,
    plural,
    short,
    speaker,
    width_of,
)
from workspace_session.cli.screen import Screen
from workspace_session.model.entries import Compaction
from workspace_session.model.messages import describe, one_line, role

_LABEL_LENGTH = 40
_ID_WIDTH = 10


# -- heads -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HeadRow:
    """Where a branch ends."""

    entry: Message
    messages: int
    is_tip: bool

    def cells(self) -> list[str]:
        """For a table."""
        mark = "●" if self.is_tip else "○"
        said = f"{speaker(self.entry.message)}: {gist(self.entry.message, self.entry.author)}"
        when = moment(self.entry.timestamp)
        return [mark, short(self.entry.id), f"{self.messages:>8,}", when, said]

    def document(self) -> dict[str, Any]:
        """As data."""
        entry = self.entry
        return {
            "id": entry.id,
            "tip": self.is_tip,
            "messages": self.messages,
            "timestamp": entry.timestamp,
            "role": role(entry.message),
            "text": one_line(describe(entry.message), GIST),
        }


def head_rows(tree: SessionTree) -> list[HeadRow]:
    """The heads of a session, the one written last at the end."""
    tip = tree.leaf
    found = [HeadRow(tree.get(one), tree.path_length(one), one == tip) for one in tree.heads()]
    return sorted(found, key=lambda row: row.entry.key)


# -- history ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRow:
    """A message as it was said, and what became of it; or a version of one."""

    entry: Message
    hidden_by: str | None = None
    label: str | None = None
    is_tip: bool = False
    badges: list[str] = field(default_factory=list)

    def line(self, screen: Screen) -> str:
        """For people."""
        message, faint = self.entry.message, self.hidden_by is not None
        at = self.entry if self.entry.revision is None else self.entry.revision
        when, named = moment(at.timestamp), short(at.id)
        named += " " * (_ID_WIDTH - width_of(named))
        who = f"{speaker(message):<9}"
        badge = f"({', '.join(self.badges)}) " if self.badges else ""
        taken = width_of(f"· {when}  {named}  {who}  ")
        badge, said = screen.fitted((badge, gist(message, self.entry.author)), taken)
        when, named = screen.paint(when, "dim"), screen.paint(named, "yellow")
        who, said = screen.paint(who, "dim" if faint else "bold"), screen.paint(said, "dim" * faint)
        mark = screen.paint("·" if faint else "●", "dim" * faint)
        return f"{mark} {when}  {named}  {who}  {screen.paint(badge, 'bold')}{said}".rstrip()

    def document(self) -> dict[str, Any]:
        """As data."""
        at = self.entry if self.entry.revision is None else self.entry.revision
        return {
            "id": self.entry.id,
            "entryId": at.id,
            "timestamp": at.timestamp,
            "parentId": self.entry.parent_id,
            "author": self.entry.author,
            "edited": self.entry.revision is not None,
            "hiddenBy": self.hidden_by,
            "label": self.label,
            "tip": self.is_tip,
            "message": self.entry.message,
        }


def history_rows(
    tree: SessionTree, message_id: str | None = None, leaf: str | None = None
) -> list[HistoryRow]:
    """The messages of a branch, or the versions of one message."""
    if message_id is not None:
        return [HistoryRow(entry=version) for version in tree.versions(message_id)]
    path, labels, tip = tree.path(leaf), tree.labels(), tree.leaf
    hidden = _hidden(path, tree, leaf)
    return [_history_row(entry, hidden.get(entry.id), labels.get(entry.id), tip) for entry in path]


def _history_row(
    entry: Message, hidden_by: str | None, label: str | None, tip: str | None
) -> HistoryRow:
    badges = ["tip"] if entry.id == tip else []
    badges += [] if label is None else [f'"{inert(one_line(label, _LABEL_LENGTH))}"']
    badges += [] if entry.revision is None else ["edited"]
    return HistoryRow(
        entry=entry, hidden_by=hidden_by, label=label, is_tip=entry.id == tip, badges=badges
    )


def _hidden(path: list[Message], tree: SessionTree, leaf: str | None) -> dict[str, str]:
    """The messages of a path that a summary stands for there, and which."""
    found: dict[str, str] = {}
    shown = iter(tree.context(leaf))
    standing: Compaction | None = None
    for entry in path:
        if standing is None:
            item = next(shown)
            standing = item if isinstance(item, Compaction) else None
        if standing is not None:
            found[entry.id] = standing.id
            if entry.id == standing.to_id:
                standing = None
    return found


# -- context ---------------------------------------------------------------------------------------


def context_document(tree: SessionTree, leaf: str | None) -> dict[str, Any]:
    """What the model sees, as data."""
    items = [
        {
            "id": item.id,
            "type": item.type,
            "role": role(item.message),
            "tokens": estimate_message_tokens([item.message]),
            "covers": item.covers._asdict() if isinstance(item, Compaction) else None,
            "message": item.message,
        }
        for item in tree.context(leaf)
    ]
    return {
        "session": tree.id,
        "leaf": tree.leaf if leaf is None else leaf,
        "tokens": sum(item["tokens"] for item in items),
        "items": items,
    }


def context_lines(tree: SessionTree, leaf: str | None, screen: Screen) -> Iterator[str]:
    """The same as a table, and a line with the sum."""
    rows, total, hidden = [], 0, 0
    for item in tree.context(leaf):
        tokens = estimate_message_tokens([item.message])
        total += tokens
        if isinstance(item, Compaction):
            hidden += item.covers.messages
            said = f"(of {plural(item.covers.messages, 'message')}) {one_line(item.summary, GIST)}"
            rows.append(["◆", short(item.id), "summary", f"{tokens:>6,}", said])
        else:
            said = gist(item.message, item.author)
            rows.append(["●", short(item.id), speaker(item.message), f"{tokens:>6,}", said])
    fixed = ("", "message", "role", "tokens")
    yield from screen.table(["", "message", "role", "tokens", "says"], rows, fixed=fixed)
    more = f"; summaries hide {plural(hidden, 'message')}" if hidden else ""
    yield screen.paint(f"about {total:,} tokens in {plural(len(rows), 'message')}{more}", "bold")
