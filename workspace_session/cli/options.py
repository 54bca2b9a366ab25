"""The options that commands share, so that each is spelled, explained and understood in one way.

`in_workspace` opens the workspace and hands a command a `Scope`: no command looks for a root, an agent
or a session by itself. `-C` is understood before and after the name of a command.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from workspace_session import Workspace
from workspace_session.cli.scope import LATEST_NAME, Scope

F = TypeVar("F", bound=Callable[..., Any])

_ROOT = "workspace_session.root"


def example(*commands: str) -> str:
    """The end of a help text: command lines that can be run as they stand."""
    return "\n".join(("\b", "Example:", *(f"  {command}" for command in commands)))


def root_option(envvar: str | None = None) -> Callable[[F], F]:
    """`-C`; only the group reads the environment, so that a command's own option is never hidden."""
    return click.option(
        "-C",
        "--root",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
        envvar=envvar,
        show_envvar=envvar is not None,
        expose_value=False,
        callback=_remember_root,
        help="The workspace. Default: the nearest one, from here upwards.",
    )


def _remember_root(context: click.Context, _parameter: click.Parameter, root: Path | None) -> None:
    if root is not None:
        context.meta[_ROOT] = root


def given_root(context: click.Context | None = None) -> Path | None:
    """The directory that `-C` or the environment names."""
    root: Path | None = (context or click.get_current_context()).meta.get(_ROOT)
    return root


def json_option(what: str) -> Callable[[F], F]:
    """`--json`, with what it prints."""
    return click.option("--json", "as_json", is_flag=True, help=f"Print {what}.")


def last_option(what: str) -> Callable[[F], F]:
    """`--last N`."""
    return click.option(
        "--last", type=click.IntRange(min=0), metavar="N", help=f"Only the last N {what}."
    )


def session_ids(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The sessions that may be meant, for a shell that completes what is typed."""
    root = given_root(context) or Workspace.above(Path.cwd())
    if root is None:
        return []
    with Workspace(root, create=False) as workspace:
        ids = {one for agent in workspace.agents() for one in agent.session_ids()}
    return sorted(one for one in (*ids, LATEST_NAME) if one.startswith(incomplete))


session_argument = click.argument("session", metavar="SESSION", shell_complete=session_ids)


optional_session_argument = click.argument(
    "session", metavar="[SESSION]", required=False, shell_complete=session_ids
)


def message_argument(metavar: str, *, required: bool = True) -> Callable[[F], F]:
    """A message: its id, the beginning or the end of one, or `@latest` for the tip."""
    return click.argument("message", metavar=metavar, required=required)


leaf_option = click.option(
    "--leaf", metavar="MESSAGE", help="The branch that ends in this message."
)


def in_workspace(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command `-C`, `--agent` and `--user`, and the `Scope` they describe, as its first."""

    @root_option()
    @click.option("--agent", metavar="NAME", help="The agent that is meant.")
    @click.option("--user", metavar="NAME", help="The user whose agents are meant.")
    @functools.wraps(command)
    def with_scope(agent: str | None, user: str | None, **params: Any) -> None:
        workspace = click.get_current_context().with_resource(_workspace())
        command(Scope(workspace, agent, user), **params)

    return with_scope


def _workspace() -> Workspace:
    root = given_root() or Workspace.above(Path.cwd())
    if root is None:
        where = f"there is no workspace in {Path.cwd()} or above it"
        raise click.ClickException(f"{where} (workspace-session init makes one)")
    return Workspace(root, create=False)
