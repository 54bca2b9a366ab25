"""The rows on a PostgreSQL server, next to the openai-agents `SQLAlchemySession` on the same one.

What is to be seen: that an append and the recent end of a history cost the same however long the
session is. The peer keeps a list of items without branches, summaries or an index of the words, so
what it does on each append is less.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any
from uuid import uuid4

from benchmarks.postgres_stage import Database, messages
from benchmarks.rows import Play, Sides, row
from benchmarks.stage import Stage
from benchmarks.timing import Side

_RECENT_BYTES, _RECENT_ITEMS = 20_000, 20
_AT_LEAST = 0.1  # it is to be seen, not to be won: what is required is in the last two rows
_LENGTHS = ("brief", "middle", "long")  # of the scale


def _said_next() -> Iterator[dict[str, Any]]:
    """Messages under ids that no session has yet."""
    run = uuid4().hex
    return ({**message, "id": f"{run}-{message['id']}"} for message in messages())


def _appends(database: Database, count: int, calls: int) -> Side:
    session, said = database.ours(count), _said_next()
    return lambda: database.per_call(session.append_message, islice(said, calls))


def _recents(database: Database, count: int, calls: int) -> Side:
    session = database.ours(count)
    return lambda: database.per_call(
        lambda _: session.get_recent_history(_RECENT_BYTES), range(calls)
    )


def _append(length: str) -> Play:
    def play(stage: Stage) -> Sides:
        database, count = stage.postgres(), getattr(stage.scale, length)
        calls = max(stage.scale.calls // 10, 5)  # few: they make the session longer
        peer, said = database.theirs(count), _said_next()
        return Sides(
            ours=_appends(database, count, calls),
            theirs=lambda: database.per_call(
                lambda one: peer.add_items([one]), islice(said, calls)
            ),
        )

    return play


def _history(length: str) -> Play:
    def play(stage: Stage) -> Sides:
        database, count = stage.postgres(), getattr(stage.scale, length)
        session, peer = database.ours(count), database.theirs(count)
        return Sides(
            ours=lambda: database.per_call(lambda _: session.get_history(), range(1)),
            theirs=lambda: database.per_call(lambda _: peer.get_items(), range(1)),
        )

    return play


def _recent(length: str) -> Play:
    def play(stage: Stage) -> Sides:
        database, count = stage.postgres(), getattr(stage.scale, length)
        calls = max(stage.scale.calls // 5, 5)
        peer = database.theirs(count)
        return Sides(
            ours=_recents(database, count, calls),
            theirs=lambda: database.per_call(lambda _: peer.get_items(_RECENT_ITEMS), range(calls)),
        )

    return play


for _length in _LENGTHS:
    _of = f"{{{_length}}} messages"
    for _name, _work, _peers, _play in (
        ("append", "append_message", "add_items", _append),
        ("history", "get_history", "get_items", _history),
        ("recent", "the last 20 kB", "get_items(20)", _recent),
    ):
        _row = row(
            f"pg-{_name}-{_length}",
            f"Postgres: {_work}, {_of}",
            f"SQLAlchemySession.{_peers}",
            at_least=_AT_LEAST,
            rounds=5,
        )
        _row(_play(_length))


@row("pg-append-flat", "Postgres: append, {long} messages", "append, {brief} messages", within=1.5)
def append_flat(stage: Stage) -> Sides:
    database, calls = stage.postgres(), max(stage.scale.calls // 10, 5)
    return Sides(
        _appends(database, stage.scale.long, calls), _appends(database, stage.scale.brief, calls)
    )


@row("pg-recent-flat", "Postgres: last 20 kB, {long} messages", "{middle} messages", within=1.5)
def recent_flat(stage: Stage) -> Sides:
    database, calls = stage.postgres(), max(stage.scale.calls // 5, 5)
    return Sides(
        _recents(database, stage.scale.long, calls), _recents(database, stage.scale.middle, calls)
    )
