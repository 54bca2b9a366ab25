"""A workspace as a whole: who lives in it, what is deleted and restored, and what `verify` names."""

from __future__ import annotations

import json
import logging
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from workspace_session import (
    InvalidId,
    NotAWorkspace,
    SessionExists,
    UnknownSession,
    UnsafePath,
    Workspace,
    WorkspaceBusy,
)
from workspace_session.files.locks import lock_at


def said(text: str, message_id: str | None = None) -> dict:
    named = {} if message_id is None else {"id": message_id}
    return {**named, "role": "user", "parts": [{"type": "text", "text": text}]}


def texts(tree) -> list[str]:
    return [item.message["parts"][0]["text"] for item in tree.context()]


def files_below(root: Path) -> list[str]:
    return sorted(
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.is_file() and ".workspace" not in path.parts
    )


@pytest.fixture
def quiet(caplog):
    caplog.set_level(logging.CRITICAL, "workspace_session")


# -- opening ---------------------------------------------------------------------------------------------


def test_opening_a_root_makes_the_root_and_nothing_in_sight(tmp_path):
    workspace = Workspace(tmp_path / "new" / "root")

    assert workspace.root == tmp_path / "new" / "root"
    assert [path.name for path in workspace.root.iterdir()] == [".workspace"]
    assert workspace.agents() == workspace.verify() == []


def test_a_directory_that_is_no_workspace_is_named_when_one_is_asked_for(tmp_path):
    with pytest.raises(NotAWorkspace, match=str(tmp_path)):
        Workspace(tmp_path, create=False)

    assert list(tmp_path.iterdir()) == []


def test_a_clone_without_the_hidden_directory_is_a_workspace(workspace, agent):
    agent.tree("s").append(said("hi"))
    shutil.rmtree(workspace.root / ".workspace")

    cloned = Workspace(workspace.root, create=False)

    assert texts(cloned.agent("a").tree("s")) == ["hi"]


def test_a_workspace_in_which_nothing_can_be_written_can_be_read(workspace, agent, quiet):
    agent.tree("s").append(said("hi"))
    agent.sessions()
    agent.tree("s").append(said("more"))
    shutil.rmtree(workspace.root / ".workspace")
    (workspace.root / ".workspace").write_text("no directory, so there are no locks")

    agent = Workspace(workspace.root, create=False).agent("a")

    assert texts(agent.tree("s")) == ["hi", "more"]
    assert [(info.id, info.message_count) for info in agent.sessions()] == [("s", 2)]
    assert agent.workspace.verify() == []
    with pytest.raises(OSError, match=r"\.workspace"):
        agent.tree("s").append(said("lost"))
    assert texts(agent.tree("s")) == ["hi", "more"]


def test_an_unknown_durability_is_refused(tmp_path):
    with pytest.raises(ValueError, match="durability"):
        Workspace(tmp_path, durability="maybe")


