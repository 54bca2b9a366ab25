"""The OpenAI Agents SDK: `import openai-agents`."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from workspace_session.adapters.openai_agents.importing import Imported, import_database
from workspace_session.cli.options import example, in_workspace, json_option
from workspace_session.cli.render import as_json_object, echo_json, echo_lines, plural, talk
from workspace_session.cli.scope import Scope
from workspace_session.cli.screen import Screen

_HEADINGS = ("session", "items", "new", "branches")


@click.command("openai-agents", epilog=example("workspace-session import openai-agents chats.db"))
@click.argument("database", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--table", metavar="NAME", help="The table of items, if there is more than one.")
@click.option(
    "--rename",
    "renamed",
    nargs=2,
    multiple=True,
    metavar="ID NEW",
    help="Another id for a session; may be repeated.",
)
@json_option("one object a session")
@in_workspace
def import_openai_agents(
    scope: Scope,
    database: Path,
    table: str | None,
    renamed: tuple[tuple[str, str], ...],
    as_json: bool,
) -> None:
    """Bring in the sessions of an SQLite file of the OpenAI Agents SDK.

    DATABASE is a file of its SQLiteSession or AdvancedSQLiteSession; the branches of the latter become
    branches, labelled with their names. The sessions become sessions of the agent `default` if no
    other is named. Doing it again adds only what is new. A session whose id cannot be one here stays
    behind until it is given another.
    """
    imported = import_database(scope.agent_for_new(), database, table=table, new_ids=dict(renamed))
    for one in imported:
        if one.unreadable:
            talk(
                f"{one.session_id}: {plural(one.unreadable, 'row')} held no item and stayed behind"
            )
    if as_json:
        echo_json([as_json_object(one) for one in imported])
    elif imported:
        echo_lines(Screen().table(_HEADINGS, [_row(one) for one in imported], fixed=_HEADINGS[1:]))
    else:
        talk("the file holds no items yet")
    refused = [one for one in imported if one.refused is not None]
    for one in refused:
        old = shlex.quote(str(one.session_id))
        talk(f"{old} stayed behind ({one.refused}): bring it in with --rename {old} NEW")
    if refused:
        click.get_current_context().exit(1)


def _row(one: Imported) -> list[str]:
    added = f"{one.added:,}" if one.refused is None else "–"
    return [str(one.session_id), f"{one.items:>5,}", f"{added:>5}", f"{one.branches:>8,}"]
