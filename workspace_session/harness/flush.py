"""Offloading: an agent's conversation goes to the transcript of its session, whole and once.

What is given is what the agent remembers now; what the session has of it already stays as it is. Nothing
is left out and nothing is forgotten: what a failure kept from being written, the next call writes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from workspace_session.errors import InvalidMessage
from workspace_session.files.session_tree import SessionTree
from workspace_session.harness.context import BoundContext, ChildContext, RuntimeContext
from workspace_session.harness.manager import WorkspaceManager
from workspace_session.harness.messages import as_message
from workspace_session.model.offloading import OffloadResult
from workspace_session.workspace import Workspace


class MemoryFlushManager:
    """Writes what agents remember to the transcripts of a workspace."""

    def __init__(self, workspace: Workspace | str | os.PathLike[str]) -> None:
        self.manager = WorkspaceManager(workspace)
        self.workspace = self.manager.workspace

    def offload_messages(
        self,
        agent_id: str,
        session_id: str,
        messages: Iterable[Any],
        *,
        ctx: RuntimeContext | None = None,
    ) -> OffloadResult:
        """Store what a conversation has that its session has not, and write the index.

        A message is a mapping, a text (from the user), or an object with `to_dict` or `model_dump`.
        """
        agent = self.manager.agent(agent_id, ctx)
        tree = agent.tree(session_id)
        result = offload(tree, messages, ctx)
        if tree.exists():
            agent.index.put(session_id, tree)
        return result


def offload(
    tree: SessionTree, messages: Iterable[Any], ctx: RuntimeContext | None = None
) -> OffloadResult:
    """The same without the index. A session that another one started says so in its header."""
    if isinstance(messages, str | bytes | Mapping):
        raise InvalidMessage("a conversation is a list of messages, not one of them")
    found = [as_message(message) for message in messages]
    if isinstance(ctx, BoundContext | ChildContext) and ctx.parent_session is not None:
        tree.start(parent_session=ctx.parent_session)
    return tree.offload(found)
