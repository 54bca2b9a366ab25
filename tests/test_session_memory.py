"""The session contract on the store in memory."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest
from session_contract import SessionStoreContract

from workspace_session import MemoryStore, Session


class TestMemoryStore(SessionStoreContract):
    @pytest.fixture
    def store(self):
        return MemoryStore()


def test_threads_that_append_to_a_block_all_get_in():
    store, before = MemoryStore(), sys.getswitchinterval()

    async def append(name):
        session = Session(store, session_id="s", context=[{"label": "memory"}])
        for number in range(50):
            await session.append_context_block("memory", f"{name}{number}")

    threads = [threading.Thread(target=asyncio.run, args=(append(name),)) for name in "abc"]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)

    session = Session(store, session_id="s", context=[{"label": "memory"}])
    lines = asyncio.run(session.get_context_block("memory")).content.split("\n")
    assert sorted(lines) == sorted(f"{name}{number}" for name in "abc" for number in range(50))
