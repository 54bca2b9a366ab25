"""What was done to a session in Postgres since its lines were last written, as entries.

The tables say how things are, a log says how they came about. What the tables say otherwise than the
lines amounts to entries that bring it about: taken together with them, the lines mean what the tables
say. Messages and overlays keep their ids and times; what passed without a trace is not made up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from workspace_session.errors import InvalidMessage
from workspace_session.model.canonical import parse
from workspace_session.model.clock import fresh_id, just_after, just_before
from workspace_session.model.entries import (
    Clear,
    Compaction,
    Covers,
    Delete,
    Entry,
    Header,
    Info,
    Label,
    Leaf,
    Message,
    Update,
    Usage,
)
from workspace_session.model.lines import FORMAT_VERSION, compose, compose_message, message_json
from workspace_session.model.tokens import estimate_message_tokens
from workspace_session.model.tree import Tree
from workspace_session.stores.postgres.rows import LabelRow, MessageRow, OverlayRow, Rows


def catch_up(tree: Tree, now: Rows, session_id: str, agent_id: str) -> list[Entry]:
    """The entries that a tree lacks to mean what the rows say; it takes them in."""
    missing = _Missing(tree, now)
    entries: list[Entry] = [*missing.header(session_id, agent_id), *missing.removed()]
    entries += [*missing.added(), *missing.changed()]
    tree.add(entries)
    tip = list(missing.tip(tree.tip))
    tree.add(tip)
    return [*entries, *tip]


class _Missing:
    """Makes entries, each later than the one before."""

    def __init__(self, tree: Tree, now: Rows) -> None:
        self._was, self._now = Rows.of(tree), now
        self._after = tree.newest[0]
        self._has_header = bool(tree.headers)
        there = {row.id for row in now.overlays}
        # Nothing but a clear makes an overlay go away.
        self._is_cleared = any(row.id not in there for row in self._was.overlays)
        known = [] if self._is_cleared else self._was.messages
        self._known = {row.identity: row for row in known}
        self._rows = {row.id: row for row in now.messages}

    def header(self, session_id: str, agent_id: str) -> Iterator[Header]:
        if self._has_header:
            return
        times = [just_before(row.created_at) for row in self._now.messages[:1]]
        first = min([self._now.created_at or times[0], *times])
        self._after = max(self._after, first)
        yield compose(
            Header,
            id=session_id,
            timestamp=first,
            version=FORMAT_VERSION,
            agent=agent_id,
            parent_session=self._now.parent_session,
        )

    # -- what is gone ------------------------------------------------------------------------------

    def removed(self) -> Iterator[Clear | Delete]:
        there = {row.identity for row in self._now.messages}
        gone = [row.id for row in self._was.messages if row.identity not in there]
        if self._is_cleared:
            yield compose(Clear, id=fresh_id(), timestamp=self._time(""))
        elif gone:
            targets = tuple(gone)
            yield compose(Delete, id=fresh_id(), timestamp=self._time(""), target_ids=targets)

    # -- what is new -------------------------------------------------------------------------------

    def added(self) -> Iterator[Message | Compaction]:
        """Messages and overlays, each kind in its order, together in that of their times."""
        told = set() if self._is_cleared else {row.id for row in self._was.overlays}
        overlays = [row for row in self._now.overlays if row.id not in told]
        for row in self._now.messages:
            if row.identity in self._known:
                continue
            while overlays and overlays[0].created_at < row.created_at:
                yield self._overlay(overlays.pop(0))
            yield compose_message(
                _data(row),
                id=row.id,
                timestamp=self._time(row.created_at),
                parent_id=row.parent_id,
            )
        yield from map(self._overlay, overlays)

    def _overlay(self, row: OverlayRow) -> Compaction:
        start = self._rows.get(row.from_id)
        return compose(
            Compaction,
            id=row.id,
            timestamp=self._time(row.created_at),
            from_id=row.from_id,
            to_id=row.to_id,
            from_parent_id=start.parent_id if start else None,
            summary=row.summary,
            covers=self._covers(row),
        )

    def _covers(self, overlay: OverlayRow) -> Covers:
        messages = tokens = 0
        at: str | None = overlay.to_id
        while at in self._rows:
            row = self._rows[at]
            messages, tokens = messages + 1, tokens + estimate_message_tokens([_message(row)])
            at = None if at == overlay.from_id else row.parent_id
        return Covers(messages, tokens)

    # -- what is different -------------------------------------------------------------------------

    def changed(self) -> Iterator[Update | Label | Info | Usage]:
        for row in self._now.messages:
            was = self._known.get(row.identity)
            if was is not None and was.content != row.content:
                yield compose(Update, **self._now_made(), target_id=row.id, message=_data(row))
        yield from self._labels()
        was_known, known = self._was.facts, self._now.facts
        names = [name for name in {**was_known, **known} if was_known.get(name) != known.get(name)]
        if names:
            facts = {name: known.get(name) for name in names}
            yield compose(Info, **self._now_made(), facts=facts)
        before, total = self._was.spent, self._now.spent
        if before != total:
            more = [now - then for now, then in zip(total, before, strict=True)]
            spent: dict[str, Any] = dict(zip(total._fields, more, strict=True))
            yield compose(Usage, **self._now_made(), **spent)

    def _labels(self) -> Iterator[Label]:
        was, now = _by_target(self._was.labels), _by_target(self._now.labels)
        for target in {**({} if self._is_cleared else was), **now}:
            if was.get(target) != now.get(target) and target in self._rows:
                label = now.get(target)
                yield compose(Label, **self._now_made(), target_id=target, label=label)

    def tip(self, found: str | None) -> Iterator[Leaf]:
        if found != self._now.tip:
            yield compose(Leaf, **self._now_made(), target_id=self._now.tip)

    # -- times -------------------------------------------------------------------------------------

    def _now_made(self) -> dict[str, Any]:
        """Id and time of what left no trace of its own, but for the time of the last touch."""
        return {"id": fresh_id(), "timestamp": self._time(self._now.updated_at or "")}

    def _time(self, wanted: str) -> str:
        """The time that something had, or the next one, if something else came after that."""
        self._after = wanted if wanted > self._after else just_after(self._after)
        return self._after


def _message(row: MessageRow) -> dict[str, Any]:
    try:
        message = parse(row.content.encode())
    except ValueError:
        message = None
    if not isinstance(message, dict):  # by other hands; to leave it out would be to lose it
        raise InvalidMessage(f"the content of {row.id!r} in Postgres is not a JSON object")
    return message


def _data(row: MessageRow) -> bytes:
    return message_json(_message(row))


def _by_target(rows: list[LabelRow]) -> Mapping[str, str]:
    return {row.message_id: row.label for row in rows}
