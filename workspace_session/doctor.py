"""The doctor: everything about a workspace that somebody should look at, and mending what is safe.

`verify` names what is broken; this also names what is sound and will be trouble: calls that nobody
answered, files that git hosts refuse, a clone without its merge driver. Mending only appends to logs
and makes derived files anew, and is told by what is no longer found afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from workspace_session.agent import AgentWorkspace
from workspace_session.errors import WorkspaceError
from workspace_session.files.jsonl import read_bytes
from workspace_session.files.verify import Problem
from workspace_session.git.install import installed
from workspace_session.git.repository import GitFailed, Repository
from workspace_session.model.entries import Message
from workspace_session.model.messages import dangling_tool_calls
from workspace_session.workspace import Workspace

LARGE = 50_000_000  # bytes; hosts warn of such files, and refuse those twice as large

_FIX = "workspace-session doctor --fix"


@dataclass(frozen=True, slots=True)
class Treatment:
    """What was mended, and what is left for a person."""

    mended: list[Problem]
    left: list[Problem]


def examine(
    workspace: Workspace, agents: Sequence[AgentWorkspace] | None = None, *, large: int = LARGE
) -> list[Problem]:
    """Everything that is not as it should be, or will not stay so; nothing is changed."""
    agents = workspace.agents() if agents is None else agents
    found = {*_git(workspace)}
    for agent in agents:
        found.update(agent.verify())
        found.update(_index(agent))
        for session_id in agent.place.session_ids():
            found.update(_files(agent, session_id, large))
            try:
                found.update(_conversation(agent, session_id))
            except WorkspaceError:
                continue  # `verify` has named it
    return sorted(found)


def treat(
    workspace: Workspace, agents: Sequence[AgentWorkspace] | None = None, *, large: int = LARGE
) -> Treatment:
    """Mend what appending and making derived files anew can mend."""
    agents = workspace.agents() if agents is None else agents
    before = examine(workspace, agents, large=large)
    paths = {problem.path for problem in before}
    for agent in agents:
        for session_id in agent.place.session_ids():
            if paths.intersection(map(agent.place.layout.shown, _paths(agent, session_id))):
                _rebuild(agent, session_id)
        if agent.place.layout.shown(agent.place.index) in paths:
            agent.index.catch_up()
    left = examine(workspace, agents, large=large)
    return Treatment([problem for problem in before if problem not in left], left)


def _rebuild(agent: AgentWorkspace, session_id: str) -> None:
    try:
        agent.tree(session_id).rebuild()
        agent.index.put(session_id)
    except WorkspaceError:
        return  # it stays among what is left


def _paths(agent: AgentWorkspace, session_id: str) -> tuple[Path, Path]:
    return agent.place.log(session_id), agent.place.tree(session_id)


# -- what there is to find -------------------------------------------------------------------------


def _git(workspace: Workspace) -> Iterator[Problem]:
    try:
        repository = Repository(workspace.root)
        if repository.is_undecided():
            mend = "finish it with git, then workspace-session rebuild"
            yield Problem(".", 0, "a merge or rebase is not finished", mend)
        there = installed(repository)
    except GitFailed:
        return  # it is not versioned, or there is no git: nothing to be ready for
    parts = ("ignore", "attributes", "driver", "hooks")
    lacking = [part for part in parts if not getattr(there, part)]
    if lacking:
        what = f"git is not set up for this workspace: no {', no '.join(lacking)}"
        yield Problem(".", 0, what, "workspace-session git install")


def _index(agent: AgentWorkspace) -> Iterator[Problem]:
    stale = agent.index.stale_sessions()
    if stale and agent.place.index.exists():
        what = f"the index is behind, first for session {stale[0]!r}"
        yield Problem(agent.place.layout.shown(agent.place.index), 0, what, f"listing, or {_FIX}")


def _files(agent: AgentWorkspace, session_id: str, large: int) -> Iterator[Problem]:
    for path in _paths(agent, session_id):
        try:
            agent.place.layout.check(path)
            found = read_bytes(path)
        except (OSError, WorkspaceError):
            continue  # `verify` has named it
        data = b"" if found is None else found[0]
        shown = agent.place.layout.shown(path)
        if len(data) > large:
            what = f"{len(data) / 1e6:,.0f} MB is more than git hosts like"
            mend = "go on in a new session; gc moves this one to the trash"
            yield Problem(shown, 0, what, mend)
        if lines := data.count(b"\r\n"):
            number = data[: data.index(b"\r\n")].count(b"\n") + 1
            what = f"{lines:,} lines end in a carriage return"
            mend = "none needed, readers ignore it; git install keeps git from adding more"
            yield Problem(shown, number, what, mend)


def _conversation(agent: AgentWorkspace, session_id: str) -> Iterator[Problem]:
    tree = agent.tree(session_id)
    shown = agent.place.layout.shown(agent.place.log(session_id))
    for head in tree.heads():
        calls = dangling_tool_calls(tree.messages(head))
        if calls:
            what = f"before {head!r} nothing answers the tool call {calls[0]!r}"
            more = f" and {len(calls) - 1} more" if len(calls) > 1 else ""
            mend = "append its result; models refuse a conversation without"
            yield Problem(shown, 0, what + more, mend)
    said = {entry.id for entry in tree.log() if isinstance(entry, Message)}
    here = {entry.id for entry in tree.all_messages()}
    for overlay in tree.compactions():
        ends = {overlay.from_id, overlay.to_id}
        if not ends <= said:
            continue  # `verify` has named it
        if not ends <= here or overlay.from_id not in {one.id for one in tree.path(overlay.to_id)}:
            what = f"the summary {overlay.id!r} stands for nothing: an end of its range is gone"
            yield Problem(shown, 0, what, "none needed; compact makes another")
