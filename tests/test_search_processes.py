"""Search by several processes at once, and by processes that are killed: the next search is right.

Each test runs a program that forks its workers, so that one start of the interpreter serves many of
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
    import os, random, shutil, signal, sys, time
    from workspace_session import Workspace

    root, engine, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    random.seed(7)

    def said(text):
        return {"role": "user", "parts": [{"type": "text", "text": text}]}

    def opened():
        return Workspace(root, durability="os", search=engine)

    def count(workspace, query):
        return workspace.search(query, 1).total

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
"""


def run(program: str, *arguments: object) -> None:
    ran = subprocess.run(
        [
            sys.executable,
            "-c",
            textwrap.dedent(COMMON) + textwrap.dedent(program),
            *map(str, arguments),
        ],
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert ran.returncode == 0, ran.stderr


@pytest.fixture(params=["whoosh", "sqlite"])
def engine(request):
    return request.param


KILLED = """
    workspace = opened()
    agent = workspace.agent("a")
    for session in range(12):
        agent.tree(f"s{session}").extend([said(f"word s{session} n{n}") for n in range(40)])

    for number in range(rounds):
        pid = os.fork()
        if pid == 0:
            random.seed(number)
            try:
                with opened() as mine:
                    turn = number * 1000
                    while True:
                        turn += 1
                        tree = mine.agent("a").tree(f"k{number}")
                        entry = tree.append(said(f"word extra t{turn}")).entry
                        if turn % 3 == 0:
                            tree.update(entry.id, said(f"word changed t{turn}"))
                        if turn % 7 == 0:
                            mine.reindex()
                        count(mine, "word")
            finally:
                os._exit(1)
        time.sleep(0.02 + random.random() * 0.25)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        there = sum(len(agent.tree(session)) for session in agent.place.session_ids())
        assert count(workspace, "word") == there, number
        with opened() as other:
            assert count(other, "word") == there, number
            assert count(other, "s3 n7") == 1
"""


def test_a_process_killed_while_it_indexes_leaves_the_next_search_right(tmp_path, engine):
    run(KILLED, tmp_path / "w", engine, 12)


TOGETHER = """
    def work(number):
        with opened() as mine:
            tree = mine.agent("a").tree(f"s{number}")
            for turn in range(rounds):
                tree.append(said(f"word p{number} t{turn}"))
                assert count(mine, f"p{number} t{turn}") == 1
                assert mine.agent("a").search(f"p{number}", session=f"s{number}").total == turn + 1
                if number == 0 and turn % 5 == 4:
                    mine.reindex()

    wait(*[fork(lambda number=number: work(number)) for number in range(4)])
    with opened() as workspace:
        assert count(workspace, "word") == 4 * rounds
        assert workspace.verify() == []
"""


def test_processes_that_write_and_search_at_once_see_what_they_wrote(tmp_path, engine):
    run(TOGETHER, tmp_path / "w", engine, 15)


FIRST_TIME = """
    with opened() as workspace:
        for session in range(20):
            workspace.agent("a").tree(f"s{session}").extend([said(f"word n{n}") for n in range(50)])

    def work():
        with opened() as mine:
            assert count(mine, "word") == 1000
            assert count(mine, "n7") == 20

    wait(*[fork(work) for _ in range(4)])
"""


def test_processes_that_find_no_index_make_it_together(tmp_path, engine):
    run(FIRST_TIME, tmp_path / "w", engine, 1)


FORKED = """
    workspace = opened()
    tree = workspace.agent("a").tree("s")
    tree.extend([said(f"word n{n}") for n in range(50)])
    assert count(workspace, "word") == 50

    def work():
        for number in range(rounds):
            assert count(workspace, "word") >= 50

    children = [fork(work) for _ in range(3)]
    for number in range(rounds):
        tree.append(said("word"))
        assert count(workspace, "word") == 51 + number
    wait(*children)
"""


def test_a_forked_child_opens_the_index_for_itself(tmp_path, engine):
    run(FORKED, tmp_path / "w", engine, 20)
