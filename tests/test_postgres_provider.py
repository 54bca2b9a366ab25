"""What providers and stores on Postgres promise beside the contract of all stores."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest
from postgres_server import connect
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool
from session_contract.talk import compacting, fill, m, on_a_loop, says, shown, until

import workspace_session
from workspace_session import (
    CompactResult,
    InvalidCompaction,
    InvalidId,
    InvalidMessage,
    PostgresContextProvider,
    PostgresSearchProvider,
    PostgresSessionProvider,
    PostgresStore,
    Session,
    SessionDeleted,
    SessionManager,
    UnknownMessage,
    UnknownParent,
    check_provider,
)
from workspace_session.stores.postgres import flight

INJECTIONS = [
    "'; DROP TABLE assistant_messages; --",
    'x" OR "1"="1',
    "%s %(session)s %%",
    "\\'; SELECT pg_sleep(9); --",
    "$$; DELETE FROM assistant_sessions; $$",
    "m0' UNION SELECT content FROM assistant_messages --",
]


@asynccontextmanager
async def pooled(dsn, size=5, **settings):
    async with AsyncConnectionPool(dsn, min_size=1, max_size=size, open=False, **settings) as pool:
        yield pool


async def count(dsn, sql, *values):
    async with await connect(dsn) as connection:
        return (await (await connection.execute(sql, values)).fetchone())[0]


# -- the rules of providers ------------------------------------------------------------------------


@on_a_loop
async def test_a_provider_keeps_the_rules_of_providers(connection, fresh_name):
    numbers = iter(range(1000))

    await check_provider(
        lambda: PostgresSessionProvider(connection, f"{fresh_name}-{next(numbers)}")
    )


@on_a_loop
async def test_a_session_on_a_provider_needs_no_registry(connection, fresh_name):
    provider = PostgresSessionProvider(connection, fresh_name)
    session = Session(provider, on_compaction=compacting("m0", "m2"))
    await fill(session, 5)

    await session.compact()

    assert session.id == fresh_name
    assert await shown(Session(provider)) == ["S(sum)", "m3", "m4"]
    assert [hit.message_id for hit in await session.search("hello", 2)] == ["m4", "m3"]
    (hit, *_) = await session.search("hello", 1)
    assert (hit.session_id, hit.agent_id) == (fresh_name, None)


@on_a_loop
async def test_the_default_session_of_a_provider_has_no_name(connection):
    provider = PostgresSessionProvider(connection)
    try:
        await provider.append_message(says("only"))

        assert (provider.session_id, (await provider.get_latest_leaf())["id"]) == ("", "only")
    finally:
        await provider.clear_messages()


@pytest.mark.parametrize(
    "source", [None, "postgresql://localhost", psycopg.Connection, object(), asyncio]
)
def test_what_is_no_asynchronous_connection_is_refused(source):
    with pytest.raises(TypeError, match="AsyncConnection"):
        PostgresSessionProvider(source, "s")


def test_a_synchronous_connection_is_refused(dsn):
    with psycopg.connect(dsn) as connection, pytest.raises(TypeError, match="AsyncConnection"):
        PostgresStore(connection, "a")


# -- many at once ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["connection", "pool"])
@on_a_loop
async def test_fifty_tasks_that_append_to_one_session_form_one_chain(dsn, fresh_name, kind):
    async with pooled(dsn) as pool, await connect(dsn) as connection:
        store = PostgresStore(pool if kind == "pool" else connection, fresh_name)
        sessions = [Session(store, session_id="s") for _ in range(50)]

        await asyncio.gather(*(one.append_message(says(f"m{n}")) for n, one in enumerate(sessions)))

        assert sorted(await shown(sessions[0])) == sorted(m(0, 49))
        assert len(await sessions[0].get_branches(None)) == 1
        assert (await store.info("s")).message_count == 50


@on_a_loop
async def test_two_hundred_sessions_share_a_pool_of_five(dsn, fresh_name):
    async with pooled(dsn) as pool:
        manager = SessionManager.create(PostgresStore(pool, fresh_name)).with_context("memory")

        async def talk(number):
            session = await manager.get_session(f"s{number}")
            await fill(session, 3)
            await session.append_context_block("memory", f"fact {number}")
            return await shown(session)

        paths = await asyncio.gather(*(talk(number) for number in range(200)))

        assert paths == [m(0, 2)] * 200
        infos = await manager.list()
        assert len(infos) == 200
        assert len({info.updated_at for info in infos}) > 190  # a touch is later than all others
        assert pool.get_stats()["pool_size"] <= 5


PROCESS = """
import asyncio, sys
from psycopg import AsyncConnection
from workspace_session import PostgresStore, Session

