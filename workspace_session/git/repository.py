"""Running git: one repository, the part of it that a workspace is, and git's own words on failure.

Paths that git speaks of are relative to the top of the repository; `Repository` turns them into paths
below the root, and leaves out what lies elsewhere. Nothing here changes what is committed.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from workspace_session.errors import WorkspaceError

# Set for the git that `sync` runs: hooks then leave the work, and the locks, to it.
SYNCING = "WORKSPACE_SESSION_SYNCING"

_UNDECIDED = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")


class GitFailed(WorkspaceError):
    """Git could not do what was asked of it; `reason` is a sentence."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run of git came to."""

    code: int
    out: str
    err: str


class Repository:
    """The repository that a workspace is in, at its top or in a directory of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        found = self.run("rev-parse", "--show-prefix")
        if found.code:
            raise GitFailed(f"{root} is not in a git repository (git init makes one)")
        self.prefix = found.out.rstrip("\n")  # "" at the top, else ending in a slash

    # -- running -----------------------------------------------------------------------------------

    def run(self, *args: str, env: Mapping[str, str] | None = None) -> Ran:
        """Run git in the workspace, whatever comes of it."""
        try:
            done = subprocess.run(  # noqa: S603 (a list of arguments, no shell)
                ["git", "-c", "core.quotePath=false", *args],  # noqa: S607 (git is on the path)
                cwd=self.root,
                env={**_environment(), **(env or {})},
                capture_output=True,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except FileNotFoundError:
            raise GitFailed("git is not installed, or not on the path") from None
        out = done.stdout.decode("utf-8", "surrogateescape")
        return Ran(done.returncode, out, done.stderr.decode("utf-8", "replace"))

    def git(self, *args: str, env: Mapping[str, str] | None = None) -> str:
        """Run git and return what it printed; `GitFailed` when it says no."""
        ran = self.run(*args, env=env)
        if ran.code:
            raise GitFailed(f"git {_verb(args)} failed: {complaint(ran)}")
        return ran.out

    # -- what there is -----------------------------------------------------------------------------

    def commit(self, name: str) -> str | None:
        """The commit of that name, if there is one."""
        found = self.run("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        return None if found.code else found.out.strip()

    def branch(self) -> str | None:
        """The branch that is checked out; None when it is a commit without one."""
        found = self.run("symbolic-ref", "--quiet", "--short", "HEAD")
        return None if found.code else found.out.strip()

    def config(self, name: str) -> str | None:
        """A setting, wherever it is made."""
        found = self.run("config", "--get", name)
        return None if found.code else found.out.rstrip("\n")

    def path(self, name: str) -> Path:
        """Where git keeps something of its own."""
        return self.root / self.git("rev-parse", "--git-path", name).rstrip("\n")

    def is_undecided(self) -> bool:
        """Whether a merge or a rebase is waiting to be finished."""
        own = self.root / self.git("rev-parse", "--git-dir").rstrip("\n")
        return any((own / name).exists() for name in _UNDECIDED)

    # -- what differs ------------------------------------------------------------------------------

    def changed(self, old: str | None, new: str | None) -> list[Path]:
        """The files of the workspace in which two commits differ; None is one without files."""
        return self._below(self._differences("--name-only", old, new))

    def grown(self, old: str | None, new: str | None, suffix: str) -> int:
        """By how many lines the files of that ending have grown from one commit to the other.

        Lines that only moved do not count; nor does a file that is gone.
        """
        rows = self._differences("--numstat", old, new)
        counts = [row.split("\t") for row in rows if row.endswith(suffix)]
        return sum(
            max(0, int(added) - int(removed)) for added, removed, _ in counts if added != "-"
        )

    def uncommitted(self) -> list[Path]:
        """The files of the workspace that differ from what is committed, new ones included."""
        out = self.git("status", "--porcelain", "-z", "--no-renames", "-uall", "--", ".")
        names = (row[3:] for row in out.split("\0"))
        return self._below(name.removeprefix(self.prefix) for name in names)

    def _differences(self, how: str, old: str | None, new: str | None) -> list[str]:
        trees = (self._own_tree(old), self._own_tree(new))
        return self.git("diff-tree", "-r", "-z", "--no-renames", how, *trees).split("\0")

    def _own_tree(self, commit: str | None) -> str:
        """A commit's part that is this workspace."""
        if commit is not None:
            found = self.run("rev-parse", "--verify", "--quiet", f"{commit}:{self.prefix}")
            if not found.code:
                return found.out.strip()
        return self.git("hash-object", "-t", "tree", "/dev/null").strip()  # the empty one

    def _below(self, names: Iterable[str]) -> list[Path]:
        return [self.root / name for name in names if name]


def _environment() -> dict[str, str]:
    """Without what git tells its hooks of the repository: it may be relative, and to elsewhere."""
    local = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")
    kept = {name: value for name, value in os.environ.items() if name not in local}
    return {**kept, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": ":"}


def _verb(args: tuple[str, ...]) -> str:
    """The command among the arguments, behind `-c name=value`."""
    at = 0
    while at < len(args) and args[at] == "-c":
        at += 2
    return args[at] if at < len(args) else ""


def complaint(ran: Ran) -> str:
    """Why git failed, in the one of its lines that says most."""
    lines = [line.strip() for line in (*ran.err.split("\n"), *ran.out.split("\n"))]
    said = [line for line in lines if line and not line.startswith(("hint:", "To ", "From "))]
    for sign in ("! [", "fatal:", "error:", ""):
        for at, line in enumerate(said):
            if line.startswith(sign):
                more = said[at + 1 : at + 2] if line.endswith(":") else []
                text = line if sign == "! [" else line.removeprefix(sign)
                return " ".join((text.strip("! "), *more))
    return f"exit code {ran.code}"
