"""Commands that write a session down as text: export markdown, export jsonl, export html."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from workspace_session import SessionTree
from workspace_session.cli.options import example, in_workspace, session_argument
from workspace_session.cli.render import talk
from workspace_session.cli.scope import Scope, message_id
from workspace_session.export import What, to_html, to_jsonl, to_markdown

F = TypeVar("F", bound=Callable[..., Any])

leaf_option = click.option(
    "--leaf", metavar="MESSAGE", help="The branch that ends in this message, not the active one."
)


def output_option(command: F) -> F:
    """`-o FILE`."""
    return click.option(
        "-o",
        "--output",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Write to this file instead of standard output.",
    )(command)


@click.command("markdown", epilog=example("workspace-session export markdown @latest -o trip.md"))
@session_argument
@leaf_option
@output_option
@in_workspace
def markdown(scope: Scope, session: str, leaf: str | None, output: Path | None) -> None:
    """Write one branch of a session as a Markdown document.

    All that was said on it is there, with summaries before what they hide from the model.
    """
    tree = scope.tree(session)
    _write(to_markdown(tree, leaf=_end(tree, leaf)), output)


@click.command("jsonl", epilog=example("workspace-session export jsonl @latest -o trip.jsonl"))
@session_argument
@leaf_option
@click.option("--raw", is_flag=True, help="The messages as they were said, without summaries.")
@click.option("--entries", is_flag=True, help="Every entry of all branches, as a log has them.")
@output_option
@in_workspace
def jsonl(
    scope: Scope, session: str, leaf: str | None, raw: bool, entries: bool, output: Path | None
) -> None:
    """Write the messages of one branch as JSON lines.

    They are the objects that were appended, as the model sees them: with summaries in place of what
    these hide.
    """
    if entries and (raw or leaf is not None):
        raise click.UsageError(
            "--entries is all of a session: it goes with neither --raw nor --leaf"
        )
    tree = scope.tree(session)
    what: What = "entries" if entries else "said" if raw else "shown"
    _write(to_jsonl(tree, what, leaf=_end(tree, leaf)), output)


@click.command("html", epilog=example("workspace-session export html @latest -o trip.html"))
@session_argument
@output_option
@in_workspace
def html(scope: Scope, session: str, output: Path | None) -> None:
    """Write a session with all its branches as one page.

    It needs nothing else and fetches nothing: it can be sent, stored and opened as it is.
    """
    _write(to_html(scope.tree(session)), output)


def _end(tree: SessionTree, leaf: str | None) -> str | None:
    return None if leaf is None else message_id(tree, leaf)


def _write(text: str, output: Path | None) -> None:
    data = text.encode()  # which no terminal or locale has a say in
    if output is None:
        click.echo(data, nl=False)
    else:
        output.write_bytes(data)
        talk(f"wrote {output}")
