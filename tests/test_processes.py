"""Real processes on one workspace: none loses what another wrote, and none survives `kill -9` badly."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from workspace_session import Workspace

PREAMBLE = """
import gc, json, os, random, signal, sys, threading, time
from workspace_session import LATEST, Workspace

def said(text, **more):
    return {"role": "user", "parts": [{"type": "text", "text": text}], **more}

root = sys.argv[1]
arguments = json.loads(sys.argv[2])
"""


def start(script: str, root, **arguments) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PREAMBLE + script, str(root), json.dumps(arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=290)
    assert process.returncode == 0, err
    return out


# -- many writers -------------------------------------------------------------------------------------

ONE_SESSION = """
tree = Workspace(root, durability="os").agent("a").tree("s")
for n in range(arguments["count"]):
    if n % 5 == 4:
        tree.extend([said(f"{arguments['who']}-{n}-{part}") for part in range(3)])
    else:
        tree.append(said(f"{arguments['who']}-{n}"))
"""


def expected_texts(who: int, count: int) -> list[str]:
    return [
        text
        for n in range(count)
        for text in ([f"{who}-{n}-{part}" for part in range(3)] if n % 5 == 4 else [f"{who}-{n}"])
    ]


def eight_writers(root, count: int) -> None:
    writers = [start(ONE_SESSION, root, who=who, count=count) for who in range(8)]
    for writer in writers:
        finish(writer)
    workspace = Workspace(root, durability="os")
    path = workspace.agent("a").tree("s").path()
    texts = [entry.message["parts"][0]["text"] for entry in path]
    expected = [text for who in range(8) for text in expected_texts(who, count)]
    assert sorted(texts) == sorted(expected)  # one chain, and on it everything once
    for who in range(8):
        assert [text for text in texts if text.startswith(f"{who}-")] == expected_texts(who, count)
    stamps = [entry.timestamp for entry in path]
    assert stamps == sorted(set(stamps))
    assert workspace.verify() == []


def test_eight_writers_on_one_session_make_one_chain(tmp_path):
    eight_writers(tmp_path, 20)


@pytest.mark.soak
def test_eight_writers_on_one_session_make_one_chain_at_length(tmp_path):
    eight_writers(tmp_path, 1000)


FIFTY_SESSIONS = """
agent = Workspace(root, durability="os").agent("a")
order = list(range(50))
random.Random(arguments["who"]).shuffle(order)
for round in range(arguments["rounds"]):
    for number in order:
        agent.tree(f"s{number}").append(said(f"{arguments['who']}-{round}"))
"""


def fifty_sessions(root, writers: int, rounds: int) -> None:
    started = [start(FIFTY_SESSIONS, root, who=who, rounds=rounds) for who in range(writers)]
    for writer in started:
        finish(writer)
    workspace = Workspace(root, durability="os")
    agent = workspace.agent("a")
    expected = sorted(f"{who}-{round}" for who in range(writers) for round in range(rounds))
    for number in range(50):
        path = agent.tree(f"s{number}").path()
        assert sorted(entry.message["parts"][0]["text"] for entry in path) == expected
    assert {info.id: info.message_count for info in agent.sessions()} == {
        f"s{number}": writers * rounds for number in range(50)
    }
    assert workspace.verify() == []


def test_writers_on_fifty_sessions_lose_nothing(tmp_path):
    fifty_sessions(tmp_path, writers=4, rounds=2)


@pytest.mark.soak
def test_writers_on_fifty_sessions_lose_nothing_at_length(tmp_path):
    fifty_sessions(tmp_path, writers=8, rounds=40)


MIXED = """
rng = random.Random(arguments["who"])
tree = Workspace(root, durability="os").agent("a").tree("s")
stored, gone = [], []
for n in range(arguments["count"]):
    name = f"{arguments['who']}-{n}"
    kind = rng.choice(["append"] * 4 + ["extend", "branch", "compact", "trim", "delete", "update", "leaf"])
    path = [entry.id for entry in tree.path()]
    try:
        if kind == "extend":
            results = tree.extend([said("x" * 300, id=f"{name}-{part}") for part in range(3)])
            stored += [result.entry.id for result in results]
        elif kind == "compact" and len(path) > 6:
            tree.compact(f"summary {name}", path[rng.randrange(3)], path[-3])
        elif kind == "trim":
            tree.trim()
        elif kind == "delete" and path:
            gone += tree.delete([rng.choice(path)])
        elif kind == "update" and path:
            tree.update(rng.choice(path), said(f"updated {name}"))
        elif kind == "leaf" and path:
            tree.set_leaf(rng.choice(path))
        elif kind == "branch" and path:
            stored.append(tree.append(said("x" * 300, id=name), rng.choice(path)).entry.id)
        else:
            stored.append(tree.append(said("x" * 300, id=name)).entry.id)
    except (LookupError, ValueError):
        pass  # another process was faster: the message is gone
