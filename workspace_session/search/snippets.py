"""Snippets: the part of a text that shows why it was found.

Matches are found by the same analysis as the index was made with, so that what is marked is what was
found: a word in any of its forms, a phrase as a whole, a part of an unspaced run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from workspace_session.search.analysis import located
from workspace_session.search.query import Query, starts

WIDTH = 160
_CUT = "…"
_LEAD = 3  # of the room beside the matches, one part in so many stands before them
_WORD_WITHIN = 20  # characters that a cut may move to fall between two words


class Match(NamedTuple):
    """A part of a text that meets a clause of a query."""

    start: int
    end: int
    clause: int


class Window(NamedTuple):
    """A part of a text."""

    start: int
    end: int


def matches(text: str, query: Query) -> list[Match]:
    """Everything in a text that meets a clause, in order."""
    wanted = {token for clause in query.clauses for token in clause}
    found = list(located(text))
    places: dict[str, list[int]] = {}
    for number, token in enumerate(found):
        if token.text in wanted:
            places.setdefault(token.text, []).append(number)
    return sorted(
        Match(found[first].start, found[first + len(clause) - 1].end, number)
        for number, clause in enumerate(query.clauses)
        for first in starts(clause, places)
    )


def snippet(
    text: str,
    query: Query,
    *,
    width: int = WIDTH,
    mark: str = "**",
    first: bool = False,
    space: str = "",
) -> str:
    """About `width` characters around the best (or the first) match, on one line, matches marked.

    `space` stands between the text and what says that it was cut.
    """
    found = matches(text, query)
    window = _around(text, *(found[0][:2] if first and found else _best(found, width)), width)
    shown: list[str] = []
    at = window.start
    for start, end in _merged(found, window):
        shown += (text[at:start], mark, text[start:end], mark)
        at = end
    shown.append(text[at : window.end])
    before = _CUT + space if text[: window.start].strip() else ""
    behind = space + _CUT if text[window.end :].strip() else ""
    return before + " ".join("".join(shown).split()) + behind


def _best(found: Sequence[Match], width: int) -> Window:
    """The matches that fit a window: the most different ones, then the most, then the first."""
    best = (0, 0)
    chosen = Window(0, 0)
    first = 0
    for last, match in enumerate(found):
        while match.end - found[first].start > width and first < last:
            first += 1
        inside = found[first : last + 1]
        worth = (len({one.clause for one in inside}), len(inside))
        if worth > best:
            best, chosen = worth, Window(inside[0].start, max(one.end for one in inside))
    return chosen


def _around(text: str, start: int, end: int, width: int) -> Window:
    """A window on what is to be shown, with the rest of the room around it, cut between words."""
    if len(text) <= width:
        return Window(0, len(text))
    room = max(width - (end - start), 0)
    left = max(0, min(start - room // _LEAD, len(text) - width))
    right = min(left + width, len(text))
    if left:
        left = _after_space(text, left, min(start, left + _WORD_WITHIN))
    if right < len(text):
        right = _before_space(text, max(end, right - _WORD_WITHIN), right)
    return Window(left, right)


def _after_space(text: str, low: int, high: int) -> int:
    return next((at for at in range(low, high + 1) if text[at - 1].isspace()), low)


def _before_space(text: str, low: int, high: int) -> int:
    return next((at for at in range(high, low, -1) if text[at].isspace()), high)


def _merged(found: Sequence[Match], window: Window) -> list[Window]:
    """The matched parts inside a window; those that overlap or touch are one."""
    parts: list[Window] = []
    for start, end, _clause in found:
        start, end = max(start, window.start), min(end, window.end)
        if start >= end:
            continue
        if parts and start <= parts[-1].end:
            parts[-1] = Window(parts[-1].start, max(end, parts[-1].end))
        else:
            parts.append(Window(start, end))
    return parts
