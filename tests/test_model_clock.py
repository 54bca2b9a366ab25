"""The clock: new entries come last, whatever the time of day is said to be."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspace_session.errors import InvalidMessage
from workspace_session.model.clock import dated, format_time, micros_of, normal_time, stamps

FORM = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")

moments = st.datetimes(
    min_value=datetime(1971, 1, 1), max_value=datetime(9000, 1, 1), timezones=st.just(UTC)
)


@pytest.fixture
def wall_clock(monkeypatch):
    """Sets what the machine says the time is."""

    def set_to(moment: datetime) -> None:
        nanoseconds = int(moment.timestamp()) * 10**9
        monkeypatch.setattr(time, "time_ns", lambda: nanoseconds)

    return set_to


@given(moments, st.integers(1, 50))
def test_new_times_come_after_what_is_known_and_after_each_other(known, count):
    after = format_time(known)

    found = [timestamp for timestamp, _ in stamps(count, after)]

    assert all(FORM.fullmatch(timestamp) for timestamp in found)
    assert [after, *found] == sorted({after, *found})


def test_a_clock_that_has_moved_on_gives_the_time(wall_clock):
    wall_clock(datetime(2026, 5, 15, 8, 0, 3, tzinfo=UTC))

    assert stamps(2, "2026-05-15T08:00:00.000000Z")[0][0] == "2026-05-15T08:00:03.000000Z"
    assert stamps(2, "")[1][0] == "2026-05-15T08:00:03.000001Z"


def test_a_slow_clock_is_bumped_by_a_microsecond(wall_clock):
    wall_clock(datetime(2020, 1, 1, tzinfo=UTC))

    found = stamps(3, "2026-05-15T08:00:00.999998Z")

    assert [timestamp for timestamp, _ in found] == [
        "2026-05-15T08:00:00.999999Z",
        "2026-05-15T08:00:01.000000Z",
        "2026-05-15T08:00:01.000001Z",
    ]


def test_ids_of_one_call_are_told_apart_by_their_ends_and_their_beginnings(wall_clock):
    wall_clock(datetime(2020, 1, 1, tzinfo=UTC))

    ids = [entry_id for _, entry_id in stamps(500, "2026-05-15T08:00:00.999800Z")]

    assert ids == sorted(ids)
    assert len({entry_id[-8:] for entry_id in ids}) == 500
    assert all(re.fullmatch("[0-9a-f]{33}", entry_id) for entry_id in ids)


def test_what_was_said_before_may_be_dated_so(wall_clock, agent):
    wall_clock(datetime(2026, 5, 15, 9, tzinfo=UTC))
    other, tree = agent.tree("other"), agent.tree("s")
    other.append({"role": "user"})

    with dated("2025-01-02T03:04:05.000000Z", "2025-01-02T03:04:06.000000Z"):
        tree.extend([{"role": "user"}, {"role": "assistant"}, {"role": "user"}])
    with dated("2024-01-02T03:04:05.000000Z"):
        tree.append({"role": "user"})
    tree.append({"role": "user"})

    header, *others = tree.log()
    assert "2025-01-02T03:04:04" <= header.timestamp < others[0].timestamp
    assert [entry.timestamp for entry in others] == [
        "2025-01-02T03:04:05.000000Z",
        "2025-01-02T03:04:06.000000Z",
        "2025-01-02T03:04:06.000001Z",
        "2025-01-02T03:04:06.000002Z",
        tree.latest,
    ]
    assert tree.latest > other.latest


def test_a_clock_that_steps_back_between_two_writes_does_not_disturb_them(wall_clock, tree):
    message = {"role": "user", "parts": []}
    wall_clock(datetime(2026, 5, 15, 9, tzinfo=UTC))
    tree.append({**message, "id": "m1"})
    wall_clock(datetime(2026, 5, 15, 8, tzinfo=UTC))
    tree.append({**message, "id": "m2"})
    wall_clock(datetime(2026, 5, 15, 7, tzinfo=UTC))
    tree.extend([{**message, "id": "m3"}, {**message, "id": "m4"}])
    wall_clock(datetime(2026, 5, 15, 10, tzinfo=UTC))
    tree.append({**message, "id": "m5"})

    log = [entry.timestamp for entry in tree.log()]
    assert log == sorted(set(log))
    assert [entry.id for entry in tree.path()] == ["m1", "m2", "m3", "m4", "m5"]
    assert log[-1] == "2026-05-15T10:00:00.000000Z"


def test_ids_sort_as_their_times_do_and_are_never_the_same():
    found = [fresh for _, fresh in stamps(1000, "")] + [stamps(1, "")[0][1] for _ in range(100)]

    assert len(set(found)) == 1100
    assert found[:1000] == sorted(found[:1000])
    assert all(re.fullmatch(r"[0-9a-f]{33}", one) for one in found)


def test_two_writers_with_the_same_clock_make_different_ids(wall_clock):
    wall_clock(datetime(2026, 5, 15, tzinfo=UTC))

    assert stamps(1, "")[0][1] != stamps(1, "")[0][1]


@given(
    st.datetimes(
        min_value=datetime(2, 1, 1),
        max_value=datetime(9998, 1, 1),
        timezones=st.none() | st.integers(-14, 14).map(lambda h: timezone(timedelta(hours=h))),
    )
)
def test_every_time_has_one_form_and_keeps_its_moment(moment):
    found = normal_time(moment.isoformat())

    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    assert found is not None
    assert FORM.fullmatch(found)
    assert datetime.fromisoformat(found) == aware
    assert normal_time(found) == found == format_time(aware)


@given(moments)
def test_microseconds_count_exactly(moment):
    assert (
        datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros_of(format_time(moment)))
        == moment
    )


@pytest.mark.parametrize(
    "text",
    ["", "now", "2026-13-01T00:00:00Z", "2026-02-29T00:00:00.000000Z", "2026-05-15T25:00:00Z",
     "2026-05-15T08:00:00.000000Z ", "0001-01-01T00:00:00+14:00", None, 5, 1778832000.5],
)  # fmt: skip
def test_what_is_no_time_is_none(text):
    assert normal_time(text) is None


def test_when_nothing_can_come_later_that_is_said():
    with pytest.raises(InvalidMessage, match="9999"):
        stamps(1, "9999-12-31T23:59:58.999999Z")
