"""Commands that take away: gc, purge. Nothing goes without being asked for by its name or its age."""

from __future__ import annotations

import re
from datetime import timedelta

import click

from workspace_session import AgentWorkspace, Retention
from workspace_session.cli.options import example, in_workspace, json_option, session_argument
from workspace_session.cli.render import (
    as_json_object,
    echo_json,
    echo_lines,
    inert,
    plural,
    talk,
)
from workspace_session.cli.scope import Scope, entry_id, owner
from workspace_session.cli.screen import Screen

_DAYS = {"h": 1 / 24, "d": 1, "w": 7, "y": 365}


def _age(
    _context: click.Context, _parameter: click.Parameter, given: str | None
) -> timedelta | None:
    """A length of time: `12h`, `30d`, `8w`, `2y`."""
    if given is None:
        return None
    found = re.fullmatch(r"([0-9]{1,5})([hdwy])", given, re.ASCII)
    if not found:
        raise click.BadParameter(f"{given!r} is not an age like 12h, 30d, 8w or 2y")
    return timedelta(days=int(found[1]) * _DAYS[found[2]])


@click.command(
    epilog=example(
        "workspace-session gc --older-than 90d --keep-labelled",
        "workspace-session gc --keep 50 --trash-older-than 30d --yes",
    )
)
@click.option("--older-than", callback=_age, metavar="AGE", help="Not written to for so long.")
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="Only each agent's last N.")
@click.option("--keep-labelled", is_flag=True, help="Sessions with a label stay.")
@click.option("--keep-tagged", is_flag=True, help="Sessions with a tag stay.")
@click.option(
    "--trash-older-than", callback=_age, metavar="AGE", help="Erase what was deleted so long ago."
)
@click.option("--yes", is_flag=True, help="Do it. Without this, it is only said.")
@json_option("a list of what goes, each with the reason")
@in_workspace
def gc(
    scope: Scope,
    older_than: timedelta | None,
    keep: int | None,
    keep_labelled: bool,
    keep_tagged: bool,
    trash_older_than: timedelta | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Move old sessions to the trash, and erase what has been there for long.

    An AGE is 12h, 30d, 8w or 2y. A session goes when it is too old, or when its agent has N newer
    ones; it goes to the trash, and `restore` brings it back. Only --trash-older-than erases.
    """
    if older_than is None and keep is None and trash_older_than is None:
        raise click.UsageError("give --older-than, --keep or --trash-older-than")
    rule = Retention(
        older_than=older_than,
        keep=keep,
        spare_labelled=keep_labelled,
        spare_tagged=keep_tagged,
        trash_older_than=trash_older_than,
    )
    gone = [one for agent in scope.agents_and_trash() for one in _collect(agent, rule, yes)]
    if as_json:
        echo_json(gone)
    elif gone:
        rows = [[one[key] or "" for key in ("done", "session", "agent", "why")] for one in gone]
        echo_lines(Screen().table(["", "session", "agent", "why"], rows, fixed=("",)))
    if not gone:
        talk("nothing is due")
    elif not yes:
        talk(f"nothing was done yet: --yes does it to {plural(len(gone), 'session')}")
    else:
        moved = sum(one["done"] == "trash" for one in gone)
        talk(f"moved {moved:,} to the trash, erased {len(gone) - moved:,}")


def _collect(agent: AgentWorkspace, rule: Retention, yes: bool) -> list[dict[str, str]]:
    """What goes of an agent; `yes` lets it go."""
    own = owner(agent.id, agent.user)
    due, erasable = agent.due(rule)
    kinds = [("erase", gone.session_id, why) for gone, why in erasable]
    kinds += [("trash", info.id, why) for info, why in due]
    if yes:
        for gone, _why in erasable:
            agent.erase(gone)
        for info, why in due:
            if not agent.retire(info):
                talk(f"session {info.id} was just written to; it stays")
                kinds.remove(("trash", info.id, why))
    return [{"done": do, "session": name, "agent": own, "why": why} for do, name, why in kinds]


@click.command(epilog=example("workspace-session purge @latest @latest --yes"))
@session_argument
@click.argument("entry", metavar="ENTRY")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option("what was purged, and where copies are, as an object")
@in_workspace
def purge(scope: Scope, session: str, entry: str, yes: bool, as_json: bool) -> None:
    """Take the text of one entry away for good.

    ENTRY is a message with all it ever said, a summary, a label or any other that `log` shows. Its id
    and its place stay. The text goes from both files of the session, from copies in the trash and from
    the indexes, and no merge brings it back. What git has committed still holds it, and so may forks
    and what agents wrote elsewhere.
    """
    found = scope.find(session)
    target = entry_id(found.agent.tree(found.session_id), entry)
    if not yes and not click.confirm(f"Take the text of {inert(target)} away for good?", err=True):
        raise click.ClickException("nothing was purged")
    purged = found.agent.purge(found.session_id, target)
    if as_json:
        echo_json(as_json_object(purged))
    talk(f"purged the {purged.type} {purged.entry_id}; what git has committed still holds it")
    if purged.in_trash:
        talk(f"copies in the trash that were purged too: {purged.in_trash}")
    if purged.summaries:
        talk(f"summaries may tell of it: {', '.join(purged.summaries)}")
    if purged.forks:
        talk(f"sessions that have a copy: {', '.join(purged.forks)}")
