"""Makes `docs/commands.md`: what every command says of itself, in one place.

python tests/make_commands.py
"""

from __future__ import annotations

import inspect
from pathlib import Path

import click

from workspace_session.cli.main import SECTIONS

PAGE = Path(__file__).parents[1] / "docs" / "commands.md"
_NAME = "workspace-session"
_SHARED = {"--root", "--agent", "--user", "--help"}  # said once, at the beginning

_OPENING = """\
# Commands

What each command says of itself with `--help`. This page is made by `tests/make_commands.py`.

- A SESSION is named by its id, by the beginning of one, or by `@latest`, the one written to last.
  `--agent NAME` and `--user NAME` say whose it is where several have one of that name.
- A MESSAGE is named by its id, by the beginning or the end of one (which is what `tree` and `log` show),
  or by `@latest`, the tip.
- Before an id that starts with a dash goes `--`: `workspace-session show -- -x`.
- The workspace is the one that `-C DIR` or `WORKSPACE_SESSION_ROOT` names, else the nearest from the
  current directory upwards. `-C` may stand before or after the name of a command.
- Results go to standard output, remarks and errors to standard error. Where there is a table there is
  `--json`; what follows something (`tail`) or lists messages (`show`, `log`, `history`) prints one JSON
  object a line.
- The exit code is 0, 1 (it could not be done, or `verify` or `doctor` found something) or 2 (wrong usage).

Shells complete commands, options and sessions after
`eval "$(workspace-session completion bash)"`; `zsh` and `fish` are known too.
"""


def page() -> str:
    """The whole page."""
    parts = [_OPENING]
    for title, commands in SECTIONS.items():
        parts.append(f"\n## {title}\n")
        for command in commands:
            parts += [_entry(*one) for one in _with_subcommands(command, ())]
    return "".join(parts)


def _with_subcommands(
    command: click.Command, above: tuple[str, ...]
) -> list[tuple[click.Command, tuple[str, ...]]]:
    found = [] if command.hidden else [(command, above)]
    if isinstance(command, click.Group):
        for one in command.commands.values():
            found += _with_subcommands(one, (*above, str(command.name)))
    return found


def _entry(command: click.Command, above: tuple[str, ...]) -> str:
    words = " ".join((*above, str(command.name)))
    arguments = [_argument(one) for one in command.params if isinstance(one, click.Argument)]
    usage = " ".join((_NAME, words, *arguments))
    options = [_option(one) for one in command.params if isinstance(one, click.Option)]
    rows = [row for row in options if row]
    table = "\n| option | |\n|---|---|\n" + "".join(rows) if rows else ""
    said = inspect.cleandoc(command.help or "")
    *_, examples = inspect.cleandoc(command.epilog or "").partition("Example:\n")
    example = f"\n```sh\n{inspect.cleandoc(examples)}\n```\n"
    return f"\n### {words}\n\n`{usage}`\n\n{said}\n{table}{example}"


def _argument(argument: click.Argument) -> str:
    if argument.metavar is not None:
        return argument.metavar
    kind = argument.type
    name = "|".join(kind.choices) if isinstance(kind, click.Choice) else str(argument.name).upper()
    return name if argument.required else f"[{name}]"


def _option(option: click.Option) -> str:
    if option.hidden or _SHARED.intersection(option.opts):
        return ""
    kind = option.type
    value = option.metavar or ("|".join(kind.choices) if isinstance(kind, click.Choice) else "")
    names = ", ".join(f"`{name} {value}`" if value else f"`{name}`" for name in option.opts)
    return f"| {names.replace('|', '&#124;')} | {option.help or ''} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
