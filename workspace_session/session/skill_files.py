"""Skills in a directory: `<key>/SKILL.md`, or `<key>.md`.

Only what lies in the directory is read or written, symbolic links followed. Documents are replaced
as a whole: a reader finds the old one or the new one.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection
from pathlib import Path

from workspace_session.session.skill_documents import SkillDocuments, is_key, rewritten


class FileSkillProvider(SkillDocuments):
    """A skill block's documents as Markdown files of one directory."""

    def __init__(
        self,
        dir: str | os.PathLike[str],  # noqa: A002 - the name its users know it by
        *,
        keys: Collection[str] = (),
        writable: bool = True,
    ) -> None:
        super().__init__(keys, writable=writable)
        self._directory = Path(dir)

    def _fetch_all(self) -> dict[str, bytes]:
        if not self._directory.is_dir():
            return {}
        keys = {path.name.removesuffix(".md") for path in self._directory.iterdir()}
        found = {key: self._fetch(key) for key in filter(is_key, keys)}
        return {key: data for key, data in found.items() if data is not None}

    def _fetch(self, key: str) -> bytes | None:
        path = self._path(key)
        try:
            return path.read_bytes() if self._is_inside(path) else None
        except (FileNotFoundError, IsADirectoryError):  # a directory may be called `notes.md`
            return None

    def _store(self, key: str, content: str, description: str | None) -> None:
        path = self._path(key)
        if not self._is_inside(path):
            raise ValueError(f"skill {key!r} leads out of its directory")
        data = rewritten(self._fetch(key), content, description)
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path.resolve(), data)

    def _path(self, key: str) -> Path:
        """Where the document is, or where it would be."""
        preferred = self._directory / key / "SKILL.md"
        return preferred if preferred.is_file() else self._directory / f"{key}.md"

    def _is_inside(self, path: Path) -> bool:
        return path.resolve().is_relative_to(self._directory.resolve())


def _replace(path: Path, data: bytes) -> None:
    # A name that starts with a dot is never taken for a document.
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        if path.exists():
            temporary.chmod(path.stat().st_mode & 0o7777)
        temporary.replace(path)
    except BaseException:
        temporary.unlink()
        raise
