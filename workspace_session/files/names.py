"""Ids and the file names that stand for them: one encoding, reversible, no two ids one name.

Ordinary ids are their own names. Every other character becomes its UTF-8 bytes as `%` and two
hexadecimal digits, so a name never starts with a dot, never leaves its directory, and can be made
on every file system. A name is ours only if encoding what it decodes to gives the name back.
"""

from __future__ import annotations

import os
import re
import secrets
import unicodedata
from datetime import UTC, datetime
from functools import lru_cache

from workspace_session.errors import InvalidId

MAX_BYTES = 180  # leaves room for every suffix and for the name of a temporary file

_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|\Z)", re.IGNORECASE | re.ASCII)
_ORDINARY = re.compile(r"(?!(?i:con|prn|aux|nul|com[0-9]|lpt[0-9])\Z)[A-Za-z0-9_-]{1,180}")
_ESCAPED = re.compile(rb"%([0-9a-f]{2})")
# What a namespace directory may hold beside further namespaces.
_RESERVED = frozenset(
    {"agents", "memory", "knowledge", "skills", "subagents", "agents.md", "memory.md"}
)
_LEFTOVER = re.compile(r"[^/\\]+\.corrupt-\d{8}T\d{6}Z(?:-\d+)?")
_TEMPORARY = re.compile(r"\.[^/\\]+\.tmp-\d+-[0-9a-f]{8}")


# -- ids -------------------------------------------------------------------------------------------


def encode_id(kind: str, value: object) -> str:
    """The file name of a user, agent, session or key id, without extension."""
    if isinstance(value, str) and _ORDINARY.fullmatch(value):
        return str.__str__(value)  # of a subclass, its text
    text = _checked(kind, value)
    return _limited(kind, text, _encode(text))


def encode_namespace_part(value: object) -> str:
    """The directory name of one part of a namespace, which is most often a user."""
    text = _checked("user", value)
    name = _encode(text)
    if text.lower() in _RESERVED:
        name = _escape(name[0]) + name[1:]
    return _limited("user", text, name)


def decode_name(name: str) -> str | None:
    """The id that a file name (without extension) stands for; None when the name is not ours."""
    if _ORDINARY.fullmatch(name):
        return name
    return _decode(name)


def decode_namespace_part(name: str) -> str | None:
    """The part that a directory name stands for; None when it is not that of a namespace."""
    text = _unescape(name)
    try:
        return text if text is not None and encode_namespace_part(text) == name else None
    except InvalidId:
        return None


@lru_cache(maxsize=4096)
def _encode(text: str) -> str:
    name = "".join(char if _is_kept(char) else _escape(char) for char in text)
    if text[-4:].lower() == ".log":  # `<session>.log.jsonl` is a log
        name = name[:-4] + _escape(".") + name[-3:]
    if name.endswith("."):
        name = name[:-1] + _escape(".")
    # Only the first character of a device name or a leading dot is still as it was in the text.
    if name.startswith(".") or _DEVICE.match(text):
        name = _escape(name[0]) + name[1:]
    return name


@lru_cache(maxsize=4096)
def _decode(name: str) -> str | None:
    text = _unescape(name)
    try:
        return text if text is not None and encode_id("any", text) == name else None
    except InvalidId:
        return None


def _is_kept(char: str) -> bool:
    return char.isalnum() or char in "_-."


def _escape(char: str) -> str:
    return "".join(f"%{byte:02x}" for byte in char.encode("utf-8"))


def _unescape(name: str) -> str | None:
    try:
        raw = name.encode("utf-8")  # fails for a name that the system gave in another encoding
        return _ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), raw).decode("utf-8")
    except UnicodeError:
        return None


def _checked(kind: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidId(kind, value, "not a string")
    if not value:
        raise InvalidId(kind, value, "empty")
    if "\0" in value:
        raise InvalidId(kind, value, "contains NUL")
    if any("\ud800" <= char <= "\udfff" for char in value):
        raise InvalidId(kind, value, "not valid Unicode")
    if not unicodedata.is_normalized("NFC", value):
        raise InvalidId(kind, value, "not in Unicode normal form C")
    return str.__str__(value)


def _limited(kind: str, text: str, name: str) -> str:
    size = len(name.encode("utf-8"))
    if size > MAX_BYTES:
        reason = f"too long ({size} bytes as a file name, at most {MAX_BYTES})"
        raise InvalidId(kind, text, reason)
    return name


# -- names that are not ids ------------------------------------------------------------------------


def temporary_name(name: str) -> str:
    """A new name beside `name` for what is not finished; it starts with a dot, as no id does."""
    return f".{name}.tmp-{os.getpid()}-{secrets.token_hex(4)}"


def is_temporary(name: str) -> bool:
    """Whether `temporary_name` made this name."""
    return _TEMPORARY.fullmatch(name) is not None


def is_corrupt_leftover(name: str) -> bool:
    """Whether this is a corrupt file that was set aside."""
    return _LEFTOVER.fullmatch(name) is not None


def utc_stamp(now: datetime | None = None) -> str:
    """The moment, to the second, as file names carry it: `20260515T080003Z`."""
    return (now or datetime.now(UTC)).astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
