"""The end of a session, found without reading the rest: right, or not claimed to be known."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st
from logs import chain, compaction, entries_of, logs, message, shown, wire

from workspace_session.model.tail import last_messages
from workspace_session.model.tree import Tree


def end(wires: list[dict], count: int) -> list[str] | None:
    found = last_messages(reversed(entries_of(wires)), count)
    return None if found is None else shown(found)


@given(logs() | logs(wild=True), st.integers(1, 8))
def test_the_end_is_that_of_the_context_or_is_left_to_the_whole(wires, count):
    tree = Tree.of(entries_of(wires))
    assume(tree.in_order and not tree.peculiar)  # a sealed working set is such

    found = last_messages(reversed(entries_of(wires)), count)

    if found is not None:
        context = tree.context(tree.tip)[-count:]
        assert shown(found) == shown(context)
        assert [one.message for one in found] == [one.message for one in context]


def test_the_last_messages_of_a_chain_are_found_from_its_end_alone():
    def newest_first():
        yield from reversed(entries_of(chain(9))[-3:])
        raise AssertionError("more was read than was needed")

    assert shown(last_messages(newest_first(), 3)) == ["m6", "m7", "m8"]


def test_a_short_session_ends_at_its_root():
    assert end(chain(2), 5) == ["m0", "m1"]


def test_an_empty_session_has_no_end():
    assert end(chain(0), 5) == []


def test_the_newest_revision_is_the_one_shown():
    update = wire(8, "update", targetId="m1", message={"text": "newer"})
    older = wire(7, "update", targetId="m1", message={"text": "older"})
    entries = entries_of([*chain(2), older, update])

    found = last_messages(reversed(entries), 1)

    assert [one.message for one in found] == [{"text": "newer"}]


def test_a_leaf_move_decides_where_the_end_is():
    assert end([*chain(5), wire(9, "leaf", targetId="m2")], 2) == ["m1", "m2"]


def test_a_move_to_before_the_first_message_leaves_nothing():
    assert end([*chain(5), wire(9, "leaf", targetId=None)], 2) == []


def test_nothing_older_than_a_clear_is_shown():
    wires = [*chain(5), wire(9, "clear"), message(10, "x", None)]

    assert end(wires, 4) == ["x"]


def test_a_summary_in_reach_is_left_to_the_whole():
    wires = [*chain(5), compaction(9, "m1", "m3", "m0")]

    assert end(wires, 1) == ["m4"]
    assert end(wires, 2) is None


def test_a_summary_of_another_branch_does_not_matter():
    wires = [*chain(3), message(7, "x", "m1"), compaction(9, "m1", "m2", "m0")]

    assert end(wires, 2) == ["m1", "x"]


def test_a_deletion_in_reach_is_left_to_the_whole():
    assert end([*chain(3), wire(9, "delete", targetIds=["m0"])], 1) is None
