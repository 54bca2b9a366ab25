"""JSON values and their one byte form: the same value always gives the same bytes.

What goes in comes out: `parse(compact(value)) == value` for every JSON value, whole numbers of any
size included (a tuple comes back as a list). What is not JSON raises `StateNotSerializable` with
the path to the part that is not. Nothing recurses along a value: nesting costs no stack.

orjson does the work for nearly every value; that its bytes say what the value says is checked by
reading them back. `rendering` writes the rest, in the same format.
"""

from __future__ import annotations

import marshal
import os
import re
from typing import Any

import orjson

from workspace_session.model.rendering import render

_BOM = b"\xef\xbb\xbf"
# orjson would write these two by its own rules; here they are "other types".
_STRICT = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
_SORTED = _STRICT | orjson.OPT_SORT_KEYS
_DOCUMENT = _SORTED | orjson.OPT_INDENT_2


# -- writing ---------------------------------------------------------------------------------------


def compact(value: Any) -> bytes:
    """One line without spaces, keys in the order given: an entry."""
    plain = compact_plain([value])
    return _dumps(value, _STRICT) if plain is None else plain[0]


def compact_plain(values: list[Any]) -> list[bytes] | None:
    """The same for many values, if they hold nothing but plain JSON types; None for anything else.

    `marshal` refuses all but the built-in types themselves, in a small part of the time that reading
    the bytes back takes. What it lets pass and JSON has not (bytes, sets) orjson refuses; only NaN and
    the infinities pass both.
    """
    try:
        raw = [orjson.dumps(value, option=_STRICT) for value in values]
        return None if _may_have_nan(marshal.dumps(values)) else raw
    except (ValueError, TypeError):
        return None


def _may_have_nan(marshalled: bytes) -> bool:
    """Whether NaN or an infinity may be among what was marshalled: it never is when this says no.

    A float stands there as a `g` (its upper bit may be set) and eight bytes, the lowest first. In these
    all bits of the exponent are set, which leaves two values for the last byte; both are rare in text.
    """
    for last in (b"\x7f", b"\xff"):
        at = marshalled.find(last, 8)
        while at >= 0:
            if marshalled[at - 1] >= 0xF0 and marshalled[at - 8] & 0x7F == 0x67:
                return True
            at = marshalled.find(last, at + 1)
    return False


def compact_sorted(value: Any) -> bytes:
    """One line without spaces, keys sorted by code point: an item of a `.jsonl` state file."""
    return _dumps(value, _SORTED)


def document(value: Any) -> bytes:
    """Keys sorted by code point, indented by two, one trailing newline: a `.json` state file."""
    return _dumps(value, _DOCUMENT) + b"\n"


def _dumps(value: Any, option: int) -> bytes:
    try:
        raw = orjson.dumps(value, option=option)
        # What reads back as something else (NaN, a UUID, an Enum, a tuple) is looked at closely.
        # `True == 1` does no harm: orjson keeps the two apart.
        if orjson.loads(raw) == value:
            return raw
    except (orjson.JSONEncodeError, orjson.JSONDecodeError, RecursionError):
        pass  # `render` says what is wrong, or that nothing is
    return render(value, sort=option != _STRICT, indent=option == _DOCUMENT)


# -- reading ---------------------------------------------------------------------------------------

_AS_ZEROS = bytes(48 if 48 <= code < 58 else 32 for code in range(256))
_LONG = b"0" * 19  # 64 bits hold every whole number of 18 digits, and not every one of 19

_TOKEN = re.compile(
    rb'"(?:[^"\\]++|\\.)*+"'
    rb"|(?P<whole>-?[1-9]\d{18,}+)(?![.eE])"
    rb"|-?\d++(?:[.eE+-]++\d*+)*+",
    re.DOTALL,
)
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}"
    rb"|(?P<lone>\\u[dD][89a-fA-F][\da-fA-F]{2})"
    rb"|\\."
)


def parse(data: bytes) -> Any:
    """The value of a JSON text; `ValueError`, with a short reason, when it is none."""
    data = data.removeprefix(_BOM)
    # orjson makes a float of a whole number beyond 64 bits. Looking for a long run of digits this
    # way costs as much as parsing does; a regular expression, ten times that.
    if _LONG in data.translate(_AS_ZEROS):
        return _parse_long_numbers(data)
    return _loads(data)


def _loads(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        reason = str(error) if data.strip() else "empty"
    # Other writers leave lone surrogates as escapes; the second time none is left.
    whole = _ESCAPE.sub(_replace_lone, data)
    if whole == data:
        raise ValueError(reason)  # not from orjson's error, which carries the whole text
    return _loads(whole)


def _replace_lone(escape: re.Match[bytes]) -> bytes:
    return b"\\ufffd" if escape["lone"] else escape[0]


def _parse_long_numbers(data: bytes) -> Any:
    """Read with each long whole number as a marked text, then turn those into numbers."""
    marker = os.urandom(12).hex()  # no text can hold it, by accident or by intent

    def mark(token: re.Match[bytes]) -> bytes:
        whole: bytes | None = token["whole"]
        return token[0] if whole is None else b'"%b%b"' % (marker.encode(), whole)

    # In a text that is not JSON the marks do not make it so: a quotation mark inside an open string
    # ends it right before the marker. Only a number that stands for a key has to be looked for.
    return _unmarked(_loads(_TOKEN.sub(mark, data)), marker)


def _unmarked(value: Any, marker: str) -> Any:
    root = [value]
    pending: list[Any] = [root]
    while pending:
        container = pending.pop()
        pairs = container.items() if isinstance(container, dict) else enumerate(container)
        for step, member in list(pairs):
            if isinstance(step, str) and step.startswith(marker):
                raise ValueError("a key that is not a string")
            if isinstance(member, list | dict):
                pending.append(member)
            elif isinstance(member, str) and member.startswith(marker):
                container[step] = _integer(member.removeprefix(marker))
    return root[0]


def _integer(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:  # the interpreter's limit
        raise ValueError(f"a number of {len(digits)} digits") from None
