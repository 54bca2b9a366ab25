"""Both engines keep the contract of search."""

from __future__ import annotations

import pytest
from search_contract import SearchContract


class TestWhoosh(SearchContract):
    @pytest.fixture
    def engine(self):
        return "whoosh"


class TestSqlite(SearchContract):
    @pytest.fixture
    def engine(self):
        return "sqlite"
