"""Preparing a workspace for git, with a real git."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from clones import ALONE, Clone, identify, run

from workspace_session.cli import main
from workspace_session.git import GitFailed, Repository, install, installed, status
from workspace_session.git.install import driver

PLAIN_UNION = "git merge-file -q --union %A %O %B"


@pytest.fixture(params=["", "team/notes"], ids=["at the top", "in a directory"])
def clone(tmp_path, request):
    (tmp_path / "repo" / request.param).mkdir(parents=True)
    run(tmp_path / "repo", "init", "-q")
    identify(tmp_path / "repo")
    return Clone(tmp_path / "repo", request.param)


def test_a_directory_that_is_no_repository_is_refused_in_one_sentence(tmp_path):
    with pytest.raises(GitFailed, match=r"is not in a git repository \(git init makes one\)$"):
        Repository(tmp_path)


def test_an_installation_is_complete_and_a_second_one_changes_nothing(clone):
    assert not installed(clone.repository).complete

    first = clone.install()

    assert first
    assert installed(clone.repository).complete
    assert clone.install() == []


def test_derived_files_are_ignored_and_sessions_are_not(clone):
    clone.install()
    clone.say("hi")
    clone.workspace.agent("b", user="eve").tree("t").append({"role": "user", "content": "x"})
    clone.workspace.agent("a").sessions()
    clone.workspace.close()

    clone.commit()

    names = clone.git("ls-files").stdout.split()
    below = [name.removeprefix(clone.repository.prefix) for name in names]
    assert below == [
        ".gitattributes",
        ".gitignore",
        "agents/a/sessions/s.jsonl",
        "agents/a/sessions/s.log.jsonl",
        "eve/agents/b/sessions/t.jsonl",
        "eve/agents/b/sessions/t.log.jsonl",
    ]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("agents/a/sessions/s.log.jsonl", "union"),
        ("eve/agents/a/sessions/s.jsonl", "union"),
        ("agents/a/context/s/items.jsonl", "unspecified"),
        ("MEMORY.md", "unspecified"),
    ],
)
def test_only_session_files_merge_by_union(clone, path, value):
    clone.install()

    shown = run(clone.root, "check-attr", "merge", "eol", "--", path).stdout

    assert f"merge: {value}\n" in shown
    assert ("eol: lf" in shown) == (value == "union")


def test_what_stands_in_the_files_stays(clone):
    (clone.root / ".gitignore").write_text("*.pyc")
    (clone.root / ".gitattributes").write_text("*.png binary\n")

    clone.install()

    assert (clone.root / ".gitignore").read_text().startswith("*.pyc\n/.workspace/\n")
    assert (clone.root / ".gitattributes").read_text().startswith("*.png binary\n**/agents/")


def test_a_hook_that_is_there_still_runs(clone):
    hook = clone.repository.path("hooks") / "post-merge"
    hook.write_text("#!/bin/sh\necho ran > seen\nexit 0\n")
    hook.chmod(0o755)

    clone.install()

    subprocess.run([hook], cwd=clone.directory, env=ALONE, check=True)
    assert (clone.directory / "seen").read_text() == "ran\n"
    assert "after-merge" in hook.read_text()


def test_a_hook_that_is_no_script_is_left_alone_and_named(clone):
    hook = clone.repository.path("hooks") / "post-merge"
    hook.write_text("#!/usr/bin/env python3\n")

    with pytest.raises(GitFailed, match="is no shell script"):
        clone.install()

    assert hook.read_text() == "#!/usr/bin/env python3\n"
    assert not (clone.root / ".gitignore").exists(), "what is refused has written nothing"


def test_hooks_that_are_kept_for_other_repositories_too_are_left_alone(clone, tmp_path):
    (tmp_path / "hooks").mkdir()
    clone.git("config", "core.hooksPath", str(tmp_path / "hooks"))

    clone.install()

    assert list((tmp_path / "hooks").iterdir()) == []
    assert installed(clone.repository).complete


def test_renames_are_off_only_where_the_repository_is_the_workspace(clone):
    clone.install()

    assert clone.repository.config("merge.renames") == (
        None if clone.repository.prefix else "false"
    )


def test_without_our_command_the_driver_is_the_plain_union(clone, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert driver().startswith("{ command -v workspace-session ")
    assert driver().endswith(PLAIN_UNION)
    clone.install()
    clone.say("base")
    clone.commit()
    _two_branches(clone)

    env = {**ALONE, "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        ["git", "merge", "-q", "--no-edit", "other"], cwd=clone.directory, env=env, check=False
    )

    assert done.returncode == 0
    assert clone.texts() == ["base", "here", "there"]


def test_with_our_command_a_merge_is_ordered_and_leaves_nothing_to_commit(clone):
    clone.install()
    clone.say("base")
    clone.commit()
    _two_branches(clone)

    clone.git("merge", "-q", "--no-edit", "other")

    assert clone.texts() == ["base", "here", "there"]
    times = [entry.timestamp for entry in clone.tree().log()]
    assert times == sorted(times)
    assert len(clone.tree().leaves()) == 2
    assert clone.git("status", "--porcelain").stdout == ""
    assert clone.workspace.verify() == []


def _two_branches(clone: Clone) -> None:
    clone.git("branch", "other")
    clone.say("here")
    clone.commit()
    clone.git("switch", "-q", "other")
    clone.say("there")
    clone.commit()
    clone.git("switch", "-q", "-")


def test_the_hook_makes_a_working_set_fit_that_both_sides_trimmed(clone):
    clone.install()
    ids = [clone.say(f"{number}" * 200) for number in range(20)]
    clone.commit()
    clone.git("branch", "other")
    clone.tree().compact("first", ids[0], ids[9])
    clone.tree().trim()
    clone.commit()
    clone.git("switch", "-q", "other")
    clone.tree().compact("second", ids[10], ids[15])
    clone.tree().trim()
    clone.commit()

    clone.git("merge", "-q", "--no-edit", "-")

    assert clone.workspace.verify() == []
    assert clone.tree().context()[0].summary == "first"


def test_the_hook_brings_an_index_up_to_date_that_the_size_of_a_log_does_not_betray(clone):
    clone.install()
    clone.say("base")
    clone.commit()
    clone.git("branch", "other")
    clone.tree().annotate(name="here.")
    clone.commit()
    clone.git("switch", "-q", "other")
    clone.tree().annotate(name="there")
    clone.commit()
    assert [info.name for info in clone.workspace.agent("a").sessions()] == ["there"]
    clone.workspace.close()

    clone.git("switch", "-q", "-")

    assert [info.name for info in clone.workspace.agent("a").sessions()] == ["here."]


# -- status ----------------------------------------------------------------------------------------


def test_the_status_names_what_is_not_committed_and_what_is_not_installed(clone):
    before = status(clone.workspace)
    install(clone.repository)
    clone.say("hi")
    after = status(clone.workspace)
    clone.commit()

    assert not before.installed.complete
    assert before.uncommitted == []
    assert after.installed.complete
    assert after.uncommitted == ["'s' (agent 'a')"]
    assert after.remote is None
    assert status(clone.workspace).uncommitted == []


def test_the_status_counts_commits_on_both_sides(clone, tmp_path):
    clone.install()
    clone.commit()
    run(tmp_path, "clone", "-q", "--bare", os.fspath(clone.directory), "origin.git")
    clone.git("remote", "add", "origin", os.fspath(tmp_path / "origin.git"))
    clone.git("fetch", "-q")
    clone.say("more")
    clone.commit()

    found = status(clone.workspace)

    assert (found.ahead, found.behind, found.undecided) == (1, 0, False)
    assert found.remote == f"origin/{found.branch}"


def test_the_status_names_sessions_that_a_merge_left_with_two_heads(clone, capsys):
    clone.install()
    for session in ("s", "t", "u"):
        clone.say("base", session)
    clone.commit()
    clone.git("branch", "other")
    clone.say("here")
    clone.say("only here", "t")
    clone.commit()
    clone.git("switch", "-q", "other")
    clone.say("there")
    clone.say("only there", "u")
    clone.commit()
    assert status(clone.workspace).heads == {}

    clone.git("merge", "-q", "--no-edit", "-")

    assert status(clone.workspace).heads == {"'s' (agent 'a')": 2}
    main(["-C", str(clone.root), "git", "status"], standalone_mode=False)
    said = "the last merge left session 's' (agent 'a') with two heads\n"
    assert said in capsys.readouterr().out
    clone.tree().delete([clone.tree().leaf])
    assert status(clone.workspace).heads == {}
