"""The facts of a session, as every form of export states them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from workspace_session.export.story import Story
from workspace_session.model.messages import plain

_TOLD_ELSEWHERE = frozenset({"name", "summary", "model", "tags"})


def facts_of(story: Story) -> Iterator[tuple[str, str]]:
    """What is known about the session, by name."""
    user = "" if story.user_id is None else f" of {story.user_id}"
    yield "session", story.id
    yield "agent", f"{story.agent_id}{user}"
    yield "length", counted(story)
    if story.created_at is not None:
        yield "time (UTC)", _span(moment(story.created_at), moment(story.updated_at))
    for name in ("model", "tags"):
        if value := story.facts.get(name):
            yield name, ", ".join(map(str, value)) if isinstance(value, list) else plain(value)
    if spent := cost(story):
        yield "used", spent
    if story.parent_session:
        yield "continues", story.parent_session
    if summary := story.facts.get("summary"):
        yield "summary", plain(summary)
    for name, value in story.facts.items():
        if name not in _TOLD_ELSEWHERE:
            yield name, plain(value)


def _span(start: str, end: str) -> str:
    """From one time to another; what is the same, once."""
    if start == end:
        return start
    return f"{start} to {end.removeprefix(start[:11])}"


def counted(story: Story) -> str:
    """How many messages there are, and on how many branches."""
    said = plural(len(story.outline.parents), "message")
    branches = len(story.heads)
    return f"{said} on {branches} branches" if branches > 1 else said


def cost(story: Story) -> str:
    """The tokens and the money spent; nothing if nobody wrote that down."""
    spent = story.spent
    tokens = f"{spent.input_tokens:,} tokens in, {spent.output_tokens:,} out"
    money = f"${spent.cost:,.4f}".rstrip("0").rstrip(".") if spent.cost else ""
    counted = tokens if spent.input_tokens or spent.output_tokens else ""
    return ", ".join(filter(None, (counted, money)))


def moment(timestamp: str) -> str:
    """A time as people write it, in UTC and to the second."""
    return f"{datetime.fromisoformat(timestamp):%Y-%m-%d %H:%M:%S}"


def plural(count: int, noun: str) -> str:
    """`1 message`, `2 messages`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
