"""The session contract on Postgres."""

from __future__ import annotations

import pytest
from session_contract import SessionStoreContract

from workspace_session import PostgresStore


class TestPostgresStore(SessionStoreContract):
    @pytest.fixture
    def store(self, connection, fresh_name):
        return PostgresStore(connection, fresh_name)
