"""Payloads: what is too large for a conversation, in files that are named after what they hold.

Equal content is one file, written once and never changed, so a path that was given away stays good.
"""

from __future__ import annotations

import hashlib

from workspace_session.files.atomic import make_directories, write_atomic
from workspace_session.files.layout import AgentPlace


def keep_payload(place: AgentPlace, data: bytes, extension: str, *, durable: bool) -> str:
    """Write a payload, unless it is there; its path below the root, with `/`."""
    path = place.payload(f"{hashlib.sha256(data).hexdigest()}{extension}")
    place.layout.check(path)
    if not path.exists():
        make_directories(path.parent, sync=durable)
        write_atomic(path, data, sync=durable)
    return place.layout.shown(path)
