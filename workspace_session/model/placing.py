"""Placing: where new messages hang, before anything is written.

All checks are made here and nothing is changed; what is refused has written nothing. A message whose
id the session already has is not placed again: the stored one stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, Literal, NamedTuple

from workspace_session.errors import InvalidMessage, UnknownParent
from workspace_session.model.clock import stamps
from workspace_session.model.entries import Batch, Message
from workspace_session.model.lines import message_composer, messages_json
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


def drafts(
    messages: Iterable[Mapping[str, Any]],
    *,
    own_ids: bool = True,
    ids: Iterable[str] | None = None,
) -> list[Draft]:
    """Check messages. `ids` name them in the session, or else with `own_ids` their members `id`."""
    messages = list(messages)
    data = messages_json(messages)
    if ids is None and not own_ids:
        return [Draft(one, None) for one in data]
    if ids is None:
        names = [_named(one["id"]) if "id" in one else None for one in messages]
    else:
        names = [_named(one) for one in ids]
    return [Draft(one, name) for one, name in zip(data, names, strict=True)]


def draft(message: Mapping[str, Any], *, own_id: bool = True) -> Draft:
    """The same of one message."""
    return drafts([message], own_ids=own_id)[0]


def _named(message_id: object) -> str:
    if not isinstance(message_id, str) or not message_id:
        raise InvalidMessage("the id of a message is a non-empty text")
    if not _is_unicode(message_id):
        raise InvalidMessage("the id of a message is not valid Unicode")
    return message_id


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
    fresh = stamps(new, after)
    composed = message_composer(author, Batch(fresh[0][1], new) if new > 1 else None)
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
        timestamp, fresh_id = fresh[len(placed)]
        entry = composed(data, own_id or fresh_id, timestamp, parent)
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