def test_two_spellings_of_a_root_are_one_workspace(workspace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    link = tmp_path / "link"
    link.symlink_to(workspace.root)

    workspace.agent("a").tree("s").append(said("one"))
    Workspace("workspace", durability="os").agent("a").tree("s").append(said("two"))
    Workspace(link, durability="os").agent("a").tree("s").append(said("three"))

    assert texts(workspace.agent("a").tree("s")) == ["one", "two", "three"]


def test_new_files_are_private(agent):
    agent.tree("s").append(said("secret"))
    agent.sessions()

    modes = {path.name: path.stat().st_mode & 0o077 for path in agent.place.sessions.iterdir()}
    assert modes == {"s.jsonl": 0, "s.log.jsonl": 0, "sessions.json": 0}


# -- agents and users ----------------------------------------------------------------------------------------


def test_agents_of_all_users_are_listed_in_order(workspace):
    for agent_id, user in (("b", None), ("a", None), ("a", "zoe"), ("a", "alice"), ("c", "agents")):
        workspace.agent(agent_id, user=user).tree("s").append(said("hi"))

    assert [(agent.user, agent.id) for agent in workspace.agents()] == [
        (None, "a"), (None, "b"), ("agents", "c"), ("alice", "a"), ("zoe", "a"),
    ]  # fmt: skip


def test_users_do_not_see_each_other(workspace):
    workspace.agent("a", user="alice").tree("s").append(said("of alice"))
    workspace.agent("a", user="bob").tree("s").append(said("of bob"))
    workspace.agent("a").tree("s").append(said("of all"))

    assert texts(workspace.agent("a", user="alice").tree("s")) == ["of alice"]
    assert texts(workspace.agent("a", user="bob").tree("s")) == ["of bob"]
    assert texts(workspace.agent("a").tree("s")) == ["of all"]
    assert files_below(workspace.root)[:2] == [
        "agents/a/sessions/s.jsonl",
        "agents/a/sessions/s.log.jsonl",
    ]
    assert workspace.verify() == []


def test_a_user_called_agents_is_an_ordinary_user(workspace):
    workspace.agent("agents", user="agents").tree("agents").append(said("hi"))

    assert files_below(workspace.root)[0] == "%61gents/agents/agents/sessions/agents.jsonl"
    assert [(agent.user, agent.id) for agent in workspace.agents()] == [("agents", "agents")]


def test_deeper_namespaces_are_listed_and_kept_apart(workspace):
    deep = workspace.agent("a", namespace=("org", "team"))
    deep.tree("s").append(said("deep"))
    workspace.agent("a", namespace=("org",)).tree("s").append(said("less deep"))

    assert [agent.place.namespace for agent in workspace.agents()] == [("org",), ("org", "team")]
    assert texts(deep.tree("s")) == ["deep"]
    assert workspace.verify() == []


def test_a_namespace_that_no_listing_would_come_to_is_refused(workspace):
    with pytest.raises(InvalidId, match=r"too deep \(4 parts, at most 3\)"):
        workspace.agent("a", namespace=("org", "team", "user", "device"))


# -- hostile ids -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "..", ".", "../../etc/passwd", "/etc/passwd", "a/b", "a\\b", "con", "NUL.txt", "s.log", "S.LOG",
        "s.jsonl", "sessions", "sessions.json", ".hidden", "a.", "%2e%2e", "%", "a b", " ", "\n", "~",
        "-rf", "用户-7", "😀", "é", "x" * 180, "*?<>|:\"", "\u202e", "\x7f",
    ],
)  # fmt: skip
def test_hostile_ids_are_ordinary_and_never_leave_the_root(workspace, tmp_path, name):
    agent = workspace.agent(name, user=name)
    agent.tree(name).append(said("hi"))

    assert texts(Workspace(workspace.root).agent(name, user=name).tree(name)) == ["hi"]
    assert [info.id for info in agent.sessions()] == [name]
    assert [(found.user, found.id) for found in workspace.agents()] == [(name, name)]
    assert workspace.verify() == []
    assert [path.name for path in tmp_path.iterdir()] == ["workspace"]
    agent.delete(name)
    assert agent.sessions() == []
    agent.restore(name)
    assert texts(agent.tree(name)) == ["hi"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "empty"), ("a\0b", "contains NUL"), ("\ud800", "not valid Unicode"),
        ("e\u0301", "not in Unicode normal form C"), (5, "not a string"), (None, "not a string"),
        ("x" * 181, "too long (181 bytes as a file name, at most 180)"),
        ("/" * 61, "too long (183 bytes as a file name, at most 180)"),
    ],
)  # fmt: skip
def test_ids_that_cannot_name_a_file_are_refused_and_nothing_is_written(workspace, name, reason):
    for attempt in (
        lambda: workspace.agent("a").tree(name),
        lambda: workspace.agent(name),
        lambda: workspace.agent("a", namespace=(name,)),
    ):
        with pytest.raises(InvalidId) as caught:
            attempt()
        assert caught.value.reason == reason
    assert files_below(workspace.root) == []


def test_ids_that_differ_only_in_case_are_refused_where_the_second_is_made(workspace, agent):
    agent.tree("Chat").append(said("hi"))

    with pytest.raises(InvalidId, match='differs only in case from "Chat"'):
        agent.tree("chat").append(said("hi"))
    with pytest.raises(InvalidId, match='differs only in case from "a"'):
        workspace.agent("A").tree("s").append(said("hi"))

    assert texts(agent.tree("Chat")) == ["hi"]
    assert workspace.verify() == []