print(json.dumps([stored, gone]))
"""


def mixed_writers(root, count: int) -> None:
    writers = [start(MIXED, root, who=who, count=count) for who in range(4)]
    outcomes = [json.loads(finish(writer)) for writer in writers]
    stored = {one for written, _gone in outcomes for one in written}
    gone = [one for _stored, removed in outcomes for one in removed]
    workspace = Workspace(root, durability="os")
    tree = workspace.agent("a").tree("s")
    here = {entry.id for leaf in tree.leaves() for entry in tree.path(leaf)}
    assert len(gone) == len(set(gone))  # two that delete the same message are not both told so
    assert here == stored - set(gone)
    assert len(tree) == len(here)
    assert workspace.verify() == []
    for path in (workspace.agent("a").place.tree("s"), workspace.agent("a").place.index):
        path.unlink(missing_ok=True)
    made_anew = workspace.agent("a").tree("s")
    assert [item.id for item in made_anew.context()] == [item.id for item in tree.context()]


def test_writers_that_branch_delete_compact_and_trim_agree_in_the_end(tmp_path):
    mixed_writers(tmp_path, 60)


@pytest.mark.soak
def test_writers_that_branch_delete_compact_and_trim_agree_in_the_end_at_length(tmp_path):
    mixed_writers(tmp_path, 1500)


THREADS = """
agent = Workspace(root, durability="os").agent("a")
shared = agent.tree("s")
def work(who):
    own = agent.tree("s")
    for n in range(15):
        (shared if n % 2 else own).append(said(f"{who}-{n}"))
