"""Commands about sessions and their branches: new, fork, branch, switch, undo, heads."""

from __future__ import annotations

import click

from workspace_session.cli.options import (
    example,
    in_workspace,
    json_option,
    message_argument,
    session_argument,
)
from workspace_session.cli.render import echo_json, echo_lines, inert, talk
from workspace_session.cli.rows import head_rows
from workspace_session.cli.scope import LATEST_NAME, Scope, message_id
from workspace_session.cli.screen import Screen

_NEW = click.argument("new_id", metavar="[NEW]", required=False)


@click.command(epilog=example('workspace-session new trip --name "A weekend in Porto"'))
@click.argument("session", metavar="[SESSION]", required=False)
@click.option("--name", metavar="TEXT", help="What lists call it.")
@click.option("--model", metavar="NAME", help="The model that answers in it.")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="A tag; may be repeated.")
@in_workspace
def new(
    scope: Scope, session: str | None, name: str | None, model: str | None, tags: tuple[str, ...]
) -> None:
    """Make an empty session, and print its id.

    Without SESSION it gets an id of its own. It is made for the agent `default` if no other is named.
    To make one by writing to it, append will do.
    """
    facts = {"name": name, "model": model, "tags": list(tags) or None}
    click.echo(inert(scope.agent_for_new().create(session, **facts).id))


@click.command(epilog=example("workspace-session fork trip trip-2"))
@session_argument
@_NEW
@click.option("--at", metavar="MESSAGE", help="Copy the path to this message. Default: the tip.")
@click.option("--name", metavar="TEXT", help="What lists call the new one.")
@in_workspace
def fork(scope: Scope, session: str, new_id: str | None, at: str | None, name: str | None) -> None:
    """Make a new session that begins with the path to a message, and print its id.

    Messages keep their ids; summaries and labels come along. The old session stays as it is.
    """
    found = scope.find(session)
    end = None if at is None else message_id(found.agent.tree(found.session_id), at)
    facts = {} if name is None else {"name": name}
    click.echo(inert(found.agent.fork(found.session_id, end, new_id, **facts).id))


@click.command(epilog=example("workspace-session branch @latest @latest"))
@session_argument
@message_argument("[MESSAGE]", required=False)
@click.option("--at-start", is_flag=True, help="Before the first message.")
@in_workspace
def branch(scope: Scope, session: str, message: str | None, at_start: bool) -> None:
    """Move the tip to a message: what is appended next answers it.

    If others have answered it already, that makes a new branch; nothing is lost. The id of the tip is
    printed.
    """
    if at_start == (message is not None):
        raise click.UsageError("name a MESSAGE, or --at-start")
    tree = scope.tree(session)
    tree.set_leaf(None if message is None else message_id(tree, message))
    click.echo(inert(tree.leaf or ""), nl=tree.leaf is not None)


@click.command(epilog=example("workspace-session switch @latest @latest"))
@session_argument
@message_argument("MESSAGE")
@in_workspace
def switch(scope: Scope, session: str, message: str) -> None:
    """Move the tip to the end of the branch that a message is on, and print its id.

    MESSAGE may be any message of the branch; where it divides further on, the newest end is taken.
    `workspace-session heads` lists the ends.
    """
    tree = scope.tree(session)
    click.echo(inert(tree.switch(message_id(tree, message))))


@click.command(epilog=example(f"workspace-session undo {LATEST_NAME}"))
@session_argument
@in_workspace
def undo(scope: Scope, session: str) -> None:
    """Take back the last move of the tip or the last clear, and print the id of the tip.

    Moves are what `branch`, `switch` and an agent's pop do. Doing it again takes back the one before,
    until there is a message that was appended, or brought back by undoing a clear.
    """
    tree = scope.tree(session)
    if not tree.undo():
        talk("there is nothing to undo since the last message")
        click.get_current_context().exit(1)
    tip = tree.leaf
    click.echo(inert(tip or ""), nl=tip is not None)


@click.command(epilog=example(f"workspace-session heads {LATEST_NAME}"))
@session_argument
@json_option("a list of objects")
@in_workspace
def heads(scope: Scope, session: str, as_json: bool) -> None:
    """List where the branches of a session end, the newest last; ● is the tip."""
    rows = head_rows(scope.tree(session))
    if as_json:
        echo_json([row.document() for row in rows])
    elif rows:
        headings = ["", "head", "messages", "written (UTC)", "says"]
        fixed = ("", "head", "messages", "written (UTC)")
        echo_lines(Screen().table(headings, [row.cells() for row in rows], fixed=fixed))
    else:
        talk("there are no messages")
