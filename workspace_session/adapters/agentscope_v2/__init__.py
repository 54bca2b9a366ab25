"""AgentScope 2.x: an agent's state and conversation, saved whole after each reply."""

from importlib import import_module

try:
    import_module("agentscope.middleware")  # here, so that whatever lacks it is told what to do
except ImportError as error:
    raise ImportError(
        "AgentScope 2.x cannot be imported: pip install 'workspace-session[agentscope-v2]'"
    ) from error

from workspace_session.adapters.agentscope_v2.middleware import PersistenceMiddleware
from workspace_session.adapters.agentscope_v2.offloader import WorkspaceOffloader
from workspace_session.adapters.agentscope_v2.state import load_agent_state, save_agent_state

__all__ = ["PersistenceMiddleware", "WorkspaceOffloader", "load_agent_state", "save_agent_state"]
