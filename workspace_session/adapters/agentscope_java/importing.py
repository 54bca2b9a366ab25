"""Bringing a transcript of AgentScope for Java into a session.

What the session has already is left alone, so a second import adds nothing, and one that was cut
short is completed by the next. The files it comes from stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from workspace_session import AgentWorkspace
from workspace_session.adapters.agentscope_java.planning import Plan
from workspace_session.adapters.agentscope_java.reading import LineProblem, read_both
from workspace_session.adapters.agentscope_java.times import entry_times
from workspace_session.adapters.agentscope_java.writing import Writer
from workspace_session.model.clock import dated

SOURCE = "import:agentscope"


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did: how many entries, and for `skipped` how many lines.

    `updated` are messages of an earlier import that say something else in the transcript by now.
    """

    added: int
    known: int
    skipped: int
    problems: tuple[LineProblem, ...]
    updated: int = 0


def import_transcript(path: str | Path, agent: AgentWorkspace, session_id: str) -> ImportReport:
    """Import the transcript that a file belongs to; its log and its other file are one."""
    transcript = read_both(path)
    tree = agent.tree(session_id)
    writer = Writer(tree, transcript)
    plan = Plan(transcript, writer.alive)
    times = entry_times(line.timestamp for line in transcript.entries)
    with dated(*sorted(times)[:1]):  # what has no time of its own comes right behind what there is
        for step in plan.steps:
            writer.take(step)
        writer.finish(plan.last)
        if plan.steps:
            tree.annotate(source=SOURCE)
    return ImportReport(
        added=writer.added,
        known=writer.known + plan.repeated,
        skipped=transcript.skipped,
        problems=tuple(transcript.problems),
        updated=writer.updated,
    )
