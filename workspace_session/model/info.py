"""What lists show of a session: a function of its entries and the size of its log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from workspace_session.model.tree import Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """The facts of one session."""

    id: str
    agent_id: str = ""
    user_id: str | None = None
    name: str = ""  # the id, for a session that was given none
    summary: str = ""
    created_at: str | None = None
    updated_at: str | None = None
    message_count: int = 0
    log_bytes: int = 0
    model: str | None = None
    source: str | None = None
    end_reason: str | None = None
    tags: tuple[str, ...] = ()
    parent_session_id: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    estimated_cost: float = 0.0
    labels: Mapping[str, str] = field(default_factory=dict)
    dangling_tool_calls: tuple[str, ...] = ()


def member(tree: Tree, log_bytes: int) -> dict[str, Any]:
    """The session's member of `sessions.json`: five fields always, the others when known."""
    facts = tree.facts()
    summary = facts.get("summary")
    header = next(iter(tree.headers.values()), None)
    spent = tree.spent
    known: dict[str, Any] = {
        **{name: facts.get(name) for name in ("name", "model", "source", "endReason")},
        "tags": sorted(tags) if isinstance(tags := facts.get("tags"), list) else None,
        "parentSessionId": header.parent_session if header else None,
        "inputTokens": spent.input_tokens,
        "outputTokens": spent.output_tokens,
        "cost": spent.cost,
        "labels": tree.labels(),
        "danglingToolCalls": tree.dangling_tool_calls(),
    }
    return {
        "summary": summary if isinstance(summary, str) else tree.first_user_text() or "",
        "createdAt": tree.created_at,
        "updatedAt": tree.newest[0],
        "messageCount": len(tree),
        "logBytes": log_bytes,
        **{name: value for name, value in known.items() if value},
    }


KNOWN_MEMBERS = frozenset(
    {
        "summary", "createdAt", "updatedAt", "messageCount", "logBytes", "name", "model", "source",
        "endReason", "tags", "parentSessionId", "inputTokens", "outputTokens", "cost", "labels",
        "danglingToolCalls",
    }
)  # fmt: skip


def from_member(
    session_id: str, found: Mapping[str, Any], *, agent_id: str, user_id: str | None
) -> SessionInfo:
    """What a member of `sessions.json` says."""
    return SessionInfo(
        id=session_id,
        agent_id=agent_id,
        user_id=user_id,
        name=found.get("name") or session_id,
        summary=found.get("summary") or "",
        created_at=found.get("createdAt"),
        updated_at=found.get("updatedAt"),
        message_count=found.get("messageCount", 0),
        log_bytes=found.get("logBytes", 0),
        model=found.get("model"),
        source=found.get("source"),
        end_reason=found.get("endReason"),
        tags=tuple(found.get("tags", ())),
        parent_session_id=found.get("parentSessionId"),
        input_tokens=found.get("inputTokens", 0),
        output_tokens=found.get("outputTokens", 0),
        estimated_cost=found.get("cost", 0.0),
        labels=dict(found.get("labels", {})),
        dangling_tool_calls=tuple(found.get("danglingToolCalls", ())),
    )
