"""The rows of one session as a whole: what its tables say, and what a tree would have them say.

A tree is the meaning of a log. `Rows.of` turns one into the rows that mean the same; `read` takes the
rows that are there; `store` makes the one into the other, touching only what differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from workspace_session.model.canonical import parse
from workspace_session.model.clock import fresh_id
from workspace_session.model.entries import Compaction, Message, Spent, message_of
from workspace_session.model.lines import message_json
from workspace_session.model.tree import Tree
from workspace_session.stores.postgres.database import Statements, time_text
from workspace_session.stores.postgres.paths import Paths
from workspace_session.stores.postgres.provider import FORGET_TIP, SET_TIP, UPDATE, UPHEAVAL
from workspace_session.stores.postgres.record import Record, store_facts, stored_facts
from workspace_session.stores.postgres.store import ADD_OVERLAY
from workspace_session.stores.postgres.texts import content_columns

_BATCH = 200

_MESSAGES = f"""
SELECT id, parent_id, {time_text("COALESCE(created_at, 'epoch')")}, content, seq
FROM assistant_messages WHERE session_id = %(session)s ORDER BY seq
"""
_OVERLAYS = f"""
SELECT COALESCE(overlay_id, id), {time_text("COALESCE(created_at, 'epoch')")},
  from_message_id, to_message_id, summary, retired
FROM assistant_compactions WHERE session_id = %(session)s ORDER BY seq
"""
_LABELS = f"""
SELECT message_id, label, {time_text("created_at")}
FROM assistant_labels WHERE session_id = %(session)s ORDER BY created_at, message_id
"""
_RECORD = f"""
SELECT parent_session_id, input_tokens, output_tokens, estimated_cost,
  {time_text("created_at")}, {time_text("updated_at")}
FROM assistant_sessions WHERE session_id = %(session)s
"""

_DELETE_FROM = "DELETE FROM assistant_messages WHERE session_id = %(session)s AND seq >= %(seq)s"
_INSERT = """
INSERT INTO assistant_messages
  (id, session_id, parent_id, role, content, text_content, search_text, created_at)
VALUES (%(id)s, %(session)s, %(parent)s, %(role)s, %(content)s, %(text_content)s,
  %(search_text)s, %(created)s::timestamptz)
"""
_SET_PARENT = """
UPDATE assistant_messages SET parent_id = %(parent)s
WHERE session_id = %(session)s AND id = %(id)s
"""
_DROP_OVERLAYS = "DELETE FROM assistant_compactions WHERE session_id = %(session)s"
_DROP_LABELS = "DELETE FROM assistant_labels WHERE session_id = %(session)s"
_ADD_LABEL = """
INSERT INTO assistant_labels (session_id, message_id, label, created_at)
VALUES (%(session)s, %(message)s, %(label)s, %(created)s::timestamptz)
"""
_SET_RECORD = """
INSERT INTO assistant_sessions (user_id, agent_id, id, session_id, parent_session_id, input_tokens,
  output_tokens, estimated_cost, message_count, created_at, updated_at)
VALUES (%(user)s, %(agent)s, %(id)s, %(session)s, %(parent)s, %(input_tokens)s, %(output_tokens)s,
  %(cost)s, %(count)s, %(created)s::timestamptz, %(updated)s::timestamptz)
ON CONFLICT (user_id, agent_id, id) DO UPDATE SET
  parent_session_id = EXCLUDED.parent_session_id, input_tokens = EXCLUDED.input_tokens,
  output_tokens = EXCLUDED.output_tokens, estimated_cost = EXCLUDED.estimated_cost,
  message_count = EXCLUDED.message_count,
  created_at = EXCLUDED.created_at,
  updated_at = greatest(assistant_sessions.updated_at, EXCLUDED.updated_at)
"""


class MessageRow(NamedTuple):
    """A message."""

    id: str
    parent_id: str | None
    created_at: str
    content: str

    @property
    def identity(self) -> tuple[str, str]:
        """A message that was deleted and said again under the same id is another one."""
        return (self.id, self.created_at)


class OverlayRow(NamedTuple):
    """An overlay; one that is retired applies no more."""

    id: str
    created_at: str
    from_id: str
    to_id: str
    summary: str
    retired: bool


class LabelRow(NamedTuple):
    """A bookmark."""

    message_id: str
    label: str
    created_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What the tables hold of a session."""

    messages: list[MessageRow] = field(default_factory=list)
    tip: str | None = None
    overlays: list[OverlayRow] = field(default_factory=list)
    labels: list[LabelRow] = field(default_factory=list)
    facts: Mapping[str, Any] = field(default_factory=dict)
    spent: Spent = field(default_factory=Spent)
    parent_session: str | None = None
    created_at: str | None = None
    updated_at: str | None = field(default=None, compare=False)  # None: there is no such session
    places: list[int] = field(default_factory=list, compare=False)  # `seq` of each message

    @classmethod
    def of(cls, tree: Tree) -> Rows:
        """The rows that mean what a tree means."""
        header = next(iter(tree.headers.values()), None)
        retired = {overlay.key for overlay in tree.retired}
        return cls(
            messages=[_message_row(tree, node) for node in _parents_first(tree)],
            tip=tree.tip,
            overlays=[_overlay_row(one, one.key in retired) for one in tree.compactions()],
            labels=sorted(
                (
                    LabelRow(one.target_id, (one.label or "").replace("\0", ""), one.timestamp)
                    for one in tree.label_entries()
                ),
                key=lambda row: (row.created_at, row.message_id),
            ),
            facts=tree.facts(),
            spent=tree.spent,
            parent_session=header.parent_session if header else None,
            created_at=tree.created_at,
            updated_at=tree.newest[0] or None,
        )

    @classmethod
    async def read(cls, run: Statements, record: Record) -> Rows:
        """The rows that are there."""
        values = {"session": record.key}
        found = await run.row(_RECORD, values)
        if found is None:
            return cls()
        parent, tokens_in, tokens_out, cost, created, updated = found
        messages = await run.rows(_MESSAGES, values)
        return cls(
            messages=[MessageRow(*row[:4]) for row in messages],
            places=[row[4] for row in messages],
            tip=await Paths(record.key).tip(run),
            overlays=[OverlayRow(*row) for row in await run.rows(_OVERLAYS, values)],
            labels=[LabelRow(*row) for row in await run.rows(_LABELS, values)],
            facts=await stored_facts(run, record.key) or {},
            spent=Spent(tokens_in, tokens_out, cost),
            parent_session=parent,
            created_at=created,
            updated_at=updated,
        )