def test_a_session_never_reads_the_file_of_one_that_differs_in_case(agent):
    """As on a file system that does not tell them apart."""
    agent.tree("Chat").append(said("hi"))
    for path in (agent.place.log, agent.place.tree):
        shutil.copy(path("Chat"), path("chat"))

    with pytest.raises(InvalidId, match='differs only in case from "Chat"'):
        agent.tree("chat").context()


# -- symbolic links ----------------------------------------------------------------------------------------------


@pytest.fixture
def outside(tmp_path):
    directory = tmp_path / "outside"
    directory.mkdir()
    return directory


@pytest.mark.parametrize("which", ["log", "tree"])
def test_a_session_file_that_leads_out_of_the_root_is_neither_read_nor_written(
    agent, outside, which, quiet
):
    agent.tree("s").append(said("hi"))
    victim = outside / "victim.jsonl"
    victim.write_bytes(getattr(agent.place, which)("s").read_bytes())
    before = victim.read_bytes()
    getattr(agent.place, which)("s").unlink()
    getattr(agent.place, which)("s").symlink_to(victim)
    warm = agent.tree("s")

    for attempt in (warm.context, lambda: warm.append(said("x")), lambda: agent.tree("s").tail(1)):
        with pytest.raises(UnsafePath, match=r"agents/a/sessions/s\."):
            attempt()

    assert victim.read_bytes() == before
    assert agent.sessions() == []
    assert any("leads out" in problem.what for problem in agent.verify())


def test_a_handle_notices_when_its_file_becomes_a_link(agent, outside):
    tree = agent.tree("s")
    tree.append(said("hi"))
    moved = outside / "moved.jsonl"
    agent.place.log("s").rename(moved)
    agent.place.log("s").symlink_to(moved)
    before = moved.read_bytes()

    with pytest.raises(UnsafePath):
        tree.append(said("more"))

    assert moved.read_bytes() == before


@pytest.mark.parametrize("level", ["sessions", "agent", "agents"])
def test_a_directory_that_leads_out_of_the_root_is_not_followed(workspace, agent, outside, level):
    place = {
        "sessions": agent.place.sessions,
        "agent": agent.place.directory,
        "agents": agent.place.directory.parent,
    }[level]
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(outside, target_is_directory=True)

    with pytest.raises(UnsafePath):
        agent.tree("s").append(said("hi"))
    with pytest.raises(UnsafePath):
        agent.tree("s").context()
    for attempt in (agent.sessions, agent.rebuild, lambda: agent.delete("s")):
        with pytest.raises(UnsafePath):
            attempt()

    assert files_below(outside) == []
    (problem,) = workspace.verify()
    assert (workspace.root / problem.path, problem.line) == (place, 0)
    assert "leads out of the workspace" in problem.what


def test_states_that_lead_out_of_the_root_are_named(workspace, agent, outside):
    agent.tree("s").append(said("hi"))
    agent.place.context.symlink_to(outside, target_is_directory=True)

    assert [problem.path for problem in workspace.verify()] == ["agents/a/context"]
    with pytest.raises(UnsafePath):
        agent.delete("s")


def test_an_index_that_leads_out_of_the_root_gives_way_to_one_that_does_not(agent, outside):
    agent.tree("s").append(said("hi"))
    victim = outside / "victim.json"
    victim.write_text('{"sessions": {}, "mine": 1}')
    agent.place.index.symlink_to(victim)
    assert [problem.path for problem in agent.verify()] == ["agents/a/sessions/sessions.json"]

    assert [info.id for info in agent.sessions()] == ["s"]

    assert victim.read_text() == '{"sessions": {}, "mine": 1}'
    assert "mine" not in json.loads(agent.place.index.read_bytes())
    assert agent.verify() == []


