"""What a document is in Whoosh: a key, its tokens with their places, and four numbers.

Whoosh's own fields would analyse texts; these are given tokens and hand on what a posting holds. The
numbers stand in one column, so that filters and scores read them without touching a document.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from whoosh.columns import Column
from whoosh.fields import STORED, FieldType, Schema
from whoosh.formats import Existence, Positions

_WIDE = b"\xff"  # before places that are too far apart for a byte each


class Posting(NamedTuple):
    """What Whoosh wants to know of a term in a document."""

    term: bytes
    frequency: int
    weight: int
    value: bytes


class Places(Positions):  # type: ignore[misc]  # Whoosh has no type hints
    """Where a token stands in a document: the distances, mostly a byte each."""

    def encode(self, places: list[int]) -> bytes:
        distances = [places[0], *(after - before for before, after in pairwise(places))]
        try:
            narrow = bytes(distances)
        except ValueError:
            return _WIDE + array("I", distances).tobytes()
        return narrow if narrow[:1] != _WIDE else _WIDE + array("I", distances).tobytes()

    def decode_positions(self, value: bytes) -> list[int]:
        distances = array("I", value[1:]) if value[:1] == _WIDE else value
        return list(accumulate(distances))


class Tokens(FieldType):  # type: ignore[misc]
    """Tokens, joined by spaces."""

    def __init__(self) -> None:
        super().__init__(format=Places(), analyzer=None, scorable=True)

    def index(self, value: str, **_options: Any) -> Iterator[Posting]:
        places: dict[str, list[int]] = {}
        for place, token in enumerate(value.split()):
            places.setdefault(token, []).append(place)
        encode = self.format.encode
        for token, found in places.items():
            count = len(found)
            yield Posting(token.encode(), count, count, encode(found))


class Key(FieldType):  # type: ignore[misc]
    """A term that one document has."""

    def __init__(self) -> None:
        super().__init__(format=Existence(), analyzer=None)

    def index(self, value: str, **_options: Any) -> list[Posting]:
        return [Posting(value.encode(), 1, 1, b"")]


class Facts(NamedTuple):
    """Numbers of a document: its log, its role, when it was made (in µs), how many tokens it has."""

    log: int
    role: int
    created: int
    size: int


class FactsColumn(Column):  # type: ignore[misc]
    """The numbers of all documents of a segment, one after another."""

    class Writer:
        """Gathers them."""

        def __init__(self, file: Any) -> None:
            self._file = file
            self._numbers = array("q")

        def add(self, _number: int, facts: Facts) -> None:
            self._numbers.extend(facts)

        def finish(self, _count: int) -> None:
            self._file.write(self._numbers.tobytes())

    class Reader:
        """Holds them, a sequence each: documents are picked by their number."""

        def __init__(self, file: Any, start: int, length: int, _count: int) -> None:
            numbers = array("q", file.get(start, length))
            self.logs, self.roles, self.created, self.sizes = (
                numbers[of :: len(Facts._fields)] for of in range(len(Facts._fields))
            )

        def __getitem__(self, number: int) -> Facts:
            return Facts(
                self.logs[number], self.roles[number], self.created[number], self.sizes[number]
            )


class FactsField(FieldType):  # type: ignore[misc]
    """Facts: in their column, and nowhere else."""

    indexed = False

    def __init__(self) -> None:
        super().__init__(format=None, analyzer=None, sortable=FactsColumn())

    def to_column_value(self, value: Facts) -> Facts:
        return value


SCHEMA = Schema(key=Key(), text=Tokens(), more=Tokens(), facts=FactsField(), kept=STORED())


class Kept(NamedTuple):
    """What is stored of a document: where its line is, and all it takes to write it once more."""

    id: str
    start: int
    length: int
    text: str
    more: str


def fields_of(kept: Kept, facts: Facts) -> dict[str, Any]:
    """A document as Whoosh's writers take it."""
    return {
        "key": key_of(facts.log, kept.id),
        "text": kept.text,
        "more": kept.more,
        "facts": facts,
        "kept": tuple(kept),
    }


def key_of(log: int, message_id: str) -> str:
    """What a document is found by."""
    return f"{log} {message_id}"
