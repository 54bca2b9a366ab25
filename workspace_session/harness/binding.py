"""Binding: a turn's context with everything filled in, before anything else happens.

The namespace is asked for once, here; whatever the turn does later happens in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workspace_session.files.names import encode_id
from workspace_session.files.state import WorkspaceSession
from workspace_session.harness.context import BoundContext, RuntimeContext
from workspace_session.workspace import Workspace


def bind(
    given: RuntimeContext | None, *, workspace: Workspace, agent_id: str, session: Any = None
) -> BoundContext:
    """The context of a turn; what is wrong with the given one is said here.

    The state goes by `session_key`, else `session_id`; the transcript by `session_id`, else
    `session_key`; both by the agent's name when there is neither.
    """
    given = RuntimeContext() if given is None else given
    if not isinstance(given, RuntimeContext):
        raise TypeError(f"a context is a RuntimeContext, not {type(given).__name__}")
    if isinstance(
        given, BoundContext
    ):  # that of a turn around this one: all is known but the agent
        given = given.given
    for kind, value in (
        ("user", given.user_id),
        ("session", given.session_id),
        ("session", given.session_key),
    ):
        if value is not None:
            encode_id(kind, value)
    if not isinstance(given.metadata, Mapping):
        raise TypeError(f"metadata is a mapping, not {type(given.metadata).__name__}")
    namespace = workspace.namespace_of(given)
    store = session if given.session is None else given.session
    if store is None:
        store = WorkspaceSession(workspace, agent_id)
    if callable(scoped := getattr(store, "scoped", None)):
        store = scoped(namespace)
    return BoundContext(
        given,
        workspace=workspace,
        agent_id=agent_id,
        namespace=namespace,
        session=store,
        session_id=_first(given.session_id, given.session_key, agent_id),
        session_key=_first(given.session_key, given.session_id, agent_id),
    )


def _first(*ids: str | None) -> str:
    return next(one for one in ids if one is not None)
