"""Merging session files, as git asks a driver to: the union of their lines (`model.union`).

What both sides grew from is not asked: a log only grows, and a line that is there was acknowledged. A
working set is merged in the same way. Where that does not fit the merged log (both sides trimmed it, or
one of them did), its reader notices and goes by the log; `settle` then makes it anew.
"""

from __future__ import annotations

from pathlib import Path

from workspace_session.files.atomic import write_atomic
from workspace_session.model.union import merge_lines


def merge_files(ours: Path, theirs: Path) -> None:
    """Make `ours` the union of both: what git asks of a merge driver."""
    # Atomic, so that when this fails the plain union that comes next finds the file as it was.
    write_atomic(ours, merge_lines(ours.read_bytes(), theirs.read_bytes()), sync=False)
