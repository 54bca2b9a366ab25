"""The session contract on the store in memory."""

from __future__ import annotations

import pytest
from session_contract import SessionStoreContract

from workspace_session import MemoryStore


class TestMemoryStore(SessionStoreContract):
    @pytest.fixture
    def store(self):
        return MemoryStore()
