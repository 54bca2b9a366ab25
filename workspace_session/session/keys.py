"""Keys of entries that a model writes: the same title, or the same text, always gives the same key.

A key holds only `a-z`, `0-9` and `-`, so it can name a file, an object or a row.
"""

from __future__ import annotations

import re

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_SLUG_LENGTH = 60


def entry_key(title: str | None, content: str) -> str:
    """The key of an entry: from its title when it has one, so that the title updates in place."""
    if title is not None and title.strip():
        return slug(title) or f"entry-{text_hash(title)}"
    return f"{slug(content) or 'entry'}-{text_hash(content)}"


def slug(text: str) -> str:
    """The beginning of a text as a word for file names; empty when it has no such character."""
    return re.sub(r"[^a-z0-9]+", "-", text[:_SLUG_LENGTH].lower()).strip("-")


def text_hash(text: str) -> str:
    """32-bit FNV-1a in base 36, over code points and not over bytes."""
    value = 0x811C9DC5
    for char in text:
        value = (value ^ ord(char)) * 0x01000193 & 0xFFFFFFFF
    return _base36(value)


def _base36(value: int) -> str:
    digits = ""
    while True:
        value, digit = divmod(value, 36)
        digits = _DIGITS[digit] + digits
        if not value:
            return digits
