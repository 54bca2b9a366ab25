"""The group of all commands, and the one place where errors become exit codes.

0: done. 1: it could not be done, or `verify` found something. 2: the command line was wrong. Whatever
the failure, stderr says it in one sentence.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Any, NoReturn

import click

from workspace_session import WorkspaceError, __version__
from workspace_session.cli import (
    branching,
    care,
    cleaning,
    completing,
    contexts,
    databases,
    demo,
    doctoring,
    exporting,
    following,
    git,
    importing,
    measuring,
    naming,
    reading,
    searching,
    writing,
)
from workspace_session.cli.options import example, root_option
from workspace_session.cli.render import talk

_NAME = "workspace-session"
# A group without a command, as later versions of click tell it; the message is the help.
_NoCommand: tuple[type[click.UsageError], ...] = tuple(
    filter(None, [getattr(click.exceptions, "NoArgsIsHelpError", None)])
)


class Commands(click.Group):
    """A group whose failures are one sentence and an exit code."""

    def list_commands(self, _context: click.Context) -> list[str]:
        """The names in the order of a first acquaintance, not of the alphabet."""
        return list(self.commands)

    def format_commands(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands of a help text, a section each for what belongs together."""
        width = formatter.width - 4 - max(map(len, self.commands))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                names = [(str(one.name), one.get_short_help_str(width)) for one in commands]
                formatter.write_dl(names)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = _NAME,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line; in standalone mode this ends the program."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, False, **extra)
        _never_fail_to_print()
        try:
            code = super().main(args, prog_name, complete_var, False, **extra)
        except _NoCommand as error:
            click.echo(error.format_message())
            code = 0
        except click.UsageError as error:
            _fail(f"{error.format_message()}{_where_help_is(error)}", error.exit_code)
        except click.ClickException as error:
            _fail(error.format_message(), error.exit_code)
        except click.Abort:
            _fail("interrupted", 130)
        except WorkspaceError as error:  # before OSError: a busy workspace is both
            _fail(str(error), 1)
        except OSError as error:
            _fail(_sentence(error), 1)
        sys.exit(code if isinstance(code, int) else 0)


def _never_fail_to_print() -> None:
    """What the terminal's encoding lacks is printed as an escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _fail(sentence: str, code: int) -> NoReturn:
    talk(f"Error: {sentence}")
    sys.exit(code)


def _where_help_is(error: click.UsageError) -> str:
    return f" ({error.ctx.command_path} --help tells more)" if error.ctx else ""


def _sentence(error: OSError) -> str:
    if error.filename is None or error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}"


@click.group(
    _NAME,
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=example("workspace-session demo"),
)
@root_option(envvar="WORKSPACE_SESSION_ROOT")
@click.version_option(__version__, prog_name=_NAME)
@click.pass_context
def main(context: click.Context) -> None:
    """Conversations of AI agents on plain files.

    A SESSION is named by its id, by the beginning of one, or by @latest; a MESSAGE by its id, the
    beginning or the end of one, or by @latest for the tip. Before an id that starts with a dash goes
    `--`. Results go to standard output, remarks and errors to standard error.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


# In the order of a first acquaintance, not of the alphabet.
SECTIONS: dict[str, tuple[click.Command, ...]] = {
    "Write": (writing.init, branching.new, writing.append),
    "Look": (
        reading.list_sessions,
        reading.show,
        reading.draw_tree,
        reading.log,
        searching.search,
        following.tail,
        measuring.stats,
    ),
    "Branches": (
        branching.heads,
        branching.branch,
        branching.switch,
        branching.undo,
        branching.fork,
    ),
    "What the model sees": (contexts.context, contexts.history, contexts.compact, contexts.trim),
    "Names": (naming.rename, naming.label, naming.tag),
    "Care": (
        care.verify,
        doctoring.doctor,
        care.rebuild,
        searching.reindex,
        care.delete,
        care.restore,
        cleaning.gc,
        cleaning.purge,
    ),
    "Elsewhere": (
        exporting.export_group,
        importing.import_group,
        git.git,
        databases.push,
        databases.pull,
        databases.postgres_schema,
        completing.completion,
        demo.demo,
    ),
}

for commands in SECTIONS.values():
    for command in commands:
        main.add_command(command)
