"""Calls in threads: their answers, and that what was begun is seen through."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import time

import pytest

from workspace_session import SessionTree, Workspace
from workspace_session.bridge import at_once, in_own_thread, in_thread


def run(main):
    return asyncio.run(main())


def test_a_call_runs_in_another_thread_and_gives_its_result():
    async def main():
        return await in_thread(lambda a, b: (threading.get_ident(), a + b), 1, b=2)

    thread, result = run(main)

    assert (thread != threading.get_ident(), result) == (True, 3)


def test_what_a_call_raises_its_caller_is_told():
    def fail():
        raise LookupError("nowhere")

    async def main():
        with pytest.raises(LookupError, match="nowhere"):
            await in_thread(fail)

    run(main)


@pytest.mark.parametrize("cancellations", [1, 3])
def test_a_caller_that_is_cancelled_waits_for_the_end(cancellations):
    begun, go_on, over = threading.Event(), threading.Event(), []

    def work():
        begun.set()
        assert go_on.wait(10)
        over.append(True)

    async def main():
        task = asyncio.create_task(in_thread(work))
        await asyncio.to_thread(begun.wait)
        for _ in range(cancellations):
            task.cancel()
            await asyncio.sleep(0.01)
        assert not task.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        return list(over)

    assert run(main) == [True]


def test_a_failure_of_a_call_whose_caller_was_cancelled_is_no_noise(caplog):
    def work():
        time.sleep(0.05)
        raise LookupError

    async def main():
        task = asyncio.create_task(in_thread(work))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main)
    gc.collect()

    assert caplog.text == ""


def test_many_calls_at_once_and_loops_one_after_another():
    async def main():
        return await asyncio.gather(*(in_thread(lambda n=n: n) for n in range(200)))

    assert [run(main) for _ in range(3)] == [list(range(200))] * 3


def test_what_was_begun_is_finished_before_the_process_ends():
    code = """if True:
        import asyncio, atexit, time
        from workspace_session.bridge import in_thread

        def slow(name):
            time.sleep(0.3)
            print(name, flush=True)

        async def leave():
            asyncio.ensure_future(in_thread(slow, "begun"))
            await asyncio.sleep(0.1)

        loop = asyncio.new_event_loop()
        atexit.register(lambda: asyncio.run(in_thread(slow, "at the very end")))  # runs last
        loop.run_until_complete(leave())
        print("left", flush=True)
    """
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )

    assert ended.stdout.split("\n") == ["left", "begun", "at the very end", ""]


def ends(code, *, seconds=60):
    """The output of a program, which must end by itself."""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=seconds, check=True
    )
    return ended.stdout


def test_a_process_ends_although_a_loop_in_its_background_goes_on_calling():
    code = """if True:
        import asyncio, threading, time
        from workspace_session.bridge import in_thread

        async def one_after_another():
            while True:
                await in_thread(time.sleep, 0.01)

        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        for _ in range(8):
            asyncio.run_coroutine_threadsafe(one_after_another(), loop)
        time.sleep(0.2)
        print("over", flush=True)
    """

    assert [ends(code) for _ in range(3)] == ["over\n"] * 3


def test_where_no_thread_can_be_started_a_call_is_made_once_and_here():
    code = """if True:
        import asyncio, threading
        from workspace_session.bridge import in_thread

        def fail(self):
            raise RuntimeError("can't start new thread")

        threading.Thread.start = fail
        made = []
        for number in range(3):
            asyncio.run(in_thread(made.append, number))
        print(made)
    """

    assert ends(code) == "[0, 1, 2]\n"


def test_a_child_that_is_forked_while_threads_are_started_ends_by_itself():
    code = """if True:
        import asyncio, os, sys, threading, time
        from workspace_session.bridge import calls

        for _ in range(20):
            calls._pool.cache_clear()
            threads = [
                threading.Thread(target=lambda: asyncio.run(calls.in_thread(time.sleep, 0)))
                for _ in range(12)
            ]
            for thread in threads:
                thread.start()
            if not (child := os.fork()):
                sys.exit(0)
            for thread in threads:
                thread.join()
            assert os.waitpid(child, 0)[1] == 0
        print("all ended", flush=True)
    """

    assert ends(code) == "all ended\n"


@pytest.mark.parametrize("way", [in_thread, in_own_thread])
def test_a_call_that_stops_an_iteration_ends(way):
    async def main():
        with pytest.raises(RuntimeError, match="the call raised StopIteration"):
            await asyncio.wait_for(way(next, iter(())), 10)

    run(main)


def test_a_short_call_runs_where_it_is_called():
    async def main():
        return await at_once(threading.get_ident)

    assert run(main) == threading.get_ident()


@pytest.fixture(params=["disk", "memory"])
def tree(request, tmp_path):
    if request.param == "memory":
        return SessionTree.in_memory("s")
    return Workspace(tmp_path).agent("a").tree("s")


def test_who_only_reads_does_not_wait_for_a_writer_who_waits(tree):
    tree.append({"role": "user"})
    with tree._lock:
        writer = threading.Thread(target=tree.append, args=({"role": "assistant"},))
        writer.start()
        writer.join(0.05)  # it has come to the lock by now

        found = tree.messages()

        assert (found, writer.is_alive()) == ([{"role": "user"}], True)
    writer.join()
    assert len(tree) == 2


def test_a_short_read_does_not_keep_the_event_loop_waiting_for_a_slow_disk(tree):
    tree.append({"role": "user"})
    holds, let_go = threading.Event(), threading.Event()

    def slow():
        with tree._mutex:
            holds.set()
            assert let_go.wait(10)

    async def main():
        writer = asyncio.create_task(asyncio.to_thread(slow))
        await asyncio.to_thread(holds.wait)
        reader = asyncio.create_task(at_once(tree.messages))
        await asyncio.sleep(0.02)
        assert not reader.done()
        let_go.set()  # which a loop that stood still would never come to
        await writer
        return await reader

    assert run(main) == [{"role": "user"}]


def test_readers_and_writers_of_one_handle_never_wait_for_each_other_for_good(tree):
    def write(number):
        tree.extend([{"n": number}, {"n": number}])
        tree.offload([])

    def read(_number):
        assert len(tree.messages()) % 2 == 0
        tree.facts()

    async def main():
        calls = [at_once(call, n) for n in range(50) for call in (write, read)]
        calls += [in_thread(call, n) for n in range(50) for call in (write, read)]
        await asyncio.wait_for(asyncio.gather(*calls), 60)

    run(main)

    assert len(tree) == 200
