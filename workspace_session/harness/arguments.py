"""Arguments of tools, as models give them: names in two spellings, whole numbers as texts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from workspace_session.harness.tool_answers import quoted
from workspace_session.model.canonical import parse

_OTHER_NAMES = {
    "agentId": "agent_id",
    "sessionId": "session_id",
    "maxResults": "max_results",
    "lastN": "last_n",
}


class BadArgument(ValueError):
    """What is wrong, as one sentence without its end."""


class Arguments:
    """The arguments of one call."""

    def __init__(self, given: Any, known: Collection[str]) -> None:
        if isinstance(given, str | bytes):
            given = _parsed(given)
        if not isinstance(given, Mapping):
            raise BadArgument("the arguments must be an object")
        self._given: dict[str, Any] = {}
        for name, value in given.items():
            wanted = _OTHER_NAMES.get(str(name), str(name))
            if wanted not in known:
                raise BadArgument(f"unknown argument {quoted(str(name))}")
            self._given[wanted] = value

    def text(self, name: str) -> str:
        """A text that must be there."""
        found = self._given.get(name)
        if found is None:
            found = ""
        if not isinstance(found, str):
            raise BadArgument(f"{name} must be a text")
        if not found.strip():
            raise BadArgument(f"{name} must not be empty")
        return found

    def text_or_none(self, name: str) -> str | None:
        """A text that may be left out."""
        return None if self._given.get(name) is None else self.text(name)

    def count(self, name: str, default: int, most: int) -> int:
        """A whole number; what is below one means the default."""
        found = self._given.get(name)
        if found is None:
            return default
        if isinstance(found, str) and found.strip().lstrip("+-").isdecimal() and len(found) < 20:
            found = int(found)
        if isinstance(found, float) and found.is_integer():
            found = int(found)
        if not isinstance(found, int) or isinstance(found, bool):
            raise BadArgument(f"{name} must be a whole number")
        return min(found, most) if found >= 1 else default


def _parsed(given: str | bytes) -> Any:
    try:
        return parse(given.encode("utf-8", "replace") if isinstance(given, str) else given)
    except ValueError:
        return None
