"""HTML: a session as one page that needs nothing else and fetches nothing.

Style and script stand in the page, and its content security policy names their hashes: nothing else
can run or be loaded, whatever the messages say. Without the script it is still the whole session.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from workspace_session.export.conversation import (
    GIST,
    anchor,
    badges_of,
    conversation,
    style_of,
    summary_anchor,
)
from workspace_session.export.facts import counted, facts_of, moment
from workspace_session.export.parts import gist
from workspace_session.export.prose import safe
from workspace_session.export.story import Story, tell
from workspace_session.files.session_view import SessionView
from workspace_session.model.messages import one_line, plain
from workspace_session.model.outline import Row, rows

_ICONS = {
    "menu": "M4 6h16M4 12h16M4 18h10",
    "search": "M11 4a7 7 0 1 0 0 14a7 7 0 0 0 0-14zM16 16l4.5 4.5",
    "previous": "M6 15l6-6l6 6",
    "next": "M6 9l6 6l6-6",
    "unfold": "M8 9l4-4l4 4M8 15l4 4l4-4",
    "theme": "M12 3a9 9 0 1 0 9 9a7 7 0 0 1-9-9z",
}


def to_html(session: SessionView) -> str:
    """A session with all its branches, as a page."""
    return "".join(_page(tell(session)))


def _page(story: Story) -> Iterator[str]:
    style, script = _asset("page.css"), _asset("page.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    yield (
        '<!DOCTYPE html>\n<html lang="en" class="no-script">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{safe(one_line(story.name, 200))}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        '<a class="skip away" href="#conversation">Skip to the conversation</a>\n'
    )
    yield _top(story)
    yield '<div class="frame">\n<nav id="outline" aria-label="Outline">\n'
    yield from _outline(story)
    yield '</nav>\n<main id="conversation" tabindex="-1">\n'
    yield _hero(story)
    yield from conversation(story)
    if story.updated_at:
        when = moment(story.updated_at)
        yield f'<p class="end">Session {safe(story.id)}, as it was at {when} UTC.</p>'
    yield f"\n</main>\n</div>\n<script>{script}</script>\n</body>\n</html>\n"


@cache
def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


# -- above the conversation ------------------------------------------------------------------------


def _top(story: Story) -> str:
    """The bar that stays in sight."""
    user = "" if story.user_id is None else f" of {story.user_id}"
    facts = f"{story.agent_id}{user} · {counted(story)}"
    buttons = {
        name: f'<button id="{name}" type="button" aria-label="{says}" title="{says}">{_icon(name)}'
        "</button>"
        for name, says in (
            ("menu", "Outline"),
            ("previous", "Previous (Shift+Enter)"),
            ("next", "Next (Enter)"),
            ("unfold", "Unfold or fold everything"),
            ("theme", "Light or dark"),
        )
    }
    return (
        f'<header class="top">{buttons["menu"]}<div class="title">'
        f'<b dir="auto" lang="">{safe(one_line(story.name, 200))}</b><span>{safe(facts)}</span></div>'
        f'<form class="search" role="search">{_icon("search")}'
        '<input type="search" placeholder="Search  /" aria-label="Search in this session" '
        'autocomplete="off" spellcheck="false"><output aria-live="polite"></output>'
        f"{buttons['previous']}{buttons['next']}</form>{buttons['unfold']}{buttons['theme']}</header>\n"
    )


def _icon(name: str) -> str:
    return f'<svg viewBox="0 0 24 24" aria-hidden="true"><path d="{_ICONS[name]}"/></svg>'


def _hero(story: Story) -> str:
    """The title and the facts."""
    summary = plain(story.facts.get("summary"))
    lede = f'<p class="lede" dir="auto" lang="">{safe(summary)}</p>' if summary else ""
    facts = "".join(
        f'<div><dt>{safe(name)}</dt><dd dir="auto">{safe(value)}</dd></div>'
        for name, value in facts_of(story)
        if name != "summary"
    )
    return (
        f'<header class="hero"><h1 dir="auto" lang="">{safe(one_line(story.name, 200))}</h1>{lede}'
        f"<dl>{facts}</dl></header>\n"
    )


# -- beside the conversation -----------------------------------------------------------------------


def _outline(story: Story) -> Iterator[str]:
    """Where branches end, and the tree of all messages."""
    if len(story.heads) > 1:
        yield '<h2>Branches</h2>\n<ol id="heads">\n'
        nodes = {
            message.id: message for found in story.outline.children.values() for message in found
        }
        for head in reversed(story.heads):
            if head in nodes:
                yield _row(Row(nodes[head]), story)
        yield "</ol>\n"
    yield '<h2>Messages</h2>\n<ol id="tree">\n'
    for row in rows(story.outline):
        if summary := story.outline.summaries.get(row.entry.id):
            yield (
                f'<li class="sum d{row.depth}{_fork(row)}"><a href="#{summary_anchor(summary.id)}">'
                f'<span class="dot"></span><span class="gist" dir="auto" lang="">'
                f"{safe(one_line(summary.summary, GIST))}</span></a></li>\n"
            )
        yield _row(row, story)
    yield "</ol>\n"


def _row(row: Row, story: Story) -> str:
    entry = row.entry
    message = entry.message
    hidden = entry.id in story.outline.hidden
    state = " hid" if hidden else "" if entry.id in story.outline.active else " off"
    said = gist(message, story.tool_names, GIST)
    return (
        f'<li class="{style_of(message)} d{row.depth}{_fork(row)}{state}"><a href="#{anchor(entry.id)}">'
        f'<span class="dot"></span><span class="gist" dir="auto" lang="">{safe(said)}</span>'
        f"{badges_of(entry.id, story)}</a></li>\n"
    )


def _fork(row: Row) -> str:
    return " fork" if row.starts_branch else ""
