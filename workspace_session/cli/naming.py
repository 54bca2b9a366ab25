"""Commands that say something about a session or a message: rename, label, tag."""

from __future__ import annotations

import click

from workspace_session.cli.options import (
    example,
    in_workspace,
    json_option,
    message_argument,
    session_argument,
)
from workspace_session.cli.render import echo_json, echo_lines, inert, short, talk
from workspace_session.cli.scope import Scope, message_id
from workspace_session.cli.screen import Screen


@click.command(epilog=example('workspace-session rename @latest "A weekend in Porto"'))
@session_argument
@click.argument("name")
@in_workspace
def rename(scope: Scope, session: str, name: str) -> None:
    """Give a session another name: what lists show beside its id.

    The id stays; with an empty NAME the id is all it has.
    """
    if not scope.tree(session).annotate(name=name or None):
        talk("that is its name already")


@click.command(epilog=example('workspace-session label @latest @latest "decided here"'))
@session_argument
@message_argument("[MESSAGE]", required=False)
@click.argument("text", required=False)
@click.option("--remove", is_flag=True, help="Take the label away.")
@json_option("the labels as an object: message id to text")
@in_workspace
def label(
    scope: Scope,
    session: str,
    message: str | None,
    text: str | None,
    remove: bool,
    as_json: bool,
) -> None:
    """Bookmark a message with a TEXT, or list the labels of a session."""
    if (message is None) == (text is not None or remove) or (text is not None and remove):
        raise click.UsageError("give MESSAGE and TEXT, or MESSAGE and --remove, or neither")
    tree = scope.tree(session)
    if message is not None:
        tree.label(message_id(tree, message), text)
    elif as_json:
        echo_json(tree.labels())
    elif labels := tree.labels():
        rows = [[short(one), said] for one, said in labels.items()]
        echo_lines(Screen().table(["message", "label"], rows, fixed=("message",)))
    else:
        talk("there are no labels")


@click.command(epilog=example("workspace-session tag @latest travel family"))
@session_argument
@click.argument("tags", metavar="[TAG]...", nargs=-1)
@click.option("--remove", is_flag=True, help="Take these tags away.")
@json_option("the tags as a list")
@in_workspace
def tag(scope: Scope, session: str, tags: tuple[str, ...], remove: bool, as_json: bool) -> None:
    """Give a session tags, and print those it has then, one a line."""
    if remove and not tags:
        raise click.UsageError("name the TAGs to take away")
    tree = scope.tree(session)
    known = tree.tag(remove=tags) if remove else tree.tag(add=tags)
    if as_json:
        echo_json(known)
    else:
        echo_lines(map(inert, known))
