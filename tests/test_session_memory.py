"""The session contract on the store in memory."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest
from session_contract import SessionStoreContract
from session_contract.talk import on_a_loop, says

from workspace_session import MemoryStore, Session, SessionManager


class TestMemoryStore(SessionStoreContract):
    @pytest.fixture
    def store(self):
        return MemoryStore()


class Raced(MemoryStore):
    """Somebody else stores every message that is looked for in vain."""

    def provider(self, session_id):
        provider = super().provider(session_id)
        look = provider.get_message

        async def get_message(message_id):
            found = await look(message_id)
            if found is None:
                provider.tree.append(says(message_id, "of another"))
            return found

        provider.get_message = get_message
        return provider


@on_a_loop
async def test_an_upsert_that_somebody_else_was_faster_with_is_an_update():
    manager = SessionManager.create(Raced())

    assert await manager.upsert("s", says("m0", "mine")) == "m0"

    (message,) = await manager.get_history("s")
    assert message["parts"][0]["text"] == "mine"


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
