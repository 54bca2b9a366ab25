"""Preparing a workspace for git: what it ignores, how session files merge, hooks that tidy up.

`.gitignore` and `.gitattributes` are versioned, so a clone has them: with git's own union it merges
without us. The driver and the hooks are settings of one clone. Whatever else stands in these files
is somebody's and stays; to install again changes nothing.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from workspace_session.files.atomic import write_atomic
from workspace_session.git.repository import SYNCING, GitFailed, Repository

DRIVER = "merge.union.driver"
RENAMES = "merge.renames"

_IGNORED = ("/.workspace/", "sessions.json", ".*.tmp-*")
_ATTRIBUTES = ("**/agents/*/sessions/*.jsonl text eol=lf merge=union",)
_SHELL = re.compile(r"#!.*\b(ba|da|z|k)?sh\b")
_HOOKS = {
    "post-merge": "ORIG_HEAD HEAD",
    "post-rewrite": "ORIG_HEAD HEAD",
    "post-checkout": '--index-only "$1" "$2"',  # a rebase checks out too, and wants no changes then
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """What is in place."""

    ignore: bool
    attributes: bool
    driver: bool
    hooks: bool

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return self.ignore and self.attributes and self.driver and self.hooks


def installed(repository: Repository) -> Installed:
    """What of an installation is there."""
    root = repository.root
    return Installed(
        ignore=not _missing(root / ".gitignore", _IGNORED),
        attributes=not _missing(root / ".gitattributes", _ATTRIBUTES),
        driver=repository.config(DRIVER) == driver(),
        hooks=not _missing_hooks(repository),
    )


def install(repository: Repository) -> list[str]:
    """Put in place what is missing; returns what that was."""
    before, hooks = installed(repository), _missing_hooks(repository)
    for name in hooks:
        _check_hook(repository, name)
    done = []
    for name, lines in ((".gitignore", _IGNORED), (".gitattributes", _ATTRIBUTES)):
        if _missing(repository.root / name, lines):
            _add_lines(repository.root / name, lines)
            done.append(name)
    if not before.driver:
        repository.git("config", "--local", DRIVER, driver())
        done.append(DRIVER)
    if not repository.prefix and repository.config(RENAMES) is None:
        # A session that was forked and deleted is not one that was renamed. Where other things
        # than the workspace are in the repository, that is not ours to decide.
        repository.git("config", "--local", RENAMES, "false")
        done.append(RENAMES)
    for name in hooks:
        _add_hook(repository, name)
    return [*done, *hooks]


def driver() -> str:
    """The command that merges session files: ours, or git's plain union where that cannot be run."""
    ours = _program()
    # `%P` comes quoted from git; the others are names of its own making.
    return (
        f"{{ command -v {ours} >/dev/null && {ours} git merge-driver %O %A %B %P; }}"
        " || git merge-file -q --union %A %O %B"
    )


def _program() -> str:
    """Our command, by its place if it is known: git may run with another path than the shell."""
    beside = shutil.which("workspace-session", path=str(Path(sys.executable).parent))
    return shlex.quote(beside) if beside else "workspace-session"


# -- files with other people's lines ---------------------------------------------------------------


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "surrogateescape")
    except FileNotFoundError:
        return ""


def _missing(path: Path, lines: tuple[str, ...]) -> list[str]:
    there = {line.strip() for line in _text(path).split("\n")}
    return [line for line in lines if line not in there]


def _add_lines(path: Path, lines: tuple[str, ...]) -> None:
    text = _text(path)
    gap = "" if not text or text.endswith("\n") else "\n"
    added = "".join(f"{line}\n" for line in _missing(path, lines))
    _write(path, text + gap + added)


def _write(path: Path, text: str) -> None:
    write_atomic(path, text.encode("utf-8", "surrogateescape"), sync=False)


# -- hooks -----------------------------------------------------------------------------------------


def _hook(repository: Repository, name: str) -> Path:
    return repository.path("hooks") / name


def _block(repository: Repository, name: str) -> str:
    ours, where = _program(), shlex.quote(repository.prefix or ".")
    call = f"{ours} -C {where} git after-merge {_HOOKS[name]}"
    # A hook of ours never makes git fail; without our command there is nothing to do.
    return f'[ -n "${SYNCING}" ] || ! command -v {ours} >/dev/null || {call} || :\n'


def _missing_hooks(repository: Repository) -> list[str]:
    """The hooks to add: none where they are kept elsewhere, since that is for other repositories too."""
    if repository.config("core.hooksPath") is not None:
        return []
    hooks = ((name, _text(_hook(repository, name))) for name in _HOOKS)
    return [name for name, text in hooks if _block(repository, name) not in text]


def _check_hook(repository: Repository, name: str) -> None:
    path = _hook(repository, name)
    text = _text(path)
    if text and not _SHELL.match(text):
        block = _block(repository, name).strip()
        raise GitFailed(f"the hook {path} is no shell script; have it run this: {block}")


def _add_hook(repository: Repository, name: str) -> None:
    path = _hook(repository, name)
    first, _, rest = (_text(path) or "#!/bin/sh\n").partition("\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    # At its beginning: the end of somebody's hook may be an `exit`, or `exec` of something else.
    _write(path, f"{first}\n{_block(repository, name)}{rest}")
    path.chmod(0o755)
