"""Porter2: the stem that the forms of an English word share.

`run`, `runs` and `running` have one stem, so that whoever looks for one finds the others. A stem is
not a word, and is shown to nobody. The tests hold this against a second implementation, on the words
of real texts; it is here because a full index build stems every word there is, once.

The regions R1 and R2 of a word are what follows its first and its second syllable: most endings only
count inside them. A `Y` is a y that stands for a consonant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_SYLLABLE = re.compile(r"[^aeiouy]*[aeiouy]+[^aeiouy]").match
_Y_AFTER_VOWEL = re.compile(r"([aeiouy])y")
_SHORT_END = re.compile(r"(?:[^aeiouy][aeiouy][^aeiouywxY]|^[aeiouy][^aeiouy])\Z").search
_VOWEL = re.compile(r"[aeiouy]").search

_LONG_FIRST_REGION = ("gener", "commun", "arsen")
_IRREGULAR = {
    "skis": "ski",
    "skies": "sky",
    "dying": "die",
    "lying": "lie",
    "tying": "tie",
    "idly": "idl",
    "gently": "gentl",
    "ugly": "ugli",
    "early": "earli",
    "only": "onli",
    "singly": "singl",
} | {word: word for word in ("sky", "news", "howe", "atlas", "cosmos", "bias", "andes")}
_FINISHED = frozenset(
    {"inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed"}
)
_DOUBLES = ("bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt")
_BEFORE_LI = frozenset("cdeghkmnrt")
_OF_TENSES = frozenset("dgyY")  # the last letters of -ed, -ing, -edly, and of what becomes an i

Rules = dict[str, tuple[tuple[str, str], ...]]


def _by_last_letter(rules: Iterable[tuple[str, str]]) -> Rules:
    """Endings and what replaces them, the longest first, found by the letter they end in."""
    found: dict[str, list[tuple[str, str]]] = {}
    for ending, replacement in sorted(rules, key=lambda rule: -len(rule[0])):
        found.setdefault(ending[-1], []).append((ending, replacement))
    return {letter: tuple(endings) for letter, endings in found.items()}


_DERIVED = _by_last_letter(
    [
        *(("ization", "ize"), ("ational", "ate"), ("fulness", "ful"), ("ousness", "ous")),
        *(("iveness", "ive"), ("tional", "tion"), ("biliti", "ble"), ("lessli", "less")),
        *(("entli", "ent"), ("ation", "ate"), ("alism", "al"), ("aliti", "al"), ("ousli", "ous")),
        *(("iviti", "ive"), ("fulli", "ful"), ("enci", "ence"), ("anci", "ance"), ("abli", "able")),
        *(("izer", "ize"), ("ator", "ate"), ("alli", "al"), ("bli", "ble"), ("ogi", "og")),
        ("li", ""),
    ]
)
_QUALIFYING = _by_last_letter(
    [
        *(("ational", "ate"), ("tional", "tion"), ("alize", "al"), ("icate", "ic")),
        *(("iciti", "ic"), ("ative", ""), ("ical", "ic"), ("ness", ""), ("ful", "")),
    ]
)
_DROPPED = _by_last_letter(
    (ending, "")
    for ending in (
        *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent"),
        *("ism", "ate", "iti", "ous", "ive", "ize", "ion"),
    )
)
_TOUCHED = frozenset({*_DERIVED, *_QUALIFYING, *_DROPPED, *"sdgye"})


def stem(word: str) -> str:
    """The stem of a word in lower-case ASCII letters."""
    if len(word) <= 2 or word[-1] not in _TOUCHED:
        return word
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if "y" in word:
        word = _with_consonant_y(word)
    first = _first_region(word)
    second = _behind_syllable(word, first)
    word = _without_plural(word)
    if word in _FINISHED:
        return word
    if word[-1] in _OF_TENSES:
        word = _i_for_y(_without_tense(word, first))
    word = _qualified(_derived(word, first), first, second)
    return _without_final(_dropped(word, second), first, second).replace("Y", "y")


def _with_consonant_y(word: str) -> str:
    if word[0] == "y":
        word = "Y" + word[1:]
    return _Y_AFTER_VOWEL.sub(r"\1Y", word)


def _first_region(word: str) -> int:
    if word.startswith(_LONG_FIRST_REGION):
        return 6 if word[0] == "c" else 5
    return _behind_syllable(word, 0)


def _behind_syllable(word: str, start: int) -> int:
    syllable = _SYLLABLE(word, start)
    return syllable.end() if syllable else len(word)


# -- the steps -------------------------------------------------------------------------------------


def _without_plural(word: str) -> str:
    if word.endswith(("ied", "ies")):
        return word[:-2] if len(word) > 4 else word[:-1]
    if word[-1] != "s" or word.endswith(("us", "ss")):
        return word
    if word.endswith("sses"):
        return word[:-2]
    return word[:-1] if _VOWEL(word, 0, len(word) - 2) else word


def _without_tense(word: str, first: int) -> str:
    for ending, kept in (("eedly", 3), ("eed", 1)):
        if word.endswith(ending):
            return word[:-kept] if len(word) - len(ending) >= first else word
    for ending in ("ingly", "edly", "ing", "ed"):
        if word.endswith(ending):
            start = word[: -len(ending)]
            return _completed(start, first) if _VOWEL(start) else word
    return word


def _completed(start: str, first: int) -> str:
    """What is left of `hop|ping`, `hop|ing` and `conflat|ed` becomes a word again."""
    if start.endswith(("at", "bl", "iz")):
        return start + "e"
    if start.endswith(_DOUBLES):
        return start[:-1]
    if first >= len(start) and _SHORT_END(start):
        return start + "e"
    return start


def _i_for_y(word: str) -> str:
    if word[-1] in "yY" and len(word) > 2 and word[-2] not in "aeiouy":
        return word[:-1] + "i"
    return word


def _derived(word: str, first: int) -> str:
    for ending, replacement in _DERIVED.get(word[-1], ()):
        if word.endswith(ending):
            start = word[: -len(ending)]
            if len(start) < first:
                return word
            if ending == "ogi" and not start.endswith("l"):
                return word
            if ending == "li" and start[-1:] not in _BEFORE_LI:
                return word
            return start + replacement
    return word


def _qualified(word: str, first: int, second: int) -> str:
    for ending, replacement in _QUALIFYING.get(word[-1], ()):
        if word.endswith(ending):
            start = word[: -len(ending)]
            inside = len(start) >= (second if ending == "ative" else first)
            return start + replacement if inside else word
    return word


def _dropped(word: str, second: int) -> str:
    for ending, _nothing in _DROPPED.get(word[-1], ()):
        if word.endswith(ending):
            start = word[: -len(ending)]
            if len(start) < second or (ending == "ion" and start[-1:] not in ("s", "t")):
                return word
            return start
    return word


def _without_final(word: str, first: int, second: int) -> str:
    start = word[:-1]
    if word[-1] == "e":
        if len(start) >= second or (len(start) >= first and not _SHORT_END(start)):
            return start
    elif word[-1] == "l" and len(start) >= second and start.endswith("l"):
        return start
    return word
