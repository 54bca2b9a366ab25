"""What a session holds and has cost, in figures: for tables and sums."""

from __future__ import annotations

from dataclasses import dataclass, fields

from workspace_session.files.layout import AgentPlace
from workspace_session.files.session_tree import SessionTree
from workspace_session.model.tokens import estimate_message_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Figures of a session, or of several together. Sizes are in bytes.

    `context_tokens` estimates what the model is shown now; input and output are what was reported.
    """

    sessions: int = 0
    messages: int = 0
    heads: int = 0
    context_messages: int = 0
    context_tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    log_bytes: int = 0
    working_set_bytes: int = 0
    state_bytes: int = 0

    def __add__(self, other: Stats) -> Stats:
        return Stats(
            **{one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStats:
    """The figures of one session, and whose it is."""

    session_id: str
    agent_id: str
    user_id: str | None
    figures: Stats


def session_stats(place: AgentPlace, tree: SessionTree) -> SessionStats:
    """The figures of a session."""
    shown, info = tree.messages(), tree.info()
    figures = Stats(
        sessions=1,
        messages=info.message_count,
        heads=len(tree.heads()),
        context_messages=len(shown),
        context_tokens=estimate_message_tokens(shown),
        input_tokens=info.input_tokens,
        output_tokens=info.output_tokens,
        cost=info.estimated_cost,
        log_bytes=info.log_bytes,
        working_set_bytes=tree.working_set_bytes,
        state_bytes=_size_below(place, tree.id),
    )
    return SessionStats(
        session_id=tree.id, agent_id=place.agent_id, user_id=info.user_id, figures=figures
    )


def _size_below(place: AgentPlace, session_id: str) -> int:
    directory = place.state(session_id)
    if not directory.is_dir():
        return 0
    return sum(path.lstat().st_size for path in directory.iterdir() if path.is_file())
