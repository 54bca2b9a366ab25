"""Analysis: a text becomes the tokens it is found by, the same way for every engine and every query.

A text is folded (lower case, no accents, one width), cut into *pieces*, and each piece becomes tokens.
A word is a run of letters and digits and becomes its stem; there are no stop words. A run of Han, Kana
or Hangul becomes its characters and, between each two, the pair they form: `東京都` is five tokens,
`東 東京 京 京都 都`. So whatever part of a run one looks for stands in it token by token, and never
across two runs.

`VERSION` changes when the tokens of any text do: an index of another version is made anew.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from typing import NamedTuple

from workspace_session.search.stemming import stem

VERSION = 1

_LONGEST = 128  # characters of a token; what follows (of a key, a picture in base64) is left out
_REMEMBERED = 1 << 18  # stems, and as many folded characters

# Letters of scripts that are written without spaces, and the voicing marks of Kana.
_UNSPACED = (
    "\u1100-\u11ff\u3005\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c\u3041-\u3096\u3099\u309a"
    "\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb\uf900-\ufaff"
    "\U0001aff0-\U0001b16f\U00020000-\U0003ffff"
)
# In the scripts of South and Southeast Asia marks are vowels, and part of a word.
_VOWEL_SIGNS = "".join(
    char for char in map(chr, range(0x900, 0x1D00)) if unicodedata.category(char)[0] == "M"
)
_PIECES = re.compile(rf"[{_UNSPACED}]+|(?:[^\W_{_UNSPACED}]+|[{_VOWEL_SIGNS}]+)+")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]").match
_ASCII_WORDS = re.compile(r"[A-Za-z0-9]+")
# What is folded as one: ASCII as it comes, a Hangul syllable in parts, a character and its marks.
_CLUSTERS = re.compile(
    r"[\x00-\x7f]+"
    r"|[\u1100-\u115f\ua960-\ua97c]+[\u1160-\u11a7\ud7b0-\ud7c6]*[\u11a8-\u11ff\ud7cb-\ud7fb]*"
    r"|.[\u0300-\u036f\u3099\u309a\uff9e\uff9f]*",
    re.DOTALL,
)
_ASCII_FOR = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "ŧ": "t", "ı": "i"}
    | {"æ": "ae", "œ": "oe", "þ": "th", "\u00ad": "", "\u200c": "", "\u200d": ""}
)
_KEPT_MARKS = frozenset(_VOWEL_SIGNS) | {"\u3099", "\u309a"}


class Token(NamedTuple):
    """A token, and the part of the text that it stands for."""

    text: str
    start: int
    end: int


def tokens(text: str) -> Iterable[str]:
    """The tokens of a text, in order."""
    if text.isascii():
        return map(_STEMS.__getitem__, text.translate(_ASCII).split())
    return chain.from_iterable(map(piece_tokens, pieces(text)))


def pieces(text: str) -> list[str]:
    """The words and the unspaced runs of a text, folded."""
    return _PIECES.findall("".join(map(_fold, _CLUSTERS.findall(text))))


def piece_tokens(piece: str) -> list[str]:
    """The tokens of a piece: one stem, or the characters of a run and the pairs they form."""
    if not is_unspaced(piece):
        return [_STEMS[piece]]
    found = [piece[0]]
    for first, second in pairwise(piece):
        found += (first + second, second)
    return found


def is_unspaced(piece: str) -> bool:
    """Whether a piece, or a token, is of a script that is written without spaces."""
    return _IS_UNSPACED(piece) is not None


def located(text: str) -> Iterator[Token]:
    """The same tokens as `tokens()` gives, and where in the text they stand."""
    if text.isascii():
        for word in _ASCII_WORDS.finditer(text):
            yield Token(_STEMS[word[0].lower()], word.start(), word.end())
        return
    folded, origins = _folded_with_origins(text)
    for piece in _PIECES.finditer(folded):
        first, last = piece.start(), piece.end() - 1
        if not is_unspaced(piece[0]):
            yield Token(_STEMS[piece[0]], origins[first].start, origins[last].end)
            continue
        for number, token in enumerate(piece_tokens(piece[0])):  # character, pair, character, …
            at = first + number // 2
            yield Token(token, origins[at].start, origins[at + number % 2].end)


# -- folding ---------------------------------------------------------------------------------------


def _fold(cluster: str) -> str:
    return cluster.lower() if cluster.isascii() else _FOLDED[cluster]


class _Folded(dict[str, str]):
    """A cluster in one width, in lower case and without accents."""

    def __missing__(self, cluster: str) -> str:
        if len(self) >= _REMEMBERED:
            self.clear()
        plain = cluster.casefold().translate(_ASCII_FOR)
        bare = "".join(
            char for char in unicodedata.normalize("NFKD", plain) if not _is_accent(char)
        )
        # Together again: Kana with their voicing marks, the parts of Hangul syllables.
        self[cluster] = folded = unicodedata.normalize("NFC", bare).lower()
        return folded


def _is_accent(char: str) -> bool:
    return unicodedata.category(char)[0] == "M" and char not in _KEPT_MARKS


class _Origin(NamedTuple):
    """The part of the text that a folded character was made of."""

    start: int
    end: int


def _folded_with_origins(text: str) -> tuple[str, list[_Origin]]:
    folded: list[str] = []
    origins: list[_Origin] = []
    for cluster in _CLUSTERS.finditer(text):
        start, end = cluster.span()
        folded.append(_fold(cluster[0]))
        if cluster[0].isascii():
            origins += [_Origin(at, at + 1) for at in range(start, end)]
        elif folded[-1]:
            origins += [_Origin(start, end)] * len(folded[-1])
        elif origins:  # an accent that stands by itself belongs to what it follows
            origins[-1] = _Origin(origins[-1].start, end)
    return "".join(folded), origins


# -- stems -----------------------------------------------------------------------------------------


class _Stems(dict[str, str]):
    """The token of a folded word. Most words of a text were in the one before it: they are kept."""

    def __missing__(self, word: str) -> str:
        if len(word) > _LONGEST:
            return word[:_LONGEST]
        if len(self) >= _REMEMBERED:
            self.clear()
        self[word] = token = stem(word) if word.isascii() and word.isalpha() else word
        return token


_FOLDED = _Folded()
_STEMS = _Stems()
_ASCII = {code: (chr(code).lower() if chr(code).isalnum() else " ") for code in range(128)}
