"""The group `import`: conversations of other tools, brought in. Each tool has a module of its own."""

from __future__ import annotations

import click

from workspace_session.cli.agentscope import import_agentscope
from workspace_session.cli.openai_agents import import_openai_agents
from workspace_session.cli.options import example


@click.group("import", epilog=example("workspace-session import --help"))
def import_group() -> None:
    """Bring in conversations of other tools.

    What is there already is not brought in twice, and the source stays as it is.
    """


import_group.add_command(import_openai_agents)
import_group.add_command(import_agentscope)
