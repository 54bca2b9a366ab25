"""Commands for a workspace that is versioned: git install, sync, status, merge-driver."""

from __future__ import annotations

from pathlib import Path

import click

from workspace_session import git as library
from workspace_session.cli.options import example, in_workspace, json_option
from workspace_session.cli.render import as_json_object, echo_json, inert, plural, talk
from workspace_session.cli.scope import Scope

_file = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group(epilog=example("workspace-session git status"))
def git() -> None:
    """Version a workspace with git, and share it.

    Session files merge by themselves: two clones that both wrote to a session have, after a merge,
    one tree with two heads and nothing lost.
    """


@git.command(epilog=example("workspace-session git install"))
@in_workspace
def install(scope: Scope) -> None:
    """Prepare a workspace for git.

    Writes .gitignore and .gitattributes, and in this clone the merge driver and hooks. What is
    there already stays; running it again changes nothing.
    """
    done = library.install(library.Repository(scope.workspace.root))
    talk(f"installed {', '.join(done)}" if done else "everything was in place")


@git.command(epilog=example("workspace-session git sync"))
@json_option("what was done as an object")
@in_workspace
def sync(scope: Scope, as_json: bool) -> None:
    """Commit, fetch, merge and push.

    Agents may go on writing. Nothing is forced: when somebody else pushes at the same time, this
    merges again. Ends by saying how many entries came and went, and which sessions now have two
    heads.
    """
    synced = library.sync(scope.workspace)
    if as_json:
        echo_json(as_json_object(synced))
    talk(str(synced))


@git.command(epilog=example("workspace-session git status"))
@json_option("the same as an object")
@in_workspace
def status(scope: Scope, as_json: bool) -> None:
    """Show what is installed, what is not committed, and what others have.

    Nothing is fetched: what is at the remote is as the last sync or fetch has seen it.
    """
    found = library.status(scope.workspace)
    if as_json:
        echo_json(as_json_object(found))
        return
    for line in _lines(found):
        click.echo(inert(line))


def _lines(found: library.Status) -> list[str]:
    where = f"branch {found.branch}" if found.branch else "no branch"
    if found.remote is None:
        where += ", no remote"
    else:
        where += (
            f", {plural(found.ahead, 'commit')} ahead of {found.remote}, {found.behind:,} behind"
        )
    lines = [where]
    if found.undecided:
        lines.append("a merge or rebase is not finished")
    if found.uncommitted:
        lines.append(f"{plural(len(found.uncommitted), 'session')} not committed:")
        lines += [f"  {name}" for name in found.uncommitted]
    for name, count in found.heads.items():
        number = "two" if count == 2 else count
        lines.append(f"the last merge left session {name} with {number} heads")
    if not found.installed.complete:
        parts = ("ignore", "attributes", "driver", "hooks")
        lacking = [part for part in parts if not getattr(found.installed, part)]
        lines.append(f"not installed: {', '.join(lacking)} (workspace-session git install)")
    return lines


@git.command(
    "merge-driver",
    epilog=example(
        "git config merge.union.driver 'workspace-session git merge-driver %O %A %B %P'"
    ),
)
@click.argument("base", type=_file)
@click.argument("ours", type=_file)
@click.argument("theirs", type=_file)
@click.argument("path")
def merge_driver(base: Path, ours: Path, theirs: Path, path: str) -> None:
    """Merge a session file; git calls this.

    OURS becomes the union of its lines and those of THEIRS, each once, ordered by time and id.
    BASE and PATH are what git passes along; the union does not depend on them.
    """
    del base, path
    library.merge_files(ours, theirs)


@git.command("after-merge", hidden=True, epilog=example("workspace-session git after-merge @{1} @"))
@click.option("--index-only", is_flag=True, help="Leave working sets as they are.")
@click.argument("old")
@click.argument("new")
@in_workspace
def after_merge(scope: Scope, old: str, new: str, index_only: bool) -> None:
    """Make derived files fit the logs after a merge; hooks call this."""
    repository = library.Repository(scope.workspace.root)
    library.settle_merge(scope.workspace, repository, old, new, index_only=index_only)