@pytest.mark.parametrize("name", ["locks", "trash", "search"])
def test_a_workspace_whose_hidden_directories_lead_out_is_not_opened(workspace, outside, name):
    (workspace.root / ".workspace" / name).symlink_to(outside, target_is_directory=True)

    with pytest.raises(UnsafePath, match=rf"\.workspace/{name} leads out"):
        Workspace(workspace.root)


def test_a_link_that_stays_inside_works(agent):
    agent.tree("s").append(said("hi"))
    agent.place.log("s").rename(agent.place.sessions / "elsewhere.bin")
    agent.place.log("s").symlink_to("elsewhere.bin")

    agent.tree("s").append(said("more"))

    assert texts(agent.tree("s")) == ["hi", "more"]


# -- deleting and restoring ------------------------------------------------------------------------------------------


def test_a_deleted_session_is_moved_with_its_state_and_can_be_restored(workspace, agent):
    agent.tree("s").append(said("hi"))
    agent.state.save("s", "memory", {"x": 1})
    before = {name: (workspace.root / name).read_bytes() for name in files_below(workspace.root)}

    gone = agent.delete("s")

    assert re.fullmatch(r"\d{8}T\d{6}Z-[0-9a-f]{8}", gone.directory.name)
    assert gone.directory.parent == workspace.root / ".workspace" / "trash"
    assert files_below(agent.place.directory) in ([], ["sessions/sessions.json"])
    assert (gone.directory / "agents/a/sessions/s.log.jsonl").exists()
    assert (gone.directory / "agents/a/context/s/memory.json").exists()
    assert not agent.tree("s").exists()
    assert [one.session_id for one in agent.trashed()] == ["s"]

    agent.restore("s")

    after = {name: (workspace.root / name).read_bytes() for name in files_below(workspace.root)}
    assert {name: after[name] for name in before} == before
    assert agent.state.get("s", "memory") == {"x": 1}
    assert agent.trashed() == []
    assert workspace.verify() == []


def test_what_is_not_there_can_neither_be_deleted_nor_restored(agent):
    with pytest.raises(UnknownSession):
        agent.delete("s")
    with pytest.raises(UnknownSession):
        agent.restore("s")

    assert agent.trashed() == []


def test_the_last_deletion_is_the_one_restored(agent):
    for number in range(6):
        agent.tree("s").append(said(f"version {number}"))
        agent.delete("s")
        time.sleep(0.02)  # what tells deletions apart is the clock of the file system

    for number in reversed(range(6)):
        agent.restore("s")
        assert texts(agent.tree("s")) == [f"version {number}"]
        shutil.rmtree(agent.place.sessions)


def test_a_session_in_the_way_is_not_overwritten(agent):
    agent.tree("s").append(said("old"))
    agent.delete("s")
    agent.tree("s").append(said("new"))

    with pytest.raises(SessionExists):
        agent.restore("s")

    assert texts(agent.tree("s")) == ["new"]
    assert [one.session_id for one in agent.trashed()] == ["s"]


def test_only_ones_own_trash_is_seen(workspace):
    workspace.agent("a", user="alice").tree("s").append(said("hi"))
    workspace.agent("a", user="alice").delete("s")

    assert workspace.agent("a").trashed() == workspace.agent("a", user="bob").trashed() == []
    with pytest.raises(UnknownSession):
        workspace.agent("a", user="bob").restore("s")


def test_a_session_with_only_state_can_be_deleted_and_restored(agent):
    agent.state.save("s", "memory", {"x": 1})

    agent.delete("s")
    assert agent.state.get("s", "memory") is None

    agent.restore("s")
    assert agent.state.get("s", "memory") == {"x": 1}


# -- verify -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def damaged(agent):
    """A sound session, and a way to add lines to its log and working set."""
    agent.tree("s").extend([said(str(n), f"m{n}") for n in range(3)])

    def add(*entries: dict | bytes, to: tuple[str, ...] = ("log", "tree")) -> None:
        for kind in to:
            with getattr(agent.place, kind)("s").open("ab") as file:
                for entry in entries:
                    line = entry if isinstance(entry, bytes) else json.dumps(entry).encode()
                    file.write(line + b"\n")

    return add


