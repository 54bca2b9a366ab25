"""The command as people meet it: real processes, found on the path, with pipes or a terminal."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import workspace_session

COMMAND = [sys.executable, "-m", "workspace_session.cli"]


class Terminal:
    """A shell in a directory, in which `workspace-session` is this very code."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        programs = directory / ".programs"
        programs.mkdir(parents=True)
        script = programs / "workspace-session"
        script.write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n')
        script.chmod(0o755)
        ours = Path(workspace_session.__file__).parents[1]
        unset = {"WORKSPACE_SESSION_ROOT", "FORCE_COLOR", "NO_COLOR", "COLUMNS"}
        self.environment = {
            **{name: value for name, value in os.environ.items() if name not in unset},
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ours),
        }

    def start(self, line: str, **options) -> subprocess.Popen:
        """Begin a command line."""
        return subprocess.Popen(
            ["bash", "-c", line],
            cwd=self.directory,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def run(self, line: str) -> tuple[int, str, str]:
        """Run a command line: exit code, standard output, standard error."""
        process = self.start(line, stdin=subprocess.DEVNULL)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def watch(self, line: str, columns: int = 80) -> str:
        """Run a command line in a terminal of that width; everything that it showed."""
        import fcntl
        import pty
        import struct
        import termios

        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = {**self.environment, "TERM": "xterm-256color"}
        process = subprocess.Popen(
            ["bash", "-c", line],
            cwd=self.directory,
            env=environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        shown = bytearray()
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # how Linux says that the other end is closed
                break
            if not piece:
                break
            shown += piece
        os.close(ours)
        process.wait(timeout=60)
        return shown.decode().replace("\r\n", "\n")
