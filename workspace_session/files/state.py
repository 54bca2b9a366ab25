"""The two state stores: one at any directory, one at an agent's place in a workspace.

They differ in where their files are and in nothing else; constructing one creates nothing. Two
stores over one directory exclude each other, since both lock below the same `.workspace/`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol, Self

from workspace_session.files.layout import Layout, StatePlace, workspace_above
from workspace_session.files.modules import PydanticModule
from workspace_session.files.state_bytes import ABSENT, Absent, Etag, Versioned
from workspace_session.files.state_store import StateStore

__all__ = [
    "ABSENT",
    "Absent",
    "Etag",
    "JsonSession",
    "PydanticModule",
    "StateStore",
    "Versioned",
    "WorkspaceSession",
]


class JsonSession(StateStore):
    """The states below a directory: `<path>/<session>/<key>.json` or `.jsonl`."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        durability: str = "disk",
        *,
        namespace: tuple[str, ...] | None = None,
    ) -> None:
        super().__init__(durability=durability, namespace=namespace)
        self.path = Path(os.path.realpath(path))
        self._settled: StatePlace | None = None
        self._place()  # a namespace that cannot be is refused here

    def _view(self, namespace: tuple[str, ...]) -> Self:
        return type(self)(self.path, self.durability, namespace=namespace)

    def _place(self) -> StatePlace:
        if self._settled is not None:
            return self._settled
        root = workspace_above(self.path)
        place = StatePlace(Layout(root or self.path), self.path).scoped(self.namespace or ())
        if root is not None:  # until then somebody may still make one above
            self._settled = place
        return place


class HasLayout(Protocol):
    """What a workspace is to its states."""

    @property
    def layout(self) -> Layout: ...

    @property
    def durability(self) -> str: ...


class WorkspaceSession(StateStore):
    """The states of one agent of a workspace: `<root>/[<user>/]agents/<agent>/context/`."""

    def __init__(
        self,
        workspace: HasLayout,
        agent_id: str,
        user_id: str | None = None,
        *,
        namespace: tuple[str, ...] | None = None,
    ) -> None:
        if user_id is not None:
            namespace = (user_id,)
        super().__init__(durability=workspace.durability, namespace=namespace)
        self.agent_id = agent_id
        self._workspace = workspace
        self._agent = workspace.layout.agent(agent_id, namespace or ())

    def _view(self, namespace: tuple[str, ...]) -> Self:
        return type(self)(self._workspace, self.agent_id, namespace=namespace)

    def _place(self) -> StatePlace:
        return self._agent.states

    def _refuse_twins(self, session_key: str) -> None:
        self._agent.refuse_twins(session_key)  # of either track
