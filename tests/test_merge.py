"""Two states that grew from one."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspace_session.errors import StateConflict, StateUnmergeable
from workspace_session.model.canonical import compact_sorted
from workspace_session.model.merge import MISSING, Merged, merge_states


def test_the_golden():
    merged = merge_states({"n": 1, "l": [1]}, {"n": 2, "l": [1, 2]}, {"n": 1, "l": [1, 3], "x": 0})

    assert merged == Merged({"l": [1, 3, 2], "n": 2, "x": 0}, ())


# -- values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "value"),
    [
        (1, 2, 2, 2),
        (1, 1, 3, 3),
        (1, 2, 1, 2),
        ([1], [9], [9], [9]),
        ({"a": 1}, {"a": 1}, {}, {}),
        (MISSING, 1, 1, 1),
        (None, {"a": 1}, None, {"a": 1}),
    ],
)
def test_what_only_one_side_changed_is_taken(base, ours, theirs, value):
    assert merge_states(base, ours, theirs) == Merged(value, ())


def test_what_both_changed_is_ours_and_is_named():
    merged = merge_states(
        {"a": {"b c": 1}, "x": 1, "same": 0},
        {"a": {"b c": 2}, "x": [1], "same": 5},
        {"a": {"b c": 3}, "x": "t", "same": 5},
    )

    assert merged == Merged({"a": {"b c": 2}, "x": [1], "same": 5}, ('$.a["b c"]', "$.x"))


def test_a_root_that_both_changed_is_ours():
    assert merge_states(1, 2, 3) == Merged(2, ("$",))


def test_an_override_is_logged_by_its_path_and_not_by_its_value(caplog):
    merge_states({"x": 1}, {"x": "secret"}, {"x": 3}, key="memory")

    assert [record.getMessage() for record in caplog.records] == [
        "both sides changed $.x of state 'memory'; ours stands"
    ]


def test_true_and_one_are_two_values():
    merged = merge_states({"x": 1}, {"x": True}, {"x": 1.0})

    assert merged.value["x"] is True
    assert merged.overridden == ("$.x",)


# -- objects ---------------------------------------------------------------------------------------


def test_what_one_side_added_is_kept():
    assert merge_states({}, {"a": 1}, {"b": 2}).value == {"a": 1, "b": 2}


def test_what_both_added_is_merged_as_if_the_base_had_nothing():
    merged = merge_states({}, {"a": {"x": 1}, "l": [1], "n": 1}, {"a": {"y": 2}, "l": [2], "n": 2})

    assert merged == Merged({"a": {"y": 2, "x": 1}, "l": [2, 1], "n": 1}, ("$.n",))


def test_what_one_side_removed_goes_if_the_other_left_it():
    assert merge_states({"a": 1, "b": 2}, {"a": 1}, {"b": 2}).value == {}


def test_what_one_side_removed_stays_if_the_other_changed_it():
    base = {"a": 1, "b": 2}

    assert merge_states(base, {"b": 5}, {"a": 7}) == Merged({"b": 5, "a": 7}, ())


def test_two_objects_without_an_object_between_them_are_merged():
    for base in (None, MISSING, 3):
        assert merge_states(base, {"a": 1}, {"b": 2}).value == {"a": 1, "b": 2}


# -- lists -----------------------------------------------------------------------------------------


def test_an_object_that_both_appended_is_not_repeated():
    ours = [0, {"id": "a", "t": 1}, {"id": "b", "t": 2}, {"t": "no id"}]
    theirs = [0, {"id": "x"}, {"id": "b", "t": 1}, {"id": "a", "t": 1}]

    assert merge_states([0], ours, theirs).value == [
        0,
        {"id": "x"},
        {"id": "b", "t": 2},
        {"id": "a", "t": 1},
        {"t": "no id"},
    ]


def test_a_rewritten_list_is_followed_by_what_the_other_side_added():
    base = [1, 2, 3]

    assert merge_states(base, ["sum", 3], [1, 2, 3, 4]).value == ["sum", 3, 4]
    assert merge_states(base, [1, 2, 3, 4], ["sum", 3]).value == ["sum", 3, 4]
    assert merge_states(base, [1, 2], [1, 2, 3, 4]).value == [1, 2, 4]


def test_a_rewritten_list_does_not_repeat_an_object_it_has():
    base, old, new = [{"id": "m1"}], {"id": "m2", "t": 1}, {"id": "m2", "t": 2}

    assert merge_states(base, [*base, new], ["sum", old]).value == ["sum", new]
    assert merge_states(base, ["sum", new], [*base, old]).value == ["sum", new]


def test_two_rewritten_lists_are_a_conflict_that_names_the_path():
    with pytest.raises(StateConflict) as conflict:
        merge_states({"l": [1]}, {"l": [2]}, {"l": [3]}, session_key="s", key="memory")

    assert str(conflict.value) == (
        "state 'memory' of session 's' cannot be merged: both sides rewrote the list at $.l"
    )
    assert isinstance(conflict.value, StateUnmergeable)
    assert str(pickle.loads(pickle.dumps(conflict.value))) == str(conflict.value)


def test_of_two_objects_with_one_id_the_first_gives_way():
    theirs = [{"id": "a", "t": 1}, {"id": "a", "t": 2}]

    assert merge_states([], [{"id": "a", "t": 3}], theirs).value == [{"id": "a", "t": 3}, theirs[1]]


def test_sides_are_compared_as_they_are_stored():
    merged = merge_states({"\ufffd": 1}, {"\ud800": (2,)}, {"\ufffd": 3})

    assert merged == Merged({"\ufffd": [2]}, ('$["\ufffd"]',))


def test_what_is_merged_is_shared_with_none_of_the_three():
    ours = {"l": [[]]}
    merged = merge_states({}, ours, {"x": 1})

    merged.value["l"][0].append(1)

    assert ours == {"l": [[]]}


def test_a_tuple_is_a_list():
    assert merge_states({"l": [1]}, {"l": (1, 2)}, {"l": [1, 3]}).value == {"l": [1, 3, 2]}


# -- all of it -------------------------------------------------------------------------------------

states = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(base=states, other=states)
def test_merging_with_what_did_not_change_gives_what_did(base, other):
    for merged in (merge_states(base, other, base), merge_states(base, base, other)):
        assert compact_sorted(merged.value) == compact_sorted(other)
        assert merged.overridden == ()


@given(base=states, ours=states, theirs=states)
def test_a_merge_is_json_and_changes_none_of_the_three(base, ours, theirs):
    before = [compact_sorted(state) for state in (base, ours, theirs)]
    try:
        merged = merge_states(base, ours, theirs)
    except StateUnmergeable:
        return

    compact_sorted(merged.value)
    assert [compact_sorted(state) for state in (base, ours, theirs)] == before


@given(base=st.lists(states), ours=st.lists(st.integers()), theirs=st.lists(st.integers()))
def test_lists_that_only_grew_lose_nothing(base, ours, theirs):
    merged = merge_states(base, base + ours, base + theirs)

    if ours and theirs and ours != theirs:
        assert merged.value == base + theirs + ours
    assert merged.overridden == ()


def test_500_levels_are_merged():
    base, ours, theirs = {"x": 0}, {"x": 1}, {"x": 2}
    for _ in range(499):
        base, ours, theirs = {"x": base}, {"x": ours, "o": 1}, {"x": theirs, "t": 1}

    merged = merge_states(base, ours, theirs)

    assert merged.overridden == ("$" + ".x" * 500,)
    assert list(merged.value) == ["x", "t", "o"]
