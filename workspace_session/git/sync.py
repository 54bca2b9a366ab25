"""Syncing with a remote: commit, fetch, merge, make derived files fit, push; again if need be.

Nothing is ever forced. The network is waited for without a lock; the sessions and states that a merge
changes are locked while it changes them, so a writer that is at work waits, sees new files, reads them
and goes on: git overwrites nothing that is not committed. A merge that cannot be finished is undone.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from workspace_session.files.listings import LOG
from workspace_session.files.locks import lock_at
from workspace_session.git.conflicts import settle_conflicts
from workspace_session.git.install import DRIVER, driver, installed
from workspace_session.git.repository import SYNCING, GitFailed, Ran, Repository, complaint
from workspace_session.git.settle import (
    Touched,
    forget_in_index,
    heads_of,
    locked,
    make_working_sets_fit,
    touched_sessions,
)
from workspace_session.git.status import Remote, remote_of
from workspace_session.workspace import Workspace

_ATTEMPTS = 8
_FIRST_PAUSE = (
    0.1  # seconds; doubles, and is shortened by chance, so that two clones fall out of step
)
_REFUSED = ("[rejected]", "cannot lock ref", "failed to update ref", "incorrect old value")
_QUIETLY = {SYNCING: "1"}
_MESSAGE = "Sync the workspace"


@dataclass(slots=True)
class Synced:
    """What a sync did. `heads` are the sessions that it left with more ends than they had here."""

    remote: str | None = None
    came: int = 0
    went: int = 0
    committed: bool = False
    heads: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.remote is None:
            done = "committed" if self.committed else "nothing to commit"
            return f"{done}; there is no remote to sync with"
        moved = f"{_entries(self.came)} came and {_entries(self.went)} went"
        return f"{moved}{''.join(map(_told, self.heads.items()))}"


def _entries(count: int) -> str:
    return f"{count:,} {'entry' if count == 1 else 'entries'}"


def _told(item: tuple[str, int]) -> str:
    name, count = item
    return f"; session {name} now has {'two' if count == 2 else count} heads"


def sync(workspace: Workspace) -> Synced:
    """Bring this clone and its remote to the same state; two who want that take turns."""
    repository = Repository(workspace.root)
    place = workspace.root / ".git-sync"
    with lock_at(workspace.layout.lock_of(place), shown="git sync"):
        return _sync(workspace, repository)


def _sync(workspace: Workspace, repository: Repository) -> Synced:
    branch = _checked(repository)
    remote = remote_of(repository, branch)
    synced = Synced(None if remote is None else str(remote))
    if remote is None:
        with locked(workspace.layout, repository.uncommitted()):
            synced.committed = _commit(repository, _MESSAGE)
        return synced
    for attempt in range(_ATTEMPTS):
        repository.git("fetch", "--quiet", remote.name)
        theirs = repository.commit(remote.ref)
        _merge(workspace, repository, theirs, synced)
        if _pushed(repository, remote, theirs, synced):
            return synced
        time.sleep(_FIRST_PAUSE * 2**attempt * random.random())  # noqa: S311 (no secret)
    raise GitFailed(f"{remote} changed {_ATTEMPTS} times while this was syncing; try again later")


def _checked(repository: Repository) -> str:
    """The branch to sync, when there is nothing against it."""
    branch = repository.branch()
    if branch is None:
        raise GitFailed("no branch is checked out (git switch goes to one)")
    if repository.is_undecided():
        raise GitFailed("a merge or rebase is not finished (git status tells more)")
    found = installed(repository)
    if not (found.attributes and found.ignore):
        raise GitFailed("this workspace is not prepared (workspace-session git install does that)")
    return branch


# -- committing and pushing ------------------------------------------------------------------------


def _commit(repository: Repository, message: str) -> bool:
    """Commit all that is in the workspace, and nothing that is elsewhere in the repository."""
    repository.git("add", "--all", "--", ".")
    if repository.run("diff", "--cached", "--quiet", "--", ".").code == 0:
        return False
    repository.git("commit", "--quiet", "--message", message, "--", ".", env=_QUIETLY)
    return True


def _pushed(repository: Repository, remote: Remote, theirs: str | None, synced: Synced) -> bool:
    """Whether the remote now has all; False when somebody was faster."""
    ours = repository.commit("HEAD")
    if ours is None or ours == theirs:
        return True  # there is nothing to push
    target = f"HEAD:refs/heads/{remote.branch}"
    ran = repository.run("push", "--quiet", "--set-upstream", remote.name, target, env=_QUIETLY)
    if ran.code == 0:
        synced.went = repository.grown(theirs, ours, LOG)
        return True
    if any(sign in ran.err for sign in _REFUSED):
        return False
    raise GitFailed(f"git push failed: {complaint(ran)}")


# -- merging ---------------------------------------------------------------------------------------


def _merge(
    workspace: Workspace, repository: Repository, theirs: str | None, synced: Synced
) -> None:
    """Under the locks of all that changes: commit what is here, then merge what is there."""
    incoming = _incoming(repository, theirs)
    with locked(workspace.layout, {*incoming, *repository.uncommitted()}):
        synced.committed |= _commit(repository, _MESSAGE)
        before = repository.commit("HEAD")
        if theirs is None or _holds(repository, before, theirs):
            return
        touched = touched_sessions(workspace, incoming)
        heads = {one: heads_of(one) for one in touched}
        with _undone_on_failure(repository):
            _merge_files(workspace, repository, theirs, touched)
        synced.came += repository.grown(before, repository.commit("HEAD"), LOG)
    forget_in_index(touched)
    for one, had in heads.items():
        if 1 <= had < (has := heads_of(one)):  # one that is new here has the heads it has
            synced.heads[str(one)] = has


def _incoming(repository: Repository, theirs: str | None) -> list[Path]:
    """The files that a merge may change."""
    ours = repository.commit("HEAD")
    if theirs is None or ours is None:
        return repository.changed(None, theirs)
    base = repository.run("merge-base", ours, theirs)
    return repository.changed(None if base.code else base.out.strip(), theirs)


def _holds(repository: Repository, ours: str | None, theirs: str) -> bool:
    return (
        ours is not None and repository.run("merge-base", "--is-ancestor", theirs, ours).code == 0
    )


def _merge_files(
    workspace: Workspace, repository: Repository, theirs: str, touched: list[Touched]
) -> None:
    ran = _try_to_merge(repository, theirs)
    if ran.code and not settle_conflicts(repository):
        raise GitFailed(f"git merge failed: {complaint(ran)}")
    made = make_working_sets_fit(touched)
    if repository.path("MERGE_HEAD").exists():
        for path in made:
            repository.git("add", "--", str(path))
        message = f"Merge {workspace.root.name} from elsewhere"
        repository.git("commit", "--quiet", "--message", message, env=_QUIETLY)
    elif made:
        _commit(repository, "Make working sets anew")


def _try_to_merge(repository: Repository, theirs: str) -> Ran:
    command = ("merge", "--quiet", "--no-commit", "--no-edit", "-Xno-renames", theirs)
    for _ in range(_ATTEMPTS):
        ran = repository.run("-c", f"{DRIVER}={driver()}", *command, env=_QUIETLY)
        # Readers take no lock and date a file that they have read: for a moment git takes that
        # for a change.
        if "would be overwritten" not in ran.err:
            break
    return ran


@contextmanager
def _undone_on_failure(repository: Repository) -> Iterator[None]:
    try:
        yield
    except BaseException:
        if repository.path("MERGE_HEAD").exists():
            repository.git("merge", "--abort")
        raise
