"""A story: all that an export tells of a session, taken at one moment.

It is values only. Whoever writes to the session meanwhile changes nothing in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workspace_session.errors import UnknownMessage
from workspace_session.files.session_view import SessionView
from workspace_session.model import messages
from workspace_session.model.entries import Compaction, Entry, Message, Spent
from workspace_session.model.outline import Outline, outline
from workspace_session.model.tree import Shown, Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A session, as those who render it need it."""

    id: str
    agent_id: str
    user_id: str | None
    name: str
    facts: Mapping[str, Any]
    created_at: str | None
    updated_at: str
    parent_session: str | None
    spent: Spent
    outline: Outline
    heads: list[str]  # where a branch ends, the tip last
    said: list[Message]  # the branch that was asked for
    shown: list[Shown]  # the same as the model sees it
    tool_names: Mapping[str, str]  # by call: results often leave them out
    unanswered: frozenset[str]  # calls
    entries: list[Entry]  # everything that happened


def tell(session: SessionView, leaf: str | None = None) -> Story:
    """The story of a session; `leaf` says which branch (None: the active one)."""
    return session.whole(lambda tree: _story(session, tree, leaf))


def _story(session: SessionView, tree: Tree, leaf: str | None) -> Story:
    if leaf is not None and not tree.has(leaf):
        raise UnknownMessage(session.id, leaf)
    end = tree.tip if leaf is None else leaf
    facts = tree.facts()
    header = next(iter(tree.headers.values()), None)
    contents = [message.message for message in tree.messages()]
    shown = tree.context(end)
    return Story(
        id=session.id,
        agent_id=session.place.agent_id,
        user_id="/".join(session.place.namespace) or None,
        name=messages.plain(facts.get("name")) or session.id,
        facts=facts,
        created_at=tree.created_at,
        updated_at=tree.newest[0],
        parent_session=header.parent_session if header else None,
        spent=tree.spent,
        outline=outline(tree),
        heads=sorted(tree.heads(), key=lambda head: head == tree.tip),
        said=[item for item in tree.walk(end) if not isinstance(item, Compaction)],
        shown=shown,
        tool_names={
            call.id: call.name for content in contents for call in messages.tool_calls(content)
        },
        unanswered=frozenset(messages.dangling_tool_calls(contents)),
        entries=_entries(tree),
    )


def _entries(tree: Tree) -> list[Entry]:
    """All entries; in a log that was lost, what sums up the rest stands behind what was kept."""
    if tree.trim is None:
        return list(tree.entries)
    kept = [entry for entry in tree.entries if entry.key <= tree.trim.end]
    return [*kept, tree.trim, *(entry for entry in tree.entries if entry.key > tree.trim.end)]
