"""Skills in an object store, or any other place that fsspec can reach.

Objects are `<prefix><key>/SKILL.md`, `<prefix><key>.md` or `<prefix><key>`, looked for in this order.
Nothing is remembered between calls: other processes write too.
"""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

from workspace_session.session import arguments
from workspace_session.session.skill_documents import SkillDocuments, is_key, rewritten

_ENDINGS = ("/SKILL.md", ".md", "")
_AT_ONCE = 16
# What file systems say of a path that is no file: nothing there, a directory, or below a file.
_ABSENT = (FileNotFoundError, IsADirectoryError, NotADirectoryError)


class ObjectSkillProvider(SkillDocuments):
    """A skill block's documents as objects below a URL: `s3://bucket`, `gs://…`, `memory://…`."""

    def __init__(
        self,
        url: str,
        prefix: str = "",
        keys: Collection[str] = (),
        *,
        writable: bool = True,
        **storage_options: Any,
    ) -> None:
        super().__init__(keys, writable=writable)
        self._url = arguments.text("a url", url)
        self._prefix = arguments.text("a prefix", prefix)
        self._options = storage_options
        _fsspec()  # that it is missing is said now, not in the middle of a conversation

    @cached_property
    def _place(self) -> tuple[Any, str]:
        """The file system, and what every path begins with."""
        # At first use, in a thread: some file systems look for credentials when they are made.
        files, root = _fsspec().url_to_fs(self._url, **self._options)
        root = root.rstrip("/")
        return files, f"{root}/{self._prefix.lstrip('/')}" if root else self._prefix

    # -- reading -----------------------------------------------------------------------------------

    def _fetch_all(self) -> dict[str, bytes]:
        best: dict[str, tuple[int, bytes]] = {}
        paths = self._paths()
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for (rank, key), data in zip(paths.values(), pool.map(self._read, paths), strict=True):
                if data is not None and (key not in best or rank < best[key][0]):
                    best[key] = rank, data
        return {key: data for key, (_, data) in best.items()}

    def _paths(self) -> dict[str, tuple[int, str]]:
        """Every path that may be a document, with its rank and key."""
        files, base = self._place
        directory = base.rpartition("/")[0]
        start = base.lstrip("/")  # file systems differ in whether names begin with a slash
        files.invalidate_cache(directory)
        try:
            entries = files.ls(directory, detail=True)
        except _ABSENT:
            return {}
        found = {}
        for entry in entries:
            path = entry["name"] + ("/SKILL.md" if entry["type"] == "directory" else "")
            name = path.lstrip("/")
            rest = name.removeprefix(start)
            rank = next(rank for rank, ending in enumerate(_ENDINGS) if rest.endswith(ending))
            key = rest.removesuffix(_ENDINGS[rank])
            if name.startswith(start) and is_key(key):
                found[path] = rank, key
        return found

    def _fetch(self, key: str) -> bytes | None:
        found = self._find(key)
        return None if found is None else found[1]

    def _find(self, key: str) -> tuple[str, bytes] | None:
        for ending in _ENDINGS:
            path = f"{self._place[1]}{key}{ending}"
            data = self._read(path)
            if data is not None:
                return path, data
        return None

    def _read(self, path: str) -> bytes | None:
        try:
            data: bytes = self._place[0].cat_file(path)
        except _ABSENT:
            return None
        return data

    # -- writing -----------------------------------------------------------------------------------

    def _store(self, key: str, content: str, description: str | None) -> None:
        files, base = self._place
        path, old = self._find(key) or (f"{base}{key}.md", None)
        data = rewritten(old, content, description)
        try:
            files.pipe_file(path, data)
        except FileNotFoundError:  # where directories are real, they have to be made
            files.makedirs(path.rpartition("/")[0], exist_ok=True)
            files.pipe_file(path, data)


def _fsspec() -> Any:
    try:
        import fsspec.core
    except ImportError:
        message = "ObjectSkillProvider needs fsspec: pip install 'workspace-session[object]'"
        raise ImportError(message) from None
    return fsspec.core
