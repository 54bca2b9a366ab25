"""Transcripts and state of AgentScope for Java: read, brought in, written down again."""

from workspace_session.adapters.agentscope_java.exporting import export_transcript
from workspace_session.adapters.agentscope_java.importing import ImportReport, import_transcript
from workspace_session.adapters.agentscope_java.lines import Line
from workspace_session.adapters.agentscope_java.reading import LineProblem, Transcript, read
from workspace_session.adapters.agentscope_java.state import import_state

__all__ = [
    "ImportReport",
    "Line",
    "LineProblem",
    "Transcript",
    "export_transcript",
    "import_state",
    "import_transcript",
    "read",
]
