"""A workspace as those see it who look after sessions: lists, facts, notes, deletion.

Everything here happens in one namespace: that of the context that is given, or the common one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any, Final

from workspace_session.agent import AgentWorkspace
from workspace_session.errors import UnknownSession
from workspace_session.files.session_tree import SessionTree
from workspace_session.harness import notes
from workspace_session.harness.context import BoundContext, RuntimeContext
from workspace_session.model.info import SessionInfo
from workspace_session.workspace import Workspace


class _Same(Enum):
    SAME = "SAME"

    def __repr__(self) -> str:
        return "SAME"


SAME: Final = _Same.SAME
"""A fact that is to stay as it is; None clears it."""

Text = str | None | _Same


class WorkspaceManager:
    """Looks after the sessions of a workspace."""

    def __init__(self, workspace: Workspace | str | os.PathLike[str]) -> None:
        self.workspace = workspace if isinstance(workspace, Workspace) else Workspace(workspace)

    def namespace(self, ctx: RuntimeContext | None = None) -> tuple[str, ...]:
        """The namespace of a context; a bound one has been asked already."""
        if isinstance(ctx, BoundContext):
            return ctx.namespace
        if ctx is not None and not isinstance(ctx, RuntimeContext):
            raise TypeError(f"a context is a RuntimeContext, not {type(ctx).__name__}")
        return self.workspace.namespace_of(RuntimeContext() if ctx is None else ctx)

    def agent(self, agent_id: str, ctx: RuntimeContext | None = None) -> AgentWorkspace:
        """The part of an agent in the namespace of a context."""
        return self.workspace.agent(agent_id, namespace=self.namespace(ctx))

    # -- looking -----------------------------------------------------------------------------------

    def list_agents(self, ctx: RuntimeContext | None = None) -> list[str]:
        """The agents that have written something."""
        return self.workspace.layout.agent_ids(self.namespace(ctx))

    def list_sessions(self, agent_id: str, ctx: RuntimeContext | None = None) -> list[SessionInfo]:
        """The sessions of an agent, the one written to last first."""
        return self.agent(agent_id, ctx).sessions()

    # -- changing ----------------------------------------------------------------------------------

    def update_session_index(
        self,
        agent_id: str,
        session_id: str,
        summary: str | None = None,
        *,
        ctx: RuntimeContext | None = None,
        name: Text = SAME,
        source: Text = SAME,
        model: Text = SAME,
        end_reason: Text = SAME,
        tags: Iterable[str] | _Same | None = SAME,
    ) -> dict[str, Any]:
        """Note facts of a session that differ from the known ones; its member of `sessions.json`.

        None clears a fact; only a summary that is None stays.
        """
        agent = self.agent(agent_id, ctx)
        given = {
            "summary": SAME if summary is None else summary,
            "name": name,
            "source": source,
            "model": model,
            "end_reason": end_reason,
            "tags": tags,
        }
        facts = {fact: value for fact, value in given.items() if value is not SAME}
        return note_facts(agent, agent.tree(session_id), facts)

    def rebuild_index(self, agent_id: str, ctx: RuntimeContext | None = None) -> int:
        """Make the index of an agent anew from its sessions; returns how many there are."""
        return len(self.agent(agent_id, ctx).index.rebuild())

    def delete_session(
        self, agent_id: str, session_id: str, ctx: RuntimeContext | None = None
    ) -> bool:
        """Move a session, transcript and state, to the trash; whether there was one."""
        try:
            self.agent(agent_id, ctx).delete(session_id)
        except UnknownSession:
            return False
        return True

    def append_note(
        self,
        text: str,
        *,
        ctx: RuntimeContext | None = None,
        title: str = "Note",
        now: datetime | None = None,
    ) -> Path | None:
        """Add a note to `memory/<date>.md`; None, and nothing written, when it is blank."""
        place = self.workspace.layout.shared(self.namespace(ctx))
        durable = self.workspace.durability == "disk"
        return notes.append_note(place, text, title=title, now=now, durable=durable)


def note_facts(agent: AgentWorkspace, tree: SessionTree, facts: dict[str, Any]) -> dict[str, Any]:
    """Set facts of a session and write its member of the index; the member."""
    known = tree.exists()
    if not tree.annotate(**facts) and not known:
        raise UnknownSession(tree.id)
    return agent.index.put(tree.id, tree)
