"""Loaded skills: which documents the conversation holds, known from its tool results alone.

A document lives in the result of the `load_context` call that fetched it. Unloading replaces that
result by a short mark, so what is loaded can always be told by reading the messages again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from workspace_session.session.tool_parts import Part, is_tool_part, tool_name, tool_parts
from workspace_session.session.values import SessionMessage

LOAD, UNLOAD = "load_context", "unload_context"
_MARK = "[skill unloaded:"


def not_found(key: str) -> str:
    """The answer to a load of what is not there."""
    return f"Not found: {key}"


def unload_done(label: str, key: str) -> str:
    """The answer to an unload that was done."""
    return f'Unloaded "{key}" from {label}. Context reclaimed.'


def unload_mark(key: str) -> str:
    """What stands in place of a document that was unloaded."""
    return f"{_MARK} {key}]"


class LoadedSkills:
    """The documents that the active branch holds."""

    def __init__(self) -> None:
        self._loaded: set[tuple[str, str]] = set()

    @property
    def keys(self) -> set[str]:
        """Their ids, as `label:key`."""
        return {f"{label}:{key}" for label, key in self._loaded}

    def is_loaded(self, label: str, key: str) -> bool:
        """Whether a document is there; unlike an id, a pair cannot be mistaken for another."""
        return (label, key) in self._loaded

    def mark(self, label: str, key: str) -> None:
        """A document was loaded."""
        self._loaded.add((label, key))

    def discard(self, label: str, key: str) -> None:
        """A document was unloaded."""
        self._loaded.discard((label, key))

    def drop_label(self, label: str) -> None:
        """A block is gone, and what it loaded counts no more."""
        self._loaded = {pair for pair in self._loaded if pair[0] != label}

    def clear(self) -> None:
        """The conversation is empty."""
        self._loaded.clear()

    def restore(self, messages: Iterable[SessionMessage], *, but: Collection[str] = ()) -> None:
        """Find out from a path, root first, what it holds; blocks called like `but` do not count."""
        loaded: set[tuple[str, str]] = set()
        for message in messages:
            if message.get("role") == "assistant":
                _follow(message, loaded)
        self._loaded = {pair for pair in loaded if pair[0] not in but}

    @staticmethod
    def unloaded(message: SessionMessage, label: str, key: str) -> SessionMessage | None:
        """A copy of a message without a document's text; None when it does not hold it."""
        parts = message.get("parts")
        if not isinstance(parts, list) or not any(_holds(part, label, key) for part in parts):
            return None
        mark = {"output": unload_mark(key)}
        changed = [{**part, **mark} if _holds(part, label, key) else part for part in parts]
        return {**message, "parts": changed}


def _follow(message: SessionMessage, loaded: set[tuple[str, str]]) -> None:
    """What a message loads and unloads, in the order of its parts."""
    for name, pair, output in _results(message):
        if name == LOAD and _is_document(output, pair[1]):
            loaded.add(pair)
        elif _takes_away(name, pair, output):
            loaded.discard(pair)


def _results(message: SessionMessage) -> Iterator[tuple[str, tuple[str, str], Any]]:
    for part in tool_parts(message):
        pair = _target(part)
        if pair is not None and _has_output(part):
            yield tool_name(part), pair, part["output"]


def _holds(part: object, label: str, key: str) -> bool:
    """Whether a part is a result of loading this document that has not been unloaded yet."""
    return (
        isinstance(part, Mapping)
        and is_tool_part(part)
        and tool_name(part) == LOAD
        and _target(part) == (label, key)
        and _has_output(part)
        and part["output"] != unload_mark(key)
    )


def _target(part: Part) -> tuple[str, str] | None:
    given = part.get("input")
    if not isinstance(given, Mapping):
        return None
    label, key = given.get("label"), given.get("key")
    return (label, key) if isinstance(label, str) and isinstance(key, str) else None


def _has_output(part: Part) -> bool:
    return "output" in part and part.get("state") in (None, "output-available")


def _is_document(output: object, key: str) -> bool:
    if not isinstance(output, str):
        return True  # some frameworks wrap what a tool gave
    return output != not_found(key) and not output.startswith(("Error: ", _MARK))


def _takes_away(name: str, pair: tuple[str, str], output: object) -> bool:
    if name == LOAD:
        return isinstance(output, str) and output.startswith(_MARK)
    return name == UNLOAD and output == unload_done(*pair)
