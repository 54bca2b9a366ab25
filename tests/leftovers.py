"""No process outlives the test that started it, whichever way that test ends.

What a test leaves running is killed when it ends, and the test fails for it. That also goes for
grandchildren whose parents are gone: the system hands them to us. A worker that runs out of time takes
none of its children along; they come to whoever started the worker, and end there. Linux tells all
this; elsewhere nothing is looked for.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_GRACE_SECONDS = 2.0  # for what is about to end by itself
# What lives as long as we do: the resource tracker of Python, and the workers of pytest.
_LASTING = (b"multiprocessing.", b"exec(eval(sys.stdin.readline()))")


def adopt_orphans() -> None:
    """Be given the children of children that have ended."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children() -> dict[int, str]:
    """Our children that run, and their command lines."""
    pids = (
        int(pid)
        for listed in Path("/proc/self/task").glob("*/children")
        for pid in _read(listed).split()
    )
    commands = {pid: _read(Path(f"/proc/{pid}/cmdline")) for pid in pids}
    return {  # one that has ended and was not waited for has no command line any more
        pid: command.replace(b"\0", b" ").decode(errors="replace")
        for pid, command in commands.items()
        if command and not any(one in command for one in _LASTING)
    }


def kill(pids: list[int]) -> None:
    """End processes at once, and whatever they leave behind."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for pid in pids:
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)


@contextmanager
def none_left(grace: float = _GRACE_SECONDS) -> Iterator[None]:
    """Fail if processes were started in here that do not end."""
    before = children()
    yield
    until = time.monotonic() + grace
    while (left := _since(before)) and time.monotonic() < until:
        time.sleep(0.01)
    while more := _since(before):  # those that are killed leave us theirs
        kill(list(more))
    assert not left, f"processes were left running: {sorted(left.values())}"


def _since(before: dict[int, str]) -> dict[int, str]:
    return {pid: command for pid, command in children().items() if pid not in before}


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has just ended
        return b""
