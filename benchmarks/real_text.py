"""Messages of real text: the documentation and the code that were installed with this Python.

Prose and code in about equal parts, cut into pieces as long as messages are: most of them a few lines,
some of them pages. The same installation gives the same messages.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

_SUFFIXES = frozenset({".py", ".pyi", ".md", ".rst", ".txt"})
_LENGTH = (5.2, 1.1)  # mean and deviation of the logarithm of the length in characters
_SHORTEST, _LONGEST = 20, 8_000
_LARGEST_FILE = 400_000  # bytes; beyond that there are tables, not texts


def texts(count: int, seed: int = 7) -> list[str]:
    """So many pieces; when the installation has fewer, they come again, cut in other places."""
    rng = Random(seed)
    files = _files()
    rng.shuffle(files)
    return list(islice(_pieces(files, rng), count))


def _pieces(files: list[Path], rng: Random) -> Iterator[str]:
    while True:
        for path in files:
            text = path.read_text("utf-8", "replace")
            at = 0
            while at < len(text):
                length = int(rng.lognormvariate(*_LENGTH)) + _SHORTEST
                piece = text[at : at + min(length, _LONGEST)]
                at += len(piece)
                if piece.strip():
                    yield piece


def _files() -> list[Path]:
    places = sysconfig.get_paths()
    roots = {Path(places[name]) for name in ("purelib", "platlib", "stdlib")}
    return sorted(
        path
        for root in roots
        for path in root.rglob("*")
        if (path.suffix in _SUFFIXES or path.name == "METADATA")
        and path.is_file()
        and path.stat().st_size <= _LARGEST_FILE
    )
