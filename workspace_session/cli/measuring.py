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

_HEADINGS = [
    "agent",
    "session",
    "messages",
    "heads",
    "context",
    "in",
    "out",
    "cost",
    "log",
    "state",
]


@click.command(epilog=example("workspace-session stats"))
@optional_session_argument
@json_option("one object: the figures of each session, of each agent, and of all")
@in_workspace
def stats(scope: Scope, session: str | None, as_json: bool) -> None:
    """Count messages, tokens, cost and bytes, by agent and session.

    `context` is about how many tokens the model sees now, `in` and `out` are the tokens that agents
    have reported, and `cost` is in US dollars. Without SESSION, all sessions are counted.
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
        echo_lines(Screen().table(_HEADINGS, _rows(counted, agents, total), fixed=_HEADINGS[2:]))


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
        f"{figures.input_tokens:>6,}",
        f"{figures.output_tokens:>6,}",
        f"{figures.cost:>8,.4f}" if figures.cost else f"{'-':>8}",
        _size(figures.log_bytes),
        _size(figures.state_bytes),
    ]


def _size(count: int) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:>5.3g} {unit}"
        count //= 1000
    return f"{count:>5,} GB"