def entry(kind: str, entry_id: str, **fields) -> dict:
    return {"type": kind, "id": entry_id, "timestamp": "2999-01-01T00:00:00.000000Z", **fields}


def named(agent) -> list[tuple[str, int, str]]:
    return [(Path(p.path).name, p.line, p.what) for p in agent.verify()]


def test_a_sound_workspace_has_no_problems(workspace, agent, damaged):
    agent.state.save("s", "memory", {"x": 1})
    agent.sessions()

    assert workspace.verify() == []


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"not json", "not JSON (torn or edited)"),
        (b"[1]", "not a JSON object"),
        (b"<<<<<<< HEAD", "conflict marker"),
        (b'{"type":"message"}', "timestamp is not a time"),
    ],
)
def test_a_line_that_is_no_entry_is_named_in_both_files(agent, damaged, line, what):
    damaged(line)

    assert named(agent) == [("s.jsonl", 5, what), ("s.log.jsonl", 5, what)]


@pytest.mark.parametrize(
    ("added", "what"),
    [
        (
            entry("message", "x", parentId="lost", message={}),
            "message 'x' names a parent that is nowhere: 'lost'",
        ),
        (entry("message", "x", parentId="x", message={}), "message 'x' is its own ancestor"),
        (entry("message", "m1", parentId=None, message={}), "message 'm1' is there twice; the older one is shown"),
        (entry("update", "u", targetId="lost", message={}), "the update 'u' speaks of a message that is nowhere"),
        (entry("delete", "d", targetIds=["lost"]), "the delete 'd' speaks of a message that is nowhere"),
        (entry("leaf", "l", targetId="lost"), "the leaf 'l' speaks of a message that is nowhere"),
        (entry("label", "b", targetId="lost", label="x"), "the label 'b' speaks of a message that is nowhere"),
        (
            entry("compaction", "c", fromId="lost", toId="m1", fromParentId=None, summary="x"),
            "the compaction 'c' speaks of a message that is nowhere",
        ),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)  # fmt: skip
def test_an_entry_that_points_nowhere_is_named_with_its_line(agent, damaged, added, what):
    damaged(added)

    assert named(agent) == [("s.log.jsonl", 5, what)]
    assert [item.id for item in agent.tree("s").path("m2")] == ["m0", "m1", "m2"]


def test_files_that_are_missing_are_named(agent, damaged):
    agent.place.tree("s").unlink()
    assert named(agent) == [("s.jsonl", 0, "the working set is missing")]

    agent.tree("s").rebuild()
    agent.place.log("s").unlink()
    assert named(agent) == [("s.log.jsonl", 0, "the log is missing")]


def test_a_working_set_that_says_other_things_than_the_log_is_named(agent, damaged):
    damaged(entry("info", "i", name="only here"), to=("tree",))

    assert named(agent) == [("s.jsonl", 5, "the info 'i' is not in the log")]


def test_a_working_set_that_lacks_something_is_named(agent, damaged):
    damaged(entry("info", "i", name="only there"), to=("log",))

    assert named(agent) == [
        ("s.jsonl", 0, "the working set lacks 1 of the log's entries, first 'i'")
    ]


def test_a_session_under_the_name_of_another_is_named(agent, damaged):
    for path in (agent.place.log, agent.place.tree):
        path("s").rename(path("other"))

    assert named(agent) == [("other.log.jsonl", 1, "the header is that of session 's'")]


def test_a_log_without_a_header_is_named(agent, damaged):
    for path in (agent.place.log("s"), agent.place.tree("s")):
        path.write_bytes(path.read_bytes().partition(b"\n")[2])

    assert named(agent) == [("s.log.jsonl", 1, "there is no header")]
    agent.tree("s").append(said("mends it"))
    assert named(agent) == []


def test_files_of_others_are_named_and_listed_nowhere(workspace, agent, damaged):
    (agent.place.sessions / "notes.txt").write_text("x")
    (agent.place.sessions / "bad%zz.jsonl").write_text("x")
    (agent.place.sessions / ".hidden").write_text("x")

    assert named(agent) == [
        ("bad%zz.jsonl", 0, "this file is not ours"),
        ("notes.txt", 0, "this file is not ours"),
    ]
    assert [info.id for info in agent.sessions()] == ["s"]


def test_names_among_the_agents_that_are_not_ours_are_named(workspace, agent, outside):
    agent.tree("s").append(said("hi"))
    agents = agent.place.directory.parent
    (agents / "not ours").mkdir()
    (agents / "no agent.txt").write_text("x")
    (agents / "__init__.py").write_text("x")  # of a program that lives here too, and harms nobody
    (agents / ".hidden").write_text("x")
    (agents / "link").symlink_to(outside, target_is_directory=True)

    assert [(Path(problem.path).name, problem.what) for problem in workspace.verify()] == [
        ("link", "this is a link that leads out of the workspace"),
        ("no agent.txt", "this file is not ours"),
        ("not ours", "this file is not ours"),
    ]


def test_problems_of_all_agents_and_users_are_found(workspace):
    for user in (None, "alice"):
        agent = workspace.agent("a", user=user)
        agent.tree("s").append(said("hi"))
        with agent.place.log("s").open("ab") as log:
            log.write(b"torn")

    assert [problem.path for problem in workspace.verify()] == [
        "agents/a/sessions/s.log.jsonl",
        "alice/agents/a/sessions/s.log.jsonl",
    ]


def test_looking_for_problems_changes_nothing(workspace, agent, damaged):
    damaged(b"torn", entry("message", "x", parentId="lost", message={}), to=("log",))
    before = {name: (workspace.root / name).read_bytes() for name in files_below(workspace.root)}

    workspace.verify()

    after = {name: (workspace.root / name).read_bytes() for name in files_below(workspace.root)}
    assert after == before


def test_a_problem_reads_as_place_what_and_remedy(agent, damaged):
    damaged(b"torn", to=("log",))

    assert [str(problem) for problem in agent.verify("s")] == [
        "agents/a/sessions/s.log.jsonl:5: not JSON (torn or edited) "
        "(remove the line by hand; nothing reads it)"
    ]


def test_rebuilding_mends_every_derived_file(workspace, agent, damaged, quiet):
    agent.tree("t").extend([said("x" * 300, f"m{n}") for n in range(8)])
    agent.tree("t").compact("short", "m0", "m6")
    agent.place.tree("s").write_bytes(b"nothing\n")
    agent.place.tree("t").unlink()
    agent.place.index.write_bytes(b"nothing")

    assert workspace.rebuild() == 2

    assert workspace.verify() == []
    assert {info.id: info.message_count for info in agent.sessions()} == {"s": 3, "t": 8}


def test_rebuilding_goes_past_a_session_that_cannot_be_read(agent, outside, quiet):
    agent.tree("bad").append(said("hi"))
    agent.tree("good").append(said("hi"))
    agent.place.tree("good").unlink()
    agent.place.log("bad").unlink()
    agent.place.log("bad").symlink_to(outside / "nowhere")

    assert agent.rebuild() == 1

    assert agent.verify("good") == []


# -- locks ----------------------------------------------------------------------------------------------------------------


HOLDER = """
import sys
from workspace_session import Workspace
from workspace_session.files.locks import lock_at

place = Workspace(sys.argv[1]).agent("a").place
with lock_at(place.session_lock("s")):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_lock_that_is_not_had_in_time_names_its_holder_and_readers_need_none(workspace, agent):
    agent.tree("s").append(said("hi"))
    command = [sys.executable, "-c", HOLDER, str(workspace.root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"

        with pytest.raises(WorkspaceBusy, match=f"process {holder.pid}"):
            lock_at(agent.place.session_lock("s")).acquire(0.05)
        assert texts(agent.tree("s")) == ["hi"]

        holder.stdin.close()


def test_locks_mirror_what_they_guard(workspace):
    agent = workspace.agent("a", user="alice")
    agent.tree("s").append(said("hi"))
    agent.sessions()

    locks = workspace.root / ".workspace" / "locks"
    found = sorted(path.relative_to(locks).as_posix() for path in locks.rglob("*.lock"))
    assert found == ["alice/agents/a/sessions/.index.lock", "alice/agents/a/sessions/s.lock"]
