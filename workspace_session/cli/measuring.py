"""The command that counts: stats."""

from __future__ import annotations

import click

from workspace_session import SessionStats, Stats
from workspace_session.cli.options import (
    example,
    in_workspace,
    json_option,
    optional_session_argument,
)
from workspace_session.cli.render import as_json_object, echo_json, echo_lines, talk
from workspace_session.cli.scope import Scope, owner
from workspace_session.cli.screen import Screen

# The figures of a table, and how wide a screen has to be to show them too.
_FIGURES = {
    "messages": 0,
    "heads": 110,
    "context": 0,
    "     in": 72,
    "    out": 72,
    "    cost": 0,
    "    log": 88,
    "  state": 110,
}


@click.command(epilog=example("workspace-session stats"))
@optional_session_argument
@json_option("one object: the figures of each session, of each agent, and of all")
@in_workspace
def stats(scope: Scope, session: str | None, as_json: bool) -> None:
    """Count messages, tokens, cost and bytes, by agent and session.

    `context` is about how many tokens the model sees now, `in` and `out` are the tokens that agents
    have reported, and `cost` is in US dollars. Without SESSION, all sessions are counted. A narrow
    screen shows less; a pipe gets all.
    """
    counted = scope.stats(session)
    agents: dict[tuple[str, str | None], Stats] = {}
    for one in counted:
        key = (one.agent_id, one.user_id)
        agents[key] = agents.get(key, Stats()) + one.figures
    total = sum(agents.values(), Stats())
    if as_json:
        echo_json(_document(counted, agents, total))
    elif not counted:
        talk("there are no sessions yet")
    else:
        _print(_rows(counted, agents, total), Screen())


def _print(rows: list[list[str]], screen: Screen) -> None:
    wanted = [name for name, least in _FIGURES.items() if least <= (screen.width or least)]
    names = ["agent", "session", *_FIGURES]
    shown = [names.index(name) for name in ("agent", "session", *wanted)]
    cells = [[row[at] for at in shown] for row in rows]
    echo_lines(screen.table([names[at] for at in shown], cells, fixed=wanted))


def _document(
    counted: list[SessionStats], agents: dict[tuple[str, str | None], Stats], total: Stats
) -> dict[str, object]:
    return {
        "sessions": [
            {
                "agentId": one.agent_id,
                "userId": one.user_id,
                "sessionId": one.session_id,
                **as_json_object(one.figures),
            }
            for one in counted
        ],
        "agents": [
            {"agentId": agent, "userId": user, **as_json_object(figures)}
            for (agent, user), figures in agents.items()
        ],
        "total": as_json_object(total),
    }


def _rows(
    counted: list[SessionStats], agents: dict[tuple[str, str | None], Stats], total: Stats
) -> list[list[str]]:
    """Each agent's sessions, then what they come to; at the end, what all come to."""
    rows = []
    for (agent, user), figures in agents.items():
        own = [one for one in counted if (one.agent_id, one.user_id) == (agent, user)]
        rows += [_row(owner(agent, user), one.session_id, one.figures) for one in own]
        if len(own) > 1:
            rows.append(_row(owner(agent, user), f"= {len(own)} sessions", figures))
    if len(agents) > 1:
        rows.append(_row("= all", f"= {total.sessions} sessions", total))
    return rows


def _row(agent: str, session: str, figures: Stats) -> list[str]:
    return [
        agent,
        session,
        f"{figures.messages:>8,}",
        f"{figures.heads:>5,}",
        f"{figures.context_tokens:>7,}",
        f"{figures.input_tokens:>7,}",
        f"{figures.output_tokens:>7,}",
        f"{figures.cost:>8,.4f}" if figures.cost else f"{'-':>8}",
        f"{_size(figures.log_bytes):>7}",
        f"{_size(figures.state_bytes):>7}",
    ]


def _size(count: float) -> str:
    if count < 1000:
        return f"{count:.0f} B"
    for unit in ("kB", "MB"):
        count /= 1000
        if count < 999.5:
            return f"{count:.1f} {unit}" if count < 99.95 else f"{count:.0f} {unit}"
    return f"{count / 1000:,.1f} GB"
