"""What the merge driver is not asked about: a session that one side deleted and the other wrote to.

What was written is kept; to delete it again is one command, to write it again is not. A working set
without its log is no session, so where the log went the working set goes too. Anything else that both
sides changed (a state, a memory file) is for a person to decide.
"""

from __future__ import annotations

from workspace_session.files.listings import LOG, TREE
from workspace_session.git.repository import GitFailed, Repository

_OURS, _THEIRS = "2", "3"


def settle_conflicts(repository: Repository) -> bool:
    """Settle what can be; False when git failed for another reason than a conflict."""
    unmerged = _unmerged(repository)
    for path in unmerged:
        if not _is_session_file(path):
            raise GitFailed(
                f"both sides changed {path}: merge it by hand (git merge), then sync again"
            )
    for path in sorted(unmerged, key=lambda path: not path.endswith(LOG)):  # logs first
        _settle(repository, path, unmerged[path])
    return bool(unmerged)


def _unmerged(repository: Repository) -> dict[str, set[str]]:
    """The paths without an answer, relative to the top, and which sides have the file."""
    found: dict[str, set[str]] = {}
    out = repository.git("ls-files", "--unmerged", "--full-name", "-z", ":/")
    for row in out.split("\0"):
        if row:
            about, _, path = row.partition("\t")
            found.setdefault(path, set()).add(about.split()[2])
    return found


def _is_session_file(path: str) -> bool:
    parts = path.split("/")
    return len(parts) >= 4 and parts[-2] == "sessions" and path.endswith(TREE)


def _settle(repository: Repository, path: str, sides: set[str]) -> None:
    top = f":(top,literal){path}"
    log = path if path.endswith(LOG) else f"{path.removesuffix(TREE)}{LOG}"
    kept = (
        path == log
        or repository.run("ls-files", "--error-unmatch", f":(top,literal){log}").code == 0
    )
    if kept:
        side = "--ours" if _OURS in sides else "--theirs"
        repository.git("checkout", side, "--", top)
        repository.git("add", "--", top)
    else:
        repository.git("rm", "--quiet", "--force", "--", top)
