"""A session on paper: its tree, its log, or the conversation of one branch.

Lines are cut to the screen before they are coloured, since colours have no width; all text in them has
gone through `inert`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from workspace_session import Entry, Message, SessionTree
from workspace_session.cli.gists import told
from workspace_session.cli.render import (
    GIST,
    SHORT_ID,
    fit,
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
from workspace_session.model.messages import describe, one_line, role, tool_calls
from workspace_session.model.outline import Outline, outline, rows

_ROLE_STYLES = {
    "user": "bold cyan",
    "assistant": "bold green",
    "tool": "bold yellow",
    "system": "bold magenta",
    "summary": "bold blue",
}
_ROLE_WIDTH = 9
_KIND_WIDTH = 10
_LABEL_LENGTH = 40


# -- the tree --------------------------------------------------------------------------------------


class _Line(NamedTuple):
    rail: str
    mark: str
    id: str
    who: str
    badge: str
    said: str
    faint: bool


def draw(tree: SessionTree, screen: Screen) -> Iterator[str]:
    """The lines of a tree."""
    found = tree.whole(outline)
    id_width = max((width_of(short(entry_id)) for entry_id in found.parents), default=0)
    roots = 0
    for row in rows(found):
        if found.parents[row.entry.id] is None:
            roots += 1
            if roots > 1:
                yield ""  # it does not continue what stands above
        rail = row.rail
        if summary := found.summaries.get(row.entry.id):
            yield _painted(_summary_line(rail, summary), screen, id_width)
            rail = row.onward
        yield _painted(_message_line(rail, row.entry, found), screen, id_width)


def _message_line(rail: str, entry: Message, found: Outline) -> _Line:
    message = entry.message
    active, hidden = entry.id in found.active, entry.id in found.hidden
    mark = "·" if hidden else "●" if active else "○"
    badge = _badge(entry.id, found)
    faint = hidden or not active
    return _Line(rail, mark, entry.id, speaker(message), badge, gist(message, entry.author), faint)


def _summary_line(rail: str, entry: Compaction) -> _Line:
    badge = f"(of {plural(entry.covers.messages, 'message')}) "
    said = inert(one_line(entry.summary, GIST))
    return _Line(rail, "◆", entry.id, "summary", badge, said, False)


def _badge(entry_id: str, found: Outline) -> str:
    badges = []
    if entry_id == found.tip:
        badges.append("tip")
    if entry_id in found.labels:
        badges.append(f'"{inert(one_line(found.labels[entry_id], _LABEL_LENGTH))}"')
    if entry_id in found.orphans:
        badges.append("orphan")
    return f"({', '.join(badges)}) " if badges else ""


def _painted(line: _Line, screen: Screen, id_width: int) -> str:
    """The parts of a line, cut to the screen and coloured."""
    named = short(line.id)
    named += " " * (id_width - width_of(named))
    who = f"{line.who:<{_ROLE_WIDTH}}"
    taken = width_of(f"{line.rail}{line.mark} {named}  {who}  ")
    badge, said = screen.fitted((line.badge, line.said), taken)
    style = "dim" if line.faint else _style(line.who)
    parts = (
        screen.paint(line.rail, "dim"),
        screen.paint(line.mark, style),
        f" {screen.paint(named, 'yellow')}  {screen.paint(who, style)}  ",
        screen.paint(badge, "bold"),
        screen.paint(said, "dim" if line.faint else ""),
    )
    return "".join(parts).rstrip()


def tree_document(tree: SessionTree) -> dict[str, Any]:
    """The tree as data, in the order it is drawn."""
    found = tree.whole(outline)
    return {
        "session": tree.id,
        "leaf": found.tip,
        "messages": [_node(row.entry, found) for row in rows(found)],
        "summaries": [
            {
                "id": summary.id,
                "fromId": summary.from_id,
                "toId": summary.to_id,
                "summary": summary.summary,
            }
            for summary in found.summaries.values()
        ],
    }


def _node(entry: Message, found: Outline) -> dict[str, Any]:
    message = entry.message
    return {
        "id": entry.id,
        "parentId": found.parents[entry.id],
        "timestamp": entry.timestamp,
        "role": role(message),
        "text": one_line(describe(message), GIST),
        "active": entry.id in found.active,
        "label": found.labels.get(entry.id),
        "hiddenBy": found.hidden.get(entry.id),
    }


# -- the log ---------------------------------------------------------------------------------------


def log_line(entry: Entry, screen: Screen) -> str:
    """One entry: when, what kind, its id, and what it says."""
    when, named = moment(entry.timestamp), f"{short(entry.id):<{SHORT_ID}}"
    kind, said = told(entry)
    kind = f"{kind:<{_KIND_WIDTH}}"
    taken = width_of(f"{when}  {kind}  {named}  ")
    said = fit(said, None if screen.width is None else screen.width - taken)
    when, named = screen.paint(when, "dim"), screen.paint(named, "yellow")
    return f"{when}  {screen.paint(kind, 'bold')}  {named}  {said}".rstrip()


# -- the conversation ------------------------------------------------------------------------------


def converse(items: Sequence[Message | Compaction], screen: Screen) -> Iterator[str]:
    """The lines of a conversation: a heading and a text for each item."""
    names = {call.id: call.name for item in items for call in tool_calls(item.message)}
    for number, item in enumerate(items):
        if number:
            yield ""
        yield _heading(item, screen)
        yield from screen.wrap(describe(item.message, names), indent=2)


def _heading(item: Message | Compaction, screen: Screen) -> str:
    about = ""
    if isinstance(item, Compaction):
        who, about = "summary", f" of {plural(item.covers.messages, 'message')}"
    else:
        who = speaker(item.message)
        if item.author is not None:
            about = f" ({inert(one_line(item.author, 40))})"
    rest = f"{about}  {moment(item.timestamp)}  {short(item.id)}"
    return screen.paint(who, _style(who)) + screen.paint(rest, "dim")


def _style(who: str) -> str:
    return _ROLE_STYLES.get(who, "bold")
