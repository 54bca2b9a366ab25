"""Front matter: `key: value` lines between two lines `---` at the top of a document.

It is read far enough to know a name and a description, and one field can be set; every other byte
stays as it is, whatever YAML it may be. What does not look like fields is not front matter: Markdown
may begin with a rule.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

_FENCE = b"---"
_BOM = b"\xef\xbb\xbf"
_NAME = re.compile(rb"([^\s#\-:][^:]*):(?=\s|\Z)")
_PLAIN = re.compile(r"[^\W_](?:(?!: | #).)*(?<!:)")  # what YAML takes for text without quotes


def split(data: bytes) -> tuple[list[bytes], bytes]:
    """The lines of the front matter, with the fences, and what follows them."""
    lines = data.splitlines(keepends=True)
    if not lines or lines[0].removeprefix(_BOM).rstrip() != _FENCE:
        return [], data
    named = False
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() == _FENCE:
            front = lines[: number + 1]
            return front, data[sum(map(len, front)) :]
        named = named or _NAME.match(line) is not None
        if not (_NAME.match(line) or _is_idle(line) or (named and _continues(line))):
            break
    return [], data


def fields(front: list[bytes]) -> dict[str, str]:
    """The fields, each value on one line and without quotes."""
    return {
        name: _value(b"".join(front[start:end]).decode("utf-8", "replace").partition(":")[2])
        for name, start, end in _spans(front)
    }


def with_field(front: list[bytes], name: str, value: str) -> list[bytes]:
    """The lines with one field set; front matter is made when there is none."""
    if not front:
        return [b"---\n", _line(name, value, b"\n"), b"---\n"]
    newline = b"\r\n" if front[0].endswith(b"\r\n") else b"\n"
    start = end = len(front) - 1
    for found, first, after in _spans(front):
        if found == name:
            start, end = first, after
    return [*front[:start], _line(name, value, newline), *front[end:]]


def _spans(front: list[bytes]) -> Iterator[tuple[str, int, int]]:
    """Each field's name, its first line, and the line after its last one."""
    last = len(front) - 1
    for start in range(1, last):
        found = _NAME.match(front[start])
        if found is None:
            continue
        end = after = start + 1
        while after < last and (_continues(front[after]) or not front[after].strip()):
            after += 1
            if front[after - 1].strip():
                end = after
        yield found[1].decode("utf-8", "replace").rstrip(), start, end


def _is_idle(line: bytes) -> bool:
    return not line.strip() or line.startswith(b"#")


def _continues(line: bytes) -> bool:
    """Whether a line belongs to the field above: more of its text, or an item of its list."""
    return line[:1] in (b" ", b"\t", b"-")


# -- values ----------------------------------------------------------------------------------------


def _line(name: str, value: str, newline: bytes) -> bytes:
    text = " ".join(value.split())
    if not _PLAIN.fullmatch(text):
        text = json.dumps(text, ensure_ascii=False)
    return f"{name}: {text}".encode() + newline


def _value(written: str) -> str:
    text = " ".join(written.split())
    if folded := re.match(r"[>|][+-]?(?: |\Z)", text):  # the text stands on the lines below
        return text[folded.end() :]
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) > 1 and text[0] == text[-1] == '"':
        return _unquoted(text)
    return text


def _unquoted(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError:  # YAML has escapes that JSON has not
        return text[1:-1]
