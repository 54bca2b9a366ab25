"""Where the calls on a session run: on the event loop as long as that is quick, and it never stands still."""

from __future__ import annotations

import asyncio
import gc
import threading
import time

import pytest

from workspace_session import MemoryStore, SessionTree, Workspace, WorkspaceBusy
from workspace_session.bridge import TreeCalls, in_passing, in_thread
from workspace_session.files import jsonl, pace

HERE = threading.get_ident
ENOUGH = 8  # quick syncs, after which a disk counts as quick


class Disk:
    """The disk under the tests, as slow as they want it."""

    def __init__(self, monkeypatch):
        self.seconds = 0.0
        monkeypatch.setattr(pace, "_quick_in_a_row", {})
        self._time = 0.0
        monkeypatch.setattr(jsonl, "_sync", self._sync)
        monkeypatch.setattr(jsonl.time, "perf_counter", lambda: self._time)

    def _sync(self, _descriptor):
        self._time += self.seconds


@pytest.fixture
def disk(monkeypatch):
    return Disk(monkeypatch)


@pytest.fixture
def workspace(tmp_path):
    with Workspace(tmp_path) as workspace:
        yield workspace


@pytest.fixture
def tree(workspace):
    return workspace.agent("a").tree("s")


def write(tree):
    """Append, and tell which thread did."""
    tree.append({"role": "user"})
    return HERE()


def threads_of(tree, count):
    """Which of so many writes, one after another, were made by the event loop itself."""

    async def main():
        calls = TreeCalls(tree, short=10)
        return [await calls.write(write, tree) == HERE() for _ in range(count)]

    return asyncio.run(main())


def test_writes_go_to_a_thread_until_the_disk_was_quick_often_enough(tree, disk):
    assert threads_of(tree, ENOUGH + 2) == [False] * ENOUGH + [True, True]


def test_one_slow_write_sends_those_after_it_to_a_thread(tree, disk):
    threads_of(tree, ENOUGH)
    disk.seconds = 0.01
    assert threads_of(tree, 3) == [True, False, False]

    disk.seconds = 0.0
    assert threads_of(tree, ENOUGH + 1) == [False] * ENOUGH + [True]


def test_what_one_session_has_met_another_on_the_same_disk_knows(workspace, disk):
    first, second = (workspace.agent("a").tree(name) for name in "ab")
    threads_of(first, ENOUGH)

    assert threads_of(second, 3) == [False, True, True]  # the first makes its files


def test_what_waits_for_no_disk_is_written_at_once(tmp_path, disk):
    disk.seconds = 1.0
    with Workspace(tmp_path / "os", durability="os") as workspace:
        lazy = workspace.agent("a").tree("s")

        assert threads_of(lazy, 3) == [False, True, True]

    memory = SessionTree.in_memory("s")
    assert threads_of(memory, 3) == [False, True, True]


@pytest.mark.parametrize("durability", ["disk", "os"])
def test_the_write_that_brings_the_index_up_to_date_is_made_in_a_thread(
    tmp_path, disk, durability, monkeypatch
):
    now = [1000.0]
    monkeypatch.setattr("workspace_session.files.index.time.monotonic", lambda: now[0])
    with Workspace(tmp_path, durability=durability) as workspace:
        tree = workspace.agent("a").tree("s")
        threads_of(tree, ENOUGH)
        index = tmp_path / "agents/a/sessions/sessions.json"
        assert not index.exists()

        now[0] += 60
        assert threads_of(tree, 2) == [False, True]

        assert index.exists()


def test_whoever_writes_again_and_again_lets_others_have_their_turn(tree, disk):
    threads_of(tree, ENOUGH)
    turns = []

    async def other():
        while True:
            turns.append(len(tree))
            await asyncio.sleep(0)

    async def main():
        calls, watching = TreeCalls(tree, short=10), asyncio.create_task(other())
        for _ in range(20):
            assert await calls.write(write, tree) == HERE()
        watching.cancel()

    asyncio.run(main())

    assert turns == sorted(set(turns))
    assert len(turns) >= 20


def test_of_several_who_write_only_the_first_does_so_on_the_event_loop(workspace, disk):
    trees = [workspace.agent("a").tree(name) for name in "abcd"]
    for tree in trees:
        threads_of(tree, ENOUGH)

    async def main():
        calls = [TreeCalls(tree, short=10).write(write, tree) for tree in trees]
        return [thread == HERE() for thread in await asyncio.gather(*calls)]

    assert asyncio.run(main()) == [True, False, False, False]


BIG = {"role": "user", "content": "x" * 1000}


def read(tree):
    """Look at a session, and tell which thread did."""
    tree.tail(1)
    return HERE()


def where(call, *args):
    """Whether the event loop did it itself."""

    async def main():
        return await call(*args) == HERE()

    return asyncio.run(main())


