"""A session of 100,000 messages in a row is ordinary: nothing recurses along it.

What is long is made through the tree, in batches; what is done to it is done through `Session`.
"""

from __future__ import annotations

import sys

import pytest
from session_contract.talk import Heard, fill, names, on_a_loop, says

from workspace_session import (
    CompactResult,
    MemoryStore,
    Session,
    SessionManager,
    Workspace,
    estimate_message_tokens,
)

LONG = 100_000
BATCH = 10_000


@pytest.fixture(params=[10_000, pytest.param(LONG, marks=pytest.mark.soak)])
def many(request):
    return request.param


@pytest.fixture(autouse=True)
def shallow_stack():
    """A stack that is soon full, for whatever would recurse."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    yield
    sys.setrecursionlimit(before)


@pytest.fixture(params=["files", "memory"])
def store(request, tmp_path):
    if request.param == "memory":
        return MemoryStore()
    return Workspace(tmp_path, durability="os").agent("a")


def lengthen(store, count):
    """A session `s` of m0, m1, … in a row."""
    tree = store.tree("s")
    for start in range(0, count, BATCH):
        tree.extend([says(f"m{number}") for number in range(start, min(start + BATCH, count))])


@on_a_loop
async def test_a_long_session_is_read_from_every_side(store, many):
    lengthen(store, many)
    session = Session(store, session_id="s")

    history = await session.get_history()
    rows = await session.get_history_row_stats()
    recent = await session.get_recent_history(1000)

    assert [message["id"] for message in history] == [f"m{number}" for number in range(many)]
    assert len(rows) == await session.get_path_length() == many
    assert recent.total_content_bytes == sum(row.bytes for row in rows)
    assert names(await session.get_branches("m500")) == ["m501"]
    assert (await session.get_latest_leaf())["id"] == f"m{many - 1}"


@on_a_loop
async def test_a_long_session_is_appended_to_branched_and_moved_about(store, many):
    lengthen(store, many)
    session = Session(store, session_id="s")
    heard = Heard(session)

    await session.append_message(says("end"))
    await session.append_message(says("branch"), "m5000")
    await session.set_leaf("m10")
    await session.append_message(says("early"))

    assert [data["parent_id"] for data in heard.of("append")] == [f"m{many - 1}", "m5000", "m10"]
    assert await session.get_path_length("end") == many + 1
    assert await session.get_path_length("branch") == 5_002
    history = await session.get_history()
    assert heard.of("status")[-1]["token_estimate"] == estimate_message_tokens(history)


@on_a_loop
async def test_a_long_session_is_compacted_and_goes_on(store, many):
    lengthen(store, many)
    seen = []

    def function(messages):
        seen.append(len(messages))
        return CompactResult("sum", messages[1]["id"], messages[-10]["id"])

    session = Session(store, session_id="s", on_compaction=function, compact_after=1000)
    await session.append_message(says("end"))

    assert seen == [many + 1]
    assert len(await session.get_history()) == 11
    assert await session.get_path_length() == many + 1
    await fill(session, 3, many)
    assert len(await Session(store, session_id="s").get_history()) == 14


@on_a_loop
async def test_a_long_session_is_forked(store, many):
    lengthen(store, many)
    manager = SessionManager.create(store)
    await manager.add_compaction("s", "sum", "m1", f"m{many - 500}")
    at = f"m{many - 100}"

    child = await manager.fork("s", at, "Fork")

    assert await manager.get_message_count(child.id) == many - 99
    assert await manager.get_history(child.id) == await manager.get_history("s", at)


@on_a_loop
async def test_most_of_a_long_session_is_deleted(store, many):
    lengthen(store, many)
    session = Session(store, session_id="s")

    removed = await session.delete_messages([f"m{number}" for number in range(1, many - 1)])

    assert len(removed) == many - 2
    assert names(await session.get_history()) == ["m0", f"m{many - 1}"]
    await session.clear_messages()
    assert await session.get_history() == []


@on_a_loop
async def test_a_long_session_is_thrown_away(store, many):
    lengthen(store, many)
    manager = SessionManager.create(store)
    session = await manager.get_session("s")
    assert await session.get_path_length() == many

    await manager.delete("s")

    assert await manager.list() == []
    assert await (await manager.get_session("s")).get_history() == []


@on_a_loop
async def test_a_long_session_can_be_made_one_message_at_a_time(store, many):
    session = Session(store, session_id="s", on_compaction=print, compact_after=10**9)

    await fill(session, many)

    assert await session.get_path_length() == many
    assert len(await Session(store, session_id="s").get_history()) == many


@on_a_loop
async def test_a_hundred_thousand_messages_are_ordinary(tmp_path):
    store = Workspace(tmp_path, durability="os").agent("a")
    lengthen(store, LONG)
    manager = SessionManager.create(store)
    session = await manager.get_session("s")

    assert len(await session.get_history()) == LONG
    await session.append_message(says("end"))
    child = await manager.fork("s", "m90000", "Fork")
    await session.add_compaction("sum", "m0", f"m{LONG - 1}")
    await session.delete_messages(["m5", "m50000"])

    assert names(await session.get_history()) == ["S(sum)", "end"]
    assert await session.get_path_length() == LONG - 1
    assert await manager.get_message_count(child.id) == 90_001
    await manager.delete("s")
    assert [info.id for info in await manager.list()] == [child.id]


# -- what an append costs --------------------------------------------------------------------------


async def calls_of_an_append(store, count):
    """How many functions are called for an append that is estimated, to a session of that length."""
    lengthen(store, count)
    session = Session(store, session_id="s")
    Heard(session)
    await session.append_message(says("first"))  # which reads the session
    calls = []
    sys.setprofile(lambda frame, event, argument: calls.append(event) if event == "call" else None)
    try:
        await session.append_message(says("second"))
    finally:
        sys.setprofile(None)
    return len(calls)


@on_a_loop
async def test_an_append_costs_the_same_whatever_went_before():
    few = await calls_of_an_append(MemoryStore(), 10)
    many = await calls_of_an_append(MemoryStore(), 10_000)

    assert many < few + 50
