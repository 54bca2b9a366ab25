"""Turns: one at a time for each key, first come first served, and never waiting for themselves."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from workspace_session import ReentrantCall
from workspace_session.harness import turns
from workspace_session.harness.turns import turn_of


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    yield
    assert turns._queues == {}


def run(main):
    return asyncio.run(asyncio.wait_for(main, 20))


def test_turns_of_one_key_run_one_at_a_time_in_the_order_they_came():
    log = []

    async def one(number):
        async with turn_of(["k"], session_id="s"):
            log.append(("in", number))
            await asyncio.sleep(0.001)
            log.append(("out", number))

    async def main():
        await asyncio.gather(*(one(number) for number in range(20)))

    run(main())

    assert log == [(way, number) for number in range(20) for way in ("in", "out")]


def test_turns_of_different_keys_run_side_by_side():
    together = asyncio.Barrier(5)

    async def one(key):
        async with turn_of([key], session_id="s"):
            await together.wait()  # which only all five can pass

    async def main():
        await asyncio.gather(*map(one, range(5)))

    run(main())


def test_turns_queue_across_threads_and_event_loops_first_come_first_served():
    order, came = [], []
    hold = threading.Event()

    async def one(number):
        came.append(number)
        async with turn_of(["k"], session_id="s"):
            order.append(number)
            while not hold.is_set():
                await asyncio.sleep(0.001)

    threads = []
    for number in range(8):
        thread = threading.Thread(target=lambda number=number: asyncio.run(one(number)))
        thread.start()
        threads.append(thread)
        while turns._queues == {} or len(turns._queues["k"]) <= number:
            time.sleep(0.001)
    hold.set()
    for thread in threads:
        thread.join(20)

    assert order == came == list(range(8))


def test_a_turn_with_two_keys_excludes_those_of_either():
    inside = []

    async def one(keys):
        async with turn_of(keys, session_id="s"):
            assert not any(set(keys) & set(other) for other in inside)
            inside.append(keys)
            await asyncio.sleep(0.001)
            inside.remove(keys)

    async def main():
        work = [["a", "b"], ["b"], ["a"], ["b", "a"], ["c"], ["b", "c"], ["a", "a"]] * 5
        await asyncio.gather(*map(one, work))

    run(main())


def test_one_that_is_cancelled_while_it_waits_lets_the_next_in():
    log = []

    async def one(number, hold=None):
        async with turn_of(["k"], session_id="s"):
            log.append(number)
            if hold is not None:
                await hold.wait()

    async def main():
        hold = asyncio.Event()
        tasks = [asyncio.create_task(one(0, hold))]
        tasks += [asyncio.create_task(one(number)) for number in (1, 2, 3)]
        await asyncio.sleep(0.01)
        tasks[1].cancel()
        tasks[2].cancel()
        hold.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(result) for result in results[1:3]] == [asyncio.CancelledError] * 2

    run(main())

    assert log == [0, 3]


def test_a_turn_inside_of_itself_is_refused_and_what_it_started_may_come_later():
    async def main():
        later = []

        async def afterwards():
            await over.wait()
            async with turn_of(["k"], session_id="s"):
                return "had"

        over = asyncio.Event()
        async with turn_of(["k"], session_id="s"):
            with pytest.raises(ReentrantCall, match="a turn of session 's' would wait for itself"):
                async with turn_of(["k"], session_id="s"):
                    pass
            async with turn_of(["other"], session_id="t"):
                with pytest.raises(ReentrantCall):
                    async with turn_of(["more", "k"], session_id="s"):
                        pass
            later.append(asyncio.create_task(afterwards()))
        over.set()
        assert await later[0] == "had"

    run(main())


def test_two_turns_that_would_wait_for_each_other_are_told_apart_from_those_that_only_wait():
    async def main():
        inside = asyncio.Barrier(2)
        refused = []

        async def one(mine, other):
            async with turn_of([mine], session_id=mine):
                await inside.wait()
                try:
                    async with turn_of([other], session_id=other):
                        pass
                except ReentrantCall:
                    refused.append(mine)

        await asyncio.gather(one("a", "b"), one("b", "a"))
        assert len(refused) == 1  # and with that the other one gets its turn

    run(main())


def test_many_threads_with_many_keys_never_meet_and_never_stop():
    busy, guard = set(), threading.Lock()

    async def one(number):
        keys = {f"k{number % 3}", f"k{number % 5}", f"k{number % 7}"}
        async with turn_of(keys, session_id="s"):
            with guard:
                assert busy.isdisjoint(keys)
                busy.update(keys)
            await asyncio.sleep(0)
            with guard:
                busy.difference_update(keys)

    async def some(start):
        await asyncio.gather(*(one(number) for number in range(start, start + 40)))

    threads = [threading.Thread(target=lambda n=n: run(some(n * 11))) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
