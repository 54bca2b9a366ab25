"""A seal on a working set: its lines are in order, and nobody but us has touched it since.

Reading only the end of a file needs that to be known without reading the rest. The seal is in the
file's own time of modification: its last bits are a function of the file's size. Whoever edits, merges
or checks out the file leaves other bits there, and then it is read in full. A file system that does not
keep nanoseconds never shows an intact seal: slower, and right.
"""

from __future__ import annotations

import logging
import os
import time
import zlib
from pathlib import Path

logger = logging.getLogger("workspace_session")

_BITS = 24  # changes the time by at most 17 milliseconds
_MASK = (1 << _BITS) - 1


def put(path: Path, size: int) -> None:
    """Seal a file that is in order; its size is part of it, so a later append breaks the seal."""
    now = time.time_ns()
    try:
        os.utime(path, ns=(now, (now & ~_MASK) | _expected(size)))
    except OSError as error:  # not ours to date, or read-only: reading the end takes longer
        logger.debug("could not seal %s: %s", path.name, error)


def is_intact(found: os.stat_result) -> bool:
    """Whether a file is as it was when it was sealed."""
    return found.st_mtime_ns & _MASK == _expected(found.st_size)


def _expected(size: int) -> int:
    return zlib.crc32(b"in order:%d" % size) & _MASK
