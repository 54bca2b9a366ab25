"""The group `export`: sessions, written down for other readers. Each form has a module of its own."""

from __future__ import annotations

import click

from workspace_session.cli import transcripts
from workspace_session.cli.agentscope import export_agentscope
from workspace_session.cli.options import example


@click.group("export", epilog=example("workspace-session export html @latest -o trip.html"))
def export_group() -> None:
    """Write sessions down for other readers."""


export_group.add_command(transcripts.markdown)
export_group.add_command(transcripts.jsonl)
export_group.add_command(transcripts.html)
export_group.add_command(export_agentscope)