@pytest.mark.parametrize("kind", ["disk", "memory"])
def test_what_others_have_added_is_read_in_a_thread_if_it_is_much(tmp_path, kind):
    if kind == "memory":
        store = MemoryStore()
        mine, theirs = store.tree("s"), store.tree("s")
    else:
        mine, theirs = (Workspace(tmp_path).agent("a").tree("s") for _ in range(2))
    mine.append(BIG)
    calls = TreeCalls(mine, short=10)

    theirs.extend([BIG] * 10)
    assert where(calls.read, read, mine)
    theirs.extend([BIG] * 1000)
    assert not where(calls.read, read, mine)
    assert where(calls.read, read, mine)
    theirs.extend([BIG] * 1000)
    assert not where(calls.write, write, mine)

    assert len(mine) == 2012


def test_what_is_in_the_log_alone_is_read_in_a_thread(tmp_path, tree):
    tree.extend([{**BIG, "id": f"m{number}"} for number in range(1000)])
    tree.compact("short", "m0", "m989")
    tree.trim()
    tree = Workspace(tmp_path).agent("a").tree("s")
    assert len(tree.tail(20)) == 11
    assert tree.size_hint < 20
    calls = TreeCalls(tree, short=100)

    def whole():
        assert tree.path_length() == 1000
        return HERE()

    assert not where(calls.read_all, whole)
    assert where(calls.read_all, read, tree)


def test_a_write_of_much_and_a_reading_of_much_are_no_matter_of_the_loop(tree, disk):
    threads_of(tree, ENOUGH)
    calls = TreeCalls(tree, short=100)

    def extend():
        tree.extend([BIG] * 1000)
        return HERE()

    assert not where(calls.write, extend)
    assert len(tree) == ENOUGH + 1000
    assert not where(calls.read_all, read, tree)
    assert where(calls.read, read, tree)
    assert threads_of(tree, 1) == [True]

    kept = MemoryStore().tree("s")
    kept.extend([BIG] * 1000)
    assert not where(TreeCalls(kept, short=2000).read_all, read, kept)


def test_a_write_that_nobody_waits_for_any_more_is_not_at_work(tree, disk):
    threads_of(tree, ENOUGH)
    loop = asyncio.new_event_loop()
    task = loop.create_task(TreeCalls(tree, short=10).write(write, tree))
    loop.call_soon(loop.stop)  # when it has written, and lets others have their turn
    loop.run_forever()

    assert not task.done()
    assert len(tree) == ENOUGH + 1
    loop.close()
    del loop, task
    gc.collect()

    assert threads_of(tree, 1) == [True]


def test_while_a_thread_is_at_work_nobody_writes_on_the_event_loop(tree, disk):
    threads_of(tree, ENOUGH)
    go_on = threading.Event()

    async def main():
        working = asyncio.create_task(in_thread(go_on.wait, 10))
        await asyncio.sleep(0)
        thread = await TreeCalls(tree, short=10).write(write, tree)
        go_on.set()
        assert await working
        return thread == HERE()

    assert asyncio.run(main()) is False


def test_who_would_have_to_wait_for_another_writer_waits_in_a_thread(tree, disk):
    threads_of(tree, ENOUGH)
    taken, let_go = threading.Event(), threading.Event()

    def hold():
        with tree._lock:
            taken.set()
            assert let_go.wait(10)

    async def main():
        holder = threading.Thread(target=hold)
        holder.start()
        assert taken.wait(10)
        writing = asyncio.create_task(TreeCalls(tree, short=10).write(write, tree))
        await asyncio.sleep(0.02)
        assert not writing.done()
        let_go.set()
        thread = await writing
        holder.join()
        return thread == HERE()

    assert asyncio.run(main()) is False
    assert threads_of(tree, 1) == [True]  # the stand-in has left


def test_what_was_refused_leaves_the_next_its_turn(tree, disk):
    threads_of(tree, ENOUGH)

    def refuse():
        raise LookupError("nowhere")

    async def main():
        with pytest.raises(LookupError, match="nowhere"):
            await TreeCalls(tree, short=10).write(refuse)

    asyncio.run(main())

    assert threads_of(tree, 1) == [True]


def test_a_caller_that_is_cancelled_after_its_write_has_written(tree, disk):
    threads_of(tree, ENOUGH)
    before = len(tree)

    async def main():
        writing = asyncio.create_task(TreeCalls(tree, short=10).write(write, tree))
        await asyncio.sleep(0)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing

    asyncio.run(main())

    assert len(tree) == before + 1
    assert threads_of(tree, 1) == [True]


def test_what_is_always_busy_ends_as_it_would_in_a_thread():
    def busy():
        raise WorkspaceBusy("s", "another process", 0.0)

    async def main():
        with pytest.raises(WorkspaceBusy):
            await in_passing(busy)

    asyncio.run(main())


def test_the_event_loop_goes_on_while_a_slow_disk_is_waited_for(tree, monkeypatch):
    monkeypatch.setattr(pace, "_quick_in_a_row", {})
    monkeypatch.setattr(jsonl, "_sync", lambda _descriptor: time.sleep(0.05))
    tree.append({"role": "user"})
    turns = 0

    async def main():
        nonlocal turns
        writing = asyncio.create_task(TreeCalls(tree, short=10).write(write, tree))
        while not writing.done():
            turns += 1
            await asyncio.sleep(0.001)

    asyncio.run(main())

    assert turns > 5
