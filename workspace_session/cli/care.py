"""Commands that look after a workspace: verify, rebuild, delete, restore."""

from __future__ import annotations

import click

from workspace_session import Problem
from workspace_session.cli.options import (
    example,
    in_workspace,
    json_option,
    optional_session_argument,
    session_argument,
)
from workspace_session.cli.render import (
    as_json_object,
    echo_json,
    echo_lines,
    plural,
    problem_place,
    talk,
)
from workspace_session.cli.scope import Scope
from workspace_session.cli.screen import Screen


@click.command(epilog=example("workspace-session verify"))
@optional_session_argument
@json_option("a list of problems, empty when all is well")
@in_workspace
def verify(scope: Scope, session: str | None, as_json: bool) -> None:
    """Look for anything that is not as it should be.

    Nothing is changed. Without SESSION, everything is looked at. The exit code is 1 if there is a
    problem, and each comes with what would mend it.
    """
    problems, seen = _look(scope, session)
    if as_json:
        echo_json([as_json_object(problem) for problem in problems])
    elif not problems:
        click.echo(f"all is well: {seen}")
    else:
        rows = [[problem_place(problem), problem.what, problem.mend] for problem in problems]
        headings = ["where", "what is wrong", "what mends it"]
        echo_lines(Screen().table(headings, rows, fixed=("where",), wrap=True))
    if problems:
        talk(f"{plural(len(problems), 'problem')} in {seen}")
        click.get_current_context().exit(1)


def _look(scope: Scope, session: str | None) -> tuple[list[Problem], str]:
    """The problems, and what was looked at."""
    if session is not None:
        found = scope.find(session)
        return found.agent.verify(found.session_id), f"session {found}"
    agents = scope.agents()
    sessions = sum(len(agent.session_ids()) for agent in agents)
    seen = f"{plural(len(agents), 'agent')}, {plural(sessions, 'session')}"
    if scope.is_whole:
        return scope.workspace.verify(), seen
    return [problem for agent in agents for problem in agent.verify()], seen


@click.command(epilog=example("workspace-session rebuild"))
@in_workspace
def rebuild(scope: Scope) -> None:
    """Make derived files anew from the logs.

    These are what the model sees of each session, and the index of all sessions.
    """
    count = sum(agent.rebuild() for agent in scope.agents())
    talk(f"rebuilt {plural(count, 'session')}")


@click.command(epilog=example("workspace-session delete trip"))
@session_argument
@in_workspace
def delete(scope: Scope, session: str) -> None:
    """Move a session to the trash.

    Its transcript and its state go there together; `workspace-session restore` brings them back.
    """
    found = scope.find(session)
    found.agent.delete(found.session_id)
    talk(f"moved {found} to the trash; restore brings it back")


@click.command(epilog=example("workspace-session restore trip"))
@session_argument
@in_workspace
def restore(scope: Scope, session: str) -> None:
    """Bring a session back from the trash.

    `workspace-session list --deleted` says what is there. Of a session that was deleted several
    times, the last one comes back.
    """
    found = scope.find_deleted(session)
    found.agent.restore(found.session_id)
    talk(f"restored {found}")
