"""AgentScope for Java: `import agentscope` and `export agentscope`."""

from __future__ import annotations

from pathlib import Path

import click

from workspace_session.adapters import agentscope_java as java
from workspace_session.cli.options import example, in_workspace, json_option, session_argument
from workspace_session.cli.render import as_json_object, echo_json, inert, plural, talk
from workspace_session.cli.scope import Scope

_ENDS = (".log.jsonl", ".jsonl")


@click.command("agentscope", epilog=example("workspace-session import agentscope trip.log.jsonl"))
@click.argument("source", type=click.Path(exists=True, path_type=Path))
@click.option("--session", metavar="ID", help="The session. Default: what the file is called.")
@click.option("--state", is_flag=True, help="SOURCE is a directory of state files.")
@json_option("what was done as a list")
@in_workspace
def import_agentscope(
    scope: Scope, source: Path, session: str | None, state: bool, as_json: bool
) -> None:
    """Bring in transcripts of AgentScope for Java.

    SOURCE is a transcript, of which the log and the other file count as one, or a directory of
    transcripts. With --state it is the directory that holds the state of one session. They become
    sessions of the agent `default` if no other is named. Doing it again adds only what is new.
    """
    agent = scope.agent_for_new()
    if state:
        if not source.is_dir():
            raise click.UsageError(f"{source} is not a directory of state files")
        key = source.resolve().name if session is None else session
        names = java.import_state(source, agent.state, key)
        if not names:
            raise click.ClickException(f"there are no state files in {source}")
        if as_json:
            echo_json(names)
        talk(f"imported {plural(len(names), 'state')} into session {key}: {', '.join(names)}")
        return
    done = []
    for name, path in _transcripts(source, session):
        report = java.import_transcript(path, agent, name)
        for problem in report.problems:
            talk(str(problem))
        done.append({"session": name, **as_json_object(report)})
        talk(f"{name}: {_counts(report)}")
    if as_json:
        echo_json(done)


def _transcripts(source: Path, session: str | None) -> list[tuple[str, Path]]:
    """The transcripts of a directory, or the one that a file is of, and what to call them."""
    if not source.is_dir():
        return [(_name(source) if session is None else session, source)]
    found = {_name(path): path for path in sorted(source.iterdir()) if path.name.endswith(_ENDS)}
    if not found:
        raise click.ClickException(f"there are no transcripts in {source}")
    if session is not None and len(found) > 1:
        raise click.UsageError("--session names one session, and there are several transcripts")
    return [(name if session is None else session, path) for name, path in found.items()]


def _name(path: Path) -> str:
    for end in _ENDS:
        if path.name.endswith(end) and path.name != end:
            return path.name.removesuffix(end)
    return path.name


def _counts(report: java.ImportReport) -> str:
    counts = [f"{report.added:,} added", f"{report.known:,} known"]
    if report.updated:
        counts.append(f"{report.updated:,} updated")
    if report.skipped:
        counts.append(f"{plural(report.skipped, 'line')} skipped")
    return ", ".join(counts)


@click.command("agentscope", epilog=example("workspace-session export agentscope @latest out"))
@session_argument
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--tool-entries", is_flag=True, help="Tool calls and results as entries of their own."
)
@in_workspace
def export_agentscope(scope: Scope, session: str, directory: Path, tool_entries: bool) -> None:
    """Write a session as a transcript of AgentScope for Java.

    Two files are written to DIRECTORY, and their paths printed: the log of everything that was ever
    said, and what the model sees.
    """
    for path in java.export_transcript(scope.tree(session), directory, tool_entries):
        click.echo(inert(str(path)))
