"""Offloading: what a conversation, given whole, has that a session has not.

Nothing is written here. A message with an id is known by it: what has grown or was edited is an update,
what was only shortened changes nothing. One without an id is known by what it says and by where it
stands: what the path ends with and the conversation begins with is the same. So the same conversation
may be given again and again, and adds only what is new.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from workspace_session.model.canonical import compact_sorted, parse
from workspace_session.model.entries import Message, Purge, Update
from workspace_session.model.placing import Draft, draft
from workspace_session.model.purging import blank
from workspace_session.model.shortening import is_only_shortened
from workspace_session.model.tree import Tree

Content = dict[str, Any]

VIEW = "offloaded"  # the fact that `view_of` gives
OVERLAY_PREFIX = "compaction:"  # of the id of a summary in an agent's memory
_SUMMARY_PREFIXES = (OVERLAY_PREFIX, "compaction_")  # the second is that of one in a context


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadResult:
    """What became of the messages; `entry_ids` has one id for each of them, in order.

    `aligned` is False when messages without ids were given and no end of the session is their
    beginning; `dangling` names the tool calls of the session that have no result.
    """

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    ignored: int = 0
    aligned: bool = True
    entry_ids: tuple[str, ...] = ()
    leaf: str | None = None
    dangling: tuple[str, ...] = ()


class Revision(NamedTuple):
    """New content for a message that the session has."""

    target_id: str
    data: bytes


@dataclass(slots=True)
class Findings:
    """What is to be written, and what the messages were found to be."""

    new: list[Draft] = field(default_factory=list)
    revisions: list[Revision] = field(default_factory=list)
    ids: list[str | None] = field(default_factory=list)  # None: the next of those placed
    updated: int = 0
    unchanged: int = 0
    ignored: int = 0
    aligned: bool = True

    def result(self, placed: Sequence[str], tip: str | None) -> OffloadResult:
        """The same, once the new messages have been placed under these ids."""
        fresh = iter(
            entry_id for one, entry_id in zip(self.new, placed, strict=True) if one.id is None
        )
        return OffloadResult(
            added=len(placed),
            updated=self.updated,
            unchanged=self.unchanged,
            ignored=self.ignored,
            aligned=self.aligned,
            entry_ids=tuple(next(fresh) if one is None else one for one in self.ids),
            leaf=placed[-1] if placed else tip,
        )


def offloaded(message: Mapping[str, Any]) -> Draft:
    """A message fit to be stored; an id that is null or empty is none."""
    return draft(message, own_id=message.get("id") not in (None, ""))


def is_summary(message_id: str | None) -> bool:
    """Whether an id is that of a summary which stands in for other messages."""
    return message_id is not None and message_id.startswith(_SUMMARY_PREFIXES)


def overlay_id(message_id: str) -> str:
    """The entry behind the id of a summary."""
    return message_id[len(OVERLAY_PREFIX) :]  # both prefixes are of one length


def compare(tree: Tree, drafts: Sequence[Draft]) -> Findings:
    """Find out what a session has of a conversation."""
    findings = Findings()
    said: dict[str, Content] = {}  # what this very conversation has said under an id
    past = _Past(tree)
    told = [one for one in drafts if not is_summary(one.id)]
    known = _known_by_content(tree, told, past, findings)
    for one in drafts:
        if one.id is None:
            found = next(known)
            findings.ids.append(found)
            if found is None:
                findings.new.append(one)
            else:
                findings.unchanged += 1
        elif is_summary(one.id):
            findings.ids.append(overlay_id(one.id))
            findings.ignored += 1
        else:
            _compare_one(tree, one, said, past, findings)
    return findings


# -- by id -----------------------------------------------------------------------------------------


def _compare_one(
    tree: Tree, one: Draft, said: dict[str, Content], past: _Past, findings: Findings
) -> None:
    assert one.id is not None
    findings.ids.append(one.id)
    node = tree.here(one.id)
    if one.id not in said and node is not None and node.says(one.data):
        findings.unchanged += 1  # by far the most frequent case, and a cheap one
        return
    if one.id not in said and past.is_purged(one.id):
        findings.ignored += 1  # what was taken away for good does not come back from a memory
        return
    content: Content = parse(one.data)
    before = said.get(one.id) or (node.message if node is not None else None)
    is_gone = before is None and tree.is_gone(one.id)
    if is_gone:
        before = past.last_words(one.id)
    if before is not None and _are_same(content, before):
        # What was deleted stays so: that a memory still has it does not bring it back.
        findings.ignored += is_gone
        findings.unchanged += not is_gone
    elif before is not None and is_only_shortened(content, before):
        findings.ignored += 1
    elif before is None or is_gone:  # new, or another message that goes by an old id
        findings.new.append(one)
        said[one.id] = content
    else:
        findings.revisions.append(Revision(one.id, one.data))
        findings.updated += 1
        said[one.id] = content


class _Past:
    """What messages have said, deleted ones too; one look at all entries, if at any."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    @cached_property
    def _last(self) -> dict[str, Message | Update]:
        said = (one for one in self._tree.entries if isinstance(one, Message | Update))
        return {one.target_id if isinstance(one, Update) else one.id: one for one in said}

    @cached_property
    def _purged(self) -> frozenset[str]:
        return frozenset(one.target_id for one in self._tree.entries if isinstance(one, Purge))

    def last_words(self, message_id: str) -> Content | None:
        """What a message said last."""
        found = self._last.get(message_id)
        return None if found is None else found.message

    def is_purged(self, message_id: str) -> bool:
        """Whether what it said was taken away for good, and nothing else was said since."""
        if message_id not in self._purged:
            return False
        found = self._last.get(message_id)
        return found is not None and blank(found) is found


