"""The command that teaches a shell to complete ours."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from workspace_session.cli.options import example

_VARIABLE = "_WORKSPACE_SESSION_COMPLETE"


@click.command(epilog=example('eval "$(workspace-session completion bash)"'))
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what makes a shell complete commands, options and sessions.

    For bash and zsh, put the line below into ~/.bashrc or ~/.zshrc, with the name of your shell. For
    fish, write the output to ~/.config/fish/completions/workspace-session.fish.
    """
    kind = get_completion_class(shell)
    assert kind is not None  # click knows all three
    root = context.find_root()
    click.echo(kind(root.command, {}, str(root.info_name), _VARIABLE).source())
