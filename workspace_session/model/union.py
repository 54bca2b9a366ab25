"""The union of two session files: every line of either once, in the order of `(timestamp, id)`.

Lines are taken as bytes: what this version does not understand is kept as it was written. The result
depends on the two sets of lines and on nothing else, so `A merge B` is `B merge A`, byte for byte.
A text that one side has purged is purged in what comes out, whoever still had it.
"""

from __future__ import annotations

from typing import Any

from workspace_session.model.canonical import parse
from workspace_session.model.clock import normal_time
from workspace_session.model.purging import scrubbed

_BOM = b"\xef\xbb\xbf"

Key = tuple[str, str]


def merge_lines(ours: bytes, theirs: bytes) -> bytes:
    """The union of two session files."""
    keyed: list[tuple[Key, bytes]] = []
    others: list[bytes] = []
    for line in set(scrubbed(list(_union(ours, theirs)))):
        key = _key(line)
        if key is None:
            others.append(line)
        else:
            keyed.append((key, line))
    keyed.sort()
    others.sort()
    lines = [line for _key, line in keyed]
    # Behind the first line: a header stays first, and the end of the file stays an entry, by
    # which its readers know it.
    lines[1:1] = others
    return b"".join([line + b"\n" for line in lines])


def _union(ours: bytes, theirs: bytes) -> set[bytes]:
    lines: set[bytes] = set()
    torn: set[bytes] = set()
    for data in (ours, theirs):
        *whole, rest = data.removeprefix(_BOM).split(b"\n")
        lines.update(line.rstrip(b"\r") for line in whole)
        torn.add(rest.rstrip(b"\r"))
    # A file that was committed in the middle of a write: if the other side has the whole line, its
    # beginning says nothing more.
    lines |= {rest for rest in torn if not any(line.startswith(rest) for line in lines)}
    return {line for line in lines if line.strip()}


def _key(line: bytes) -> Key | None:
    """What orders an entry; None for a line that is none."""
    wire = _object(line)
    if wire is None:
        return None
    time, entry_id = normal_time(wire.get("timestamp")), wire.get("id")
    return None if time is None or not isinstance(entry_id, str) else (time, entry_id)


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        wire = parse(line)
    except ValueError:
        return None
    return wire if isinstance(wire, dict) else None