async def main(dsn, agent, start):
    async with await AsyncConnection.connect(dsn) as connection:
        session = Session(PostgresStore(connection, agent), session_id="s")
        for number in range(int(start), int(start) + 25):
            part = {"type": "text", "text": "hi"}
            await session.append_message({"id": f"m{number}", "role": "user", "parts": [part]})

asyncio.run(main(*sys.argv[1:]))
"""


def test_two_processes_that_append_form_one_chain(dsn, connection, fresh_name):
    processes = [
        subprocess.Popen([sys.executable, "-c", PROCESS, dsn, fresh_name, str(start)])
        for start in (0, 25)
    ]
    assert [process.wait(60) for process in processes] == [0, 0]

    session = Session(PostgresStore(connection, fresh_name), session_id="s")
    assert sorted(asyncio.run(shown(session))) == sorted(m(0, 49))


# -- transactions ----------------------------------------------------------------------------------


@on_a_loop
async def test_an_open_transaction_is_joined_and_rolled_back_as_a_whole(dsn, fresh_name):
    async with await connect(dsn) as connection, await connect(dsn) as other:
        store = PostgresStore(connection, fresh_name)
        session = Session(store, session_id="s", context=[{"label": "memory"}])
        elsewhere = Session(PostgresStore(other, fresh_name), session_id="s")
        async with connection.transaction() as transaction:
            await fill(session, 3)
            await session.replace_context_block("memory", "tea")
            await session.add_compaction("sum", "m0", "m1")
            assert await shown(session) == ["S(sum)", "m2"]
            assert await shown(elsewhere) == []
            raise psycopg.Rollback(transaction)

        assert await shown(session) == []
        assert await store.list() == []
        await session.append_message(says("after"))
        assert await shown(elsewhere) == ["after"]


@on_a_loop
async def test_what_fails_in_an_open_transaction_leaves_the_rest_of_it(dsn, fresh_name):
    async with await connect(dsn) as connection:
        session = Session(PostgresStore(connection, fresh_name), session_id="s")
        async with connection.transaction():
            await session.append_message(says("m0"))
            with pytest.raises(UnknownParent):
                await session.append_message(says("m1"), "nobody")
            await session.append_message(says("m2"))

        assert await shown(session) == ["m0", "m2"]


@pytest.mark.parametrize("autocommit", [True, False])
@on_a_loop
async def test_no_operation_leaves_a_transaction_behind(dsn, fresh_name, autocommit):
    idle = psycopg.pq.TransactionStatus.IDLE
    async with await connect(dsn, autocommit=autocommit) as connection:
        session = Session(PostgresStore(connection, fresh_name), session_id="s")
        for operation in (
            session.append_message(says("m0")),
            session.get_history(),
            session.search("hello"),
            session.get_recent_history(10),
            session.delete_messages(["m0"]),
        ):
            await operation
            assert connection.info.transaction_status == idle


@on_a_loop
async def test_the_connection_of_a_caller_with_own_tastes_serves_as_well(dsn, fresh_name):
    async with await connect(dsn, row_factory=dict_row) as connection:
        connection.cursor_factory = psycopg.AsyncRawCursor
        connection.prepare_threshold = 0
        await connection.execute("SET TIME ZONE 'Asia/Kathmandu'")
        await connection.commit()
        store = PostgresStore(connection, fresh_name)
        session = await fill(Session(store, session_id="s"), 3)

        assert await shown(session) == m(0, 2)
        assert (await store.info("s")).created_at.endswith("Z")
        (hit, *_) = await session.search("hello")
        assert hit.created_at == (await session.get_message(hit.message_id))["createdAt"]
        row = await (await connection.execute("SELECT 1 AS one")).fetchone()
        assert row == {"one": 1}


@on_a_loop
async def test_a_connection_that_is_killed_leaves_nothing_half_done(dsn, fresh_name):
    async with pooled(dsn, 2) as pool, await connect(dsn, autocommit=True) as killer:
        store = PostgresStore(pool, fresh_name)
        session = await fill(Session(store, session_id="s"), 3)
        lock = "SELECT pg_advisory_lock(hashtextextended('workspace_session:' || %s, 0))"
        await killer.execute(lock, [store.record("s").key])
        append = asyncio.create_task(session.append_message(says("lost")))
        waiting = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        while not (row := await (await killer.execute(waiting)).fetchone()):
            await asyncio.sleep(0.01)

        await killer.execute("SELECT pg_terminate_backend(%s)", row)

        with pytest.raises(psycopg.OperationalError):
            await append
        await killer.execute("SELECT pg_advisory_unlock_all()")
        await session.append_message(says("m3"))
        assert await shown(session) == m(0, 3)


@on_a_loop
async def test_a_connection_that_is_killed_after_the_insert_leaves_nothing(dsn, fresh_name):
    async with await connect(dsn) as connection, await connect(dsn, autocommit=True) as killer:
        store = PostgresStore(connection, fresh_name)
        session = await fill(Session(store, session_id="s"), 1)
        lost = connection.transaction()
        await lost.__aenter__()
        await session.append_message(says("lost"))
        pid = connection.info.backend_pid
        await killer.execute("SELECT pg_terminate_backend(%s)", [pid])

        with pytest.raises(psycopg.OperationalError):
            await session.append_message(says("lost too"))

        fresh = Session(PostgresStore(killer, fresh_name), session_id="s")
        assert await shown(fresh) == ["m0"]
        await fresh.append_message(says("m1"))
        assert (await PostgresStore(killer, fresh_name).info("s")).message_count == 2


@on_a_loop
async def test_appends_that_are_cancelled_anywhere_are_whole_or_not_there(dsn, fresh_name):
    async with await connect(dsn) as connection:
        session = Session(PostgresStore(connection, fresh_name), session_id="s")
        for number in range(25):
            task = asyncio.create_task(session.append_message(says(f"m{number}")))
            await asyncio.sleep(number * 0.0002)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE

        path = await shown(session)
        await session.append_message(says("after"))
        assert await shown(session) == [*path, "after"]
        store = PostgresStore(connection, fresh_name)
        assert (await store.info("s")).message_count == len(path) + 1


@on_a_loop
async def test_an_append_that_waits_for_the_lock_can_be_cancelled(dsn, fresh_name):
    async with await connect(dsn) as first, await connect(dsn) as second:
        mine = Session(PostgresStore(first, fresh_name), session_id="s")
        theirs = Session(PostgresStore(second, fresh_name), session_id="s")
        async with first.transaction():
            await mine.append_message(says("m0"))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(theirs.append_message(says("late")), 0.1)
        await theirs.append_message(says("m1"))

        assert await shown(mine) == ["m0", "m1"]


# -- compacting ------------------------------------------------------------------------------------


@on_a_loop
async def test_one_process_at_a_time_compacts_a_session(dsn, fresh_name):
    async with pooled(dsn, 1) as mine, pooled(dsn, 1) as theirs:
        go_on, calls = asyncio.Event(), []

        async def slowly(messages):
            calls.append(1)
            await go_on.wait()
            return CompactResult("sum", "m0", "m1")

        session = Session(PostgresStore(mine, fresh_name), session_id="s", on_compaction=slowly)
        other = Session(PostgresStore(theirs, fresh_name), session_id="s")
        other.on_compaction(compacting("m2", "m2", "theirs"))
        await fill(session, 4)
        running = asyncio.create_task(session.compact())
        await until(lambda: calls)

        assert mine.get_stats()["pool_available"] == 1  # none is held while the function runs
        assert await other.compact() is None
        go_on.set()
        assert await running == CompactResult("sum", "m0", "m1")
        assert await other.compact() == CompactResult("theirs", "m0", "m2")


@on_a_loop
async def test_a_compaction_that_died_is_forgotten(dsn, fresh_name, monkeypatch):
    monkeypatch.setattr(flight, "RENEWED", 0.3)
    async with pooled(dsn, 2) as pool, pooled(dsn, 2) as others:
        store = PostgresStore(pool, fresh_name)
        await fill(Session(store, session_id="s"), 3)
        key = store.record("s").key
        assert await flight._take_off(store.database, key, "who died")
        other = Session(PostgresStore(others, fresh_name), session_id="s")
        other.on_compaction(compacting("m0", "m1"))

        assert await other.compact() is None
        await asyncio.sleep(0.35)
        assert await other.compact() == CompactResult("sum", "m0", "m1")


@on_a_loop
async def test_a_compaction_that_takes_long_is_still_believed(dsn, fresh_name, monkeypatch):
    monkeypatch.setattr(flight, "RENEWED", 0.3)
    async with pooled(dsn, 2) as pool:
        store = PostgresStore(pool, fresh_name)
        key = store.record("s").key
        async with flight.flying(store.database, key) as alone:
            await asyncio.sleep(0.8)

            async with flight.flying(store.database, key) as again:
                assert (alone, again) == (True, False)


# -- deleting --------------------------------------------------------------------------------------


@pytest.mark.parametrize("again", [False, True])
@on_a_loop
async def test_a_handle_elsewhere_knows_that_its_session_was_deleted(dsn, fresh_name, again):
    async with await connect(dsn) as first, await connect(dsn) as second:
        handle = Session(PostgresStore(first, fresh_name), session_id="s")
        await handle.append_message(says("m0"))  # which made the session

        store = PostgresStore(second, fresh_name)
        await store.delete("s")
        if again:
            await Session(store, session_id="s").append_message(says("new"))

        for use in (
            handle.get_history(),
            handle.append_message(says("m1")),
            handle.search("hello"),
            handle.get_recent_history(9),
        ):
            with pytest.raises(SessionDeleted, match="'s'"):
                await use
        assert [info.id for info in await store.list()] == (["s"] if again else [])


@on_a_loop
async def test_a_session_that_is_just_being_made_is_no_deleted_one(dsn, fresh_name):
    async with pooled(dsn) as pool:
        store = PostgresStore(pool, fresh_name)
        for number in range(20):
            session = Session(store, session_id=f"s{number}")
            reads = [session.get_history() for _ in range(6)]
            await asyncio.gather(*reads[:3], session.append_message(says("m0")), *reads[3:])

            assert await shown(session) == ["m0"]


@on_a_loop
async def test_nothing_of_a_deleted_session_is_left_in_any_table(dsn, connection, fresh_name):
    store = PostgresStore(connection, fresh_name)
    session = Session(store, session_id="s", context=[{"label": "memory"}])
    session.with_cached_prompt().on_compaction(compacting("m0", "m1"))
    await fill(session, 200)  # some of which set milestones
    await session.replace_context_block("memory", "tea")
    await session.compact()
    await session.set_leaf("m3")

    await store.delete("s")

    for table, column in (
        ("assistant_messages", "session_id"),
        ("assistant_compactions", "session_id"),
        ("assistant_leaves", "session_id"),
        ("assistant_milestones", "session_id"),
        ("assistant_upheavals", "session_id"),
        ("assistant_sessions", "session_id"),
        ("assistant_flights", "session_id"),
        ("cf_agents_context_blocks", "label"),
    ):
        sql = f"SELECT count(*) FROM {table} WHERE strpos({column}, %s) > 0"
        assert (table, await count(dsn, sql, fresh_name)) == (table, 0)


# -- tenants ---------------------------------------------------------------------------------------


@on_a_loop
async def test_nothing_of_one_tenant_is_reachable_from_another(connection, fresh_name):
    stores = [
        PostgresStore(connection, agent, user_id=user)
        for agent, user in (
            (fresh_name, None),
            (fresh_name, "u"),
            (fresh_name, "v"),
            (f"{fresh_name}b", "u"),
        )
    ]
    for number, store in enumerate(stores):
        session = Session(store, session_id="s", context=[{"label": "memory"}])
        await session.append_message(says(f"m{number}", f"secret of {number}"))
        await session.replace_context_block("memory", f"memory of {number}")

    for number, store in enumerate(stores):
        session = Session(store, session_id="s", context=[{"label": "memory"}])
        assert await shown(session) == [f"m{number}"]
        assert (await session.get_context_block("memory")).content == f"memory of {number}"
        hits = await SessionManager.create(store).search("secret")
        assert [(hit.message_id, hit.user_id) for hit in hits] == [(f"m{number}", store.user_id)]
        assert [info.id for info in await store.list()] == ["s"]
    await stores[1].delete("s")
    assert [len(await store.list()) for store in stores] == [1, 0, 1, 1]


@pytest.mark.parametrize(("agent", "user"), [("", None), ("a\0b", None), ("a", ""), ("a", "x\0y")])
def test_tenants_have_proper_names(connection, agent, user):
    with pytest.raises(InvalidId):
        PostgresStore(connection, agent, user_id=user)


# -- strange texts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("text", INJECTIONS)
@on_a_loop
async def test_no_text_is_taken_for_a_statement(dsn, connection, fresh_name, text):
    others = Session(PostgresStore(connection, f"{fresh_name}-other"), session_id="s")
    await fill(others, 2)
    store = PostgresStore(connection, f"{fresh_name}{text}", user_id=text)
    manager = SessionManager.create(store).with_context(text)
    session = await manager.get_session(text)

    await session.append_message(says(text, text, role=text))
    await session.append_message(says("m1", text), text)
    await session.replace_context_block(text, text)
    await session.add_compaction(text, text, "m1")
    await manager.rename(text, text)
    child = await manager.fork(text, text, text)

    assert [one["parts"][0]["text"] for one in await session.get_history()] == [text]
    assert (await session.get_message(text))["role"] == text
    assert (await session.get_context_block(text)).content == text
    assert (await manager.get(text)).name == child.name == text
    assert len(await session.get_branches(text)) == 1
    assert {hit.message_id for hit in await session.search(text)} == {text, "m1"}
    assert await session.delete_messages([text]) == [text]
    for unknown in (session.get_message(text + "?"), session.get_history(text + "?")):
        assert not await unknown
    entries = PostgresSearchProvider(connection)
    entries.init(f"{fresh_name}{text}")
    await entries.set(text, text)
    assert await entries.search(text) == f"[{text}]\n{text}"
    block = PostgresContextProvider(connection, f"{fresh_name}{text}")
    await block.set(text)
    assert await block.get() == text
    assert await shown(others) == m(0, 1)


@on_a_loop
async def test_nul_is_stored_in_what_is_said_and_refused_elsewhere(connection, fresh_name):
    store = PostgresStore(connection, fresh_name)
    session = Session(store, session_id="s", context=[{"label": "memory"}])
    message = says("m0", "before\0after tea", role="u\0ser")
    await session.append_message(message)
    await session.append_message(says("m1"))

    assert (await session.get_message("m0"))["parts"] == message["parts"]
    assert (await session.get_message("m0"))["role"] == "u\0ser"
    assert [hit.message_id for hit in await session.search("tea")] == ["m0"]
    for refused, error, name in (
        (session.append_message(says("a\0b")), InvalidMessage, "contains NUL"),
        (session.append_message(says("x"), "m\0"), UnknownParent, "m"),
        (session.set_leaf("m\0"), UnknownMessage, "m"),
        (session.add_compaction("s\0", "m0", "m1"), InvalidCompaction, "contains NUL"),
        (session.add_compaction("s", "m\0", "m1"), InvalidCompaction, "stretch"),
        (session.replace_context_block("memory", "a\0b"), ValueError, "contains NUL"),
        (PostgresSearchProvider(connection).set("k", "a\0"), ValueError, "contains NUL"),
        (PostgresSearchProvider(connection).set("k\0", "a"), InvalidId, "contains NUL"),
    ):
        with pytest.raises(error, match=name):
            await refused
    for nothing in (
        session.get_message("a\0b"),
        session.get_history("a\0b"),
        session.get_branches("a\0b"),
        session.get_path_length("a\0b"),
        session.delete_messages(["a\0b"]),
        session.search("\0"),
    ):
        assert not await nothing
    with pytest.raises(InvalidId):
        PostgresSessionProvider(connection, "a\0b")
    assert await shown(session) == ["m0", "m1"]


@on_a_loop
async def test_ids_that_no_index_can_take_are_refused(connection, fresh_name):
    session = Session(PostgresStore(connection, fresh_name), session_id="s")

    with pytest.raises(InvalidMessage, match="too long"):
        await session.append_message(says("x" * 801))

    await session.append_message(says("é" * 400))
    await session.append_message(says("y" * 800), "é" * 400)
    assert await session.get_path_length() == 2


@on_a_loop
async def test_a_message_of_ten_megabytes_is_stored_whole(connection, fresh_name):
    session = Session(PostgresStore(connection, fresh_name), session_id="s")
    text = "first " + "0123456789é" * 900_000

    await session.append_message(says("m0", text))

    assert (await session.get_history())[0]["parts"][0]["text"] == text
    assert [hit.message_id for hit in await session.search("first")] == ["m0"]


@pytest.mark.parametrize(
    "text",
    [
        " ".join(f"w{number}" for number in range(60_000)),
        "".join(chr(0x4E00 + number % 20_000) for number in range(150_000)),
        "-".join(f"w{number}" for number in range(60_000)),
        " ".join(f"http://host{n}.example/a{n}/b{n}?c={n}" for n in range(10_000)),
        " ".join(f"user{n}@host{n}.example" for n in range(15_000)),
        " ".join(chr(97 + n % 26) + chr(0x100 + n % 500) for n in range(100_000)),
        "x" * 300_000,
    ],
    ids=["words", "unspaced", "hyphens", "addresses", "mail", "short words", "one word"],
)
@on_a_loop
async def test_text_beyond_what_can_be_indexed_is_stored_and_found_by_its_beginning(
    connection, fresh_name, text
):
    session = Session(PostgresStore(connection, fresh_name), session_id="s")

    await session.append_message(says("m0", f"needle {text} haystack"))

    assert (await session.get_message("m0"))["parts"][0]["text"].endswith("haystack")
    assert [hit.message_id for hit in await session.search("needle")] == ["m0"]
    assert await session.search("haystack") == []


@on_a_loop
async def test_content_of_other_hands_that_is_no_message_is_skipped(connection, fresh_name):
    session = Session(PostgresSessionProvider(connection, fresh_name))
    await fill(session, 2)
    insert = (
        "INSERT INTO assistant_messages (id, session_id, parent_id, role, content) "
        "VALUES (%s, %s, %s, 'user', %s)"
    )
    rows = [("x", "m1", "not json"), ("y", "x", "[1]"), ("z", "y", '{"role": "user"}')]
    for message_id, parent, content in rows:
        await connection.execute(insert, [message_id, fresh_name, parent, content])
    whole = json.dumps(says("other"))
    await connection.execute(insert, ["other", fresh_name, "z", whole])
    await connection.commit()

    await session.append_message(says("m2"))

    assert await shown(session) == ["m0", "m1", "other", "m2"]
    assert await session.get_path_length() == 7
    assert (await session.get_recent_history(10**6)).truncated is False
    assert await session.get_message("x") is None


# -- blocks and entries ----------------------------------------------------------------------------


@on_a_loop
async def test_a_context_provider_keeps_one_text_by_label(connection, fresh_name):
    memory = PostgresContextProvider(connection, f"memory_{fresh_name}")
    other = PostgresContextProvider(connection, f"prompt_{fresh_name}")

    assert await memory.get() is None
    await memory.set("tea")
    await memory.set("")
    assert await memory.get() == ""
    assert await other.get() is None
    assert await other.set_if_absent("first") == "first"
    assert await other.set_if_absent("second") == "first"


@on_a_loop
async def test_a_context_provider_serves_as_block_and_as_prompt(connection, fresh_name):
    session = Session(PostgresSessionProvider(connection, fresh_name))
    memory = PostgresContextProvider(connection, f"memory_{fresh_name}")
    session.with_context("memory", provider=memory)
    session.with_cached_prompt(PostgresContextProvider(connection, f"_prompt_{fresh_name}"))

    await session.replace_context_block("memory", "likes tea")
    prompt = await session.freeze_system_prompt()
    await session.append_context_block("memory", "likes cake")

    assert "likes tea" in prompt
    assert await memory.get() == "likes tea\nlikes cake"
    again = Session(PostgresSessionProvider(connection, fresh_name))
    again.with_cached_prompt(PostgresContextProvider(connection, f"_prompt_{fresh_name}"))
    assert await again.freeze_system_prompt() == prompt


@on_a_loop
async def test_entries_are_searched_as_those_of_agents_are(connection, fresh_name):
    entries = PostgresSearchProvider(connection)
    session = Session(PostgresSessionProvider(connection, fresh_name))
    session.with_context(fresh_name, provider=entries)

    assert (await session.get_context_block(fresh_name)).content == ""
    await session.set_search_entry(fresh_name, "drinks", "The user likes coffee.")
    await session.set_search_entry(fresh_name, "cafe", "用户喜欢咖啡 and a naïve café")
    await session.set_search_entry(fresh_name, "drinks", "The user likes tea.")

    assert (await session.get_context_block(fresh_name)).content == "2 entries indexed."
    search = (await session.tools())["search_context"]
    assert await search.execute(label=fresh_name, query="liked TEA") == (
        "[drinks]\nThe user likes tea."
    )
    for query in ("喜欢", "naive cafe", '"a naive"'):
        found = await search.execute(label=fresh_name, query=query)
        assert found.startswith("[cafe]\n")
    assert await search.execute(label=fresh_name, query="coffee") == "No results found."


@on_a_loop
async def test_entries_are_of_their_label_and_of_a_size_that_can_be_indexed(connection, fresh_name):
    entries, others = PostgresSearchProvider(connection), PostgresSearchProvider(connection)
    entries.init(fresh_name)
    others.init(f"{fresh_name}-other")
    await entries.set("k", "é" * 125_000)

    with pytest.raises(ValueError, match="250001 bytes"):
        await entries.set("l", "é" * 125_000 + "x")

    assert await entries.get() == "1 entries indexed."
    assert await others.get() is None
    for number in range(12):
        await others.set(f"k{number}", "tea")
    assert (await others.search("tea")).count("\n\n") == 9


# -- without the driver ----------------------------------------------------------------------------


def python(code):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_driver_is_not_loaded_before_it_is_used():
    assert python("import sys, workspace_session; print('psycopg' in sys.modules)") == "False\n"


@pytest.mark.parametrize(
    "use",
    [
        "PostgresStore(object(), 'a')",
        "PostgresSessionProvider(object())",
        "PostgresContextProvider(object(), 'a')",
        "PostgresSearchProvider(object())",
    ],
)
def test_without_the_driver_it_is_said_how_to_get_it(use):
    said = python(
        f"""
        import sys
        sys.modules["psycopg"] = None
        from workspace_session import *
        try:
            {use}
        except ImportError as error:
            print(error)
        """
    )

    assert said == "Postgres needs psycopg: pip install 'workspace-session[postgres]'\n"


def test_the_schema_is_a_file_of_the_package():
    schema = Path(workspace_session.__file__).parent / "stores" / "postgres" / "schema.sql"

    assert schema.read_text("utf-8") == workspace_session.postgres.schema_sql()


@on_a_loop
async def test_an_overlay_with_an_end_that_cannot_be_read_hides_nothing(connection, fresh_name):
    store = PostgresStore(connection, fresh_name)
    session = await fill(Session(store, session_id="s"), 10)
    await session.add_compaction("wide", "m0", "m8")
    await session.add_compaction("inner", "m1", "m2")
    assert await shown(session) == ["S(wide)", "m9"]

    await connection.execute(
        "UPDATE assistant_messages SET content = '[]' WHERE session_id = %s AND id = 'm8'",
        [store.record("s").key],
    )
    await connection.commit()

    assert await shown(session) == ["m0", "S(inner)", *m(3, 7), "m9"]
