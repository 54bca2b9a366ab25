"""Ranking: BM25, the formula that SQLite has built in, so that all engines agree on the order.

A clause weighs the more the fewer documents meet it; a document counts the more the oftener it meets
the clause, and the shorter it is. `rank` does the whole of a search over texts at hand.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import log
from typing import NamedTuple

from workspace_session.search.analysis import tokens
from workspace_session.search.query import Query, starts

K1, B = 1.2, 0.75
_LEAST = 1e-6  # of a clause that most documents meet


def rarity(documents: int, meeting: int) -> float:
    """How much a clause tells that so many of so many documents meet."""
    return max(log((documents - meeting + 0.5) / (meeting + 0.5)), _LEAST)


class Ranked(NamedTuple):
    """A text that was found: its place among those given, and its score."""

    number: int
    score: float


def rank(query: Query, texts: Iterable[str]) -> list[Ranked]:
    """The texts that meet a query, the best first, of equals the last one given first.

    For what is small enough to be read each time: it takes no index, and about 10 µs a text.
    """
    if not query:
        return []
    counts: list[list[int]] = []
    lengths: list[int] = []
    for text in texts:
        found = list(tokens(text))
        lengths.append(len(found))
        places: dict[str, list[int]] = {}
        for place, token in enumerate(found):
            places.setdefault(token, []).append(place)
        counts.append([len(starts(clause, places)) for clause in query.clauses])
    weights = [
        rarity(len(counts), sum(1 for of_text in counts if of_text[number]))
        for number in range(len(query.clauses))
    ]
    average = sum(lengths) / len(lengths) if any(lengths) else 1.0
    ranked = [
        Ranked(number, score(weights, of_text, lengths[number], average))
        for number, of_text in enumerate(counts)
        if all(of_text)
    ]
    return sorted(ranked, key=lambda one: (one.score, one.number), reverse=True)


def score(weights: Iterable[float], counts: Iterable[int], length: int, average: float) -> float:
    """The score of a document: how often it meets each clause, and what each weighs."""
    norm = K1 * (1 - B + B * length / average)
    return sum(
        weight * count * (K1 + 1) / (count + norm)
        for weight, count in zip(weights, counts, strict=True)
    )
