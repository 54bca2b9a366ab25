"""Placing: where new messages hang, before anything is written.

All checks are made here and nothing is changed; what is refused has written nothing. A message whose
id the session already has is not placed again: the stored one stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final, Literal, NamedTuple

from workspace_session.errors import InvalidMessage, UnknownParent
from workspace_session.model.clock import stamps
from workspace_session.model.entries import Batch, Message
from workspace_session.model.lines import compose_message, message_json
from workspace_session.model.tree import Tree


class _Latest(Enum):
    LATEST = "LATEST"

    def __repr__(self) -> str:
        return "LATEST"


LATEST: Final = _Latest.LATEST
"""The parent of a message that continues the active branch."""

Parent = str | None | Literal[_Latest.LATEST]


class Appended(NamedTuple):
    """The stored message, and whether this call stored it."""

    entry: Message
    inserted: bool


class Draft(NamedTuple):
    """A message that is fit to be stored; `id` is its own, or None for a fresh one."""

    data: bytes
    id: str | None


def draft(message: Mapping[str, Any], *, own_id: bool = True, named: str | None = None) -> Draft:
    """Check a message; `named`, or else with `own_id` its member `id`, names it in the session."""
    data = message_json(message)
    if named is None and (not own_id or "id" not in message):
        return Draft(data, None)
    message_id = message["id"] if named is None else named
    if not isinstance(message_id, str) or not message_id:
        raise InvalidMessage("the id of a message is a non-empty text")
    if not _is_unicode(message_id):
        raise InvalidMessage("the id of a message is not valid Unicode")
    return Draft(data, message_id)


def place(
    tree: Tree,
    drafts: Sequence[Draft],
    *,
    parent: Parent,
    author: str | None,
    session_id: str,
    after: str,
) -> list[Appended]:
    """Entries for new messages, each under the one before, the first under `parent`."""
    new = _count_new(tree, drafts)
    fresh = iter(stamps(new, after))
    batch: Batch | None = None
    results: list[Appended] = []
    placed: dict[str, Message] = {}
    for data, own_id in drafts:
        if own_id is not None and (known := placed.get(own_id) or tree.here(own_id)):
            results.append(Appended(known, False))
            parent = known.id
            continue
        if parent is LATEST:
            parent = tree.tip
        elif parent is not None and parent not in placed and not tree.has(parent):
            raise UnknownParent(session_id, parent)
        timestamp, fresh_id = next(fresh)
        if new > 1 and batch is None:
            batch = Batch(fresh_id, new)
        entry = compose_message(
            data,
            id=own_id or fresh_id,
            timestamp=timestamp,
            parent_id=parent,
            author=author,
            batch=batch,
        )
        placed[entry.id] = entry
        parent = entry.id
        results.append(Appended(entry, True))
    return results


def _count_new(tree: Tree, drafts: Sequence[Draft]) -> int:
    own = {item.id for item in drafts if item.id is not None and item.id not in tree}
    return len(own) + sum(item.id is None for item in drafts)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
