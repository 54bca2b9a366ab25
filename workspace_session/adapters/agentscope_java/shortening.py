"""Long texts are cut as Java counts: in UTF-16 units, never in the middle of a character."""

from __future__ import annotations


def length(text: str) -> int:
    """How many UTF-16 units a text has."""
    return len(text) + sum(char > "\uffff" for char in text)


def cut(text: str, limit: int) -> str:
    """The longest beginning of a text that has at most so many units."""
    if len(text) * 2 <= limit:
        return text
    units = text.encode("utf-16-le")[: limit * 2]
    return units.decode("utf-16-le", "ignore")  # half a character at the end goes


def shortened(text: str, limit: int, mark: str) -> str:
    """The text, or its beginning and a mark."""
    return text if length(text) <= limit else cut(text, limit) + mark
