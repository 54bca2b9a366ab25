"""Clones of a workspace, with a real git between them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from workspace_session import Workspace
from workspace_session.git import Repository, install

WHO = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "init.defaultBranch=main"]

# What a person has set up must not change what a test sees.
ALONE = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def run(directory: Path, *args: str, check: bool = True) -> subprocess.CompletedProcess:
    done = subprocess.run(
        ["git", *WHO, *args],
        cwd=directory,
        env={**ALONE, "GIT_EDITOR": ":"},
        capture_output=True,
        text=True,
        check=False,
    )
    if check:
        assert done.returncode == 0, f"git {args}: {done.stdout}{done.stderr}"
    return done


def identify(directory: Path) -> None:
    run(directory, "config", "user.name", "Ann")
    run(directory, "config", "user.email", "ann@example.org")


class Clone:
    """A clone, and the workspace in it: at its top, or in a directory of it."""

    def __init__(self, directory: Path, below: str = "") -> None:
        self.directory = directory
        self.root = directory / below
        self.workspace = Workspace(self.root, durability="os")

    @property
    def repository(self) -> Repository:
        return Repository(self.workspace.root)

    def tree(self, session="s", agent="a", user=None):
        return self.workspace.agent(agent, user).tree(session)

    def say(self, text, session="s", **more):
        return self.tree(session).append({"role": "user", "content": text}, **more).entry.id

    def texts(self, session="s"):
        return sorted(
            entry.message["content"]
            for entry in self.tree(session).log()
            if entry.type == "message"
        )

    def git(self, *args, check=True):
        return run(self.directory, *args, check=check)

    def commit(self):
        self.git("add", "-A")
        if self.git("diff", "--cached", "--quiet", check=False).returncode:
            self.git("commit", "-q", "-m", "work")

    def install(self):
        return install(self.repository)


def origin(tmp_path: Path, below: str = "") -> Clone:
    """A clone that has pushed an installed, empty workspace to `origin.git` beside it."""
    run(tmp_path, "init", "-q", "--bare", "origin.git")
    clone = another(tmp_path, "one", below)
    clone.install()
    clone.commit()
    clone.git("push", "-q", "-u", "origin", "main")
    return clone


def another(tmp_path: Path, name: str, below: str = "") -> Clone:
    run(tmp_path, "clone", "-q", "origin.git", name)
    identify(tmp_path / name)
    return Clone(tmp_path / name, below)


def copied(clone: Clone, directory: Path, below: str = "") -> Clone:
    """What a clone is at this moment, elsewhere."""
    clone.workspace.close()
    shutil.copytree(clone.directory, directory, symlinks=True)
    return Clone(directory, below)
