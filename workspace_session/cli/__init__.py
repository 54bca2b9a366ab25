"""The command line: parse, call the library, print."""

from workspace_session.cli.main import main

__all__ = ["main"]
