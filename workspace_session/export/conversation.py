"""The conversation as HTML: every message of every branch, each in its place.

The active branch goes straight down. Another branch stands folded behind the message it leaves, and
what a summary hides from the model is folded into the summary. What is open and has to be closed is
kept in a list: nothing recurses, 100,000 messages in a row are ordinary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from workspace_session.export.facts import moment, plural
from workspace_session.export.parts import Exchange, Part, Unread, gist, parts, pretty, speaker
from workspace_session.export.prose import prose, safe, verbatim
from workspace_session.export.story import Story
from workspace_session.model.blocks import Media, Text, Thinking
from workspace_session.model.entries import Compaction, Message
from workspace_session.model.messages import one_line, plain, role
from workspace_session.model.outline import Row, rows

GIST = 110
_LONG = 6000  # characters; what is longer is folded, with its beginning on show
_START = 900
_ROLES = frozenset({"user", "assistant", "tool", "system"})


class _Open(NamedTuple):
    """Something that is open: how deep, which summary's range it is (if one's), how it is closed."""

    depth: int
    summary_id: str | None
    end: str


def conversation(story: Story) -> Iterator[str]:
    """The pieces of the main part of the page."""
    opened: list[_Open] = []
    day = ""
    before: Message | None = None
    for number, row in enumerate(rows(story.outline)):
        starts_over = number > 0 and story.outline.parents[row.entry.id] is None
        summary = story.outline.summaries.get(row.entry.id)
        hidden_by = story.outline.hidden.get(row.entry.id)
        while opened and _is_over(opened[-1], row, hidden_by, starts_over=starts_over):
            yield opened.pop().end
            before = None
        if starts_over:
            yield '<p class="another">Another beginning, which continues nothing above:</p>'
        if row.starts_branch:
            yield _branch(row, story)
            opened.append(_Open(row.depth, None, "</div></details>"))
        if summary is not None:
            yield _summary(summary)
        inside = bool(opened) and (opened[-1].depth, opened[-1].summary_id) == (
            row.depth,
            hidden_by,
        )
        if hidden_by is not None and not inside:
            yield _range(summary)
            opened.append(_Open(row.depth, hidden_by, "</div></details></section>"))
        elif summary is not None:
            yield "</section>"  # what it hides is lost
        if (today := moment(row.entry.timestamp)[:10]) != day:
            day = today
            yield f'<p class="day"><time datetime="{day}">{day}</time></p>'
        yield _article(row.entry, story, None if row.starts_branch or summary else before)
        before = row.entry
    for one in reversed(opened):
        yield one.end
    if not story.outline.parents:
        yield '<p class="another">There are no messages.</p>'


def _is_over(one: _Open, row: Row, hidden_by: str | None, *, starts_over: bool) -> bool:
    """Whether a row stands outside of what is open."""
    if one.depth != row.depth:
        return one.depth > row.depth
    return (
        row.starts_branch
        or starts_over
        or (one.summary_id is not None and one.summary_id != hidden_by)
    )


def _branch(row: Row, story: Story) -> str:
    count = plural(story.outline.sizes[row.entry.id], "message")
    said = safe(gist(row.entry.message, story.tool_names, GIST))
    badges = badges_of(row.entry.id, story)
    return (
        f'<details class="branch"><summary><span>Another branch, {count}</span>{badges}'
        f'<span class="gist" dir="auto" lang="">{said}</span></summary><div class="thread">'
    )


def _summary(summary: Compaction) -> str:
    count = (
        plural(summary.covers.messages, "message") if summary.covers.messages else "what follows"
    )
    return (
        f'<section class="summary-card sum" id="{summary_anchor(summary.id)}"><header>'
        f'<span class="who">Summary</span>stands in for {count} when a model reads</header>'
        f"{prose(summary.summary)}"
    )


def _range(summary: Compaction | None) -> str:
    """What a summary hides. One that began on another branch goes on here."""
    if summary is None:
        start, what = '<section class="sum">', "Show what the summary above hides"
    elif summary.covers.messages:
        start, what = "", f"Show {plural(summary.covers.messages, 'message')}"
    else:  # by other hands, which did not count
        start, what = "", "Show what it hides"
    return f'{start}<details class="hidden"><summary>{what}</summary><div class="thread">'


# -- one message -----------------------------------------------------------------------------------


def _article(entry: Message, story: Story, before: Message | None) -> str:
    """A message; `before` is the one right above, after which a heading need not be repeated."""
    message = entry.message
    badges = badges_of(entry.id, story)
    goes_on = before is not None and not badges and _said_by(entry) == _said_by(before)
    header = "" if goes_on else f"<header>{_heading(entry, badges)}</header>"
    style = f"{style_of(message)} goes-on" if goes_on else style_of(message)
    found = parts(message, story.tool_names)
    body = "".join(_part(part, role(message), story) for part in found)
    return f'<article id="{anchor(entry.id)}" class="{style}">{header}{body}</article>\n'


def _said_by(entry: Message) -> tuple[str, str | None, str]:
    """Who speaks, and when, to the minute."""
    return _speaker(entry.message), entry.author, moment(entry.timestamp)[:16]


def _heading(entry: Message, badges: str) -> str:
    by = "" if entry.author is None else f'<span class="by">{safe(entry.author)}</span>'
    who = safe(one_line(_speaker(entry.message), 40)) or "?"
    time = moment(entry.timestamp)
    return (
        f'<span class="who">{who}</span>{by}{badges}'
        f'<time class="when" datetime="{entry.timestamp}" title="{time} UTC">{time[11:16]}</time>'
    )


def _part(part: Part, who: str, story: Story) -> str:
    match part:
        case Text(said):
            return _folded(said, verbatim(said) if who == "user" else prose(said))
        case Thinking(said) if not said:
            return '<span class="chip">thinking that the provider keeps to itself</span>'
        case Thinking(said):
            start = safe(one_line(said, GIST))
            return (
                f'<details class="think"><summary><b>Thinking</b><span class="gist" dir="auto" '
                f'lang="">{start}</span></summary><div class="body">{prose(said)}</div></details>'
            )
        case Media(kind):
            return f'<span class="chip">{safe(kind)}</span>'
        case Exchange():
            return _exchange(part, story)
        case Unread(message):
            return _code(pretty(dict(message)))


def _exchange(part: Exchange, story: Story) -> str:
    """A tool call and its answer: one line, which unfolds."""
    call, result = part.call, part.result
    given = "" if call is None else one_line(plain(call.input), GIST)
    gave = "" if result is None else one_line(plain(result.output), GIST)
    unanswered = call is not None and call.id in story.unanswered
    badge = '<span class="badge warn">not answered</span>' if unanswered else ""
    name = safe(one_line(part.name, 80)) or "tool"
    told = " → ".join(filter(None, (given, gave)))
    pieces = [
        f'<details class="call"><summary><b>{name}</b><span class="gist" dir="auto" lang="">'
        f'{safe(told)}</span>{badge}</summary><div class="body">'
    ]
    if call is not None:
        pieces.append(f"<h4>Given</h4>{_code(pretty(call.input))}")
    if result is not None:
        pieces.append(f"<h4>Gave</h4>{_code(pretty(result.output))}")
    return "".join((*pieces, "</div></details>"))


def _code(text: str) -> str:
    shown = f'<pre dir="auto" lang="">{safe(text)}</pre>'
    return _folded(text, shown, "long code") if text else '<span class="chip">nothing</span>'


def _folded(text: str, shown: str, style: str = "long") -> str:
    """What is shown of a text; only its beginning at first, when it is long."""
    if len(text) <= _LONG:
        return shown
    return (
        f'<details class="{style}"><summary><span class="start" dir="auto" lang="">'
        f"{safe(text[:_START])}…</span>All {len(text):,} characters</summary>{shown}</details>"
    )


# -- what the outline has too ----------------------------------------------------------------------


def anchor(message_id: str) -> str:
    """The name of a message inside the page."""
    return f"m-{quote(message_id, safe='')}"


def summary_anchor(entry_id: str) -> str:
    """The name of a summary inside the page: a message may have the same id."""
    return f"s-{quote(entry_id, safe='')}"


def _speaker(message: Mapping[str, Any]) -> str:
    return speaker(message, parts(message, {}))


def style_of(message: Mapping[str, Any]) -> str:
    """What the page calls the one who speaks."""
    who = _speaker(message)
    return who if who in _ROLES else "other"


def badges_of(entry_id: str, story: Story) -> str:
    """What distinguishes a message: the tip, its label, that its parent is missing."""
    found = []
    if entry_id == story.outline.tip:
        found.append('<span class="badge tip">tip</span>')
    if (label := story.outline.labels.get(entry_id)) is not None:
        found.append(f'<span class="badge" dir="auto" lang="">{safe(one_line(label, 60))}</span>')
    if entry_id in story.outline.orphans:
        found.append('<span class="badge warn">its parent is missing</span>')
    return "".join(found)
