"""Writing a session as a transcript of AgentScope for Java.

`<session>.log.jsonl` has everything that was ever said, on all branches; `<session>.jsonl` what the
model sees, and the summary it sees in place of the rest. An entry is the same line in both. What was
imported, and has not changed since, is written as it was.
"""

from __future__ import annotations

import errno
from pathlib import Path

from workspace_session import SessionTree, UnknownSession, Workspace
from workspace_session.adapters.agentscope_java.lines import render
from workspace_session.adapters.agentscope_java.reading import LOG, TREE
from workspace_session.adapters.agentscope_java.retelling import retell
from workspace_session.files.atomic import make_directories, write_atomic
from workspace_session.files.layout import encode_id


def export_transcript(
    tree: SessionTree, directory: str | Path, tool_entries: bool = False
) -> tuple[Path, Path]:
    """Write both files below a directory; returns the paths of the log and of the other one."""
    if not tree.exists():
        raise UnknownSession(tree.id)
    target = Path(directory).resolve()
    if target.name == "sessions" and Workspace.above(target) is not None:
        reason = "a workspace keeps its own sessions there; export to another directory"
        raise FileExistsError(errno.EEXIST, reason, str(directory))
    told = retell(list(tree.log()), tree.path(), tool_entries=tool_entries)
    context = [line for item in tree.context() for line in told.lines[item.id]]
    name = encode_id("session", tree.id)
    make_directories(target, sync=False)
    written = target / (name + LOG), target / (name + TREE)
    for path, lines in zip(written, (told.everything, context), strict=True):
        write_atomic(path, b"".join(render(line) + b"\n" for line in lines), sync=True)
    return written
