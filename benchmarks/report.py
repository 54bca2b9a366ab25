"""The report: the figures as a table for people, or as JSON for programs."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from benchmarks.peers import versions
from benchmarks.rows import Row
from benchmarks.stage import Scale
from benchmarks.timing import Timing

WIDTH = 140  # into a file or a pipe the lines are not broken


@dataclass(frozen=True, slots=True)
class Result:
    """A row and what came out."""

    row: Row
    timing: Timing

    @property
    def passed(self) -> bool:
        """Whether the figure is what is required."""
        return self.row.passes(self.timing)


def table(results: Sequence[Result], scale: Scale) -> Table:
    """The results for people."""
    made = Table(title="workspace_session beside its peers", caption=_setting())
    for heading in ("work", "ours"):
        made.add_column(heading, justify="left" if heading == "work" else "right")
    made.add_column("against")
    for heading in ("theirs", "ratio", "required"):
        made.add_column(heading, justify="right")
    made.add_column("")
    for result in results:
        made.add_row(*_cells(result, scale))
    return made


def document(results: Sequence[Result], scale: Scale) -> dict[str, Any]:
    """The results for programs."""
    return {
        "setting": {"python": platform.python_version(), "cpus": os.cpu_count(), **versions()},
        "rows": [_member(result, scale) for result in results],
    }


def _cells(result: Result, scale: Scale) -> list[str]:
    row, timing = result.row, result.timing
    work, against = row.described(scale)
    ratio = 1 / timing.ratio if row.within else timing.ratio
    ours, theirs = _duration(timing.ours), _duration(timing.theirs)
    return [work, ours, against, theirs, f"{ratio:.2f}x", *_verdict(result)]


def _verdict(result: Result) -> tuple[str, str]:
    required = result.row.at_least
    if required is None:
        return "", ""
    mark = "[green]✓[/green]" if result.passed else "[red]✗[/red]"
    return (f"within {1 / required:g}x" if result.row.within else f"{required:g}x"), mark


def _member(result: Result, scale: Scale) -> dict[str, Any]:
    work, against = result.row.described(scale)
    return {
        "name": result.row.name,
        "work": work,
        "against": against,
        "ours_seconds": result.timing.ours,
        "theirs_seconds": result.timing.theirs,
        "ratio": result.timing.ratio,
        "required_ratio": result.row.at_least,
        "passed": result.passed,
    }


def _duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds / 1e-6:.0f} µs"


def _setting() -> str:
    parts = [f"Python {platform.python_version()}", f"{os.cpu_count()} CPUs"]
    return ", ".join(parts + [f"{name} {number}" for name, number in versions().items()])
