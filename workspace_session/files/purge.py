"""Purging an entry: its text goes from a session's files, its copies in the trash, and what is derived.

The log comes first and decides; when a crash cuts the rest short, to purge again finishes it. Forks are
sessions of their own, and summaries may tell in other words what was said: both are named, not touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from workspace_session.files.jsonl import read_bytes
from workspace_session.files.layout import AgentPlace, Layout
from workspace_session.files.session_tree import SessionTree
from workspace_session.files.trash import trashed
from workspace_session.model.canonical import compact
from workspace_session.model.entries import Compaction, Entry, Message, Other
from workspace_session.model.lines import NotAnEntry, decode
from workspace_session.model.purging import blank


@dataclass(frozen=True, slots=True)
class Purged:
    """What was purged, and where else its text may be."""

    entry_id: str
    type: str
    summaries: tuple[str, ...]  # ids of summaries that were made of it
    forks: tuple[str, ...]  # sessions that have a copy
    in_trash: int  # copies in the trash, which were purged too


def purge(place: AgentPlace, tree: SessionTree, entry_id: str, *, durable: bool) -> Purged:
    """Purge an entry of a session, and the copies of it that the trash holds."""
    entry = tree.purge(entry_id)
    in_trash = 0
    for gone in trashed(place):
        there = Layout(gone.directory).agent(place.agent_id, place.namespace)
        if _holds(there, gone.session_id, entry):
            SessionTree.on_disk(there, gone.session_id, durable=durable).purge(entry.id)
            in_trash += 1
    forks = [one for one in place.session_ids() if one != tree.id and _holds(place, one, entry)]
    kind = entry.kind if isinstance(entry, Other) else entry.type
    return Purged(entry.id, kind, tuple(_summaries(tree, entry)), tuple(forks), in_trash)


def _holds(place: AgentPlace, session_id: str, entry: Entry) -> bool:
    """Whether a session has a copy that still says something."""
    for path in (place.log(session_id), place.tree(session_id)):
        found = read_bytes(path)
        data = b"" if found is None else found[0]
        named = compact(entry.id)
        if named in data and any(
            _is_copy(line, entry) for line in data.split(b"\n") if named in line
        ):
            return True
    return False


def _is_copy(line: bytes, entry: Entry) -> bool:
    try:
        other = decode(line)
    except NotAnEntry:
        return False
    return other.key == entry.key and blank(other) is not other


def _summaries(tree: SessionTree, entry: Entry) -> Iterator[str]:
    """The summaries whose range a message is in, as far as the range can still be told."""
    known = {one.id for one in tree.all_messages()} if isinstance(entry, Message) else set()
    if entry.id not in known:
        return
    for overlay in tree.compactions():
        if overlay.to_id in known and _covers(tree, overlay, entry.id):
            yield overlay.id


def _covers(tree: SessionTree, overlay: Compaction, message_id: str) -> bool:
    path = [one.id for one in tree.path(overlay.to_id)]
    start = path.index(overlay.from_id) if overlay.from_id in path else len(path)
    return message_id in path[start:]
