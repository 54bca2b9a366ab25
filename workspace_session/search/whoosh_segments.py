"""Segments: the parts of a Whoosh index, each written once and never changed.

Whoosh reads postings one at a time. Here a block of them is three strings of bytes, and a list is read
whole, block by block: that is what makes a search quick. Readers are kept as long as their segment is
in use. Which of its documents are deleted is not the segment's to know: that changes, and stands in the
table of contents.
"""

from __future__ import annotations

from array import array
from collections.abc import Container
from functools import cached_property
from itertools import accumulate, pairwise, repeat
from pathlib import Path
from typing import Any, NamedTuple

from whoosh.codec.whoosh3 import W3Codec, W3LeafMatcher, W3PostingsWriter
from whoosh.filedb.filestore import FileStorage
from whoosh.reading import TermNotFound

from workspace_session.search.whoosh_schema import SCHEMA, FactsColumn, Kept

_BLOCK = 512  # postings
_MOST = 255  # a count beyond that makes no difference to a score


class Block(NamedTuple):
    """A part of a posting list: documents, and the values that stand behind each other for them."""

    numbers: list[int]
    ends: list[int]  # of each value in the joined ones, after a zero
    joined: bytes


class Postings(NamedTuple):
    """The documents that have a token: their numbers, how often, and what else is known."""

    numbers: list[int]
    counts: bytearray
    blocks: list[Block]

    def values(self, wanted: Container[int]) -> dict[int, bytes]:
        """The values of some of the documents."""
        return {
            number: block.joined[start:end]
            for block in self.blocks
            for number, (start, end) in zip(block.numbers, pairwise(block.ends), strict=True)
            if number in wanted
        }


class PostingListWriter(W3PostingsWriter):  # type: ignore[misc]  # Whoosh has no type hints
    """Writes the blocks of a list: the distances between documents, counts, and values."""

    def _mini_ids(self) -> bytes:
        ids = self._ids
        return array("I", [ids[0], *(after - before for before, after in pairwise(ids))]).tobytes()

    def _mini_weights(self) -> bytes:
        return bytes([min(int(weight), _MOST) for weight in self._weights])

    def _mini_values(self) -> tuple[bytes, bytes]:
        return array("I", map(len, self._values)).tobytes(), b"".join(self._values)


class PostingList(W3LeafMatcher):  # type: ignore[misc]
    """Reads them: one by one as Whoosh does, or all at once."""

    def _read_ids(self) -> None:
        if self._data is None:
            self._read_data()
        self._ids = list(accumulate(array("I", self._data[0])))

    def _read_weights(self) -> None:
        if self._data is None:
            self._read_data()
        self._weights = self._data[1]

    def _read_values(self) -> None:
        block = self._block()
        self._values = [block.joined[start:end] for start, end in pairwise(block.ends)]

    def _block(self) -> Block:
        if self._data is None:
            self._read_data()
        lengths, joined = self._data[2]
        # Of a field without values, none were written.
        each = array("I", lengths) or repeat(0, self._blocklength)
        return Block(self._ids, list(accumulate(each, initial=0)), joined)

    def whole(self) -> Postings:
        """Everything from here to the end."""
        postings = Postings([], bytearray(), [])
        while not self._atend:
            self._read_ids()
            self._read_weights()
            postings.numbers.extend(self._ids)
            postings.counts.extend(self._weights)
            postings.blocks.append(self._block())
            self._next_block()
        return postings


class Codec(W3Codec):  # type: ignore[misc]
    """Whoosh's own format, but for what is in a block."""

    def postings_writer(self, file: Any, byteids: bool = False) -> PostingListWriter:
        return PostingListWriter(file, _BLOCK, byteids, self._compression, self._inlinelimit)

    def postings_reader(
        self, file: Any, info: Any, kind: Any, term: Any = None, scorer: Any = None
    ) -> PostingList:
        return PostingList(file, *info.extent(), kind, term=term, scorer=scorer)


class Files(FileStorage):  # type: ignore[misc]
    """The directory of an index. What is left open when reading fails is closed with it."""

    def __init__(self, directory: Path) -> None:
        # Without memory maps: Whoosh would copy what they show.
        super().__init__(str(directory), supports_mmap=False)
        self._opened: list[Any] = []

    def open_file(self, name: str, **options: Any) -> Any:
        file = super().open_file(name, **options)
        self._opened = [one for one in self._opened if not one.is_closed]
        self._opened.append(file)
        return file

    def close(self) -> None:
        for file in self._opened:
            if not file.is_closed:
                file.close()
        self._opened = []


class Segment:
    """An open segment."""

    def __init__(self, files: Files, entry: Any) -> None:
        self.id: str = entry.segment_id()
        self.count: int = entry.doc_count_all()
        codec = Codec()
        self._file = entry.open_compound_file(files)
        self._terms = codec.terms_reader(self._file, entry)
        self._documents = codec.per_document_reader(self._file, entry)
        self.facts: FactsColumn.Reader = self._documents.column_reader("facts", FactsColumn())

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    @cached_property
    def tokens(self) -> int:
        """How many tokens its documents have."""
        total: int = sum(self.facts.sizes)
        return total

    def postings(self, field: str, token: str) -> Postings | None:
        """The documents that have a token in a field; None when none has."""
        try:
            found: PostingList
            found = self._terms.matcher(field, token.encode(), SCHEMA[field].format)
        except TermNotFound:
            return None
        return found.whole()

    def kept(self, number: int) -> Kept:
        """What is stored of a document."""
        return Kept(*self._documents.stored_fields(number)["kept"])
