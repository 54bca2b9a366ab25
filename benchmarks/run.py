"""Run the table: `python -m benchmarks.run [--quick] [--rows append-one,tail] [--json]`.

The figures go to standard output, the progress to standard error; the exit code is 1 when a row misses
what is required of it.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import orjson
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import report
from benchmarks.peers import PeerMissing
from benchmarks.report import Result
from benchmarks.rows import ROWS, Row, measure
from benchmarks.stage import QUICK, Scale


@click.command()
@click.option("--rows", "names", help=f"Only these, by comma: {', '.join(ROWS)}.")
@click.option("--quick", is_flag=True, help="Small numbers: for a look, not for a claim.")
@click.option("--json", "as_json", is_flag=True, help="The figures as JSON.")
@click.option(
    "--directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where to write; a disk like the one you will use, not a RAM disk.",
)
def main(names: str | None, quick: bool, as_json: bool, directory: Path | None) -> None:
    """Measure this package beside its peers.

    Example: python -m benchmarks.run --quick --rows append-one,tail
    """
    scale = QUICK if quick else Scale()
    chosen = _chosen(names)
    try:
        results = _measure(chosen, scale, directory)
    except PeerMissing as missing:
        raise click.ClickException(str(missing)) from missing
    if as_json:
        click.echo(orjson.dumps(report.document(results, scale), option=orjson.OPT_INDENT_2))
    else:
        width = None if sys.stdout.isatty() else report.WIDTH
        Console(width=width).print(report.table(results, scale))
    sys.exit(0 if all(result.passed for result in results) else 1)


def _chosen(names: str | None) -> list[Row]:
    if names is None:
        return list(ROWS.values())
    wanted = names.split(",")
    if unknown := [name for name in wanted if name not in ROWS]:
        raise click.BadParameter(f"no row {unknown[0]!r}; there are {', '.join(ROWS)}")
    return [ROWS[name] for name in wanted]


def _measure(rows: list[Row], scale: Scale, directory: Path | None) -> list[Result]:
    results = []
    # A process for each row: what one leaves on the heap would slow the collector in the next.
    with (
        TemporaryDirectory(dir=directory) as root,
        ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool,
        _progress() as progress,
    ):
        for row in progress.track(rows):
            progress.update(progress.task_ids[0], description=row.name, refresh=True)
            timing = pool.submit(measure, row.name, Path(root), scale).result()
            results.append(Result(row, timing))
    return results


def _progress() -> Progress:
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    # Drawn between rows only: a drawing thread would run into the measurements.
    return Progress(*columns, console=Console(stderr=True), auto_refresh=False)


if __name__ == "__main__":
    main()
