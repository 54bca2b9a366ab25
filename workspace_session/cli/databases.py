"""Commands for sessions in Postgres: postgres-schema, push, pull."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from workspace_session import AgentWorkspace, PostgresStore, postgres
from workspace_session.cli.options import example, in_workspace
from workspace_session.cli.render import inert, plural, talk
from workspace_session.cli.scope import LATEST_NAME, Found, Scope

dsn_option = click.option(
    "--dsn", metavar="DSN", help="The database. Default: the one that PGHOST, PGDATABASE, … name."
)


@click.command("postgres-schema", epilog=example("workspace-session postgres-schema | psql agents"))
@click.option("--apply", "apply_it", is_flag=True, help="Make the tables instead of printing.")
@dsn_option
def postgres_schema(apply_it: bool, dsn: str | None) -> None:
    """Print the tables that sessions in Postgres need, or make them.

    Both may be done again at any time, and on the tables of an earlier version.
    """
    if not apply_it:
        if dsn is not None:
            raise click.UsageError("--dsn needs --apply: without it nothing is connected to")
        click.echo(postgres.schema_sql(), nl=False)
        return

    async def work() -> None:
        async with postgres.connected(dsn) as connection:
            await postgres.apply_schema(connection)

    _run(work())
    talk("the tables are there")


@click.command(epilog=example("workspace-session push trip --dsn postgresql://localhost/agents"))
@click.argument("sessions", metavar="[SESSION]...", nargs=-1)
@dsn_option
@in_workspace
def push(scope: Scope, sessions: tuple[str, ...], dsn: str | None) -> None:
    """Copy sessions to Postgres: all of them, or those named.

    What is there already is not copied twice; what was written on both sides is merged. A copy that
    was interrupted goes on where it stopped.
    """
    found = [scope.find(name) for name in sessions] if sessions else _all(scope)

    async def work(report: Callable[[postgres.Progress], None]) -> list[postgres.Copied]:
        async with postgres.connected(dsn) as connection:
            copied: list[postgres.Copied] = []
            for agent, session_id in found:
                store = PostgresStore(connection, agent.id, user_id=agent.user)
                copied += await postgres.push(agent, store, [session_id], report)
            return copied

    with _bar("pushing") as report:
        copied = _run(work(report))
    _say("pushed", copied)


def _all(scope: Scope) -> list[Found]:
    return [
        Found(agent, session_id)
        for agent in scope.agents()
        for session_id in agent.place.session_ids()
    ]


@click.command(epilog=example("workspace-session pull trip --dsn postgresql://localhost/agents"))
@click.argument("sessions", metavar="[SESSION]...", nargs=-1)
@dsn_option
@in_workspace
def pull(scope: Scope, sessions: tuple[str, ...], dsn: str | None) -> None:
    """Copy sessions from Postgres: all of them, or those named by their whole ids.

    What is here already is not copied twice; what was written on both sides is merged.
    """
    if LATEST_NAME in sessions:
        raise click.UsageError(
            f"{LATEST_NAME} is the latest session here; name the one in Postgres"
        )

    async def work(report: Callable[[postgres.Progress], None]) -> list[postgres.Copied]:
        async with postgres.connected(dsn) as connection:
            copied: list[postgres.Copied] = []
            for agent in scope.named(await postgres.owners(connection)):
                store = PostgresStore(connection, agent.id, user_id=agent.user)
                copied += await _pull(store, agent, sessions, report)
            return copied

    with _bar("pulling") as report:
        copied = _run(work(report))
    missing = set(sessions) - {one.session_id for one in copied}
    if missing:
        raise click.ClickException(f"there is no session {min(missing)!r} in Postgres")
    _say("pulled", copied)


async def _pull(
    store: PostgresStore,
    agent: AgentWorkspace,
    sessions: Sequence[str],
    report: Callable[[postgres.Progress], None],
) -> list[postgres.Copied]:
    there = [one for one in sessions if await store.exists(one)]
    if sessions and not there:
        return []
    return await postgres.pull(store, agent, there or None, report)


# -- what they share -------------------------------------------------------------------------------


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    try:
        return asyncio.run(work)
    except ImportError as error:  # the driver is an extra
        raise click.ClickException(str(error)) from error


def _say(done: str, copied: Sequence[postgres.Copied]) -> None:
    lines = sum(one.entries for one in copied)
    for session_id, count in copied:
        if count:
            click.echo(f"{inert(session_id)}  {plural(count, 'line')}")
    talk(f"{done} {plural(len(copied), 'session')}, {plural(lines, 'new line')}")


@contextmanager
def _bar(doing: str) -> Iterator[Callable[[postgres.Progress], None]]:
    """A bar on stderr, if that is a terminal: one for each session."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    hidden = not sys.stderr.isatty()
    bar = Progress(*columns, TimeElapsedColumn(), console=console, transient=True, disable=hidden)
    task = bar.add_task(doing, total=None)

    def report(progress: postgres.Progress) -> None:
        described = f"{doing} {inert(progress.session_id)}".replace("[", "\\[")
        bar.update(task, description=described, completed=progress.done, total=progress.total)

    with bar:
        yield report