def _are_same(one: Content, other: Content) -> bool:
    return compact_sorted(one) == compact_sorted(other)


# -- by content and position -----------------------------------------------------------------------


def _known_by_content(
    tree: Tree, drafts: Sequence[Draft], past: _Past, findings: Findings
) -> Iterator[str | None]:
    """For each message without an id, in order, the one it is known to be, or None."""
    if all(one.id is not None for one in drafts):
        return iter(())
    ids = frozenset(one.id for one in drafts if one.id is not None)
    given = [_token(one.id, parse(one.data)) for one in drafts]
    known: list[Message] = []
    for end in (_end_of_path(tree, len(given)), _end_of_view(tree)):
        tokens = [None if past.is_purged(node.id) else _token_of(node, ids) for node in end]
        overlap = _overlap(tokens, given)
        known = max(known, end[len(end) - overlap :], key=len)
    found: list[str | None] = [node.id for node in known]
    if known or tree.tip is None:
        found += [None] * (len(given) - len(known))
    else:
        findings.aligned = False
        path = {_token_of(node, ids): node.id for node in tree.path(tree.tip)}
        found = [path.get(token) for token in given]
    return (known for one, known in zip(drafts, found, strict=True) if one.id is None)


def view_of(result: OffloadResult) -> Content | None:
    """What to remember of a conversation that no end of the path is the beginning of.

    Its messages stand in the session in another order, or far apart. When it comes again, this is what
    tells that it has been here.
    """
    if result.aligned or not result.added:
        return None
    return {"tip": result.leaf, "ids": list(result.entry_ids)}


def _end_of_view(tree: Tree) -> list[Message]:
    """The conversation that was remembered last, and what came after it on the path."""
    view = tree.facts().get(VIEW)
    if view is None:
        return []
    path = tree.path(tree.tip)
    places = {node.id: place for place, node in enumerate(path)}
    if view["tip"] not in places or not all(entry_id in places for entry_id in view["ids"]):
        return []
    seen = [path[places[entry_id]] for entry_id in view["ids"]]
    return seen + path[places[view["tip"]] + 1 :]


def _end_of_path(tree: Tree, count: int) -> list[Message]:
    """The last messages of the path; of a trimmed session only what is nearer than the log."""
    items = tree.walk(tree.tip)[-count:]
    nodes = [item for item in items if isinstance(item, Message)]
    return nodes if len(nodes) == len(items) else tree.path(tree.tip)[-count:]


def _token(message_id: str | None, content: Content) -> bytes:
    """What two messages have in common that are the same."""
    if message_id is not None:
        return b"\0" + message_id.encode()  # which no JSON object begins with
    return compact_sorted({name: value for name, value in content.items() if name != "id"})


def _token_of(node: Message, ids: frozenset[str]) -> bytes:
    return _token(node.id if node.id in ids else None, node.message)


def _overlap(end: Sequence[bytes | None], beginning: Sequence[bytes]) -> int:
    """The greatest number for which the last of the one are the first of the other.

    What a purged message (None) said nobody knows: between others that are the same, it is too.
    """
    if None in end:
        for count in range(min(len(end), len(beginning)), 0, -1):
            last = end[len(end) - count :]
            if any(last) and all(
                mine in (None, other) for mine, other in zip(last, beginning, strict=False)
            ):
                return count
        return 0
    # Knuth, Morris and Pratt: for each place, how long the beginning is that ends there.
    joined = [*beginning, None, *end]
    lengths = [0] * len(joined)
    for place in range(1, len(joined)):
        length = lengths[place - 1]
        while length and joined[place] != joined[length]:
            length = lengths[length - 1]
        lengths[place] = length + (joined[place] == joined[length])
    return lengths[-1]
