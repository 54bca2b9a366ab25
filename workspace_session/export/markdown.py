"""Markdown: one branch of a conversation, for people and for whatever renders Markdown.

Everything that was said on the branch is there; a summary stands before the messages that it hides
from the model. What a message says stays in its own section: a code block that it leaves open is
closed, and tools speak in blocks whose fence they do not contain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from workspace_session.export.facts import facts_of, moment
from workspace_session.export.parts import Exchange, Part, Unread, inert, parts, pretty, speaker
from workspace_session.export.story import Story, tell
from workspace_session.files.session_view import SessionView
from workspace_session.model.blocks import Media, Text, Thinking
from workspace_session.model.entries import Compaction, Message
from workspace_session.model.messages import one_line
from workspace_session.model.tree import Shown

_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")


def to_markdown(session: SessionView, *, leaf: str | None = None) -> str:
    """A branch (None: the active one) as a document."""
    return "\n\n".join(_document(tell(session, leaf))) + "\n"


def _document(story: Story) -> Iterator[str]:
    yield f"# {_line(story.name)}"
    yield "\n".join(f"- {name}: {_line(value)}" for name, value in facts_of(story))
    if not story.said:
        yield "There are no messages."
    summaries = _summaries(story)
    for message in story.said:
        summary = summaries.get(message.id)
        if isinstance(summary, Compaction):
            yield from _summary(summary)
        yield from _section(message, story)


def _summaries(story: Story) -> dict[str, Shown]:
    """The summaries that a model is shown, by the first message after which they matter."""
    first = {message.id for message in story.said}
    found: dict[str, Shown] = {}
    waiting: list[Compaction] = []
    for item in story.shown:
        if isinstance(item, Compaction):
            if item.from_id in first:
                found[item.from_id] = item
            else:  # what it hides is lost
                waiting.append(item)
        elif waiting:
            found[item.id] = waiting.pop()
    return found


def _summary(summary: Compaction) -> Iterator[str]:
    count = summary.covers.messages
    what = f"the next {count} messages" if count > 1 else "the next message"
    yield "## Summary"
    yield f"*In place of {what} the model is shown this:*"
    yield "\n".join(f"> {line}".rstrip() for line in inert(summary.summary).split("\n"))


def _section(message: Message, story: Story) -> Iterator[str]:
    content = message.message
    found = parts(content, story.tool_names)
    who = _line(speaker(content, found).capitalize() or "?")
    by = f" ({_line(message.author)})" if message.author else ""
    label = story.outline.labels.get(message.id)
    marked = "" if label is None else f" · “{_line(label)}”"
    yield f"## {who}{by} · {moment(message.timestamp)}{marked}"
    for part in found:
        yield from _part(part)


def _part(part: Part) -> Iterator[str]:
    match part:
        case Text(said):
            yield closed(inert(said))
        case Thinking(said):
            yield "*Thinking:*" if said else "*Thinking that the provider keeps to itself*"
            if said:
                yield _fenced(said)
        case Media(kind):
            yield f"*[{kind}]*"
        case Exchange(name, call, result):
            if call is not None:
                yield f"*Tool call:* {_line(name)}"
                yield _fenced(pretty(call.input))
            if result is not None:
                yield f"*Tool result:* {_line(name)}".rstrip()
                yield _fenced(pretty(result.output))
        case Unread(message):
            yield _fenced(pretty(dict(message)))


def _line(text: str) -> str:
    """A text that fits on one line of a document, and is no more than text there."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", inert(one_line(text, 200)))


def closed(text: str) -> str:
    """The text, with the code block closed that it leaves open."""
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if not fence:
            fence = found[1] if found else ""
        elif line.strip() and not line.strip().strip(fence[0]) and len(line.strip()) >= len(fence):
            fence = ""
    return f"{text}\n{fence}" if fence else text


def _fenced(text: str) -> str:
    """A code block that the text cannot end."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{inert(text)}\n{fence}"
