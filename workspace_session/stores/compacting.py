"""Compacting a session on files with anything that makes a summary of a prompt, whatever the shape
of its messages.

The rules of the cut, the prompt, and the look at what has changed meanwhile are those of `Session`. No
lock is held while the summary is made; what is stored hides only what it was made of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypedDict, Unpack

from workspace_session.errors import InvalidCompaction, SessionChanged
from workspace_session.files.session_tree import SessionTree
from workspace_session.model import entries, messages
from workspace_session.model.blocks import Block, Media, Text, Thinking, ToolCall, ToolResult
from workspace_session.session.compactor import FunctionFailed, compact_once
from workspace_session.session.shapes import Shown, is_readable, still_shows
from workspace_session.session.summaries import create_compact_function, summarised
from workspace_session.session.values import (
    Compaction,
    CompactResult,
    SessionMessage,
    is_compaction_message,
)
from workspace_session.stores.tree_provider import as_compaction, as_message

Items = Sequence[entries.Message | entries.Compaction]
Summarize = Callable[[str], str | None]


class Cut(TypedDict, total=False):
    """What is to be summed up: all from one message to another, or the middle of a branch."""

    leaf: str | None
    from_id: str | None
    to_id: str | None
    keep_first: int
    keep_last: int
    keep_tokens: float


def compact_tree(
    tree: SessionTree, summarize: Summarize, **cut: Unpack[Cut]
) -> entries.Compaction | None:
    """Store what `summarize(prompt)` gives in place of what it was asked about.

    None when there is nothing to sum up, or no summary was given. `SessionChanged` when meanwhile
    something else has come to stand there.
    """
    store = _Store(tree)
    shown = _readable(tree.context(cut.get("leaf")))
    try:
        result = asyncio.run(compact_once(shown, _function(tree, summarize, cut), None, store))
    except FunctionFailed as failure:
        raise failure.error from None
    if result is None and store.asked:
        raise SessionChanged(tree.id)
    return store.stored


def _function(tree: SessionTree, summarize: Summarize, cut: Cut) -> Callable[..., Any]:
    by_rule = create_compact_function(
        summarize=summarize,
        protect_head=cut.get("keep_first", 3),
        min_tail_messages=cut.get("keep_last", 2),
        tail_token_budget=cut.get("keep_tokens", 20_000),
    )
    first, last = cut.get("from_id"), cut.get("to_id")

    async def compact(shown: Sequence[SessionMessage]) -> CompactResult | None:
        if first is None and last is None:
            found: CompactResult | None = await by_rule(shown)
            return found
        ids = [message["id"] for message in shown]
        start = 0 if first is None else _place(tree, ids, first)
        end = len(ids) - 1 if last is None else _place(tree, ids, last)
        if start > end:
            raise InvalidCompaction(tree.id, ids[start], ids[end], "the first comes after the last")
        real = [one for one in shown[start : end + 1] if not is_compaction_message(one)]
        return await summarised(shown, real, summarize) if real else None

    return compact


def _place(tree: SessionTree, ids: list[str], message_id: str) -> int:
    if message_id not in ids:
        tree.get(message_id)  # or there is no such message
        reason = f"{message_id!r} is hidden by a summary, or on another branch"
        raise InvalidCompaction(tree.id, message_id, message_id, reason)
    return ids.index(message_id)


class _Store:
    """Stores the overlay in a session; it remembers what came of it."""

    def __init__(self, tree: SessionTree) -> None:
        self._tree = tree
        self.asked = False
        self.stored: entries.Compaction | None = None

    async def __call__(
        self, summary: str, from_id: str, to_id: str, expected: Sequence[str]
    ) -> Compaction | None:
        def is_as_expected(items: Items) -> bool:
            return still_shows(_readable(items), expected)

        self.asked = True
        try:
            self.stored = self._tree.compact_if(summary, from_id, to_id, is_as_expected)
        except InvalidCompaction as error:
            raise SessionChanged(self._tree.id) from error
        return None if self.stored is None else as_compaction(self.stored)


# -- messages of any shape -------------------------------------------------------------------------


def _readable(items: Items) -> list[Shown]:
    """What is shown, each message in the shape that the rules and the prompt read."""
    return [
        as_compaction(item) if isinstance(item, entries.Compaction) else _in_parts(item)
        for item in items
    ]


def _in_parts(entry: entries.Message) -> SessionMessage:
    message = as_message(entry)
    if is_readable(message):
        return message
    parts = [part for block in messages.blocks(entry.message) for part in _part(block)]
    return {"id": entry.id, "role": messages.role(entry.message) or "user", "parts": parts}


def _part(block: Block) -> list[dict[str, Any]]:
    match block:
        case Text(said):
            return [{"type": "text", "text": said}]
        case Thinking():
            return []
        case Media(kind):
            return [{"type": "text", "text": f"[{kind}]"}]
        case ToolCall():
            return [
                {"type": f"tool-{block.name}", "toolCallId": block.id or None, "input": block.input}
            ]
        case ToolResult():
            called = f"tool-{block.name or 'result'}"
            return [{"type": called, "toolCallId": block.call_id or None, "output": block.output}]
