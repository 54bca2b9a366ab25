"""Transcripts of AgentScope for Java: two files, a log of everything and what the model sees.

A line ends at `\\n` and nowhere else. One that holds no entry is left out and named, with its number and
the reason; it never keeps the others from being read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from workspace_session.adapters.agentscope_java.lines import Line, NotALine, decode

LOG, TREE = ".log.jsonl", ".jsonl"


@dataclass(frozen=True, slots=True)
class LineProblem:
    """Something about a line that is not as it should be; lines count from 1."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


@dataclass(slots=True)
class Transcript:
    """What was read: entries in their order, how many lines held none, what is doubtful."""

    entries: list[Line] = field(default_factory=list)
    skipped: int = 0
    problems: list[LineProblem] = field(default_factory=list)
    places: dict[str, tuple[str, int]] = field(default_factory=dict)  # of each id

    def doubt(self, entry_id: str, reason: str) -> None:
        """Name a problem at the line of an entry."""
        file, line = self.places[entry_id]
        self.problems.append(LineProblem(file, line, reason))


def read(path: str | Path) -> Transcript:
    """The entries of one file."""
    found = Transcript()
    _read_into(found, Path(path))
    return found


def read_both(path: str | Path) -> Transcript:
    """The entries of a transcript, of which `path` is either file: those of the log come first."""
    both = files_of(Path(path))
    there = [file for file in both if file.exists()] if Path(path) in both else []
    found = Transcript()
    for file in there or [Path(path)]:
        _read_into(found, file)
    return found


def files_of(path: Path) -> tuple[Path, Path]:
    """The log and the other file of the transcript that a file belongs to."""
    base = session_name(path)
    return path.with_name(base + LOG), path.with_name(base + TREE)


def session_name(path: Path) -> str:
    """What the files of a transcript have in common."""
    return path.name.removesuffix(TREE).removesuffix(LOG.removesuffix(TREE))


def _read_into(found: Transcript, path: Path) -> None:
    data = path.read_bytes()
    lines = data.split(b"\n")
    known: dict[str, Line] = {}
    before = None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = decode(line, number, before)
        except NotALine as error:
            torn = " (torn)" if number == len(lines) else ""
            found.problems.append(LineProblem(path.name, number, f"{error}{torn}"))
            found.skipped += 1
            continue
        before = entry.timestamp
        found.problems += [LineProblem(path.name, number, doubt) for doubt in entry.doubts]
        if known.setdefault(entry.id, entry).fields != entry.fields:
            reason = f"the id {entry.id!r} is used again for something else; the first stays"
            found.problems.append(LineProblem(path.name, number, reason))
        found.places.setdefault(entry.id, (path.name, number))
        found.entries.append(entry)
