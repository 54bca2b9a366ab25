"""The command that looks at everything: doctor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from workspace_session import Problem
from workspace_session import doctor as library
from workspace_session.cli.options import example, in_workspace, json_option
from workspace_session.cli.render import (
    as_json_object,
    echo_json,
    echo_lines,
    inert,
    plural,
    problem_place,
    talk,
)
from workspace_session.cli.scope import Scope
from workspace_session.cli.screen import Screen


@click.command(epilog=example("workspace-session doctor --fix"))
@click.option("--fix", is_flag=True, help="Mend what is safe to mend, and say what that was.")
@json_option("one object: what was mended, and what is left")
@in_workspace
def doctor(scope: Scope, fix: bool, as_json: bool) -> None:
    """Look at everything, and say what somebody should see to.

    Besides what `verify` finds: tool calls without an answer, summaries that stand for nothing,
    carriage returns, an index that is behind, very large files, a clone that is not set up for git.

    --fix only appends to logs and makes derived files anew; no word that was said is changed. The
    exit code is 1 if something is left.
    """
    agents = scope.agents()
    if fix:
        done = library.treat(scope.workspace, agents)
        mended, left = done.mended, done.left
    else:
        mended, left = [], library.examine(scope.workspace, agents)
    if as_json:
        echo_json({"mended": _objects(mended), "left": _objects(left)})
    else:
        _print(mended, left)
    if left:
        talk(f"{plural(len(left), 'thing')} to see to")
        click.get_current_context().exit(1)


def _objects(problems: Sequence[Problem]) -> list[dict[str, object]]:
    return [as_json_object(problem) for problem in problems]


def _print(mended: Sequence[Problem], left: Sequence[Problem]) -> None:
    screen = Screen()
    for problem in mended:
        echo_lines(_told(problem, "mended", screen))
    for problem in left:
        echo_lines(_told(problem, problem.mend, screen))
    if not mended and not left:
        click.echo("all is well")


def _told(problem: Problem, outcome: str, screen: Screen) -> Iterator[str]:
    """A problem on lines of its own: a place alone may fill a screen."""
    yield screen.paint(inert(problem_place(problem)), "cyan")
    yield from screen.wrap(problem.what, indent=2)
    yield from (screen.paint(line, "dim") for line in screen.wrap(f"→ {outcome}", indent=2))