threads = [threading.Thread(target=work, args=(f"{arguments['who']}-{number}",)) for number in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_threads_that_share_a_handle_and_threads_that_do_not_make_one_chain(tmp_path):
    for writer in [start(THREADS, tmp_path, who=who) for who in range(2)]:
        finish(writer)

    workspace = Workspace(tmp_path, durability="os")
    texts = [e.message["parts"][0]["text"] for e in workspace.agent("a").tree("s").path()]
    assert sorted(texts) == sorted(
        f"{who}-{thread}-{n}" for who in range(2) for thread in range(4) for n in range(15)
    )
    assert workspace.verify() == []


FORKED = """
tree = Workspace(root, durability="os").agent("a").tree("s")
tree.append(said("parent before"))
children = []
for child in range(4):
    pid = os.fork()
    if pid == 0:
        tree.append(said(f"child {child}"))
        os._exit(0)
    children.append(pid)
for pid in children:
    assert os.waitpid(pid, 0)[1] == 0
tree.append(said("parent after"))
"""


def test_a_handle_that_is_carried_over_a_fork_works_in_both_processes(tmp_path):
    finish(start(FORKED, tmp_path))

    workspace = Workspace(tmp_path, durability="os")
    texts = [e.message["parts"][0]["text"] for e in workspace.agent("a").tree("s").path()]
    assert texts[0] == "parent before"
    assert texts[-1] == "parent after"
    assert sorted(texts[1:-1]) == [f"child {n}" for n in range(4)]
    assert workspace.verify() == []


FORKED_AMONG_THREADS = """
agent = Workspace(root, durability="os").agent("a")
tree = agent.tree("s")
tree.append(said("before"))
agent.search("before")  # what a thread imports while its process forks, Python itself never gets over
over = threading.Event()

def write():
    while not over.is_set():
        tree.append(said("of a thread"))
        agent.search("thread")

threads = [threading.Thread(target=write) for _ in range(3)]
for thread in threads:
    thread.start()
children = []
for child in range(10):
    time.sleep(0.02)
    pid = os.fork()
    if pid == 0:
        signal.alarm(200)  # what waits for a thread that is not here would wait for ever
        tree.append(said(f"child {child}"))
        assert agent.search(f'"child {child}"').total == 1
        assert gc.isenabled()
        os._exit(0)
    children.append(pid)
print([os.waitpid(pid, 0)[1] for pid in children])
over.set()
for thread in threads:
    thread.join()
"""


def test_a_child_does_not_wait_for_the_threads_of_its_parent(tmp_path):
    assert json.loads(finish(start(FORKED_AMONG_THREADS, tmp_path))) == [0] * 10

    workspace = Workspace(tmp_path, durability="os")
    texts = [e.message["parts"][0]["text"] for e in workspace.agent("a").tree("s").path()]
    assert {text for text in texts if text.startswith("child")} == {f"child {n}" for n in range(10)}
    assert workspace.verify() == []


READERS = """
tree = Workspace(root, durability="os").agent("a").tree("s")
seen = 0
until = time.monotonic() + arguments["seconds"]
while time.monotonic() < until:
    fresh = Workspace(root, durability="os").agent("a").tree("s") if seen % 2 else tree
    path = fresh.path()
    assert len(path) >= seen, (len(path), seen)
    batch = [e.message["parts"][0]["text"] for e in path if e.batch is not None]
    assert len(batch) % 3 == 0, batch
    end = fresh.tail(1)
    assert not path or end[-1].timestamp >= path[-1].timestamp
    seen = len(path)
print(seen)
"""


def test_readers_see_a_session_grow_and_never_a_part_of_a_batch(tmp_path):
    Workspace(tmp_path, durability="os").agent("a").tree("s").append({"role": "user", "parts": []})
    readers = [start(READERS, tmp_path, seconds=1.5) for _ in range(2)]

    finish(start(ONE_SESSION, tmp_path, who=0, count=200))

    assert all(int(finish(reader)) >= 1 for reader in readers)
    assert Workspace(tmp_path).verify() == []


# -- kill -9 ------------------------------------------------------------------------------------------

# A child writes and acknowledges on a pipe until its parent kills it; then the next one is forked.
KILLED = """
def write_until_killed(pipe, round):
    rng = random.Random(round)
    agent = Workspace(root, durability=arguments["durability"]).agent("a")
    tree = agent.tree("s")
    n = 0
    while True:
        n += 1
        name = f"{round}-{n}"
        kind = rng.choice(["append", "append", "extend", "branch", "compact", "update", "trim"])
        stored, gone = [], None
        if kind == "extend":
            stored = [r.entry.id for r in tree.extend([said("x" * 200, id=f"{name}-{i}") for i in range(5)])]
        elif kind == "branch" and len(tree):
            parent = rng.choice(tree.path()).id
            stored = [tree.append(said("branch", id=name), parent).entry.id]
        elif kind == "compact" and len(tree.path()) > 20:
            path = tree.path()
            tree.compact(f"summary {name}", path[0].id, path[-5].id)
        elif kind == "update" and tree.leaf:
            tree.update(tree.leaf, said(f"updated {name}"))
        elif kind == "trim":
            tree.trim()
        else:
            stored = [tree.append(said("plain", id=name)).entry.id]
        os.write(pipe, (json.dumps([kind, stored]) + "\\n").encode())

rng = random.Random(arguments["seed"])
acknowledged = []
until = time.monotonic() + arguments["seconds"]
rounds = 0
# However slow the machine is, some rounds are to get somewhere.
while time.monotonic() < until or rounds <= 5 or sum(len(ids) for _, ids in acknowledged) <= 20:
    rounds += 1
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            write_until_killed(writing, rounds)
        finally:
            os._exit(1)
    os.close(writing)
    time.sleep(rng.random() * 0.03)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, status
    with os.fdopen(reading, "rb") as pipe:
        for line in pipe.read().split(b"\\n")[:-1]:
            acknowledged.append(json.loads(line))
print(json.dumps({"rounds": rounds, "acknowledged": acknowledged}))
"""


def killed_again_and_again(root, *, seconds: float, durability: str) -> None:
    done = json.loads(finish(start(KILLED, root, seconds=seconds, seed=1, durability=durability)))
    stored = [one for _kind, ids in done["acknowledged"] for one in ids]
    assert done["rounds"] > 5
    assert len(stored) > 20

    workspace = Workspace(root, durability="os")
    tree = workspace.agent("a").tree("s")
    found = [entry.id for entry in tree.log() if entry.type == "message"]
    assert set(stored) <= set(found)
    assert len(found) == len(set(found)) == len(tree)
    assert all(tree.get(one).message for one in stored)
    batches: dict[str, int] = {}
    for entry in tree.log():
        if entry.batch is not None:
            batches[entry.batch.id] = batches.get(entry.batch.id, 0) + 1
    assert set(batches.values()) <= {5}
    tree.append({"role": "user", "parts": [], "id": "last"})
    assert workspace.verify() == []


def test_after_kill_9_in_a_loop_every_acknowledged_write_is_there(tmp_path):
    killed_again_and_again(tmp_path, seconds=2, durability="os")


def test_so_it_is_with_every_write_synced(tmp_path):
    killed_again_and_again(tmp_path, seconds=1.5, durability="disk")


@pytest.mark.soak
def test_after_kill_9_for_minutes_every_acknowledged_write_is_there(tmp_path):
    killed_again_and_again(tmp_path, seconds=120, durability="disk")


KILLED_TOGETHER = """
agent = Workspace(root, durability="os").agent("a")
tree = agent.tree("s")
n = 0
while True:
    n += 1
    result = tree.append(said("x", id=f"{arguments['who']}-{n}"))
    os.write(1, (result.entry.id + "\\n").encode())
"""


def test_a_writer_that_is_killed_does_not_stop_the_others(tmp_path):
    processes = [start(KILLED_TOGETHER, tmp_path, who=who) for who in range(4)]
    acknowledged: list[str] = []
    for process in processes:
        with process:  # which closes the pipes
            assert process.stdout is not None
            first = process.stdout.readline()
            process.kill()
            acknowledged += (first + process.stdout.read()).split("\n")[:-1]

    workspace = Workspace(tmp_path, durability="os")
    path = [entry.id for entry in workspace.agent("a").tree("s").path()]
    assert set(acknowledged) <= set(path)
    assert len(path) == len(workspace.agent("a").tree("s"))
    workspace.agent("a").tree("s").append({"role": "user", "parts": []})
    assert workspace.verify() == []
