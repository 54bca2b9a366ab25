"""The command `tail`: what other processes write is printed while they write it."""

from __future__ import annotations

import json
import signal
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from terminal import COMMAND, Terminal

from workspace_session import Workspace
from workspace_session.cli import main

WRITER = """
import sys, time
from workspace_session import Workspace
tree = Workspace(sys.argv[1], durability="disk").agent("a").tree("s")
for _ in range(int(sys.argv[2])):
    said = {"role": "user", "parts": [{"type": "text", "text": repr(time.time())}]}
    tree.append(said)
    time.sleep(0.05)
"""


def said(text: str) -> dict:
    return {"role": "user", "parts": [{"type": "text", "text": text}]}


@pytest.fixture
def workspace(tmp_path):
    with Workspace(tmp_path / "workspace", durability="os") as opened:
        yield opened


def heed_interrupts() -> None:
    """A test run in the background of a shell ignores them, and so would its children."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def tail(workspace, *options):
    """The command as a process that follows by now; it is stopped as people do."""
    process = subprocess.Popen(
        [*COMMAND, "-C", str(workspace.root), "tail", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    )
    try:
        while "following" not in (line := process.stderr.readline()):
            assert line, "it ended"
        yield process
        process.send_signal(signal.SIGINT)
        _out, err = process.communicate(timeout=30)
        assert (process.returncode, err) == (0, "")
    finally:
        process.kill()
        process.communicate()


def test_an_entry_of_another_process_is_shown_within_200_ms(workspace):
    delays = []
    with tail(workspace, "--json") as process:
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(workspace.root), "15"])
        while len(delays) < 15:
            event = json.loads(process.stdout.readline())
            now = time.time()
            delays += [
                now - float(entry["message"]["parts"][0]["text"])
                for entry in event["entries"]
                if entry["type"] == "message"
            ]
        assert writer.wait(timeout=30) == 0

    # Of all but the slowest, since the machine may be busy with other things.
    assert sorted(delays)[-2] < 0.2
    assert statistics.median(delays) < 0.1


def test_json_gives_events_with_entries_as_the_file_has_them(workspace):
    with tail(workspace, "--json") as process:
        workspace.agent("a", user="u").tree("s").append(said("héllo"))
        line = process.stdout.readline()

    log = workspace.agent("a", user="u").place.log("s").read_text().splitlines()
    assert line.startswith(
        '{"event":"entriesAdded","agentId":"a","userId":"u","sessionId":"s","existing":false,'
    )
    assert json.loads(line)["entries"] == [json.loads(entry) for entry in log]
    assert all(entry in line for entry in log)


def test_for_people_each_session_has_a_heading(workspace):
    with tail(workspace) as process:
        workspace.agent("a").tree("s").append(said("one"))
        lines = [process.stdout.readline() for _ in range(3)]
        workspace.agent("b").tree("t").append(said("two"))
        lines += [process.stdout.readline() for _ in range(3)]

    assert (lines[0], lines[3]) == ("s (agent a)\n", "t (agent b)\n")
    assert lines[2].endswith("user: one\n")
    assert lines[5].endswith("user: two\n")


def test_a_session_begins_with_its_last_entries_and_others_are_left_out(workspace):
    tree = workspace.agent("a").tree("s")
    for number in range(20):
        tree.append(said(f"old {number}"))
    with tail(workspace, "s", "--last", "2") as process:
        lines = [process.stdout.readline() for _ in range(3)]
        workspace.agent("b").tree("s").append(said("elsewhere"))
        workspace.agent("a").tree("t").append(said("elsewhere"))
        tree.append(said("new"))
        lines.append(process.stdout.readline())

    ends = [line.split("user: ")[-1] for line in lines]
    assert ends == ["s (agent a)\n", "old 18\n", "old 19\n", "new\n"]


def test_an_agent_that_is_named_may_come_later(workspace):
    with tail(workspace, "--agent", "later", "--json") as process:
        workspace.agent("a").tree("s").append(said("elsewhere"))
        workspace.agent("later").tree("s").append(said("here"))
        event = json.loads(process.stdout.readline())

    assert event["agentId"] == "later"


def test_a_deleted_session_is_told_of(workspace):
    agent = workspace.agent("a")
    agent.tree("s").append(said("one"))
    with tail(workspace, "--json", "--polling") as process:
        agent.delete("s")
        event = json.loads(process.stdout.readline())

    expected = {"event": "sessionRemoved", "agentId": "a", "userId": None, "sessionId": "s"}
    assert event == expected


def test_a_reader_that_goes_away_ends_it(workspace, tmp_path):
    terminal = Terminal(tmp_path / "terminal")
    workspace.agent("a").tree("s").append(said("one"))
    line = f"workspace-session -C {workspace.root} tail s --last 1 | head -n 1"
    process = terminal.start(line)
    deadline = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < deadline:
        workspace.agent("a").tree("s").append(said("more"))
        time.sleep(0.1)
    out, err = process.communicate(timeout=10)

    assert out == "s (agent a)\n"
    assert "Traceback" not in err


def test_a_session_that_is_not_there_is_one_sentence(workspace):
    process = subprocess.run(
        [*COMMAND, "-C", str(workspace.root), "tail", "nobody"],
        capture_output=True,
        text=True,
        timeout=30,
    )

    assert (process.returncode, process.stderr) == (1, "Error: there is no session 'nobody'\n")


def test_the_example_runs(workspace):
    example = main.commands["tail"].epilog.split("\n")[-1].split()

    assert example[:2] == ["workspace-session", "tail"]
    with tail(workspace, *example[2:]):
        pass
