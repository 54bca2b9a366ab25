"""Skill documents: Markdown below an optional front matter, kept wherever a subclass puts them.

A document that was written loads as exactly the text that was given. Reading and writing happen in
threads, so that a slow disk or network stops nobody else.
"""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any

from workspace_session.session import front_matter

_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SURROGATE = re.compile("[\ud800-\udfff]")


class SkillDocuments(ABC):
    """A skill provider over named documents; `keys`, when given, are all that is shown and loaded."""

    def __init__(self, keys: Collection[str], *, writable: bool) -> None:
        if isinstance(keys, str):
            raise TypeError("keys are a collection of strings, not one string")
        self._keys = frozenset(keys)
        self._writable = writable

    async def get(self) -> str | None:
        """The listing, a line for each document; None when there are none."""
        return await asyncio.to_thread(self._listing)

    async def load(self, key: str) -> str | None:
        """The text of a document; None when there is none of that key."""
        if not is_key(key) or (self._keys and key not in self._keys):
            return None
        data = await asyncio.to_thread(self._fetch, key)
        return None if data is None else text_of(data)

    @property
    def set(self) -> Callable[..., Coroutine[Any, Any, None]]:
        """`set(key, content, description=None)`; a provider that is not writable has none."""
        if not self._writable:
            raise AttributeError("these skills are read-only")
        return self._set

    async def _set(self, key: str, content: str, description: str | None = None) -> None:
        if not is_key(key):
            raise ValueError(f"a skill cannot have the key {key!r}")
        await asyncio.to_thread(self._store, key, content, description)

    def _listing(self) -> str | None:
        if not self._keys:
            return listing(self._fetch_all())
        found = {key: self._fetch(key) for key in filter(is_key, self._keys)}
        return listing({key: data for key, data in found.items() if data is not None})

    # -- where they are: called in a thread, with keys that `is_key` accepts -----------------------

    @abstractmethod
    def _fetch_all(self) -> dict[str, bytes]:
        """Every document there is, by key."""

    @abstractmethod
    def _fetch(self, key: str) -> bytes | None:
        """One document."""

    @abstractmethod
    def _store(self, key: str, content: str, description: str | None) -> None:
        """Write a document as `rewritten` makes it, where it is or where new ones go."""


def is_key(key: object) -> bool:
    """Whether this can be the key of a document."""
    return isinstance(key, str) and _KEY.fullmatch(key) is not None


def listing(documents: Mapping[str, bytes]) -> str | None:
    """A line for each document, sorted by key."""
    lines = []
    for key, data in sorted(documents.items()):
        fields = front_matter.fields(front_matter.split(data)[0])
        about = fields.get("description") or fields.get("name")
        lines.append(f"- {key}: {about}" if about else f"- {key}")
    return "\n".join(lines) or None


def text_of(data: bytes) -> str:
    """The text after the front matter."""
    return front_matter.split(data)[1].decode("utf-8", "replace")


def rewritten(old: bytes | None, content: str, description: str | None) -> bytes:
    """A document with new content; its front matter stays, but for a description that is given."""
    text = _storable(content).encode()
    front = front_matter.split(old or b"")[0]
    if description is not None:
        front = front_matter.with_field(front, "description", _storable(description))
    if not front and front_matter.split(text)[0]:
        front = [b"---\n---\n"]  # else the beginning of the text would pass for front matter
    head = b"".join(front)
    return head + (b"" if not head or head.endswith(b"\n") else b"\n") + text


def _storable(text: str) -> str:
    return _SURROGATE.sub("\ufffd", text)
