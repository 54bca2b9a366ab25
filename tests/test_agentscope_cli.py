"""`import agentscope` and `export agentscope`, as people use them."""

from __future__ import annotations

import json

import pytest
from terminal import Terminal
from test_agentscope_java import EVERYTHING, MESSAGES, put

from workspace_session import Workspace


@pytest.fixture
def terminal(tmp_path):
    Workspace(tmp_path).close()
    return Terminal(tmp_path)


def test_a_transcript_comes_in_and_goes_out_as_it_was(terminal, tmp_path):
    put(tmp_path / "java", EVERYTHING, "trip.log.jsonl")

    code, out, err = terminal.run(
        "workspace-session import agentscope java/trip.log.jsonl"
        " && workspace-session import agentscope java/trip.log.jsonl"
        " && workspace-session list --json"
        " && workspace-session export agentscope trip out"
    )

    assert (code, err) == (0, "trip: 10 added, 0 known\ntrip: 0 added, 10 known\n")
    sessions, paths = out.split("\n]\n")
    assert json.loads(sessions + "]")[0]["id"] == "trip"
    assert paths.split() == [f"{tmp_path}/out/trip.log.jsonl", f"{tmp_path}/out/trip.jsonl"]
    assert (tmp_path / "out/trip.log.jsonl").read_text("utf-8") == EVERYTHING
    assert Workspace(tmp_path).verify() == []


def test_a_directory_of_transcripts_is_imported_with_what_is_wrong_in_them(terminal, tmp_path):
    put(tmp_path / "java", MESSAGES, "one.jsonl")
    put(tmp_path / "java", MESSAGES + "null\n", "two.log.jsonl")
    put(tmp_path / "java", MESSAGES, "two.jsonl")
    put(tmp_path / "java", "{}", "sessions.json")

    code, out, err = terminal.run(
        "workspace-session import agentscope java --agent Friday --user alice --json"
    )

    reports = json.loads(out)
    assert code == 0
    assert [(one["session"], one["added"], one["skipped"]) for one in reports] == [
        ("one", 3, 0),
        ("two", 3, 1),
    ]
    assert reports[1]["problems"] == [
        {"file": "two.log.jsonl", "line": 4, "reason": "it is not a JSON object"}
    ]
    assert err == (
        "one: 3 added, 0 known\n"
        "two.log.jsonl:4: it is not a JSON object\n"
        "two: 3 added, 0 known, 1 line skipped\n"
    )
    assert (tmp_path / "alice/agents/Friday/sessions/one.jsonl").exists()


def test_state_comes_in_too(terminal, tmp_path):
    put(tmp_path / "java/trip", '{"n":1}', "agent_meta.json")
    put(tmp_path / "java/trip", '{"role":"USER"}\n', "memory_messages.jsonl")

    code, out, err = terminal.run(
        "workspace-session import agentscope --state java/trip --agent Friday"
    )

    assert (code, out) == (0, "")
    assert err == "imported 2 states into session trip: agent_meta, memory_messages\n"
    stored = tmp_path / "agents/Friday/context/trip/agent_meta.json"
    assert stored.read_text() == '{\n  "n": 1\n}\n'


def test_tool_entries_are_there_if_they_are_wanted(terminal, tmp_path):
    call = {"type": "tool_use", "id": "t1", "name": "now", "input": {}}
    message = json.dumps({"id": "m", "role": "assistant", "content": [call]})

    terminal.run(
        f"workspace-session append trip '{message}'"
        " && workspace-session export agentscope trip out --tool-entries"
    )

    (line,) = (tmp_path / "out/trip.jsonl").read_text().splitlines()
    assert json.loads(line)["type"] == "tool_use"


WRONG = [
    ("import agentscope gone.jsonl", 2, "Path 'gone.jsonl' does not exist"),
    ("import agentscope empty", 1, "there are no transcripts in empty"),
    ("import agentscope java --session one", 2, "--session names one session, and there are"),
    ("import agentscope java/a.jsonl --session ''", 1, "invalid session id: empty"),
    ("import agentscope --state java/a.jsonl", 2, "java/a.jsonl is not a directory of state"),
    ("import agentscope --state empty", 1, "there are no state files in empty"),
    ("import agentscope --state broken", 1, "x.json is corrupt"),
    ("export agentscope nothing out", 1, "there is no session 'nothing'"),
    ("export agentscope trip agents/default/sessions", 1, "a workspace keeps its own sessions"),
    ("export agentscope trip java/a.jsonl", 2, "is a file"),
]


def test_what_is_wrong_is_said_in_one_sentence_and_changes_nothing(terminal, tmp_path):
    with Workspace(tmp_path) as workspace:
        workspace.agent("default").tree("trip").append({"role": "user", "content": "hi"})
    put(tmp_path / "java", MESSAGES, "a.jsonl")
    put(tmp_path / "java", MESSAGES, "b.jsonl")
    put(tmp_path / "broken", "{", "x.json")
    (tmp_path / "empty").mkdir()
    before = contents(tmp_path)

    for line, code, sentence in WRONG:
        found, out, err = terminal.run(f"workspace-session {line}")

        assert (found, out, len(err.splitlines())) == (code, "", 1), err
        assert err.startswith("Error: ")
        assert sentence in err
        assert contents(tmp_path) == before, line


def contents(directory):
    files = (path for path in directory.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {path: path.read_bytes() for path in files}
