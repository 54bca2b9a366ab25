"""`session_search`: a tool to look for what was said in earlier conversations.

A long message is shown as a window around its first match. Matches are found again here without the
search engine, by the beginnings of words: good enough to place a window, never to decide what is
shown.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from workspace_session.session.tool import Tool, schema, text_input

_WINDOW = 2000
_TOP = 10
_ENDING = 4  # letters that may follow a stem: deploy-ment, runn-ing
_SHORTEST_STEM = 3
_UNSPACED = "\u2e80"  # from here on scripts are written without spaces, and have no accents


class Hit(Protocol):
    """What a search found: a message of some session."""

    @property
    def role(self) -> str: ...
    @property
    def content(self) -> str: ...
    @property
    def session_id(self) -> str: ...


def history_search_tool(search: Callable[[str], Awaitable[Sequence[Hit]]]) -> Tool:
    """The tool over a search of all sessions, best hits first."""

    async def run(query: str) -> str:
        hits = await search(query)
        return found_text(hits, query) or "No results found."

    described = (
        "Search earlier conversations. All words must occur, in any order; "
        'a "quoted part" must occur as it is.'
    )
    properties = {"query": text_input("Words to look for.")}
    return Tool("session_search", described, schema(properties, "query"), run)


def found_text(hits: Iterable[Hit], query: str) -> str:
    """The best hits as text; empty when there are none."""
    items = [
        f"[{hit.role}] {window(hit.content, query)}\n(session {hit.session_id})"
        for hit in list(hits)[:_TOP]
    ]
    return "\n---\n".join(items)


def window(text: str, query: str) -> str:
    """The text, or of a long one the part around its first match."""
    if len(text) <= _WINDOW:
        return text
    start = max(0, min(_first_match(text, query) - _WINDOW // 2, len(text) - _WINDOW))
    end = start + _WINDOW
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")


def _first_match(text: str, query: str) -> int:
    """Where a word of the query first begins a word of the text; 0 when none does."""
    words = re.findall(r"[^\W_]+", _folded(query))
    folded = _folded(text)
    stems = [word[: max(_SHORTEST_STEM, len(word) - _ENDING)] for word in words]
    for candidates in (words, stems):
        pattern = "|".join(map(_pattern, candidates))
        if pattern and (match := re.search(pattern, folded)):
            return match.start()
    return 0


def _pattern(word: str) -> str:
    """The word at the beginning of a word, or anywhere in a script without spaces."""
    return re.escape(word) if word[0] >= _UNSPACED else rf"(?<![^\W_]){re.escape(word)}"


def _folded(text: str) -> str:
    """In lower case and without accents, character by character: places stay what they are."""
    if text.isascii():
        return text.lower()
    return "".join(
        char if char >= _UNSPACED else unicodedata.normalize("NFD", char.lower())[0]
        for char in text
    )
