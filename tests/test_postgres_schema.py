"""The tables: made, made again, brought up to date, and told on the command line."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from click.testing import CliRunner
from postgres_server import connect, new_database
from session_contract.talk import fill, on_a_loop, says, shown

from workspace_session import (
    PostgresSearchProvider,
    PostgresSessionProvider,
    PostgresStore,
    Session,
    SessionManager,
)
from workspace_session.cli import main
from workspace_session.postgres import apply_schema, schema_sql


@pytest.fixture
def empty(server):
    """The address of a database without tables."""
    with new_database(server) as address:
        yield address


def first_part():
    return schema_sql().partition("-- second part")[0]


async def tables(dsn):
    async with await connect(dsn) as connection:
        found = await connection.execute(
            "SELECT table_name, column_name FROM information_schema.columns "
            "WHERE table_schema = 'public' ORDER BY 1, 2"
        )
        return await found.fetchall()


@on_a_loop
async def test_tables_can_be_made_again_and_at_the_same_time(empty):
    async def make():
        async with await connect(empty) as connection:
            await apply_schema(connection)

    await asyncio.gather(*(make() for _ in range(4)))
    before = await tables(empty)
    await make()

    assert await tables(empty) == before
    assert ("assistant_messages", "search_tsv") in before


@on_a_loop
async def test_a_database_of_the_first_part_is_brought_up_to_date_and_searched(empty):
    async with await connect(empty) as connection:
        await connection.execute(first_part())
        insert = (
            "INSERT INTO assistant_messages (id, session_id, parent_id, role, content, "
            "text_content) VALUES (%s, 's', %s, 'user', %s, %s)"
        )
        texts = ["deploys on friday", "用户喜欢咖啡", "?!", ""]
        for number, text in enumerate(texts * 200):
            parent = f"m{number - 1}" if number else None
            part = f'{{"type":"text","text":"{text}"}}'
            content = f'{{"id":"m{number}","role":"user","parts":[{part}]}}'
            await connection.execute(insert, [f"m{number}", parent, content, text])
        await connection.execute(
            "INSERT INTO cf_agents_search_entries (label, key, content) VALUES ('l', 'k', 'tea')"
        )
        await connection.commit()

        await apply_schema(connection)

        session = Session(PostgresSessionProvider(connection, "s"))
        assert await session.get_path_length() == 800
        assert await shown(session) == [f"m{number}" for number in range(800)]
        assert (await session.get_latest_leaf())["id"] == "m799"
        assert len(await session.search("deployed", 1000)) == 200
        assert len(await session.search("喜欢", 1000)) == 200
        assert (await session.get_message("m0"))["createdAt"].endswith("Z")
        await session.append_message(says("more"))
        assert (await shown(session))[-2:] == ["m799", "more"]
        entries = PostgresSearchProvider(connection)
        entries.init("l")
        assert await entries.search("teas") == "[k]\ntea"


@on_a_loop
async def test_messages_can_be_kept_in_partitions_by_session(empty):
    async with await connect(empty) as connection:
        if connection.info.server_version < 170_000:
            pytest.skip("identity columns of partitioned tables need PostgreSQL 17")
        columns = first_part().partition("CREATE TABLE IF NOT EXISTS assistant_messages (")[2]
        columns = columns.partition("PRIMARY KEY (session_id, id));")[0]
        await connection.execute(
            f"CREATE TABLE assistant_messages ({columns} seq BIGINT GENERATED ALWAYS AS IDENTITY, "
            "PRIMARY KEY (session_id, id)) PARTITION BY HASH (session_id)"
        )
        for number in range(3):
            await connection.execute(
                f"CREATE TABLE assistant_messages_{number} PARTITION OF assistant_messages "
                f"FOR VALUES WITH (MODULUS 3, REMAINDER {number})"
            )
        await apply_schema(connection)
        store = PostgresStore(connection, "a")
        for number in range(9):
            session = await fill(Session(store, session_id=f"s{number}"), 3)
            await session.append_message(says("b"), "m0")
            await session.delete_messages(["m1"])
            assert await shown(session) == ["m0", "b"]

        assert len(await SessionManager.create(store).search("hello", 100)) == 27
        used = "SELECT count(DISTINCT tableoid) FROM assistant_messages"
        assert (await (await connection.execute(used)).fetchone())[0] > 1


@on_a_loop
async def test_nothing_makes_tables_by_itself(empty):
    async with await connect(empty) as connection:
        session = Session(PostgresSessionProvider(connection, "s"))

        with pytest.raises(psycopg.errors.UndefinedTable):
            await session.append_message(says("m0"))

    assert await tables(empty) == []


def test_the_command_prints_the_tables_or_makes_them(empty):
    printed = CliRunner().invoke(main, ["postgres-schema"])
    made = CliRunner().invoke(main, ["postgres-schema", "--apply", "--dsn", empty])

    assert (printed.exit_code, printed.stdout) == (0, schema_sql())
    assert made.exit_code == 0
    assert ("assistant_sessions", "agent_id") in asyncio.run(tables(empty))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--dsn", "x"], "--dsn needs --apply"),
        (["--apply", "--dsn", "what is this"], "Postgres: missing"),
        (["--apply", "--dsn", "host=/nowhere connect_timeout=2"], "Postgres: connection"),
    ],
)
def test_the_command_says_what_is_wrong_in_one_sentence(arguments, complaint):
    result = CliRunner().invoke(main, ["postgres-schema", *arguments])

    assert result.exit_code in (1, 2)
    assert complaint in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_connection_of_the_environment_is_used_without_an_address(empty, monkeypatch):
    for name, value in psycopg.conninfo.conninfo_to_dict(empty).items():
        monkeypatch.setenv({"dbname": "PGDATABASE"}.get(name, f"PG{name.upper()}"), str(value))

    assert CliRunner().invoke(main, ["postgres-schema", "--apply"]).exit_code == 0
    assert asyncio.run(tables(empty)) != []
