"""How a workspace stands with git: what is in place, what is not committed, what others have."""

from __future__ import annotations

from dataclasses import dataclass

from workspace_session.git.install import Installed, installed
from workspace_session.git.repository import GitFailed, Repository
from workspace_session.git.settle import heads_of, touched_sessions
from workspace_session.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What `git status` shows; `ahead` and `behind` count commits, as far as the last fetch tells.

    `heads` are the sessions that both sides of the last merge wrote to, and that still have more
    ends than one.
    """

    branch: str | None
    remote: str | None
    ahead: int
    behind: int
    uncommitted: list[str]
    undecided: bool
    heads: dict[str, int]
    installed: Installed


@dataclass(frozen=True, slots=True)
class Remote:
    """The branch elsewhere that this one is synced with."""

    name: str
    branch: str

    def __str__(self) -> str:
        return f"{self.name}/{self.branch}"

    @property
    def ref(self) -> str:
        """What was there when it was last fetched."""
        return f"refs/remotes/{self.name}/{self.branch}"


def status(workspace: Workspace) -> Status:
    """How things stand; nothing is fetched, nothing is changed."""
    repository = Repository(workspace.root)
    branch = repository.branch()
    remote = None if branch is None else remote_of(repository, branch)
    ahead, behind = (0, 0) if remote is None else _distance(repository, remote)
    touched = touched_sessions(workspace, repository.uncommitted())
    return Status(
        branch=branch,
        remote=None if remote is None else str(remote),
        ahead=ahead,
        behind=behind,
        uncommitted=[str(one) for one in touched],
        undecided=repository.is_undecided(),
        heads=_brought_together(workspace, repository),
        installed=installed(repository),
    )


def _brought_together(workspace: Workspace, repository: Repository) -> dict[str, int]:
    head, theirs = repository.commit("HEAD"), repository.commit("HEAD^2")
    if theirs is None:
        return {}  # the last commit is no merge
    sides = [set(repository.changed(side, head)) for side in (repository.commit("HEAD^1"), theirs)]
    touched = touched_sessions(workspace, sorted(sides[0] & sides[1]))
    return {str(one): count for one in touched if (count := heads_of(one)) > 1}


def remote_of(repository: Repository, branch: str) -> Remote | None:
    """The one that is configured for the branch, else the same branch of `origin` or the only one."""
    name = repository.config(f"branch.{branch}.remote")
    merged = repository.config(f"branch.{branch}.merge")
    if name is not None and merged is not None:
        return Remote(name, merged.removeprefix("refs/heads/"))
    names = repository.git("remote").split()
    if len(names) > 1 and "origin" not in names:
        raise GitFailed(f"there are several remotes: git push -u REMOTE {branch} chooses one")
    if not names:
        return None
    return Remote("origin" if "origin" in names else names[0], branch)


def _distance(repository: Repository, remote: Remote) -> tuple[int, int]:
    if repository.commit("HEAD") is None:
        return 0, 0
    there = repository.commit(remote.ref)
    if there is None:
        return int(repository.git("rev-list", "--count", "HEAD")), 0
    counts = repository.git("rev-list", "--left-right", "--count", f"HEAD...{there}").split()
    return int(counts[0]), int(counts[1])
