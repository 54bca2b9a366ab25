"""Overlays: a path with summaries in place of what they cover."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from workspace_session.model.overlays import cover


class Range(NamedTuple):
    from_id: str
    to_id: str


PATH = [f"m{number}" for number in range(10)]
ids = st.sampled_from([*PATH, "elsewhere"])
ranges = st.lists(st.builds(Range, ids, ids), max_size=8)


def read(path: list[str], overlays: list[Range]) -> list[str | Range]:
    return [path[item] if isinstance(item, int) else item for item in cover(path, path, overlays)]


def naive(path: list[str], overlays: list[Range]) -> list[str | Range]:
    """The rule of selection, word for word."""
    shown: list[str | Range] = []
    index = 0
    while index < len(path):
        candidates = [
            overlay
            for overlay in overlays
            if overlay.from_id == path[index]
            and overlay.to_id in path
            and path.index(overlay.to_id) >= index
        ]
        shown.append(candidates[-1] if candidates else path[index])
        index = (path.index(candidates[-1].to_id) if candidates else index) + 1
    return shown


@given(ranges, st.integers(0, 10))
def test_a_path_reads_as_the_rule_says(overlays, length):
    assert read(PATH[:length], overlays) == naive(PATH[:length], overlays)


@given(ranges)
def test_covering_twice_is_covering_once(overlays):
    once = read(PATH, overlays)
    starts = [item if isinstance(item, str) else item.from_id for item in once]
    ends = [item if isinstance(item, str) else item.to_id for item in once]

    twice = cover(starts, ends, overlays)

    assert [once[item] if isinstance(item, int) else item for item in twice] == once


@given(ranges, st.integers(0, 10))
def test_every_message_is_shown_or_within_a_range_that_is(overlays, length):
    path = PATH[:length]
    seen: list[str] = []
    for item in read(path, overlays):
        if isinstance(item, str):
            seen.append(item)
        else:
            seen += path[path.index(item.from_id) : path.index(item.to_id) + 1]

    assert seen == path


def test_what_ends_before_it_starts_is_no_range():
    assert read(PATH[:3], [Range("m2", "m0")]) == ["m0", "m1", "m2"]


def test_without_overlays_a_path_is_itself():
    assert cover(PATH, PATH, []) == list(range(10))
