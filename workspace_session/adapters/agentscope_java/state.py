"""The state files that AgentScope for Java keeps of a session, copied into a state store.

All of them are read before the first is written, and all become one change.
"""

from __future__ import annotations

import errno
from pathlib import Path

from workspace_session.files.layout import encode_id
from workspace_session.files.state_bytes import Stored
from workspace_session.files.state_store import StateStore

_ITEMS, _DOCUMENT = ".jsonl", ".json"


def import_state(directory: str | Path, store: StateStore, session_key: str) -> list[str]:
    """Copy each `<name>.json` and `<name>.jsonl` of a directory; returns the names, sorted."""
    stored = {}
    for path in sorted(Path(directory).iterdir()):
        if path.suffix not in (_DOCUMENT, _ITEMS) or path.name.startswith(".") or path.is_dir():
            continue
        if path.stem in stored:
            reason = f"{path.stem} is there as {_DOCUMENT} and as {_ITEMS}; which one counts?"
            raise FileExistsError(errno.EEXIST, reason, str(directory))
        encode_id("key", path.stem)  # refused before anything is written
        data = path.read_bytes()
        file = Stored(data, path.suffix == _ITEMS, path, path.name)
        stored[path.stem] = (file.versioned().value, file.is_list)
    if stored:
        with store.locked(session_key):
            for name, (value, is_list) in stored.items():
                (store.save_list if is_list else store.save)(session_key, name, value)
    return list(stored)