def _parents_first(tree: Tree) -> list[Message]:
    """All messages in their order, save that none comes before its parent."""
    placed: dict[str, Message] = {}
    for node in tree.messages():
        waiting: list[Message] = []
        at: str | None = node.id
        while at is not None and at not in placed:
            found = tree.here(at)
            assert found is not None
            waiting.append(found)
            at = tree.parent(at)
        placed.update((one.id, one) for one in reversed(waiting))
    return list(placed.values())


def _message_row(tree: Tree, node: Message) -> MessageRow:
    message = node.message
    if node.revision is not None:  # no update changes the time of creation
        created = message_of(node.line).get("createdAt", node.timestamp)
        if message.get("createdAt", node.timestamp) != created:
            message["createdAt"] = created
    content = message_json(message).decode()
    return MessageRow(node.id, tree.parent(node.id), node.timestamp, content)


def _overlay_row(one: Compaction, retired: bool) -> OverlayRow:
    summary = one.summary.replace("\0", "")  # which its line still has
    return OverlayRow(one.id, one.timestamp, one.from_id, one.to_id, summary, retired)


# -- storing ---------------------------------------------------------------------------------------


async def store(run: Statements, record: Record, old: Rows, new: Rows) -> None:
    """Make the rows that are there into others."""
    values = {"session": record.key}
    await _store_messages(run, record.key, old, new.messages)
    if new.messages and new.tip == new.messages[-1].id:
        await run.run(FORGET_TIP, values)
    else:
        await run.run(SET_TIP, {**values, "message": new.tip or ""})
    if old.overlays != new.overlays:
        await run.run(_DROP_OVERLAYS, values)
        await run.many(ADD_OVERLAY, [_overlay_values(record.key, row) for row in new.overlays])
    if old.labels != new.labels:
        await run.run(_DROP_LABELS, values)
        labels = [{**values, "label": row.label} for row in new.labels]
        places = [{"message": row.message_id, "created": row.created_at} for row in new.labels]
        await run.many(_ADD_LABEL, [a | b for a, b in zip(labels, places, strict=True)])
    facts = {"parent": new.parent_session, "count": len(new.messages)}
    times = {"created": new.created_at, "updated": new.updated_at}
    await run.run(_SET_RECORD, {**record.values, **new.spent._asdict(), **facts, **times})
    await store_facts(run, record.key, dict(new.facts))
    await run.run(UPHEAVAL, values)


async def _store_messages(run: Statements, session: str, old: Rows, new: list[MessageRow]) -> None:
    """What both begin with stays where it is; from where they part, all is written anew."""
    same = 0
    for was, is_now in zip(old.messages, new, strict=False):
        if was.identity != is_now.identity:
            break
        same += 1
        if was != is_now:
            await _change(run, session, was, is_now)
    if same < len(old.messages):
        await run.run(_DELETE_FROM, {"session": session, "seq": old.places[same]})
    for start in range(same, len(new), _BATCH):
        batch = new[start : start + _BATCH]
        await run.many(_INSERT, [_message_values(session, row) for row in batch])
    paths = Paths(session)
    await paths.changed_from(run, 0)
    await paths.mark(run, ((row.id, row.parent_id, len(row.content.encode())) for row in new))


async def _change(run: Statements, session: str, was: MessageRow, is_now: MessageRow) -> None:
    if was.content != is_now.content:
        await run.run(UPDATE, _message_values(session, is_now))
    if was.parent_id != is_now.parent_id:
        values = {"session": session, "id": is_now.id, "parent": is_now.parent_id}
        await run.run(_SET_PARENT, values)


def _message_values(session: str, row: MessageRow) -> dict[str, Any]:
    data = row.content.encode()
    columns = content_columns(parse(data), data)
    place = {"id": row.id, "session": session, "parent": row.parent_id}
    return {**place, **columns, "created": row.created_at}


def _overlay_values(session: str, row: OverlayRow) -> dict[str, Any]:
    ids = {"id": fresh_id(), "overlay": row.id, "session": session}
    ends = {"from": row.from_id, "to": row.to_id, "summary": row.summary}
    return {**ids, **ends, "created": row.created_at, "retired": row.retired}
