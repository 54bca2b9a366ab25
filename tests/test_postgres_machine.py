"""A session in Postgres and one in memory that are used in the same way are the same, always."""

from __future__ import annotations

import asyncio
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from session_contract.talk import names, says

from workspace_session import MemoryStore, PostgresStore, Session, WorkspaceError
from workspace_session.stores.postgres import paths

IDS = [f"m{number}" for number in range(9)]
ids = st.sampled_from(IDS)
texts = st.sampled_from(["tea", "deployed the cake", "用户喜欢咖啡", "x" * 300, "naïve café"])
steps = st.one_of(
    st.tuples(st.just("append"), ids, texts),
    st.tuples(st.just("append"), ids, texts),
    st.tuples(st.just("append under"), ids, texts, st.none() | ids),
    st.tuples(st.just("update"), ids, texts),
    st.tuples(st.just("delete"), st.lists(ids, max_size=4)),
    st.tuples(st.just("leaf"), ids),
    st.tuples(st.just("overlay"), ids, ids),
    st.tuples(st.just("clear")),
)


async def play(session, step):
    """Do a step; returns what came of it, as far as it is the same everywhere."""
    kind, *given_values = step
    try:
        match kind:
            case "append":
                result = await session.append_message(says(given_values[0], given_values[1]))
                return result.inserted
            case "append under":
                message = says(given_values[0], given_values[1])
                result = await session.append_message(message, given_values[2])
                return result.inserted
            case "update":
                updated = await session.update_message(says(*given_values))
                return updated and updated["parts"]
            case "delete":
                return await session.delete_messages(given_values[0])
            case "leaf":
                return (await session.set_leaf(given_values[0]))["id"]
            case "overlay":
                overlay = await session.add_compaction("sum", *given_values)
                return (overlay.from_message_id, overlay.to_message_id)
            case "clear":
                return await session.clear_messages()
    except WorkspaceError as error:
        return type(error)


async def view(session):
    """All that can be asked of a session, without ids and times that differ."""
    leaf = await session.get_latest_leaf()
    recent = [await session.get_recent_history(budget, 2) for budget in (0, 400, 10**6)]
    return {
        "tip": leaf and leaf["id"],
        "history": [names(await session.get_history(one)) for one in (None, *IDS)],
        "children": [names(await session.get_branches(one)) for one in (None, *IDS)],
        "lengths": [await session.get_path_length(one) for one in (None, *IDS)],
        "rows": [(row.id, row.role) for row in await session.get_history_row_stats()],
        "recent": [(names(one.messages), one.truncated) for one in recent],
        "overlays": [(o.from_id, o.to_id) for o in await session.get_compactions()],
        "found": {hit.message_id for hit in await session.search("deploys")},
        "phrase": {hit.message_id for hit in await session.search('"deploy the"')},
        "unspaced": {hit.message_id for hit in await session.search("喜欢")},
    }


async def check_sums(session):
    """What milestones say is what is there."""
    sizes = sum(row.bytes for row in await session.get_history_row_stats())
    assert (await session.get_recent_history(0)).total_content_bytes == sizes


@pytest.fixture
def many_milestones(monkeypatch):
    """One at every second message or so, not at every sixty-fourth."""
    monkeypatch.setattr(paths, "_EVERY", 2)


@given(st.lists(steps, max_size=25))
@settings(max_examples=25)
def test_a_session_in_postgres_is_what_it_is_in_memory(many_milestones, connection, play_steps):
    async def compare():
        store = PostgresStore(connection, uuid.uuid4().hex)
        mine = Session(store, session_id="s")
        theirs = Session(MemoryStore(), session_id="s")
        for step in play_steps:
            assert await play(mine, step) == await play(theirs, step), step
        assert await view(mine) == await view(theirs)
        await check_sums(mine)
        info = await store.info("s")
        everything = [message async for message in mine._provider.iter_messages()]
        assert (info.message_count if info else 0) == len(everything)

    asyncio.run(compare())
