"""Times and ids: each new entry sorts after everything its writer has seen.

A hybrid logical clock: the wall clock where it has moved on, else the greatest known time plus one
microsecond. All times have one fixed width, so comparing the texts compares the times. An id holds
its time, so that ids sort too, and 80 random bits.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from itertools import chain, islice, repeat
from secrets import randbelow

from workspace_session.errors import InvalidMessage

_FIXED = re.compile(
    r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    r"T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{6}Z"
).fullmatch
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = "1970-01-02"  # before which no program of today has written anything
_MICROSECOND = timedelta(microseconds=1)
_LAST = (datetime.fromisoformat("9999-12-31T23:59:59+00:00") - _EPOCH) // _MICROSECOND
_END_OF_TIME = "9999-12-31T23:59:59"  # nothing could sort after an entry of the last second


# Microseconds since 1970 that count as now, where something is written that was said before.
_then: ContextVar[Sequence[int]] = ContextVar("_then", default=())


@contextmanager
def dated(*timestamps: str) -> Iterator[None]:
    """Have the entries of each write in here bear these times, and the rest of them the last.

    What a session has still comes before: an entry whose time has passed there is dated right behind.
    Without times nothing changes.
    """
    token = _then.set([micros_of(timestamp) for timestamp in timestamps] or _then.get())
    try:
        yield
    finally:
        _then.reset(token)


def is_dated() -> bool:
    """Whether the time of writing is not to be seen in what is written here."""
    return bool(_then.get())


Stamp = tuple[str, str]
"""The time of a new entry, and an id that no other entry has."""


def stamps(count: int, after: str) -> list[Stamp]:
    """Times and ids for new entries, each later than the one before, all of them than `after`.

    Each id ends in random digits of its own: people go by the end of an id.
    """
    if is_dated():
        return _dated_stamps(count, after)
    first = time.time_ns() // 1000
    if after:
        first = max(first, micros_of(after) + 1)
        if first + count >= _LAST:
            raise InvalidMessage(f"nothing can come after an entry dated {after}")
    random = os.urandom(10 * count).hex()
    ends = (random[at : at + 20] for at in range(0, 20 * count, 20))
    result: list[Stamp] = []
    while count > 0:
        seconds, fraction = divmod(first, 1_000_000)
        this_second = min(count, 1_000_000 - fraction)
        prefix = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
        fractions = range(1_000_000 + fraction, 1_000_000 + fraction + this_second)  # of one width
        micros = range(first, first + this_second)
        result += [
            (f"{prefix}.{str(digits)[1:]}Z", f"{micro:013x}{end}")
            for digits, micro, end in zip(fractions, micros, ends, strict=False)
        ]
        first, count = first + this_second, count - this_second
    return result


def _dated_stamps(count: int, after: str) -> list[Stamp]:
    latest = micros_of(after) if after else 0
    result: list[Stamp] = []
    for then in islice(chain(_then.get(), repeat(_then.get()[-1])), count):
        latest = max(then, latest + 1)
        if latest >= _LAST:
            raise InvalidMessage(f"nothing can come after an entry dated {after}")
        result.append((time_of(latest), f"{latest:013x}{os.urandom(10).hex()}"))
    return result


def fresh_id() -> str:
    """An id that nothing else has."""
    return stamps(1, "")[0][1]


def micros_of(timestamp: str) -> int:
    """Microseconds since 1970 of a time in the fixed form."""
    return (datetime.fromisoformat(timestamp) - _EPOCH) // _MICROSECOND


def time_of(micros: int) -> str:
    """The time that is so many microseconds after 1970 began."""
    return format_time(_EPOCH + micros * _MICROSECOND)


def just_before(timestamp: str) -> str:
    """The microsecond before a time."""
    return format_time(datetime.fromisoformat(timestamp) - _MICROSECOND)


def somewhat_before(timestamp: str) -> str:
    """A time within the second before a time, another one each time."""
    return time_of(micros_of(timestamp) - randbelow(10**6) - 1)


def plausible(timestamps: Iterable[str | None]) -> list[str]:
    """When entries were written, as others say. What cannot be, such as a time to come, is as before.

    Empty if none of them can be.
    """
    now = format_time(datetime.now(UTC))
    good = [time if time and _FIRST < time <= now else None for time in timestamps]
    before = next(filter(None, good), None)
    if before is None:
        return []
    return [before := time or before for time in good]


def as_time(value: str | datetime) -> str:
    """A time as a text; a `datetime` without a zone is in UTC."""
    if isinstance(value, str):
        return value
    return format_time(value if value.tzinfo else value.replace(tzinfo=UTC))


def just_after(timestamp: str) -> str:
    """The microsecond after a time."""
    return format_time(datetime.fromisoformat(timestamp) + _MICROSECOND)


def format_time(moment: datetime) -> str:
    """The one way a time is written: UTC, microseconds, `Z`."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def is_fixed_time(text: str) -> bool:
    """Whether a text is a time just as we write it; this runs for every line of every file."""
    if not _FIXED(text) or text.startswith(_END_OF_TIME):
        return False
    return text[8:10] <= "28" or normal_time(text) == text  # only the last days need a calendar


def normal_time(text: object) -> str | None:
    """A stored time in the fixed form, or None if it is none; other ISO forms are understood."""
    if not isinstance(text, str) or text.startswith(_END_OF_TIME):
        return None
    try:
        return as_time(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return None
