"""Commands that look and change nothing: list, show, tree, log."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import click

from workspace_session import SessionInfo
from workspace_session.cli.drawing import converse, draw, log_line, tree_document
from workspace_session.cli.options import (
    example,
    in_workspace,
    json_option,
    last_option,
    session_argument,
)
from workspace_session.cli.render import (
    as_json_object,
    echo_json,
    echo_json_text,
    echo_lines,
    moment,
    talk,
)
from workspace_session.cli.scope import Scope, message_id, owner
from workspace_session.cli.screen import Screen


@click.command("list", epilog=example("workspace-session list"))
@click.option("--deleted", is_flag=True, help="List what is in the trash instead.")
@json_option("a list of objects, with all that is known of each session")
@in_workspace
def list_sessions(scope: Scope, deleted: bool, as_json: bool) -> None:
    """List sessions, the one written to last first."""
    listed = _deleted(scope) if deleted else _present(scope)
    if as_json:
        echo_json(listed.objects)
    elif not listed.rows:
        talk("the trash is empty" if deleted else "there are no sessions yet")
    else:
        fixed = ("messages", "updated (UTC)", "deleted (UTC)")
        echo_lines(Screen().table(listed.headings, listed.rows, fixed=fixed))


class _Listed(NamedTuple):
    headings: list[str]
    rows: list[list[str]]
    objects: list[dict[str, Any]]


def _present(scope: Scope) -> _Listed:
    infos = scope.sessions()
    rows = [
        [
            info.id,
            owner(info.agent_id, info.user_id),
            f"{info.message_count:>8,}",
            moment(info.updated_at),
            _about(info),
        ]
        for info in infos
    ]
    headings = ["session", "agent", "messages", "updated (UTC)", "about"]
    return _Listed(headings, rows, [as_json_object(info) for info in infos])


def _deleted(scope: Scope) -> _Listed:
    trashed = scope.trashed()
    rows = [
        [gone.session_id, owner(agent.id, agent.user), moment(gone.deleted_at)]
        for agent, gone in trashed
    ]
    objects = [
        {"agentId": agent.id, "userId": agent.user, **as_json_object(gone)}
        for agent, gone in trashed
    ]
    return _Listed(["session", "agent", "deleted (UTC)"], rows, objects)


def _about(info: SessionInfo) -> str:
    named = f"{info.name}: " if info.name != info.id else ""
    return (named + info.summary).removesuffix(": ")


@click.command(epilog=example("workspace-session show @latest --last 5"))
@session_argument
@last_option("messages")
@click.option("--raw", is_flag=True, help="The messages as they were said, without summaries.")
@click.option("--leaf", metavar="MESSAGE", help="The branch that ends in this message.")
@json_option("one message a line")
@in_workspace
def show(
    scope: Scope, session: str, last: int | None, raw: bool, leaf: str | None, as_json: bool
) -> None:
    """Print a conversation as the model sees it."""
    tree = scope.tree(session)
    end = None if leaf is None else message_id(tree, leaf)
    if last is not None and not raw and end is None:
        items = tree.tail(last)  # reads only the end of the file
    else:
        items = list(tree.path(end)) if raw else tree.context(end)
        items = items if last is None else items[len(items) - min(last, len(items)) :]
    if as_json:
        for item in items:
            echo_json(item.message, indent=None)
    elif items:
        echo_lines(converse(items, Screen()))
    else:
        talk("there are no messages")


@click.command("tree", epilog=example("workspace-session tree @latest"))
@session_argument
@json_option("one object: the tip, the messages, the summaries")
@in_workspace
def draw_tree(scope: Scope, session: str, as_json: bool) -> None:
    """Draw a session with all its branches.

    ● is the active branch, ○ another one, · what a summary (◆) hides from the model.
    """
    tree = scope.tree(session)
    if as_json:
        echo_json(tree_document(tree))
    else:
        echo_lines(draw(tree, Screen()))


@click.command(epilog=example("workspace-session log @latest --last 20"))
@session_argument
@last_option("entries")
@json_option("one entry a line, as the file has it")
@in_workspace
def log(scope: Scope, session: str, last: int | None, as_json: bool) -> None:
    """Print everything that happened in a session, newest last."""
    entries = deque(scope.tree(session).log(), maxlen=last)
    if as_json:
        for entry in entries:
            echo_json_text(entry.line.decode())
    else:
        screen = Screen()
        echo_lines(log_line(entry, screen) for entry in entries)
