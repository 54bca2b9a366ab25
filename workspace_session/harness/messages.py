"""Messages as agents have them, and as they are stored: a text, a mapping, or an SDK's own object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workspace_session.errors import InvalidMessage


def as_message(message: Any, role: str = "user") -> Mapping[str, Any]:
    """A message as the object that is stored; a text is said by `role`."""
    if isinstance(message, str):
        return {"role": role, "content": message}
    if isinstance(message, Mapping):
        return message
    for name, arguments in (("to_dict", {}), ("model_dump", {"mode": "json"})):
        method = getattr(message, name, None)
        if callable(method) and not isinstance(message, type):
            found = method(**arguments)
            if isinstance(found, Mapping):
                return found
    raise InvalidMessage(
        "a message is an object, a text, or has to_dict or model_dump, "
        f"and {type(message).__name__} is none of these"
    )
