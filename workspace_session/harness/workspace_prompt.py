"""The workspace prompt: what an agent is told of the files that people keep for it.

It holds no time and changes only when the files do, so that models may cache it. No text of a file can
pass for the frame around it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workspace_session.bridge import in_thread
from workspace_session.errors import UnsafePath
from workspace_session.files.layout import SharedPlace
from workspace_session.files.listings import files_below
from workspace_session.harness.context import BoundContext

logger = logging.getLogger("workspace_session")

_FILE_LIMIT = 20_000
_TOTAL_LIMIT = 60_000
_FRAME = re.compile(r"</(?=file|workspace_context)", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")


class WorkspaceContextHook:
    """Sets `ctx.workspace_prompt`; the message stays as it is."""

    order = 400

    async def before_call(self, ctx: BoundContext, message: Any) -> None:  # noqa: ARG002
        """Render the prompt."""
        place = ctx.workspace.layout.shared(ctx.namespace)
        ctx.workspace_prompt = await in_thread(workspace_prompt, place)


def workspace_prompt(place: SharedPlace) -> str:
    """The prompt for the agents of a namespace; empty when there is nothing to tell."""
    root = place.layout.shared()
    told = place if place.instructions.exists() else root
    known = place if place.knowledge.is_dir() else root
    room = _TOTAL_LIMIT
    parts: list[str] = []
    for at, path in (
        (told, told.instructions),
        (place, place.memory),  # never that of others
        (known, known.knowledge_guide),
    ):
        text = _text_of(at, path)
        if text.strip():
            shown = path.relative_to(at.directory).as_posix()
            limit = min(room, _FILE_LIMIT)
            room -= min(limit, len(text))
            parts.append(f'<file path="{shown}">\n{_cut(text, limit)}\n</file>')
    listed = "\n".join(_listed(known))
    if listed:
        parts.append(f"<files>\n{_cut(listed, room)}\n</files>")
    return "\n".join(["<workspace_context>", *parts, "</workspace_context>"]) if parts else ""


def _text_of(place: SharedPlace, path: Path) -> str:
    place.layout.check(path)
    if not path.is_file():
        return ""
    return path.read_bytes().decode("utf-8-sig", "replace").rstrip("\r\n")


def _listed(place: SharedPlace) -> Iterator[str]:
    """The files to look things up in, but the one that says where."""
    for path in files_below(place.knowledge):
        if path == place.knowledge_guide:
            continue
        try:
            place.layout.check(path)
        except UnsafePath as error:
            logger.warning("left out of the workspace prompt: %s", error)
            continue
        shown = _CONTROL.sub("\ufffd", path.relative_to(place.directory).as_posix())
        yield f"{shown} ({path.stat().st_size} bytes)"


def _cut(text: str, limit: int) -> str:
    whole = len(text)
    mark = ""
    if whole > limit:
        text, mark = text[:limit], f"\n[truncated: {limit} of {whole} characters]"
    return _FRAME.sub(r"<\\/", text) + mark
