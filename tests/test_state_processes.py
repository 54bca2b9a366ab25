"""State stores under several processes, and under processes that are killed.

Each test runs a program that forks its writers, so that one start of the interpreter serves many of
them. The program asserts; the test sees whether it ended well.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import workspace_session

PACKAGE = Path(workspace_session.__file__).parent.parent

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

COMMON = """
    import os, random, signal, sys, time
    from workspace_session.errors import StateConflict
    from workspace_session.files.state import ABSENT, JsonSession

    path, rounds, durability = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    random.seed(7)

    class Box:
        def __init__(self, state=None): self.state = state
        def state_dict(self): return self.state
        def load_state_dict(self, state): self.state = state

    def open_store():
        return JsonSession(path, durability=durability)

    def fork(work):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                work()
                code = 0
            finally:
                os._exit(code)
        return pid

    def wait(*pids):
        for pid in pids:
            assert os.waitpid(pid, 0)[1] == 0

    def killed(work):
        # Run `work(acknowledge)` in a process, kill it at some moment after it has acknowledged
        # something, and give what it acknowledged last.
        reader, writer = os.pipe()
        pid = fork(lambda: work(lambda number: os.write(writer, b" %d" % number)))
        os.close(writer)
        said = os.read(reader, 1)
        time.sleep(random.uniform(0, 0.01))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        while more := os.read(reader, 1 << 16):
            said += more
        os.close(reader)
        return int(said.split()[-1])
"""

KILLED_WHILE_SAVING_MODULES = """
    store, last = open_store(), 0
    store.save_to("s", {name: Box([0]) for name in "abc"})
    for _ in range(rounds):
        def work(acknowledge, start=last + 1):
            for number in range(start, start + 1500):
                store.save_to("s", {name: Box([number] * (number % 50 + 1)) for name in "abc"})
                acknowledge(number)
            time.sleep(60)

        acknowledged = killed(work)
        boxes = {name: Box() for name in "abc"}
        open_store().load_from("s", boxes)
        found = [box.state for box in boxes.values()]
        assert found[0] == found[1] == found[2], found
        number = found[0][0]
        assert number in (acknowledged, acknowledged + 1)
        last = number
"""

KILLED_WHILE_SAVING_A_VALUE = """
    store, last = open_store(), 0
    store.save("s", "k", [0])
    for _ in range(rounds):
        def work(acknowledge, start=last + 1):
            for number in range(start, start + 3000):
                store.save("s", "k", [number] * (number % 90 + 1))
                acknowledge(number)
            time.sleep(60)

        acknowledged = killed(work)
        number = open_store().get("s", "k")[0]
        assert number in (acknowledged, acknowledged + 1)
        last = number
"""

KILLED_WHILE_A_LIST_GROWS = """
    store = open_store()
    store.save_list("s", "l", [])
    for _ in range(rounds):
        items = store.get_list("s", "l")

        def work(acknowledge):
            for number in range(len(items), len(items) + 500):
                items.append({"number": number, "text": "x" * (number % 90)})
                store.save_list("s", "l", items)
                acknowledge(number)
            time.sleep(60)

        acknowledged = killed(work)
        found = open_store().get_list("s", "l")
        assert [item["number"] for item in found] == list(range(len(found)))
        assert len(found) > acknowledged
"""

KILLED_WHILE_THE_KIND_CHANGES = """
    store = open_store()
    store.save("s", "k", [0])
    for _ in range(rounds):
        def work(acknowledge):
            for number in range(1500):
                (store.save if number % 2 else store.save_list)("s", "k", [number])
                acknowledge(number)
            time.sleep(60)

        acknowledged = killed(work)
        found = open_store().get("s", "k")
        assert found[0] in (acknowledged, acknowledged + 1)
        visible = [name for name in os.listdir(path + "/s") if not name.startswith(".")]
        assert len(visible) == 1, visible
"""

COUNTED_BY_TWO = """
    def count():
        store = open_store()
        for _ in range(rounds):
            while True:
                found = store.get_versioned("s", "n", 0)
                try:
                    store.save("s", "n", found.value + 1, if_match=found.etag)
                    break
                except StateConflict:
                    continue

    wait(fork(count), fork(count))
    assert open_store().get("s", "n") == 2 * rounds
"""

CREATED_BY_ONE = """
    def create():
        time.sleep(max(0, begin - time.time()))
        try:
            open_store().save("s", "k", os.getpid(), if_match=ABSENT)
        except StateConflict:
            return
        os.write(writer, b"x")

    reader, writer = os.pipe()
    begin = time.time() + 0.05
    wait(*[fork(create) for _ in range(4)])
    os.close(writer)
    assert os.read(reader, 10) == b"x"
"""

READ_WHILE_WRITTEN = """
    def write():
        for number in range(1, rounds):
            store.save_to("s", {"a": Box(number), "b": Box(number)})
            store.save_list("s", "l", list(range(number % 70)))

    def read():
        latest = 0
        while latest < rounds - 1:
            boxes = {"a": Box(), "b": Box()}
            store.load_from("s", boxes)
            assert boxes["a"].state == boxes["b"].state >= latest
            latest = boxes["a"].state
            assert latest <= store.get("s", "a")
            items = store.get_list_versioned("s", "l")
            assert items.problems == () and items.value == list(range(len(items.value)))

    store = open_store()
    store.save_to("s", {"a": Box(0), "b": Box(0)})
    wait(fork(read), fork(write))
"""

DELETED_WHILE_WRITTEN = """
    def write():
        for number in range(rounds):
            open_store().save_to("s", {"a": Box(number), "b": Box(number)})

    def delete():
        for _ in range(rounds):
            open_store().delete("s")
            for key in open_store().list_keys("s"):
                open_store().get("s", key)

    wait(fork(write), fork(delete))
    store = open_store()
    assert store.list_keys("s") in (["a", "b"], [])
"""


def run(code: str, path: Path, rounds: int, durability: str = "os") -> None:
    program = path / "program.py"  # a file, so that a failed assertion shows its line
    program.write_text(textwrap.dedent(COMMON) + textwrap.dedent(code))
    command = [sys.executable, program, path / "states", str(rounds), durability]
    ended = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(PACKAGE)}, timeout=240)
    assert ended.returncode == 0


CRASHES = pytest.mark.parametrize(
    "code",
    [
        pytest.param(KILLED_WHILE_SAVING_MODULES, id="modules"),
        pytest.param(KILLED_WHILE_SAVING_A_VALUE, id="value"),
        pytest.param(KILLED_WHILE_A_LIST_GROWS, id="list"),
        pytest.param(KILLED_WHILE_THE_KIND_CHANGES, id="kind"),
    ],
)


@CRASHES
@pytest.mark.parametrize("durability", ["os", "disk"])
def test_what_was_acknowledged_survives_a_kill_whole(tmp_path, code, durability):
    run(code, tmp_path, 20, durability)


@pytest.mark.soak
@CRASHES
def test_what_was_acknowledged_survives_a_thousand_kills_whole(tmp_path, code):
    run(code, tmp_path, 1000)


def test_two_processes_that_count_with_etags_lose_nothing(tmp_path):
    run(COUNTED_BY_TWO, tmp_path, 100)


def test_of_several_that_create_only_one_does(tmp_path):
    run(CREATED_BY_ONE, tmp_path, 1)


def test_a_reader_never_sees_half_a_change(tmp_path):
    run(READ_WHILE_WRITTEN, tmp_path, 300)


def test_deleting_while_another_writes_leaves_no_half(tmp_path):
    run(DELETED_WHILE_WRITTEN, tmp_path, 100)
