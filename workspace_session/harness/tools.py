"""Tools for agents to look into sessions: `session_search`, `session_list`, `session_history`.

They answer in text and never raise. What is not in the namespace of the turn does not exist for them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from workspace_session.agent import AgentWorkspace
from workspace_session.errors import InvalidId
from workspace_session.harness.arguments import Arguments, BadArgument
from workspace_session.harness.context import RuntimeContext, current_context
from workspace_session.harness.manager import WorkspaceManager
from workspace_session.harness.tool_answers import (
    answer,
    counted,
    history_item,
    hit_item,
    quoted,
    session_item,
)
from workspace_session.model.info import SessionInfo
from workspace_session.model.messages import tool_calls
from workspace_session.model.offloading import is_summary, overlay_id
from workspace_session.session.tool import number_input, schema, text_input
from workspace_session.workspace import Workspace

logger = logging.getLogger("workspace_session")

_MOST_SESSIONS = 50
_SNIPPET = 200


class SessionTools:
    """The tools over one workspace."""

    def __init__(
        self, workspace: Workspace | str | os.PathLike[str], ctx: RuntimeContext | None = None
    ) -> None:
        self._manager = WorkspaceManager(workspace)
        self._workspace = self._manager.workspace
        self._ctx = ctx
        self._namespace()  # which is refused here, if it has to be

    def schemas(self) -> list[dict[str, Any]]:
        """The tools as models are told of them."""
        return [
            {"name": name, "description": described, "input_schema": deepcopy(wanted)}
            for name, (described, wanted, _run) in self._tools().items()
        ]

    def run(self, name: str, arguments: Any = None) -> str:
        """The answer of a tool, an error included."""
        tool = self._tools().get(name)
        if tool is None:
            return f"Error: unknown tool {quoted(str(name))}."
        _described, wanted, run = tool
        try:
            return run(Arguments({} if arguments is None else arguments, wanted["properties"]))
        except (BadArgument, InvalidId) as error:
            return f"Error: {error}."
        except Exception as error:
            logger.exception("the tool %s failed", name)
            return f"Error: {name} failed ({type(error).__name__}). Nothing was changed."

    def session_search(self, query: str, agent_id: str | None = None, max_results: int = 10) -> str:
        """Messages that have all words of a query, the newest first."""
        given = {"query": query, "agent_id": agent_id, "max_results": max_results}
        return self.run("session_search", given)

    def session_list(self, agent_id: str | None = None) -> str:
        """Sessions, the one written to last first."""
        return self.run("session_list", {"agent_id": agent_id})

    def session_history(self, agent_id: str, session_id: str, last_n: int = 20) -> str:
        """The last messages of a session."""
        given = {"agent_id": agent_id, "session_id": session_id, "last_n": last_n}
        return self.run("session_history", given)

    def _tools(self) -> dict[str, tuple[str, dict[str, Any], Callable[[Arguments], str]]]:
        return {
            "session_search": (_SEARCH, _SEARCH_INPUT, self._search),
            "session_list": (_LIST, _LIST_INPUT, self._list),
            "session_history": (_HISTORY, _HISTORY_INPUT, self._history),
        }

    def _namespace(self) -> tuple[str, ...]:
        ctx = current_context() or self._ctx
        return () if ctx is None else self._manager.namespace(ctx)

    def _agent_ids(self) -> list[str]:
        return self._workspace.layout.agent_ids(self._namespace())

    def _agent(self, agent_id: str) -> AgentWorkspace:
        return self._workspace.agent(agent_id, namespace=self._namespace())

    # -- the tools ---------------------------------------------------------------------------------

    def _search(self, given: Arguments) -> str:
        from workspace_session.search.query import Query  # who never searches does not load this
        from workspace_session.search.snippets import snippet

        query, agent_id = given.text("query"), given.text_or_none("agent_id")
        hits = self._workspace.searcher.search(
            query,
            given.count("max_results", 10, 50),
            namespace=self._namespace(),
            agent=agent_id,
            everything=True,
            newest_first=True,
        )
        if not hits:
            return f"No matches for {quoted(query)}{_in_agent(' in', agent_id)}."
        found = sorted(hits, key=lambda hit: (hit.session_id, hit.message_id))
        found.sort(key=lambda hit: hit.created_at, reverse=True)
        wanted = Query.of(query)
        items = [
            hit_item(
                number,
                hit,
                snippet(hit.content, wanted, width=_SNIPPET, mark="", first=True, space=" "),
                overlay_id(hit.message_id) if is_summary(hit.message_id) else hit.message_id,
            )
            for number, hit in enumerate(found, 1)
        ]
        header = f"Found {counted(hits.total, 'match', 'matches')} for {quoted(query)}, "
        return answer(header, items, hits.total, whole="newest first", cut="showing the newest {}")

    def _list(self, given: Arguments) -> str:
        agent_id = given.text_or_none("agent_id")
        agents = [agent_id] if agent_id is not None else self._agent_ids()
        infos = [info for one in agents for info in self._agent(one).sessions()]
        if not infos:
            return f"No sessions{_in_agent(' for', agent_id)}."
        infos.sort(key=lambda info: info.updated_at or "", reverse=True)
        items = [
            session_item(number, info, is_this=_is_this(info))
            for number, info in enumerate(infos[:_MOST_SESSIONS], 1)
        ]
        header = f"{counted(len(infos), 'session', 'sessions')}, "
        return answer(header, items, len(infos), whole="newest first", cut="showing the newest {}")

    def _history(self, given: Arguments) -> str:
        agent_id, session_id = given.text("agent_id"), given.text("session_id")
        last_n = given.count("last_n", 20, 200)
        agent = self._agent(agent_id)
        tree = agent.tree(session_id)
        if not tree.exists() and session_id not in agent.session_ids():
            return (
                f"No session {quoted(session_id)} for agent {quoted(agent_id)}. "
                "Call session_list to see what exists."
            )
        path = tree.path()
        names = {
            call.id: call.name for entry in path for call in tool_calls(entry.message) if call.id
        }
        first = max(0, len(path) - last_n)
        items = [
            history_item(number, entry, names)
            for number, entry in enumerate(path[first:], first + 1)
        ]
        header = f"Session {quoted(session_id)} of agent {quoted(agent_id)}: " + counted(
            len(path), "message", "messages"
        )
        return answer(
            header, items, len(path), whole="", cut=", showing the last {}", newest_last=True
        )


def _in_agent(how: str, agent_id: str | None) -> str:
    return "" if agent_id is None else f"{how} agent {quoted(agent_id)}"


def _is_this(info: SessionInfo) -> bool:
    ctx = current_context()
    return ctx is not None and (ctx.agent_id, ctx.session_id) == (info.agent_id, info.id)


# -- what models are told --------------------------------------------------------------------------

_AGENT = text_input("The agent whose sessions are meant; without it, those of all agents.")
_SEARCH = (
    "Search what was said in all sessions, tool calls and their results included. Every word must "
    'occur, in any order; a "quoted part" must occur as it is. The newest comes first.'
)
_SEARCH_INPUT = schema(
    {
        "query": text_input("Words to look for."),
        "agent_id": _AGENT,
        "max_results": number_input("How many to show at most: 10 unless said, 50 at most."),
    },
    "query",
)
_LIST = "List the sessions there are, the one written to last first, each with what it is about."
_LIST_INPUT = schema({"agent_id": _AGENT})
_HISTORY = "Read the last messages of a session, oldest first, whatever was summarised since."
_HISTORY_INPUT = schema(
    {
        "agent_id": text_input("The agent that the session belongs to."),
        "session_id": text_input("The session."),
        "last_n": number_input("How many messages to show: 20 unless said, 200 at most."),
    },
    "agent_id",
    "session_id",
)
