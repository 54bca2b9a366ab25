"""Errors, and several users of one session."""

from __future__ import annotations

import asyncio
import pickle
import threading

import pytest

from session_contract.talk import (
    AsyncTests,
    Heard,
    compacting,
    fill,
    m,
    says,
    shown,
)
from workspace_session import (
    LATEST,
    Session,
    SessionError,
    WorkspaceError,
)


class SharedUseContract(AsyncTests):
    @pytest.mark.parametrize(
        ("raising", "named"),
        [
            (lambda session: session.append_message(says("x"), "nobody"), "nobody"),
            (lambda session: session.set_leaf("nobody"), "nobody"),
            (lambda session: session.add_compaction("sum", "nobody", "m0"), "nobody"),
            (lambda session: session.replace_context_block("nobody", "x"), "nobody"),
            (lambda session: session.append_message({"role": ""}), "role"),
        ],
    )
    async def test_errors_are_of_one_family_and_name_what_is_wrong(self, session, raising, named):
        await fill(session, 1)

        with pytest.raises(SessionError, match=named) as raised:
            await raising(session)

        assert isinstance(raised.value, WorkspaceError)

    async def test_appends_at_the_same_time_form_one_chain(self, store):
        sessions = [Session(store, session_id="s") for _ in range(4)]

        await asyncio.gather(*(sessions[n % 4].append_message(says(f"m{n}")) for n in range(40)))

        for session in sessions:
            assert sorted(await shown(session)) == sorted(m(0, 39))
        assert len(await sessions[0].get_branches(None)) == 1

    async def test_the_same_message_at_the_same_time_is_stored_once(self, store):
        sessions = [Session(store, session_id="s") for _ in range(4)]

        results = await asyncio.gather(*(one.append_message(says("m0")) for one in sessions))

        assert sorted(result.inserted for result in results) == [False, False, False, True]
        assert await shown(sessions[0]) == ["m0"]

    async def test_handles_see_each_other_at_once(self, store):
        first, second = Session(store, session_id="s"), Session(store, session_id="s")
        await fill(first, 4)
        assert await shown(second) == m(0, 3)

        await second.append_message(says("b"), "m1")
        assert await shown(first) == ["m0", "m1", "b"]

        await first.set_leaf("m3")
        await first.add_compaction("sum", "m0", "m1")
        assert await shown(second) == ["S(sum)", "m2", "m3"]

        await second.delete_messages(["m2"])
        await second.update_message(says("m3", "new"))
        assert (await first.get_latest_leaf())["parts"][0]["text"] == "new"
        assert await shown(first) == ["S(sum)", "m3"]

        await second.clear_messages()
        assert await first.get_history() == []

    async def test_an_append_that_is_cancelled_is_whole_or_not_there(self, store):
        session = Session(store, session_id="s")
        tasks = [asyncio.create_task(session.append_message(says(f"m{n}"))) for n in range(10)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

        before = await shown(session)
        await session.append_message(says("after"))

        assert await shown(Session(store, session_id="s")) == [*before, "after"]

    def test_a_session_outlives_its_event_loop(self, store):
        session = Session(store, session_id="s", context=[{"label": "memory"}])

        asyncio.run(fill(session, 2))
        asyncio.run(session.replace_context_block("memory", "tea"))
        session.on_compaction(compacting("m0", "m0"))
        asyncio.run(session.compact())

        assert asyncio.run(shown(session)) == ["S(sum)", "m1"]
        assert "tea" in asyncio.run(session.freeze_system_prompt())

    async def test_what_sessions_give_can_be_pickled_and_they_themselves_say_that_they_cannot(
        self, session, manager
    ):
        heard = Heard(session)
        appended = await session.append_message(says("m0"))
        overlay = await session.add_compaction("sum", "m0", "m0")
        found, record = await session.search("hello"), await manager.get("s")
        stats, recent = await session.get_history_row_stats(), await session.get_recent_history(9)

        for value in (appended, overlay, found, record, stats, recent, list(heard), LATEST):
            assert pickle.loads(pickle.dumps(value)) == value
        for whole in (session, manager):
            with pytest.raises(TypeError, match="cannot be pickled: "):
                pickle.dumps(whole)

    def test_a_session_serves_several_threads(self, store):
        session = Session(store, session_id="s")
        threads = [
            threading.Thread(target=asyncio.run, args=(fill(session, 10, start),))
            for start in range(0, 40, 10)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert sorted(asyncio.run(shown(session))) == sorted(m(0, 39))
