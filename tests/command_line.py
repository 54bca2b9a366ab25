"""The command line, run in this process: what it prints, and how it ends."""

from __future__ import annotations

from click.testing import CliRunner

from workspace_session import SessionTree, Workspace
from workspace_session.cli import main


def run(*args, given=None):
    """A command line: exit code, standard output, standard error."""
    result = CliRunner().invoke(main, args, input=given)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def out(*args, given=None):
    """The standard output of a command line that succeeds."""
    code, printed, talk = run(*args, given=given)
    assert code == 0, talk
    return printed


def said(text, role="user", **more):
    return {"role": role, "parts": [{"type": "text", "text": text}], **more}


def tree_of(root, session="s", agent="default", user=None) -> SessionTree:
    return Workspace(root, durability="os").agent(agent, user).tree(session)
