"""`sessions.json`: derived, in one fixed format, and never trusted further than the logs."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import subprocess
import sys
import time

import pytest

from workspace_session import Workspace

GOLDEN = """{
  "sessions": {
    "sess-001": {
      "createdAt": "2026-05-15T08:00:00.000000Z",
      "logBytes": %d,
      "messageCount": 2,
      "summary": "hi",
      "updatedAt": "2026-05-15T08:00:03.120000Z"
    }
  },
  "version": 1
}
"""


def said(text: str, message_id: str | None = None, role: str = "user") -> dict:
    named = {} if message_id is None else {"id": message_id}
    return {**named, "role": role, "parts": [{"type": "text", "text": text}]}


def index_of(agent) -> dict:
    agent.sessions()
    return json.loads(agent.place.index.read_bytes())


def member_of(agent, session_id: str) -> dict:
    return index_of(agent)["sessions"][session_id]


@pytest.fixture
def golden(agent):
    """A session whose bytes are known."""
    log = b"".join(
        json.dumps(entry, separators=(",", ":")).encode() + b"\n"
        for entry in (
            {"type": "session", "id": "sess-001", "timestamp": "2026-05-15T08:00:00.000000Z",
             "version": 1, "agent": "a"},
            {"type": "message", "id": "m1", "timestamp": "2026-05-15T08:00:01.000000Z",
             "parentId": None, "message": said("hi")},
            {"type": "message", "id": "m2", "timestamp": "2026-05-15T08:00:03.120000Z",
             "parentId": "m1", "message": said("hello", role="assistant")},
        )
    )  # fmt: skip
    agent.place.sessions.mkdir(parents=True)
    for path in (agent.place.log("sess-001"), agent.place.tree("sess-001")):
        path.write_bytes(log)
    return log


def busy(agent) -> None:
    """Sessions of many kinds."""
    for number in range(5):
        tree = agent.tree(f"s{number}")
        tree.extend([said("x" * 300, f"m{n}") for n in range(6)])
        tree.label("m1", "good")
        tree.annotate(name=f"Trip {number}", tags=["b", "a"], end_reason="done")
        tree.add_usage(input_tokens=5, output_tokens=2, cost=0.1)
        tree.add_usage(input_tokens=5, output_tokens=2, cost=0.2)
        tree.compact("short", "m0", "m4")
        tree.delete(["m5"])
    agent.tree("a/b").append(
        {"role": "assistant", "parts": [{"type": "tool-x", "toolCallId": "c1"}]}
    )
    agent.tree("empty").annotate(model="none")
    agent.tree("s1").clear()


# -- what it says --------------------------------------------------------------------------------------


def test_the_format_is_this(agent, golden):
    agent.sessions()

    assert agent.place.index.read_text() == GOLDEN % len(golden)


def test_keys_are_original_ids(agent):
    for session_id in ("a/b", "..", "用户-7", "s.log"):
        agent.tree(session_id).append(said("hi"))

    assert sorted(index_of(agent)["sessions"]) == sorted(["a/b", "..", "用户-7", "s.log"])


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("hello", "hello"),
        ("  hello \n\t there\u3000you ", "hello there you"),
        ("x" * 120, "x" * 120),
        ("x" * 121, "x" * 120 + "…"),
        ("word " * 100, ("word " * 24)[:120] + "…"),
    ],
)
def test_the_summary_is_the_first_text_of_a_user_on_one_line(agent, text, summary):
    agent.tree("s").append(said("not a user", role="assistant"))
    agent.tree("s").append(said("   "))
    agent.tree("s").append(said(text))
    agent.tree("s").append(said("later"))

    assert member_of(agent, "s")["summary"] == summary


def test_a_summary_that_was_given_wins_until_it_is_cleared(agent):
    tree = agent.tree("s")
    tree.append(said("first"))

    tree.annotate(summary="given")
    assert member_of(agent, "s")["summary"] == "given"
    tree.annotate(summary=None)
    assert member_of(agent, "s")["summary"] == "first"


def test_without_any_text_the_summary_is_empty(agent):
    agent.tree("s").append(said("hi", role="assistant"))

    assert member_of(agent, "s")["summary"] == ""


def test_five_fields_are_always_there_and_the_others_only_when_known(agent):
    agent.tree("s").append(said("hi"))

    assert sorted(member_of(agent, "s")) == [
        "createdAt", "logBytes", "messageCount", "summary", "updatedAt",
    ]  # fmt: skip


def test_the_other_fields_say_what_the_entries_say(agent):
    tree = agent.tree("s")
    tree.start(parent_session="old")
    tree.append(said("hi", "m1"))
    tree.annotate(name="N", model="M", source="S", end_reason="E", tags=["b", "a"], mood="fine")
    tree.add_usage(input_tokens=5, output_tokens=2, cost=0.25)
    tree.add_usage(input_tokens=1)
    tree.label("m1", "good")

    member = member_of(agent, "s")

    assert {name: member[name] for name in member if name not in ("createdAt", "updatedAt")} == {
        "summary": "hi", "messageCount": 1, "logBytes": agent.place.log("s").stat().st_size,
        "name": "N", "model": "M", "source": "S", "endReason": "E", "tags": ["a", "b"],
        "parentSessionId": "old", "inputTokens": 6, "outputTokens": 2, "cost": 0.25,
        "labels": {"m1": "good"},
    }  # fmt: skip


def test_a_fact_that_is_cleared_is_left_out(agent):
    agent.tree("s").annotate(name="N", tags=["a"])
    agent.tree("s").annotate(name=None, tags=None)

    assert not {"name", "tags"} & member_of(agent, "s").keys()


def test_messages_on_all_branches_count_but_not_deleted_and_cleared_ones(agent):
    tree = agent.tree("s")
    tree.append(said("cleared"))
    tree.clear()
    tree.extend([said("x", f"m{n}") for n in range(4)])
    tree.append(said("branch"), "m0")
    tree.compact("short", "m0", "m2")
    tree.delete(["m3"])

    assert member_of(agent, "s")["messageCount"] == 4


def call(call_id: str) -> dict:
    part = {"type": "tool-search", "toolCallId": call_id, "input": {}, "state": "input-available"}
    return {"role": "assistant", "parts": [part]}


def result(call_id: str) -> dict:
    return {"role": "tool", "tool_call_id": call_id, "content": "found"}


def test_tool_calls_without_a_result_on_the_path_of_the_tip_are_named(agent):
    tree = agent.tree("s")
    tree.append({**call("c0"), "id": "m0"})
    tree.append({**call("c1"), "id": "m1"})
    tree.append(result("c0"))
    assert member_of(agent, "s")["danglingToolCalls"] == ["c1"]

    tree.set_leaf("m0")
    assert member_of(agent, "s")["danglingToolCalls"] == ["c0"]


def test_sessions_come_newest_first_and_those_with_only_state_last(agent):
    agent.tree("b").append(said("hi"))
    agent.tree("a").append(said("hi"))
    agent.tree("b").append(said("again"))
    agent.state.save("only-state", "memory", {"x": 1})
    agent.state.save("a", "memory", {"x": 1})

    found = agent.sessions()

    assert [info.id for info in found] == ["b", "a", "only-state"]
    assert (found[-1].message_count, found[-1].created_at, found[-1].updated_at) == (0, None, None)
    assert "only-state" not in index_of(agent)["sessions"]


def test_a_session_is_listed_as_its_handle_describes_it(workspace):
    agent = workspace.agent("a", user="alice")
    busy(agent)

    for info in agent.sessions():
        assert agent.tree(info.id).info() == info


# -- derived, and nothing but ------------------------------------------------------------------------------


def test_deleting_it_and_making_it_anew_gives_the_same_bytes(workspace, agent):
    busy(agent)
    agent.sessions()
    before = agent.place.index.read_bytes()

    agent.place.index.unlink()
    agent.sessions()
    assert agent.place.index.read_bytes() == before

    agent.rebuild()
    assert agent.place.index.read_bytes() == before
    agent.place.index.unlink()
    Workspace(workspace.root, durability="os").agent("a").sessions()
    assert agent.place.index.read_bytes() == before


def test_closing_a_workspace_writes_the_same_as_asking_does(workspace, agent):
    busy(agent)

    workspace.close()
    closed = agent.place.index.read_bytes()
    agent.place.index.unlink()
    agent.sessions()

    assert agent.place.index.read_bytes() == closed


def test_what_another_process_wrote_is_seen_when_asked(workspace, agent):
    agent.tree("s").append(said("hi"))
    assert agent.sessions()[0].message_count == 1
    other = Workspace(workspace.root, durability="os").agent("a")

    other.tree("s").append(said("more"))
    other.tree("t").append(said("new"))

    assert {info.id: info.message_count for info in agent.sessions()} == {"s": 2, "t": 1}


def test_only_sessions_whose_log_has_another_size_are_read_again(agent, golden):
    agent.tree("other").append(said("hi"))
    agent.sessions()
    index = json.loads(agent.place.index.read_bytes())
    index["sessions"]["sess-001"]["summary"] = "not read again"
    agent.place.index.write_text(json.dumps(index))

    agent.tree("other").append(said("more"))

    assert {info.id: info.summary for info in agent.sessions()} == {
        "sess-001": "not read again",
        "other": "hi",
    }


def test_sessions_that_are_gone_leave_it(agent):
    agent.tree("s").append(said("hi"))
    agent.tree("t").append(said("hi"))
    agent.sessions()

    agent.delete("s")
    agent.place.log("t").unlink()
    agent.place.tree("t").unlink()

    assert index_of(agent)["sessions"] == {}


def test_a_session_whose_log_was_lost_is_still_listed(agent):
    agent.tree("s").append(said("hi"))
    agent.place.log("s").unlink()

    assert member_of(agent, "s")["messageCount"] == 1
    assert member_of(agent, "s")["logBytes"] == 0


def test_listing_the_sessions_of_nobody_makes_no_files(workspace):
    agent = workspace.agent("never")

    assert agent.sessions() == []

    assert not agent.place.directory.exists()
    assert workspace.agents() == []


# -- members of others ----------------------------------------------------------------------------------------


def test_unknown_members_survive_every_update_and_so_does_the_version(agent):
    agent.tree("s").append(said("hi"))
    agent.sessions()
    index = json.loads(agent.place.index.read_bytes())
    index["theirs"] = {"x": [1]}
    index["version"] = 7
    index["sessions"]["s"]["colour"] = "blue"
    agent.place.index.write_text(json.dumps(index))

    agent.tree("s").append(said("more"))
    agent.tree("t").append(said("new"))
    agent.sessions()
    agent.rebuild()

    found = json.loads(agent.place.index.read_bytes())
    assert found["theirs"] == {"x": [1]}
    assert found["version"] == 7
    assert found["sessions"]["s"]["colour"] == "blue"
    assert found["sessions"]["s"]["messageCount"] == 2


def test_a_known_member_that_no_longer_holds_does_not_survive(agent):
    agent.tree("s").annotate(name="N")
    agent.sessions()
    agent.tree("s").annotate(name=None)

    assert "name" not in member_of(agent, "s")


@pytest.mark.parametrize(
    "content",
    [
        b"", b"  ", b"{", b"[]", b"5", b"null", b'{"sessions":[]}', b'{"version":1}', b"\xff\xfe\x00",
        b'<<<<<<< ours\n{"sessions":{}}\n=======\n{"sessions":{}}\n>>>>>>> theirs\n',
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_set_aside_and_made_anew(agent, golden, content, caplog):
    caplog.set_level(logging.CRITICAL, "workspace_session")
    agent.place.index.write_bytes(content)
    assert [problem.what for problem in agent.verify()] == ["the index cannot be read"]

    assert [info.id for info in agent.sessions()] == ["sess-001"]

    aside = [path for path in agent.place.sessions.iterdir() if "corrupt" in path.name]
    assert [path.read_bytes() for path in aside] == [content]
    assert re.fullmatch(r"sessions\.json\.corrupt-\d{8}T\d{6}Z", aside[0].name)
    assert agent.place.index.read_text() == GOLDEN % len(golden)
    assert agent.verify() == []


@pytest.mark.parametrize("member", [5, None, "x", [], {}, {"logBytes": "many"}])
def test_members_that_are_not_objects_or_say_nothing_are_derived_anew(agent, golden, member):
    root = {"sessions": {"sess-001": member, "ghost": member}, "version": 1}
    agent.place.index.write_text(json.dumps(root))

    assert [info.id for info in agent.sessions()] == ["sess-001"]

    assert member_of(agent, "sess-001")["messageCount"] == 2


def test_a_bom_is_no_harm(agent, golden):
    agent.sessions()
    agent.place.index.write_bytes(b"\xef\xbb\xbf" + agent.place.index.read_bytes())

    assert [info.message_count for info in agent.sessions()] == [2]
    assert agent.verify() == []


# -- failures, and many at once ----------------------------------------------------------------------------------


def test_an_index_that_cannot_be_written_fails_no_append(workspace, agent, caplog):
    caplog.set_level(logging.CRITICAL, "workspace_session")
    agent.place.index.mkdir(parents=True)

    agent.tree("s").append(said("hi"))
    agent.index.flush()
    workspace.close()

    assert len(agent.tree("s")) == 1


def test_a_deleted_session_does_not_keep_the_others_out_of_the_index(workspace, agent):
    gone = agent.tree("gone")
    gone.append(said("hi"))
    other = Workspace(workspace.root, durability="os").agent("a")
    agent.tree("stays").append(said("hi"))
    other.delete("gone")

    agent.index.flush()

    root = json.loads(agent.place.index.read_bytes())
    assert list(root["sessions"]) == ["stays"]


def test_a_session_that_cannot_be_read_does_not_hide_the_others(workspace, agent, caplog, tmp_path):
    caplog.set_level(logging.CRITICAL, "workspace_session")
    agent.tree("s").append(said("hi"))
    outside = tmp_path / "outside.jsonl"
    shutil.copy(agent.place.log("s"), outside)
    agent.place.log("bad").symlink_to(outside)

    assert [info.id for info in agent.sessions()] == ["s"]


PROCESS = """
import sys
from workspace_session import Workspace
with Workspace(sys.argv[1], durability="os") as workspace:
    agent = workspace.agent("a")
    for number in range(5):
        agent.tree(f"{sys.argv[2]}-{number}").append({"role": "user", "parts": []})
        agent.index.flush()
        if number == 2:
            agent.sessions()
"""


def test_temporary_files_of_crashes_are_removed_after_an_hour(agent):
    agent.tree("s").append(said("hi"))
    old, new = (agent.place.sessions / f".s.jsonl.tmp-1-0000000{n}" for n in range(2))
    for path in (old, new):
        path.write_text("torn")
    os.utime(old, (time.time() - 3601,) * 2)

    agent.sessions()

    assert not old.exists()
    assert new.exists()


def test_many_processes_lose_none_of_each_others_sessions(workspace, agent):
    started = [
        subprocess.Popen([sys.executable, "-c", PROCESS, str(workspace.root), str(who)])
        for who in range(6)
    ]
    assert [process.wait(60) for process in started] == [0] * 6

    written = json.loads(agent.place.index.read_bytes())["sessions"]
    assert sorted(written) == sorted(f"{who}-{n}" for who in range(6) for n in range(5))
    assert workspace.verify() == []
