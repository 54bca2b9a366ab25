"""Shortened messages: what a memory keeps of a message when it wants the room.

A message is only shortened when it says nothing that the other does not: no more blocks, in the same
order, each equal to the other's or cut off, and nothing new beside them. Such a message never takes
the place of the one it was made from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from workspace_session.model.canonical import compact_sorted

_MARK = re.compile(
    r"\s*(?:…|\.{3,})?\s*(?:[\[(<]{1,3}\s*truncated\b[^\[\]()<>]*[\])>]{1,3})?\s*\Z", re.IGNORECASE
)
_LONGEST_MARK = 80
_BESIDE = frozenset({"metadata", "truncated"})  # where it is often said that something was cut
_NAMES = frozenset(
    {"type", "role", "id", "name"}
)  # which nobody cuts: another name is another thing
_DEEPEST = 50  # what is nested deeper is compared as a whole


def is_only_shortened(message: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
    """Whether a message is less than the stored one, and nothing but less."""
    less, more = _without_remarks(message), _without_remarks(stored)
    return not _are_same(less, more) and _is_part(less, more, _DEEPEST)


def _is_part(less: Any, more: Any, levels: int) -> bool:
    """Whether a value is equal to another, or what is left of it."""
    if isinstance(less, str) and isinstance(more, str):
        return _is_cut(less, more)
    if levels and isinstance(less, dict) and isinstance(more, dict):
        return less.keys() - _BESIDE <= more.keys() and all(
            _are_same(less[name], more[name])
            if name in _NAMES
            else _is_part(less[name], more[name], levels - 1)
            for name in less.keys() & more.keys()
        )
    if levels and isinstance(less, list) and isinstance(more, list):
        left = iter(more)  # each block is looked for behind the one before
        return all(any(_is_part(block, other, levels - 1) for other in left) for block in less)
    return _are_same(less, more)


def _is_cut(text: str, whole: str) -> bool:
    if whole.startswith(text):
        return True
    mark = _MARK.search(text, max(0, len(text) - _LONGEST_MARK))
    kept = text if mark is None else text[: mark.start()]
    return len(kept) < len(whole) and whole.startswith(kept)


def _without_remarks(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: member for name, member in value.items() if name not in _BESIDE}


def _are_same(one: Any, other: Any) -> bool:
    return compact_sorted(one) == compact_sorted(other)
