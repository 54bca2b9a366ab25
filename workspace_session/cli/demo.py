"""`demo`: a tour in a workspace of its own, in which everything that is shown really happens.

The command lines that it prints are run as they stand, and the two writers are processes of their own
that start at the same moment. Whatever goes wrong ends the tour with an error.
"""

from __future__ import annotations

import contextlib
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from workspace_session import Workspace
from workspace_session.cli.options import example
from workspace_session.cli.render import echo_lines, plural, short
from workspace_session.cli.screen import Screen

# What each of the two processes runs; a line on stdin is the sign to start.
_WRITER = """
import sys, time
from workspace_session import Workspace

root, author, *texts = sys.argv[1:]
tree = Workspace(root).agent("demo").tree("launch")
print("ready", flush=True)
sys.stdin.readline()
for text in texts:
    time.sleep(0.02)  # as if it had to think
    tree.append({"role": "assistant", "parts": [{"type": "text", "text": text}]}, author=author)
"""
_TEXTS = {
    "scout": (
        "Friday will be dry, says the forecast.",
        "The stage is ours from noon.",
        "140 people have said they will come.",
    ),
    "critic": (
        "Nobody has a key to the side door yet.",
        "The sound check takes an hour.",
        "Badges should be printed on Thursday.",
    ),
}


@click.command(epilog=example("workspace-session demo"))
@click.argument("directory", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.pass_context
def demo(context: click.Context, directory: Path | None) -> None:
    """Make a small workspace in DIRECTORY and show what it does.

    Without DIRECTORY, a new temporary one is made; it stays, to look around in.
    """
    Tour(_own_directory(directory), context.find_root().command).run()


def _own_directory(directory: Path | None) -> Path:
    if directory is None:
        return Path(tempfile.mkdtemp(prefix="session-demo-"))
    if directory.exists() and any(directory.iterdir()):
        raise click.UsageError(f"{directory} is not empty, and the demo wants one of its own")
    return directory


class Tour:
    """The steps of the demo."""

    def __init__(self, root: Path, commands: click.Command) -> None:
        self._workspace = Workspace(root)
        self._root = str(self._workspace.root)
        self._tree = self._workspace.agent("demo").tree("launch")
        self._commands = commands
        self._screen = Screen()
        self._step = 0

    def run(self) -> None:
        """Take all steps, in order."""
        self._begin()
        self._write_at_once()
        self._branch()
        self._compact()
        self._draw()
        self._check()
        self._end()

    # -- the steps ---------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._heading("A workspace is a directory, a session begins with its first message")
        self._say(f"$ cd {shlex.quote(self._root)}", "bold")
        self._command("append", "launch", "--agent", "demo", "Is everything ready for Friday?")

    def _write_at_once(self) -> None:
        self._heading("Two processes write to it at the same moment")
        before, sent = len(self._tree), 0
        for author, pid, count in run_writers(self._root):
            self._say(f"process {pid} ({author}) appended {plural(count, 'message')}")
            sent += count
        self._command("log", "launch", "--last", str(sent))
        found = len(self._tree.path()) - before
        if found != sent:
            raise click.ClickException(f"only {found} of {sent} messages stand in one row")
        self._say(f"{found} of {sent} stand in one row: none lost, none torn")

    def _branch(self) -> None:
        self._heading("Another answer to the first question starts a branch")
        question, *_, last = self._tree.path()
        self._command("append", "launch", "--parent", short(question.id), "If it rains: the hall.")
        self._python('tree = Workspace(".").agent("demo").tree("launch")')
        self._python('tree.label(tree.leaf, "plan B")')
        self._tree.label(self._tree.path()[-1].id, "plan B")
        self._say("and back to the branch we were on:")
        self._command("append", "launch", "--parent", short(last.id), "Friday it is.")

    def _compact(self) -> None:
        self._heading("A summary takes the place of six messages, for the model only")
        first, *_, last = self._tree.path()[1:-1]
        summary = "Dry, 140 guests. Open: key, badges."
        self._python("first, *_, last = tree.path()[1:-1]")
        self._python(f'tree.compact("{summary}", first.id, last.id)')
        self._tree.compact(summary, first.id, last.id)
        self._command("show", "launch")

    def _draw(self) -> None:
        self._heading("The tree keeps everything")
        self._command("tree", "launch")

    def _check(self) -> None:
        self._heading("All of it is plain files, and can be checked")
        for path in sorted(Path(self._root, "agents").rglob("*.jsonl")):
            lines = path.read_bytes().count(b"\n")
            self._say(f"{path.relative_to(self._root)}  {plural(lines, 'line')}")
        self._command("verify")

    def _end(self) -> None:
        self._say("")
        self._say(f"The workspace is in {self._root}. To go on:", "bold")
        program = f"{_this_program()} -C {shlex.quote(self._root)}"
        self._say(f"  {program} show launch --raw")
        self._say(f"  {program} append launch Hello")

    # -- telling -----------------------------------------------------------------------------------

    def _heading(self, text: str) -> None:
        self._step += 1
        self._say(f"\n{self._step}. {text}\n", "bold magenta")

    def _command(self, *args: str) -> None:
        self._say(f"$ workspace-session {shlex.join(args)}", "bold")
        if self._commands.main(["-C", self._root, *args], standalone_mode=False):
            raise click.ClickException("the demo found a problem in its own workspace")

    def _python(self, code: str) -> None:
        self._say(f">>> {code}", "bold")

    def _say(self, text: str, style: str = "") -> None:
        echo_lines([self._screen.paint(text, style)])


def run_writers(root: str) -> list[tuple[str, int, int]]:
    """Let two processes write at once; for each its name, its process id and what it wrote."""
    writers = {author: _start(root, author) for author in _TEXTS}
    for process in writers.values():
        assert process.stdout is not None
        process.stdout.readline()  # it is ready
    for process in writers.values():
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it failed already, as its exit code tells
            process.stdin.write("go\n")
            process.stdin.flush()
    complaints = {author: process.communicate()[1] for author, process in writers.items()}
    for author, process in writers.items():
        if process.returncode:
            reason = complaints[author].strip().rpartition("\n")[2]
            raise click.ClickException(f"the process {author} failed: {reason}")
    return [(author, process.pid, len(_TEXTS[author])) for author, process in writers.items()]


def _start(root: str, author: str) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603 - this Python, our own program
        [sys.executable, "-c", _WRITER, root, author, *_TEXTS[author]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _this_program() -> str:
    """What to type to run this again, whether or not it is on the path."""
    name = Path(sys.argv[0])
    if name.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m workspace_session.cli"
    found = shutil.which("workspace-session")
    if found is not None and name.resolve() == Path(found).resolve():
        return "workspace-session"
    return shlex.quote(str(name))
