"""Locks between processes and threads, with real ones of both."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

import workspace_session
from workspace_session.errors import WorkspaceBusy
from workspace_session.files.locks import lock_at

PACKAGE = Path(workspace_session.__file__).parent.parent

HOLDER = """
    import sys
    from pathlib import Path
    from workspace_session.files.locks import lock_at

    with lock_at(Path(sys.argv[1])):
        print("held", flush=True)
        sys.stdin.read()
"""


def start(code: str, *args: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, args)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=PACKAGE)


def run(code: str, *args: object) -> str:
    with start(code, *args) as process:
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return out


@pytest.fixture
def path(tmp_path):
    return tmp_path / "locks" / "s.lock"


@pytest.fixture
def holder(path):
    """Another process that holds the lock until its input ends."""
    with start(HOLDER, path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.communicate(timeout=60)


def test_the_directory_of_a_lock_is_made_when_it_is_first_taken(path):
    lock = lock_at(path)
    assert not path.parent.exists()

    with lock:
        assert path.exists()

    assert path.exists()  # never deleted: that would let two holders in


def test_one_lock_file_has_one_lock_in_a_process(path):
    assert lock_at(path) is lock_at(Path(str(path)))


def test_a_thread_may_enter_again(path):
    lock = lock_at(path)

    with lock, lock, lock_at(path):
        pass

    with lock:
        pass


def test_leaving_an_inner_block_does_not_let_others_in(path):
    with lock_at(path):
        with lock_at(path):
            pass

        assert run(TRY, path, 0.05) == "busy\n"


def test_a_block_that_fails_gives_the_lock_back(path):
    with pytest.raises(ZeroDivisionError), lock_at(path):
        raise ZeroDivisionError

    assert run(TRY, path, 10) == "had\n"


def test_another_thread_waits_its_turn(path):
    lock = lock_at(path)
    order: list[str] = []

    def enter() -> None:
        with lock:
            order.append("second")

    with lock:
        thread = threading.Thread(target=enter)
        thread.start()
        time.sleep(0.02)
        order.append("first")
    thread.join()

    assert order == ["first", "second"]


def test_a_thread_that_waits_too_long_is_told_that_this_process_holds_it(path):
    raised: list[WorkspaceBusy] = []

    def enter() -> None:
        try:
            lock_at(path).acquire(timeout=0.02)
        except WorkspaceBusy as busy:
            raised.append(busy)

    with lock_at(path, shown="agents/a/sessions/s"):
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()

    assert [str(busy) for busy in raised] == [
        "agents/a/sessions/s is held by another thread of this process; gave up after 0.02 seconds"
    ]


def test_a_process_that_waits_too_long_is_told_who_holds_it(path, holder):
    lock = lock_at(path, shown="agents/a/sessions/s")

    with pytest.raises(WorkspaceBusy) as busy:
        lock.acquire(timeout=0.05)

    assert str(busy.value) == (
        f"agents/a/sessions/s is held by process {holder.pid}; gave up after 0.05 seconds"
    )
    assert isinstance(busy.value, TimeoutError)


def test_a_lock_that_was_not_had_can_be_had_later(path, holder):
    with pytest.raises(WorkspaceBusy):
        lock_at(path).acquire(timeout=0.01)
    holder.communicate(timeout=60)

    with lock_at(path):
        pass


def test_a_killed_holder_holds_nothing(path, holder):
    holder.kill()

    with lock_at(path):
        pass


def test_processes_and_threads_exclude_each_other(tmp_path, path):
    """Each adds one to a number in a file, by reading and writing it: none is lost."""
    counter = tmp_path / "counter"
    counter.write_text("0")
    processes = [start(COUNT, path, counter) for _ in range(2)]
    for process in processes:
        with process:
            process.communicate(timeout=60)
            assert process.returncode == 0

    assert counter.read_text() == str(2 * 2 * 100)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_neither_has_nor_frees_the_lock_of_its_parent(path):
    said = run(FORK_WHILE_HELD, path, textwrap.dedent(TRY))

    assert said == "child: busy\nbusy\nchild: had\n"  # the second is a third process


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_wait_for_threads_that_it_does_not_have(path):
    assert run(FORK_WHILE_A_THREAD_HOLDS, path) == "child: had\n"


TRY = """
    import sys
    from pathlib import Path
    from workspace_session.errors import WorkspaceBusy
    from workspace_session.files.locks import lock_at

    try:
        lock_at(Path(sys.argv[1])).acquire(timeout=float(sys.argv[2]))
        print("had")
    except WorkspaceBusy:
        print("busy")
"""

COUNT = """
    import sys, threading
    from pathlib import Path
    from workspace_session.files.locks import lock_at

    path, counter = Path(sys.argv[1]), Path(sys.argv[2])

    def count():
        for _ in range(100):
            with lock_at(path):
                counter.write_text(str(int(counter.read_text()) + 1))

    threads = [threading.Thread(target=count) for _ in range(2)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""

FORKING = """
    import os, subprocess, sys, threading
    from pathlib import Path
    from workspace_session.errors import WorkspaceBusy
    from workspace_session.files.locks import lock_at

    path = Path(sys.argv[1])

    def attempt(who, timeout):
        try:
            lock_at(path).acquire(timeout)
            print(who + ": had", flush=True)
            lock_at(path).release()
        except WorkspaceBusy:
            print(who + ": busy", flush=True)

    def in_child(work):
        pid = os.fork()
        if pid == 0:
            work()
            os._exit(0)
        return pid
"""

FORK_WHILE_HELD = (
    FORKING
    + """
    lock = lock_at(path)
    with lock:
        os.waitpid(in_child(lambda: attempt("child", 0.05)), 0)
        subprocess.run([sys.executable, "-c", sys.argv[2], str(path), "0.05"], check=True)
    os.waitpid(in_child(lambda: attempt("child", 10)), 0)
"""
)

FORK_WHILE_A_THREAD_HOLDS = (
    FORKING
    + """
    held, done = threading.Event(), threading.Event()

    def hold():
        with lock_at(path):
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    reader, writer = os.pipe()
    child = in_child(lambda: (os.read(reader, 1), attempt("child", 10)))
    done.set()
    thread.join()
    os.write(writer, b"x")
    os.waitpid(child, 0)
"""
)
