"""Finding documents in segments: whole posting lists, intersected as sets.

Each clause gives, segment by segment, the documents that meet it and how often. What meets all of them
and passes the filter is scored; scores need sums over all segments, so they come second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from heapq import nlargest
from itertools import chain, repeat
from typing import NamedTuple, TypeAlias

from workspace_session.search.query import Clause, Query
from workspace_session.search.ranking import K1, B, rarity
from workspace_session.search.whoosh_schema import SCHEMA, FactsColumn
from workspace_session.search.whoosh_segments import Postings, Segment

_PLACE_BITS = 32

Counts: TypeAlias = dict[int, int]
"""The documents of a segment that meet a clause, and how often."""

Filter: TypeAlias = Callable[[FactsColumn.Reader, list[int]], list[int]]
"""Of the documents of a segment, those to be found."""

Scored: TypeAlias = tuple[float, int, int, int]
"""A document: its score, when it was made, its segment and its number there."""


class Part(NamedTuple):
    """A segment, and which of its documents do not count any more."""

    segment: Segment
    deleted: frozenset[int]


class Best(NamedTuple):
    """The best documents, and how many met the query."""

    documents: list[Scored]
    total: int


def best(
    parts: Sequence[Part],
    query: Query,
    *,
    fields: Sequence[str],
    passing: Filter,
    limit: int,
    scored: bool,
) -> Best:
    """The best documents that meet a query and pass a filter; without scores, the newest ones."""
    met = [[_counts(part, clause, fields) for clause in query.clauses] for part in parts]
    found = [
        passing(part.segment.facts, _meeting_all(counts))
        for part, counts in zip(parts, met, strict=True)
    ]
    total = sum(map(len, found))
    if not scored:
        return Best(_newest(parts, found, limit), total)
    ranking = _Ranking(parts, met)
    documents = chain.from_iterable(
        zip(
            ranking.scores(at, numbers),
            map(parts[at].segment.facts.created.__getitem__, numbers),
            repeat(at),
            numbers,
            strict=False,
        )
        for at, numbers in enumerate(found)
    )
    return Best(nlargest(limit, documents), total)


def _newest(parts: Sequence[Part], found: Sequence[list[int]], limit: int) -> list[Scored]:
    """The newest documents, and all those that are as old as the last of them."""
    documents = [
        (0.0, parts[at].segment.facts.created[number], at, number)
        for at, numbers in enumerate(found)
        for number in numbers
    ]
    newest = nlargest(limit, (created for _, created, _, _ in documents))
    return [one for one in documents if newest and one[1] >= newest[-1]]


def _meeting_all(counts: Sequence[Counts]) -> list[int]:
    smallest, *others = sorted(counts, key=len)
    return list(set(smallest).intersection(*others) if others else smallest)


# -- clauses ---------------------------------------------------------------------------------------


def _counts(part: Part, clause: Clause, fields: Iterable[str]) -> Counts:
    first, *others = (_counts_in(part.segment, field, clause) for field in fields)
    for other in others:
        for number, count in other.items():
            first[number] = first.get(number, 0) + count
    for number in first.keys() & part.deleted:
        del first[number]
    return first


def _counts_in(segment: Segment, field: str, clause: Clause) -> Counts:
    if len(clause) > 1:
        return _phrase_counts(segment, field, clause)
    found = segment.postings(field, clause[0])
    return {} if found is None else dict(zip(found.numbers, found.counts, strict=True))


def _phrase_counts(segment: Segment, field: str, clause: Clause) -> Counts:
    lists: dict[str, Postings] = {}
    for token in clause:
        found = segment.postings(field, token)
        if found is None:
            return {}
        lists[token] = found
    shortest, *others = sorted((one.numbers for one in lists.values()), key=len)
    common = set(shortest).intersection(*others)
    decode = SCHEMA[field].format.decode_positions
    values = {token: one.values(common).items() for token, one in lists.items()}
    beginnings: set[int] | None = None  # of the phrase: document and place in one number
    for offset, token in enumerate(clause):
        here = {
            (number << _PLACE_BITS) + place - offset
            for number, value in values[token]
            for place in decode(value)
        }
        beginnings = here if beginnings is None else beginnings & here
    return Counter(beginning >> _PLACE_BITS for beginning in beginnings or ())


# -- scores ----------------------------------------------------------------------------------------


class _Ranking:
    """BM25 over all segments; see `ranking`."""

    def __init__(self, parts: Sequence[Part], met: Sequence[Sequence[Counts]]) -> None:
        self._parts, self._met = parts, met
        documents = sum(part.segment.count - len(part.deleted) for part in parts)
        tokens = sum(map(_tokens, parts))
        self._weights = [
            rarity(documents, sum(map(len, of_clause))) for of_clause in zip(*met, strict=True)
        ]
        self._fixed = K1 * (1 - B)
        self._per_token = K1 * B * documents / tokens if tokens else 0.0

    def scores(self, at: int, numbers: Sequence[int]) -> list[float]:
        """The scores of documents of one segment."""
        fixed, per_token = self._fixed, self._per_token
        sizes = map(self._parts[at].segment.facts.sizes.__getitem__, numbers)
        norms = [fixed + per_token * size for size in sizes]
        scores = [0.0] * len(norms)
        for weight, counts in zip(self._weights, self._met[at], strict=True):
            factor = weight * (K1 + 1)
            here = map(counts.__getitem__, numbers)
            scores = [
                score + factor * count / (count + norm)
                for score, count, norm in zip(scores, here, norms, strict=True)
            ]
        return scores


def _tokens(part: Part) -> int:
    sizes: Sequence[int] = part.segment.facts.sizes
    return part.segment.tokens - sum(sizes[number] for number in part.deleted)
