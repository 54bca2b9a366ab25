"""The session contract on Postgres, on one connection and on connections that change."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
from postgres_server import connect
from session_contract import SessionStoreContract
from session_contract.descent import DescentContract
from session_contract.flights import FlightContract
from session_contract.shared_use import SharedUseContract

from workspace_session import PostgresStore


class TestPostgresStore(SessionStoreContract):
    @pytest.fixture
    def store(self, connection, fresh_name):
        return PostgresStore(connection, fresh_name)


class Connections:
    """What a pool is at worst: every operation has a connection that nobody has used before."""

    def __init__(self, dsn):
        self.dsn = dsn

    @asynccontextmanager
    async def connection(self):
        async with await connect(self.dsn) as connection:
            yield connection

    async def close(self):
        """There is nothing to close."""


class TestPostgresStoreOnManyConnections(FlightContract, DescentContract, SharedUseContract):
    @pytest.fixture
    def store(self, dsn, fresh_name):
        return PostgresStore(Connections(dsn), fresh_name)
