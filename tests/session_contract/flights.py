"""Single flight: one compaction of a session at a time."""

from __future__ import annotations

import asyncio

import pytest

from session_contract.talk import (
    AsyncTests,
    Heard,
    compacting,
    fill,
    says,
    until,
)
from workspace_session import (
    CompactResult,
    Session,
)


class FlightContract(AsyncTests):
    async def test_calls_for_one_leaf_share_one_compaction(self, store, session):
        await fill(session, 4)
        calls, go_on = [], asyncio.Event()

        async def slowly(messages):
            calls.append(1)
            await go_on.wait()
            return CompactResult("sum", "m0", "m1")

        other = Session(store, session_id="s", on_compaction=slowly)
        session.on_compaction(slowly)
        tasks = [
            asyncio.create_task(work)
            for work in (
                session.compact(),
                session.compact("m3"),
                other.compact(),
                other.compact(""),
            )
        ]
        await until(lambda: calls)
        await asyncio.sleep(0.05)  # a handle that is new reads first
        go_on.set()

        assert await asyncio.gather(*tasks) == [CompactResult("sum", "m0", "m1")] * 4
        assert len(calls) == len(await session.get_compactions()) == 1

    async def test_a_call_for_another_leaf_waits_its_turn(self, session):
        await fill(session, 4)
        running, most = [], []

        async def slowly(messages):
            running.append(1)
            most.append(len(running))
            await asyncio.sleep(0.01)
            running.pop()
            return CompactResult("sum", messages[-1]["id"], messages[-1]["id"])

        session.on_compaction(slowly)
        results = await asyncio.gather(session.compact(), session.compact("m1"))

        assert most == [1, 1]
        assert all(results)

    async def test_a_compaction_from_inside_the_function_is_turned_away(self, store, session):
        await fill(session, 3)
        inner = []

        async def nested(messages):
            other = Session(store, session_id="s", on_compaction=compacting("m0", "m0"))
            inner.append(await session.compact())
            inner.append(await session.compact("m0"))
            inner.append(await other.compact())
            inner.append(await asyncio.create_task(session.compact()))
            return CompactResult("sum", "m0", "m1")

        session.on_compaction(nested)

        assert await asyncio.wait_for(session.compact(), 10) == CompactResult("sum", "m0", "m1")
        assert inner == [None] * 4

    async def test_what_the_function_started_may_compact_later(self, session):
        await fill(session, 3)
        later = []

        async def afterwards():
            await done.wait()
            return await session.compact()

        async def nested(messages):
            if not later:
                later.append(asyncio.create_task(afterwards()))
            return CompactResult("sum", "m0", "m1")

        done = asyncio.Event()
        session.on_compaction(nested)
        await session.compact()
        session.on_compaction(compacting("m2", "m2", "second"))
        done.set()

        assert await later[0] == CompactResult("second", "m0", "m2")

    async def test_an_append_inside_the_function_compacts_nothing(self, session):
        calls = []
        await fill(session, 3)

        async def nested(messages):
            calls.append(1)
            await session.append_message(says("m3"))
            return CompactResult("sum", "m0", "m1")

        session.on_compaction(nested).compact_after(0)
        await asyncio.wait_for(session.compact(), 10)

        assert calls == [1]

    async def test_automatic_compaction_is_skipped_while_one_runs(self, session, caplog):
        await fill(session, 3)
        calls, go_on = [], asyncio.Event()

        async def slowly(messages):
            calls.append(1)
            await go_on.wait()
            return CompactResult("sum", "m0", "m1")

        session.on_compaction(slowly).compact_after(0)
        running = asyncio.create_task(session.compact())
        await until(lambda: calls)

        await asyncio.wait_for(session.append_message(says("m3")), 10)
        go_on.set()
        await running

        assert calls == [1]
        assert "nothing was compacted" not in caplog.text

    async def test_a_cancelled_compaction_lets_the_next_one_begin(self, session):
        await fill(session, 3)
        started, heard = asyncio.Event(), Heard(session)

        async def forever(messages):
            started.set()
            await asyncio.sleep(60)

        session.on_compaction(forever)
        task = asyncio.create_task(session.compact())
        await started.wait()
        waiting = asyncio.create_task(session.compact())
        await asyncio.sleep(0)
        session.on_compaction(compacting("m0", "m1"))
        task.cancel()

        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.wait_for(waiting, 10) == CompactResult("sum", "m0", "m1")
        assert heard.statuses() == ["compacting", "idle", "compacting", "idle compacted"]

    async def test_a_waiter_that_is_cancelled_harms_nobody(self, session):
        await fill(session, 3)
        calls, go_on = [], asyncio.Event()

        async def slowly(messages):
            calls.append(1)
            await go_on.wait()
            return CompactResult("sum", "m0", "m1")

        session.on_compaction(slowly)
        running = asyncio.create_task(session.compact())
        await until(lambda: calls)
        waiting = asyncio.create_task(session.compact())
        await asyncio.sleep(0)
        waiting.cancel()
        go_on.set()

        assert await running == CompactResult("sum", "m0", "m1")
        with pytest.raises(asyncio.CancelledError):
            await waiting
