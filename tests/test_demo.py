"""The demo: its story is true, and what it leaves behind is a sound workspace."""

from __future__ import annotations

import re

from click.testing import CliRunner
from terminal import Terminal

from workspace_session import Workspace
from workspace_session.cli import main


def test_the_demo_tells_its_story_and_leaves_what_it_told(tmp_path):
    terminal = Terminal(tmp_path / "home")

    code, told, talk = terminal.run("workspace-session demo place")

    assert (code, talk) == (0, "")
    headings = re.findall(r"^(\d)\. ", told, re.MULTILINE)
    assert headings == ["1", "2", "3", "4", "5", "6"]
    assert "6 of 6 stand in one row" in told
    assert "├─○" in told
    assert "◆" in told
    assert "all is well: 1 agent, 1 session" in told

    workspace = Workspace(tmp_path / "home" / "place", create=False)
    tree = workspace.agent("demo").tree("launch")
    assert len(tree) == 9
    assert len(tree.leaves()) == 2
    assert [item.type for item in tree.context()] == ["message", "compaction", "message"]
    assert {entry.author for entry in tree.path()} == {None, "scout", "critic"}
    assert workspace.verify() == []


def test_the_commands_it_ends_with_can_be_run(tmp_path):
    terminal = Terminal(tmp_path / "home")
    _code, told, _talk = terminal.run("workspace-session demo 'a place'")

    first, second = told.rstrip().splitlines()[-2:]

    code, shown, _talk = terminal.run(f"{first.strip()} && {second.strip()}")
    assert code == 0
    assert "Friday will be dry" in shown


def test_nothing_in_it_is_wider_than_a_terminal(tmp_path):
    terminal = Terminal(tmp_path / "home")

    told = terminal.watch("workspace-session demo place")

    plain = re.sub(r"\x1b\[[\d;]*m", "", told)
    story, _end = plain.split("The workspace is in ")
    assert [
        line for line in story.splitlines() if len(line) > 80 and str(tmp_path) not in line
    ] == []


def test_without_a_directory_it_makes_a_temporary_one(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    result = CliRunner().invoke(main, ["demo"])

    assert result.exit_code == 0
    (made,) = tmp_path.iterdir()
    assert f"The workspace is in {made}." in result.stdout


def test_a_directory_that_is_not_empty_is_refused(tmp_path):
    (tmp_path / "file").touch()

    result = CliRunner().invoke(main, ["demo", str(tmp_path)])

    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
