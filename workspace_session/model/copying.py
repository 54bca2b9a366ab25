"""Copying a path into a new session: one batch, so that it is there whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workspace_session.model.clock import just_before, stamps
from workspace_session.model.entries import Batch, Compaction, Entry, Header, Info, Label, Message
from workspace_session.model.lines import compose, compose_message, message_json
from workspace_session.model.tree import Tree


def copied_path(
    tree: Tree, at: str, header: Header, facts: Mapping[str, Any], after: str
) -> list[Entry]:
    """The entries of a session that begins with the path to `at`.

    Messages, overlays and labels keep their ids and times, so that the copy shows what the original
    shows; the header is dated before all of them, the facts after `after`.
    """
    path = tree.path(at)
    ids = {entry.id for entry in path}
    overlays = [o for o in tree.overlays if o.from_id in ids and o.to_id in ids]
    labels = [entry for entry in tree.label_entries() if entry.target_id in ids]
    time, fresh_id = stamps(1, after)[0]
    batch = Batch(fresh_id, len(path) + len(overlays) + len(labels) + 2)
    parents = [None, *(entry.id for entry in path)]
    copies: list[Entry] = [
        _message(entry, parent, batch) for entry, parent in zip(path, parents, strict=False)
    ]
    copies += [_overlay(overlay, tree, batch) for overlay in overlays]
    copies += [_label(entry, batch) for entry in labels]
    copies.sort(key=lambda entry: entry.key)
    first = compose(
        Header,
        id=header.id,
        timestamp=just_before(copies[0].timestamp),
        batch=batch,
        version=header.version,
        agent=header.agent,
        parent_session=header.parent_session,
    )
    info = compose(Info, id=fresh_id, timestamp=time, batch=batch, facts=dict(facts))
    return [first, *copies, info]


def _message(entry: Message, parent_id: str | None, batch: Batch) -> Message:
    return compose_message(
        message_json(entry.message),
        id=entry.id,
        timestamp=entry.timestamp,
        parent_id=parent_id,
        author=entry.author,
        batch=batch,
    )


def _overlay(overlay: Compaction, tree: Tree, batch: Batch) -> Compaction:
    return compose(
        Compaction,
        id=overlay.id,
        timestamp=overlay.timestamp,
        batch=batch,
        from_id=overlay.from_id,
        to_id=overlay.to_id,
        from_parent_id=tree.parent_of_start(overlay.from_id),
        summary=overlay.summary,
        covers=overlay.covers,
    )


def _label(entry: Label, batch: Batch) -> Label:
    return compose(
        Label,
        id=entry.id,
        timestamp=entry.timestamp,
        batch=batch,
        target_id=entry.target_id,
        label=entry.label,
    )
