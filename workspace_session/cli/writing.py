"""Commands that add: init, append."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from workspace_session import LATEST, Message, SessionTree, UnknownMessage, Workspace
from workspace_session.cli.options import (
    example,
    given_root,
    in_workspace,
    root_option,
    session_argument,
)
from workspace_session.cli.render import inert, talk
from workspace_session.cli.scope import Scope, message_id
from workspace_session.model.placing import Parent


@click.command(epilog=example("workspace-session init my-workspace"))
@click.argument("directory", required=False, type=click.Path(file_okay=False, path_type=Path))
@root_option()
def init(directory: Path | None) -> None:
    """Make a workspace, and print where it is.

    It is made in DIRECTORY, in the one that -C names, or here. A directory that already is a
    workspace stays as it is.
    """
    workspace = Workspace(directory or given_root() or Path.cwd())
    click.echo(workspace.root)


@click.command(epilog=example('echo "Where were we?" | workspace-session append trip'))
@session_argument
@click.argument("text", required=False)
@click.option("--role", metavar="ROLE", help="Take the input as plain text from this role.")
@click.option("--parent", metavar="MESSAGE", help="Answer this message: if needed, a new branch.")
@click.option("--author", metavar="NAME", help="Who writes this.")
@in_workspace
def append(
    scope: Scope,
    session: str,
    text: str | None,
    role: str | None,
    parent: str | None,
    author: str | None,
) -> None:
    """Append a message to a session, and print its id.

    The message is TEXT, or standard input. A JSON object is stored as it is; anything else is plain
    text from the user, in the form that the message before it has: with `content`, or with `parts`.
    A SESSION that does not exist is made, for the agent `default` if no other is named; here, the
    beginning of an id does not stand for the whole.
    """
    given = _said(_input() if text is None else text)
    tree = scope.tree_for_writing(session)
    under = LATEST if parent is None else message_id(tree, parent)
    message = _json_object(given) if role is None else None
    if message is None:
        message = _plain(given, role or "user", _before(tree, under))
    result = tree.append(message, under, author=author)
    if not result.inserted:
        talk("the session already has a message of this id; nothing was written")
    click.echo(inert(result.entry.id))


def _input() -> str:
    if sys.stdin is None:  # closed by whoever started us
        return ""
    if sys.stdin.isatty():
        talk("reading the message from the terminal; Ctrl-D ends it")
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise click.UsageError("standard input is not UTF-8") from None


def _said(given: str) -> str:
    said = given.rstrip("\r\n")
    if not said.strip():
        raise click.UsageError("there is no message: give TEXT, or something on standard input")
    return said


def _before(tree: SessionTree, under: Parent) -> Message | None:
    if under is LATEST:
        return tree.leaf_message
    with suppress(UnknownMessage):  # which appending to it says better
        return None if under is None else tree.get(under)
    return None


def _plain(said: str, role: str, before: Message | None) -> dict[str, Any]:
    """Plain text as a message that whoever reads the one before can read too."""
    if before is not None and "parts" not in before.message:
        return {"role": role, "content": said}
    return {"role": role, "parts": [{"type": "text", "text": said}]}


def _json_object(text: str) -> dict[str, Any] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        found: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError):
        talk("this is not a JSON object; it is stored as plain text")
        return None
    return found
