"""Batches: all of the entries that were written together count, or none."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from logs import entries_of, message, wire

from workspace_session.model.batches import settle


def batch(name: str, size: int, start: int, count: int | None = None) -> list[dict]:
    """The first `count` members of a batch."""
    members = [
        {**message(start + n, f"{name}{n}", None), "batch": {"id": name, "size": size}}
        for n in range(size)
    ]
    return members[: size if count is None else count]


def settled(wires: list[dict]) -> tuple[list[str], int, list[str]]:
    found = settle(entries_of(wires))
    return [entry.id for entry in found.counted], found.settled, found.cut


def test_entries_without_a_batch_count_each():
    assert settled([message(1, "m1", None), message(2, "m2", None)]) == (["m1", "m2"], 2, [])


def test_a_whole_batch_counts():
    assert settled([message(1, "m", None), *batch("b", 3, 2)]) == (["m", "b0", "b1", "b2"], 4, [])


def test_a_batch_at_the_end_that_lacks_members_may_yet_be_completed():
    assert settled([message(1, "m", None), *batch("b", 3, 2, 2)]) == (["m"], 1, ["b"])


def test_a_batch_that_others_have_written_behind_is_cut():
    wires = [message(1, "m", None), *batch("b", 3, 2, 2), message(9, "n", None)]

    assert settled(wires) == (["m", "n"], 4, ["b"])


def test_an_aborted_batch_never_counts_not_even_when_it_is_completed_by_a_merge():
    abort = wire(8, "abort", batchId="b")

    assert settled([*batch("b", 3, 2, 2), abort]) == (["e8"], 3, [])
    assert settled([*batch("b", 3, 2), abort]) == (["e8"], 4, [])
    assert settled([abort, *batch("b", 3, 2)]) == (["e8"], 4, [])


def test_a_line_that_is_there_twice_does_not_complete_a_batch():
    assert settled([*batch("b", 3, 2, 2), *batch("b", 3, 2, 1)])[0] == []


def test_the_members_of_a_batch_need_not_stand_together():
    first, second, third = batch("b", 3, 2)

    found = settled([third, message(1, "m", None), first, message(9, "n", None), second])

    assert found == (["b2", "m", "b0", "n", "b1"], 5, [])


def test_batches_of_two_writers_are_told_apart():
    wires = [*batch("a", 2, 1, 1), *batch("b", 2, 5), message(9, "n", None)]

    assert settled(wires) == (["b0", "b1", "n"], 4, ["a"])


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4), st.booleans()), max_size=6),
    st.randoms(use_true_random=False),
)
def test_what_counts_does_not_depend_on_the_order_of_lines(shapes, rng):
    wires = []
    for number, (size, count, aborted) in enumerate(shapes):
        wires += batch(f"b{number}-", size, 10 * number, min(size, count))
        if aborted:
            wires.append(wire(10 * number + 9, "abort", batchId=f"b{number}-"))
    whole = {
        f"b{number}-"
        for number, (size, count, aborted) in enumerate(shapes)
        if count >= size and not aborted
    }
    rng.shuffle(wires)

    found = settle(entries_of(wires))

    assert {entry.batch.id for entry in found.counted if entry.batch} == whole
    assert found.settled <= len(wires)
