"""The group `export`: sessions, written down for other readers. Each form has a module of its own."""

from __future__ import annotations

import click

from workspace_session.cli.options import example


@click.group("export", epilog=example("workspace-session export --help"))
def export_group() -> None:
    """Write sessions down for other readers."""
