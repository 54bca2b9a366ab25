"""Queries: what a user typed, as clauses that must all be met.

Words count in any order; a `"quoted part"` counts only as it stands, after analysis. There is no other
syntax, so no text is an error: an operator is a word like any other, a quotation mark without its
partner only separates. A clause is a run of tokens that must follow each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from workspace_session.search.analysis import is_unspaced, piece_tokens, pieces

Clause: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """Clauses, each of them once; without any, nothing is found."""

    clauses: tuple[Clause, ...]

    def __bool__(self) -> bool:
        return bool(self.clauses)

    @classmethod
    def of(cls, text: str) -> Query:
        """What a user's text asks for."""
        parts = text.split('"')
        if len(parts) % 2 == 0:  # the last quotation mark has no partner
            parts[-2:] = [f"{parts[-2]} {parts[-1]}"]
        clauses: list[Clause] = []
        for number, part in enumerate(parts):
            found = pieces(part)
            clauses += [_clause(found)] if number % 2 else [_clause([piece]) for piece in found]
        return cls(tuple(dict.fromkeys(filter(None, clauses))))


def _clause(found: Sequence[str]) -> Clause:
    """The tokens of adjacent pieces. At the ends, a pair makes its characters superfluous."""
    tokens = [token for piece in found for token in piece_tokens(piece)]
    if len(tokens) > 2 and _holds(tokens[1], tokens[0]):
        del tokens[0]
    if len(tokens) > 1 and _holds(tokens[-2], tokens[-1]):
        del tokens[-1]
    return tuple(tokens)


def _holds(pair: str, character: str) -> bool:
    return len(pair) == 2 and character in pair and is_unspaced(pair)


def starts(clause: Clause, places: Mapping[str, Sequence[int]]) -> list[int]:
    """Where a clause begins in a text, given where each of its tokens stands, in order."""
    found = places.get(clause[0], ())
    for offset, token in enumerate(clause[1:], 1):
        if not found:
            break
        here = set(places.get(token, ()))
        found = [start for start in found if start + offset in here]
    return list(found)
