"""Sessions for the OpenAI Agents SDK: `Runner.run(agent, "…", session=AgentsSession(…))`."""

from workspace_session.adapters.openai_agents.branching import Branch, Turn
from workspace_session.adapters.openai_agents.compaction import LocalCompactionSession
from workspace_session.adapters.openai_agents.session import AgentsSession

__all__ = ["AgentsSession", "Branch", "LocalCompactionSession", "Turn"]
