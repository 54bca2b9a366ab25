"""What a command line speaks of: which agents, which session, which message.

A name means what it is equal to; only if that is nothing, what it is the beginning of. When that is
more than one thing, the command is refused and the candidates are named: nothing is ever guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import click

from workspace_session import (
    AgentWorkspace,
    Message,
    SessionInfo,
    SessionStats,
    SessionTree,
    Trashed,
    UnknownSession,
    Workspace,
)
from workspace_session.cli.render import inert, talk

LATEST_NAME = "@latest"
DEFAULT_AGENT = "default"

_NAMED_AT_MOST = 5


def owner(agent_id: str, user_id: str | None) -> str:
    """Whose a session is, in a table."""
    return agent_id if user_id is None else f"{agent_id} of {user_id}"


class Found(NamedTuple):
    """A session and whose it is."""

    agent: AgentWorkspace
    session_id: str

    def __str__(self) -> str:
        user = "" if self.agent.user is None else f" of user {self.agent.user}"
        return inert(f"{self.session_id} (agent {self.agent.id}{user})")


class Scope:
    """The part of a workspace that `--agent` and `--user` leave."""

    def __init__(self, workspace: Workspace, agent: str | None, user: str | None) -> None:
        self.workspace = workspace
        self._agent, self._user = agent, user

    @property
    def is_whole(self) -> bool:
        """Whether nothing was left out."""
        return self._agent is None and self._user is None

    # -- agents and their sessions -----------------------------------------------------------------

    def agents(self) -> list[AgentWorkspace]:
        """The agents there are; one that the command line names must be there."""
        found = self._matching()
        if not found and (self._agent is not None or self._user is not None):
            agent = "agent" if self._agent is None else f"agent {self._agent!r}"
            user = "" if self._user is None else f" of user {self._user!r}"
            raise click.ClickException(f"there is no {agent}{user}")
        return found

    def named(self, owners: Iterable[tuple[str, str | None]]) -> list[AgentWorkspace]:
        """Those of some agents, by id and user, that are meant, whether they are here yet or not."""
        here = {(agent.id, agent.user): agent for agent in self.workspace.agents()}
        return [
            here.get((agent, user)) or self.workspace.agent(agent, user)
            for agent, user in owners
            if self._agent in (None, agent) and self._user in (None, user)
        ]

    def sessions(self) -> list[SessionInfo]:
        """All sessions, the one written to last first."""
        found = [info for agent in self.agents() for info in agent.sessions()]
        return sorted(found, key=lambda info: info.updated_at or "", reverse=True)

    def stats(self, session: str | None) -> list[SessionStats]:
        """The figures of one session, or of all."""
        if session is not None:
            found = self.find(session)
            return found.agent.stats(found.session_id)
        return [one for agent in self.agents() for one in agent.stats()]

    def agents_and_trash(self) -> list[AgentWorkspace]:
        """The agents there are, or the one that is named: all it had may be in the trash."""
        found = self._matching()
        if not found and self._agent is not None:
            found = [self.workspace.agent(self._agent, self._user)]
        return found

    def trashed(self) -> list[tuple[AgentWorkspace, Trashed]]:
        """All deleted sessions, the one deleted last first."""
        found = [(agent, gone) for agent in self.agents_and_trash() for gone in agent.trashed()]
        return sorted(found, key=lambda pair: pair[1].deleted_at, reverse=True)

    def _matching(self) -> list[AgentWorkspace]:
        return [
            agent
            for agent in self.workspace.agents()
            if self._agent in (None, agent.id) and self._user in (None, agent.user)
        ]

    # -- one session -------------------------------------------------------------------------------

    def find(self, name: str) -> Found:
        """The session that a name means: an id, the beginning of one, or `@latest`."""
        if name == LATEST_NAME:
            found = self._latest()
        else:
            agents = self.agents()
            found = _the_one(name, [Found(own, one) for own in agents for one in own.session_ids()])
        if found.session_id != name:
            talk(f"session {found}")
        return found

    def find_deleted(self, name: str) -> Found:
        """The same among what is in the trash."""
        trashed = self.trashed()
        if name == LATEST_NAME and trashed:
            return Found(trashed[0][0], trashed[0][1].session_id)
        known = dict.fromkeys((agent.id, agent.user, gone.session_id) for agent, gone in trashed)
        owners = {(agent.id, agent.user): agent for agent, _gone in trashed}
        try:
            return _the_one(name, [Found(owners[agent, user], one) for agent, user, one in known])
        except UnknownSession:
            raise click.ClickException(f"there is no session {name!r} in the trash") from None

    def tree(self, name: str) -> SessionTree:
        """The session that a name means."""
        agent, session_id = self.find(name)
        return agent.tree(session_id)

    def agent_for_new(self) -> AgentWorkspace:
        """Whose a session is that is made now: the agent named, else `default`."""
        agent_id = DEFAULT_AGENT if self._agent is None else self._agent
        return self.workspace.agent(agent_id, self._user)

    def tree_for_writing(self, name: str) -> SessionTree:
        """The session of this very id, or `@latest`; if there is none, writing makes it.

        The beginning of an id is not enough here: `trip` may be meant to stand beside `trip-2`.
        """
        if name == LATEST_NAME:
            return self.tree(name)
        there = [Found(agent, name) for agent in self._matching() if agent.tree(name).exists()]
        if there:
            return _the_one(name, there).agent.tree(name)
        return self.agent_for_new().tree(name)

    def _latest(self) -> Found:
        newest = [(infos[0], agent) for agent in self.agents() if (infos := agent.sessions())]
        if not newest:
            raise click.ClickException("there are no sessions yet")
        info, agent = max(newest, key=lambda pair: pair[0].updated_at or "")
        return Found(agent, info.id)


def message_id(tree: SessionTree, name: str) -> str:
    """The message that a name means: `@latest`, the tip; an id; or the beginning or the end of one."""
    if name == LATEST_NAME:
        tip = tree.leaf
        if tip is None:
            raise click.ClickException(f"session {tree.id!r} has no messages")
        return tip
    return _entry_id([entry.id for entry in tree.log() if isinstance(entry, Message)], name)


def entry_id(tree: SessionTree, name: str) -> str:
    """The same of any entry: a summary, a label, …"""
    return message_id(tree, name) if name == LATEST_NAME else _entry_id(_ids(tree), name)


def _ids(tree: SessionTree) -> list[str]:
    return [entry.id for entry in tree.log()]


def _entry_id(known: Iterable[str], name: str) -> str:
    ids = dict.fromkeys(known)
    near = [one for one in ids if one.startswith(name) or one.endswith(name)]
    if name in ids or not near:
        return name  # whether it is there, the library says
    if len(near) > 1:
        raise click.ClickException(_ambiguous(name, near))
    return near[0]


def _the_one(name: str, known: Sequence[Found]) -> Found:
    equal = [one for one in known if one.session_id == name]
    near = equal or [one for one in known if name and one.session_id.startswith(name)]
    if not near:
        raise UnknownSession(name)
    if len(near) > 1:
        hint = "; --agent or --user says which" if equal else ""
        raise click.ClickException(_ambiguous(name, [str(one) for one in near]) + hint)
    return near[0]


def _ambiguous(name: str, candidates: Sequence[str]) -> str:
    named = ", ".join(candidates[:_NAMED_AT_MOST])
    more = len(candidates) - _NAMED_AT_MOST
    return f"{name!r} could be {named}" + (f" and {more} more" if more > 0 else "")
