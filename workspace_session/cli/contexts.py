"""Commands about what the model sees: history, context, compact, trim."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import click

from workspace_session.cli.options import (
    F,
    example,
    in_workspace,
    json_option,
    last_option,
    leaf_option,
    message_argument,
    optional_session_argument,
    session_argument,
)
from workspace_session.cli.render import echo_json, echo_lines, inert, plural, talk
from workspace_session.cli.rows import context_document, context_lines, history_rows
from workspace_session.cli.scope import Scope, message_id
from workspace_session.cli.screen import Screen


@click.command(epilog=example("workspace-session history @latest --last 20"))
@session_argument
@message_argument("[MESSAGE]", required=False)
@last_option("messages")
@leaf_option
@json_option("one message a line, with what became of it")
@in_workspace
def history(
    scope: Scope,
    session: str,
    message: str | None,
    last: int | None,
    leaf: str | None,
    as_json: bool,
) -> None:
    """List every message of a branch as it was said, and what became of it.

    What a summary hides is marked ·. With MESSAGE, every version that one has had.
    """
    tree = scope.tree(session)
    rows = history_rows(
        tree,
        None if message is None else message_id(tree, message),
        None if leaf is None else message_id(tree, leaf),
    )
    rows = rows if last is None else rows[len(rows) - min(last, len(rows)) :]
    if as_json:
        for row in rows:
            echo_json(row.document(), indent=None)
    elif rows:
        screen = Screen()
        echo_lines(row.line(screen) for row in rows)
    else:
        talk("there are no messages")


@click.command(epilog=example("workspace-session context @latest"))
@session_argument
@leaf_option
@json_option("one object: the items, and the tokens of each and of all")
@in_workspace
def context(scope: Scope, session: str, leaf: str | None, as_json: bool) -> None:
    """List what the model sees, and about how many tokens each message costs.

    The count is an estimate that needs no tokenizer. ◆ is a summary.
    """
    tree = scope.tree(session)
    end = None if leaf is None else message_id(tree, leaf)
    if as_json:
        echo_json(context_document(tree, end))
    else:
        echo_lines(context_lines(tree, end, Screen()))


def _keep_option(name: str, default: int, what: str) -> Callable[[F], F]:
    """What stays as it is, in numbers."""
    described = f"{what} Default: {default:,}."
    kind = click.IntRange(min=0)
    return click.option(name, type=kind, default=default, metavar="N", help=described)


@click.command(
    epilog=example("workspace-session compact @latest --to @latest --command 'head -c 2000'")
)
@session_argument
@click.option("--summary", metavar="TEXT", help="The summary.")
@click.option("--command", metavar="CMD", help="What makes it: gets a prompt, prints a summary.")
@click.option("--from", "from_id", metavar="MESSAGE", help="From this message on.")
@click.option("--to", "to_id", metavar="MESSAGE", help="Up to this message.")
@leaf_option
@_keep_option("--keep-first", 3, "The first N messages stay.")
@_keep_option("--keep-last", 2, "The last N messages stay.")
@_keep_option("--keep-tokens", 20_000, "And more of the last, within N tokens.")
@json_option("the summary and its range as an object")
@in_workspace
def compact(
    scope: Scope,
    session: str,
    summary: str | None,
    command: str | None,
    as_json: bool,
    **cut: Any,
) -> None:
    """Put a summary in the place of the middle of a conversation.

    It is what the model sees from then on; every message stays in the log. The first and the last
    messages stay as they are; --from and --to name a range instead.

    CMD is a command line of the shell: a model's own, for example. It gets the prompt on standard
    input and prints the summary. Agents may go on writing while it runs; what they add is not hidden.
    """
    if (summary is None) == (command is None) or not (summary or command or "").strip():
        raise click.UsageError("give --summary or --command, and not a blank one")
    found = scope.find(session)
    tree = found.agent.tree(found.session_id)
    ids = {name: cut[name] for name in ("leaf", "from_id", "to_id") if cut[name] is not None}
    cut.update({name: message_id(tree, given) for name, given in ids.items()})
    made = found.agent.compact(found.session_id, _summarizer(summary, command), **cut)
    if made is None:
        raise click.ClickException(
            "there is nothing to sum up: everything is among what stays (--keep-tokens 0 keeps less)"
        )
    if as_json:
        range_ = {"fromId": made.from_id, "toId": made.to_id, "summary": made.summary}
        echo_json({"id": made.id, **range_, "covers": made.covers._asdict()})
    else:
        click.echo(inert(made.id))
        talk(f"the summary stands for {plural(made.covers.messages, 'message')}")


def _summarizer(summary: str | None, command: str | None) -> Callable[[str], str]:
    def run(prompt: str) -> str:
        assert command is not None
        done = subprocess.run(  # noqa: S602 (the person's own command line)
            command, shell=True, input=prompt.encode(), stdout=subprocess.PIPE, check=False
        )
        if done.returncode:
            raise click.ClickException(f"{command!r} ended with exit code {done.returncode}")
        said = done.stdout.decode("utf-8", "replace").strip()
        if not said:
            raise click.ClickException(f"{command!r} printed no summary")
        return said

    return run if summary is None else lambda _prompt: summary


@click.command(epilog=example("workspace-session trim"))
@optional_session_argument
@in_workspace
def trim(scope: Scope, session: str | None) -> None:
    """Leave out of working sets what summaries hide; the logs keep it.

    That happens by itself once most of a file is hidden. Without SESSION, all are trimmed.
    """
    if session is None:
        trees = [agent.tree(one) for agent in scope.agents() for one in agent.place.session_ids()]
    else:
        trees = [scope.tree(session)]
    saved = sum(tree.trim() for tree in trees)
    talk(f"saved {saved:,} bytes in {plural(len(trees), 'session')}")
