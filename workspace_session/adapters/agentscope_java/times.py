"""Times of AgentScope for Java: decimal seconds with nine digits, which no float can hold.

A time is a text such as `1778832000.123456789` from here on; equal moments have equal texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from workspace_session.model.clock import micros_of, plausible, time_of

EPOCH = "0.000000000"

_NANOS = 10**9
_LAST = 31_556_889_864_403_199  # what `java.time.Instant` can hold, in seconds
_FRACTION = re.compile(r"(?<=:\d\d)[.,](\d+)")


class ExactFloat(float):
    """A number with a fraction, and the digits it was written with."""

    text: str

    def __new__(cls, text: str) -> ExactFloat:
        number = super().__new__(cls, text)
        number.text = text
        return number


class Time(NamedTuple):
    """A time that was understood, and what is doubtful about it."""

    text: str
    doubt: str = ""


def understood(value: object) -> Time | None:
    """The time that a member `timestamp` gives: decimal or whole seconds, or ISO; else None."""
    match value:
        case bool():
            return None
        case int():
            return _decimal(str(value)) if abs(value) <= _LAST else None
        case ExactFloat():
            return _decimal(value.text)
        case str():
            return _decimal(value) or _iso(value)
    return None


def of_entry(timestamp: str) -> str:
    """The same of an entry's own time."""
    return _text(micros_of(timestamp) * 1000)


def entry_times(texts: Iterable[str]) -> list[str]:
    """The same as times of entries, see `plausible`."""
    return plausible(_entry_time(int(Decimal(text) * 10**6)) for text in texts)


def _entry_time(micros: int) -> str | None:
    try:
        return time_of(micros)
    except OverflowError:
        return None


def _decimal(text: str) -> Time | None:
    try:
        seconds = Decimal(text.strip())
    except InvalidOperation:
        return None
    if not seconds.is_finite() or abs(seconds) > _LAST:
        return None
    return Time(_text(int(seconds.scaleb(9))))


def _iso(text: str) -> Time | None:
    fraction = _FRACTION.search(text)
    try:
        moment = datetime.fromisoformat(_FRACTION.sub("", text, count=1).strip())
    except ValueError:
        return None
    doubt = "" if moment.tzinfo else f"the time {text!r} has no zone; it counts as UTC"
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = aware - datetime(1970, 1, 1, tzinfo=UTC)
    nanos = int(fraction[1][:9].ljust(9, "0")) if fraction else since.microseconds * 1000
    return Time(_text((since.days * 86400 + since.seconds) * _NANOS + nanos), doubt)


def _text(nanos: int) -> str:
    seconds, rest = divmod(abs(nanos), _NANOS)
    return f"{'-' if nanos < 0 else ''}{seconds}.{rest:09d}"
