"""The command that stays: tail prints what agents do while they do it.

Each entry is printed once, whichever process wrote it, and at once: a pipe gets it as a terminal does.
"""

from __future__ import annotations

import json
from dataclasses import replace

import click

from workspace_session import EntriesAdded, SessionRemoved, WorkspaceEvent
from workspace_session.cli.drawing import log_line
from workspace_session.cli.options import (
    example,
    in_workspace,
    json_option,
    last_option,
    optional_session_argument,
)
from workspace_session.cli.render import echo_json_text, echo_lines, inert, talk
from workspace_session.cli.scope import Scope
from workspace_session.cli.screen import Screen

_LAST = 10  # entries that a session which was asked for begins with


@click.command(epilog=example("workspace-session tail --agent researcher --last 5"))
@optional_session_argument
@last_option("entries of what is there already, in each session")
@click.option("--polling", is_flag=True, help="For network file systems: look, do not listen.")
@json_option("one event a line")
@in_workspace
def tail(scope: Scope, session: str | None, last: int | None, polling: bool, as_json: bool) -> None:
    """Follow a session, or all sessions, until Ctrl-C.

    Without SESSION, what happens from now on is printed, and agents that come later are followed too.
    A SESSION begins with its last 10 entries.
    """
    names = click.get_current_context().params  # an agent that is named need not be there yet
    agent, user = names["agent"], names["user"]
    if session is not None:
        found = scope.find(session)
        agent, user, session = found.agent.id, found.agent.user or "", found.session_id
    last = (0 if session is None else _LAST) if last is None else last
    printer = _Printer(as_json, last)
    try:
        with scope.workspace.events(
            agent=agent, user=user, session=session, existing=last > 0, polling=polling
        ) as events:
            talk("following; Ctrl-C ends it")
            for event in events:
                printer.print(event)
    except KeyboardInterrupt:
        return  # how this command is meant to end


class _Printer:
    """Prints events, for people or for programs."""

    def __init__(self, as_json: bool, last: int) -> None:
        self._as_json, self._last = as_json, last
        self._screen = Screen()
        self._heading = ""

    def print(self, event: WorkspaceEvent) -> None:
        if isinstance(event, EntriesAdded) and event.existing:
            event = replace(event, entries=event.entries[-self._last :])
        if self._as_json:
            echo_json_text(_json(event))
        elif isinstance(event, EntriesAdded):
            self._print_entries(event)
        else:
            done = "was deleted" if isinstance(event, SessionRemoved) else "was replaced"
            talk(f"session {_named(event)} {done}")

    def _print_entries(self, event: EntriesAdded) -> None:
        heading = _named(event)
        if heading != self._heading:
            echo_lines([self._screen.paint(heading, "bold cyan")])
        self._heading = heading
        echo_lines(log_line(entry, self._screen) for entry in event.entries)


def _named(event: WorkspaceEvent) -> str:
    user = "" if event.user_id is None else f" of user {event.user_id}"
    return inert(f"{event.session_id} (agent {event.agent_id}{user})")


def _json(event: WorkspaceEvent) -> str:
    """An event as one line; its entries are as the file has them."""
    kind = type(event).__name__
    members: dict[str, str | bool | None] = {
        "event": kind[0].lower() + kind[1:],
        "agentId": event.agent_id,
        "userId": event.user_id,
        "sessionId": event.session_id,
    }
    if isinstance(event, EntriesAdded):
        members["existing"] = event.existing
    text = json.dumps(members, ensure_ascii=False, separators=(",", ":"))
    if not isinstance(event, EntriesAdded):
        return text
    entries = ",".join(entry.line.decode() for entry in event.entries)
    return f'{text[:-1]},"entries":[{entries}]}}'
