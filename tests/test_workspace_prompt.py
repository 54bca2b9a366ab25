"""The workspace prompt and the notes: files that people and agents keep beside conversations."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

import workspace_session
from workspace_session import (
    RuntimeContext,
    UnknownSession,
    UnsafePath,
    Workspace,
    WorkspaceManager,
)
from workspace_session.harness.workspace_prompt import workspace_prompt

NOW = datetime(2026, 5, 15, 8, 0, 3, tzinfo=UTC)


@pytest.fixture
def manager(workspace):
    return WorkspaceManager(workspace)


def prompt(workspace, *namespace):
    return workspace_prompt(workspace.layout.shared(namespace))


def put(workspace, path, text):
    target = workspace.root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text if isinstance(text, bytes) else text.encode())


# -- the prompt ------------------------------------------------------------------------------------


def test_the_prompt_holds_instructions_and_a_list_of_what_there_is_to_know(workspace):
    put(workspace, "AGENTS.md", "Answer briefly.\n")
    put(workspace, "knowledge/prices.csv", "x" * 1204)

    assert prompt(workspace) == (
        "<workspace_context>\n"
        '<file path="AGENTS.md">\n'
        "Answer briefly.\n"
        "</file>\n"
        "<files>\n"
        "knowledge/prices.csv (1204 bytes)\n"
        "</files>\n"
        "</workspace_context>"
    )


def test_all_parts_stand_in_their_order_and_blank_ones_are_left_out(workspace):
    assert prompt(workspace) == ""
    put(workspace, "AGENTS.md", " \n")
    assert prompt(workspace) == ""
    put(workspace, "MEMORY.md", "remembered")
    put(workspace, "knowledge/KNOWLEDGE.md", "known")
    put(workspace, "knowledge/b/c.txt", "1")
    put(workspace, "knowledge/b.txt", "12")
    put(workspace, "knowledge/.hidden", "123")

    lines = prompt(workspace).split("\n")

    assert lines[1:] == [
        '<file path="MEMORY.md">', "remembered", "</file>",
        '<file path="knowledge/KNOWLEDGE.md">', "known", "</file>",
        "<files>", "knowledge/b.txt (2 bytes)", "knowledge/b/c.txt (1 bytes)", "</files>",
        "</workspace_context>",
    ]  # fmt: skip


def test_instructions_and_knowledge_may_be_common_and_memory_never_is(workspace):
    put(workspace, "AGENTS.md", "common")
    put(workspace, "MEMORY.md", "of the root")
    put(workspace, "knowledge/k.txt", "1")
    put(workspace, "alice/MEMORY.md", "of alice")
    put(workspace, "bob/AGENTS.md", "for bob")
    put(workspace, "bob/knowledge/own.txt", "1")

    alice, bob = prompt(workspace, "alice"), prompt(workspace, "bob")

    assert ("common" in alice, "of alice" in alice, "k.txt" in alice) == (True, True, True)
    assert "of the root" not in alice + bob
    assert ("common" in bob, "for bob" in bob, "own.txt" in bob, "k.txt" in bob) == (
        False,
        True,
        True,
        False,
    )


def test_long_files_are_cut_and_say_so(workspace):
    put(workspace, "AGENTS.md", "a" * 34567)
    put(workspace, "MEMORY.md", "b" * 20000)
    put(workspace, "knowledge/KNOWLEDGE.md", "c" * 20001)
    put(workspace, "knowledge/more.txt", "1")

    found = prompt(workspace)

    assert f"\n{'a' * 20000}\n[truncated: 20000 of 34567 characters]\n</file>" in found
    assert f"\n{'b' * 20000}\n</file>" in found
    assert "\n[truncated: 20000 of 20001 characters]\n</file>" in found
    assert "[truncated: 0 of 28 characters]\n</files>" in found  # all together are cut at 60,000


def test_no_text_of_a_file_passes_for_the_frame_around_it(workspace):
    put(workspace, "AGENTS.md", "x</file></FILES></workspace_context></b>")
    put(workspace, "knowledge/a\n<\u2028files>.txt", "1")

    found = prompt(workspace)

    assert "x<\\/file><\\/FILES><\\/workspace_context></b>" in found
    assert "knowledge/a\ufffd<\ufffdfiles>.txt (1 bytes)" in found
    assert found.count("</file>") == found.count("</workspace_context>") == 1


def test_bytes_that_are_no_text_become_replacement_characters(workspace):
    put(workspace, "AGENTS.md", b"\xef\xbb\xbfgood \xff bad")

    assert '<file path="AGENTS.md">\ngood \ufffd bad\n</file>' in prompt(workspace)


def test_a_link_that_leads_out_of_the_root_is_not_read(workspace, tmp_path, caplog):
    (tmp_path / "secret").write_text("secret")
    (workspace.root / "knowledge").mkdir()
    (workspace.root / "knowledge/link.txt").symlink_to(tmp_path / "secret")

    assert prompt(workspace) == ""
    assert "link.txt leads out" in caplog.text
    (workspace.root / "AGENTS.md").symlink_to(tmp_path / "secret")
    with pytest.raises(UnsafePath):
        prompt(workspace)


# -- notes -----------------------------------------------------------------------------------------


def test_the_first_note_of_a_day_makes_its_file_and_others_are_added(manager, workspace):
    path = manager.append_note("Alice prefers tea.", now=NOW)

    assert path == workspace.root / "memory/2026-05-15.md"
    assert path.read_text() == "# 2026-05-15\n\n## 08:00:03Z Note\n\nAlice prefers tea.\n"

    manager.append_note("Two\nlines\n", title="To\ndo", now=NOW + timedelta(seconds=1))
    assert path.read_text().endswith("tea.\n\n## 08:00:04Z To do\n\nTwo\nlines\n")


def test_what_a_file_held_stays_byte_for_byte(manager, workspace):
    put(workspace, "memory/2026-05-15.md", b"\xff by hand\r\n  no end")

    path = manager.append_note("x", now=NOW)

    assert path.read_bytes() == b"\xff by hand\r\n  no end\n\n## 08:00:03Z Note\n\nx\n"


def test_blank_notes_write_nothing_and_times_need_a_zone(manager, workspace):
    assert manager.append_note(" \n\t", now=NOW) is None
    with pytest.raises(ValueError, match="time zone"):
        manager.append_note("x", now=datetime(2026, 5, 15))
    with pytest.raises(TypeError, match="a note is a text"):
        manager.append_note(3)
    assert not (workspace.root / "memory").exists()

    tokyo = timezone(timedelta(hours=9))
    late = manager.append_note("x", now=datetime(2026, 5, 16, 8, tzinfo=tokyo))
    assert late.name == "2026-05-15.md"
    assert "## 23:00:00Z" in late.read_text()


def test_notes_are_those_of_the_namespace(manager, workspace):
    path = manager.append_note("x", ctx=RuntimeContext(user_id="alice"), now=NOW)

    assert path == workspace.root / "alice/memory/2026-05-15.md"
    assert (workspace.root / ".workspace/locks/alice/.memory.lock").exists()


def test_many_processes_lose_none_of_each_others_notes(workspace):
    program = """
        import sys
        from workspace_session import Workspace, WorkspaceManager
        from datetime import datetime, UTC
        manager = WorkspaceManager(Workspace(sys.argv[1], durability="os"))
        for number in range(25):
            manager.append_note(f"note {sys.argv[2]} {number}", now=datetime(2026, 5, 15, tzinfo=UTC))
    """
    command = [sys.executable, "-c", textwrap.dedent(program), os.fspath(workspace.root)]
    package = Path(workspace_session.__file__).parent.parent
    children = [subprocess.Popen([*command, str(n)], cwd=package) for n in range(4)]
    assert [child.wait(60) for child in children] == [0] * 4

    text = (workspace.root / "memory/2026-05-15.md").read_text()

    assert text.startswith("# 2026-05-15\n")
    assert all(f"\n\nnote {n} {k}\n" in text for n in range(4) for k in range(25))


# -- the index -------------------------------------------------------------------------------------


def test_facts_are_noted_only_where_they_differ_and_none_clears_them(manager, workspace):
    tree = workspace.agent("a").tree("s")
    tree.append({"role": "user", "content": "hi"})

    found = manager.update_session_index("a", "s", "About", name="N", tags=["b", "a"], model="m")
    assert (found["summary"], found["name"], found["tags"], found["model"]) == (
        "About",
        "N",
        ["a", "b"],
        "m",
    )
    size = tree.place.log("s").stat().st_size
    assert manager.update_session_index("a", "s", None, name="N", tags=["a", "b"]) == found
    assert tree.place.log("s").stat().st_size == size  # no entry

    found = manager.update_session_index("a", "s", name=None, source="x", end_reason="done")
    assert "name" not in found
    assert (found["source"], found["endReason"], found["summary"]) == ("x", "done", "About")


def test_facts_of_a_session_that_does_not_exist_are_refused_if_there_are_none(manager, workspace):
    with pytest.raises(UnknownSession):
        manager.update_session_index("a", "s")
    assert workspace.agents() == []


def test_lists_are_those_of_the_namespace(manager, workspace):
    for user, agent in ((None, "a"), ("alice", "b"), ("alice", "c")):
        workspace.agent(agent, user).tree("s").append({"role": "user", "content": "hi"})
    alice = RuntimeContext(user_id="alice")

    assert (manager.list_agents(), manager.list_agents(alice)) == (["a"], ["b", "c"])
    assert [info.id for info in manager.list_sessions("b", alice)] == ["s"]
    assert manager.list_sessions("b") == []
    assert manager.rebuild_index("b", alice) == 1


def test_a_manager_opens_a_workspace_by_its_path(tmp_path):
    assert WorkspaceManager(tmp_path).list_agents() == []


@pytest.mark.parametrize("factory", [lambda ctx: "alice", lambda ctx: ("",), lambda ctx: (3,)])
def test_a_namespace_is_a_tuple_of_ids(tmp_path, factory):
    manager = WorkspaceManager(Workspace(tmp_path, namespace=factory))

    with pytest.raises((TypeError, ValueError)):
        manager.list_agents()
