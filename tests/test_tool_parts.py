"""Tool groups: where messages may be cut, and what is left of pairs that were."""

from __future__ import annotations

import time
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspace_session.session.tool_parts import (
    align_backward,
    align_forward,
    call_id,
    is_tool_part,
    sanitize_tool_pairs,
    tool_name,
)

LOST = "[Result not available: see the summary above]"


def user(name="u"):
    return {"id": name, "role": "user", "parts": [{"type": "text", "text": "hi"}]}


def calls(*ids, name="c", role="assistant"):
    parts = [{"type": "tool-call", "toolCallId": one, "toolName": "look"} for one in ids]
    return {"id": name, "role": role, "parts": parts}


def results(*ids, name="r", role="tool"):
    parts = [{"type": "tool-result", "toolCallId": one, "result": "ok"} for one in ids]
    return {"id": name, "role": role, "parts": parts}


# -- one part --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"type": "tool-x"}, True),
        ({"type": "dynamic-tool"}, True),
        ({"type": "tool"}, False),
        ({"type": "text"}, False),
        ({"type": None}, False),
        ({}, False),
        ("tool-x", False),
        (None, False),
    ],
)
def test_tool_parts_are_known_by_their_type(part, expected):
    assert is_tool_part(part) is expected


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ({"type": "tool-search", "toolName": "given"}, "given"),
        ({"type": "tool-search"}, "search"),
        ({"type": "tool-call"}, "unknown"),
        ({"type": "tool-result"}, "unknown"),
        ({"type": "tool-result", "toolName": "given"}, "given"),
        ({"type": "dynamic-tool"}, "unknown"),
    ],
)
def test_a_tool_is_named_by_its_part_or_by_the_type_of_it(part, name):
    assert tool_name(part) == name


def test_a_call_id_is_a_string_or_none():
    assert call_id({"toolCallId": "a"}) == "a"
    assert call_id({"toolCallId": 5}) is None
    assert call_id({}) is None


# -- boundaries ------------------------------------------------------------------------------------

GOLDEN = [user(), calls("a", "b"), results("a"), results("b"), user(), {"role": "assistant"}]


@pytest.mark.parametrize(
    ("boundary", "forward", "backward"),
    [(0, 0, 0), (1, 1, 1), (2, 4, 1), (3, 4, 1), (4, 4, 4), (5, 5, 5), (6, 6, 6)],
)
def test_the_golden_boundaries(boundary, forward, backward):
    assert align_forward(GOLDEN, boundary) == forward
    assert align_backward(GOLDEN, boundary) == backward


def test_a_group_at_the_end_is_left_only_at_the_end():
    messages = [user(), calls("a"), results("a", role="user")]

    assert align_forward(messages, 2) == 3
    assert align_backward(messages, 2) == 1


def test_a_message_between_call_and_result_ends_the_group():
    messages = [calls("a"), user(), results("a")]

    assert align_forward(messages, 2) == 2
    assert align_backward(messages, 1) == 1


def test_only_an_assistant_message_begins_a_group():
    messages = [results("a"), results("a")]

    assert align_forward(messages, 1) == 1


def naive_splits(messages, i):
    if not 0 < i < len(messages):
        return False
    ids = [
        {p.get("toolCallId") for p in m["parts"] if is_tool_part(p) and "toolCallId" in p}
        for m in messages
    ]
    return any(
        messages[j]["role"] == "assistant"
        and ids[j]
        and all(ids[k] & ids[j] for k in range(j + 1, i + 1))
        for j in range(i)
    )


some_ids = st.lists(st.sampled_from("abcd"), max_size=3)
tool_message = st.builds(
    lambda ids, role: calls(*ids, role=role), some_ids, st.sampled_from(["assistant", "tool"])
)


@given(st.lists(tool_message, max_size=9), st.integers(-1, 10))
def test_alignment_is_what_its_definition_says(messages, boundary):
    forward = backward = boundary
    while naive_splits(messages, forward):
        forward += 1
    while naive_splits(messages, backward):
        backward -= 1

    assert align_forward(messages, boundary) == forward
    assert align_backward(messages, boundary) == backward


@pytest.mark.parametrize(
    "messages",
    [
        [
            user(),
            calls(*map(str, range(10_000))),
            *(results(str(n)) for n in range(10_000)),
            user(),
        ],
        [user(), *(calls("a") for _ in range(10_000)), user()],
        [user(), *(calls(str(n), str(n + 1)) for n in range(10_000)), user()],
    ],
    ids=["one call, many results", "one id everywhere", "each answers the one before"],
)
def test_long_groups_are_aligned_in_time_that_grows_with_their_length(messages):
    began = time.perf_counter()
    align_forward(messages, 2)
    align_backward(messages, len(messages) - 2)
    taken = time.perf_counter() - began

    assert taken < 2


# -- pairs -----------------------------------------------------------------------------------------


def stub(call, name="look"):
    part = {"type": "tool-result", "toolCallId": call, "toolName": name, "result": LOST}
    return {"id": f"stub-{call}", "role": "assistant", "parts": [part]}


def test_whole_pairs_stay_as_they_are():
    messages = [user(), calls("a"), results("a"), user()]

    assert sanitize_tool_pairs(messages) == messages


def test_a_result_without_a_call_goes_and_takes_its_empty_message_along():
    assert sanitize_tool_pairs([user(), results("a"), user("v")]) == [user(), user("v")]


def test_a_message_keeps_its_other_parts():
    mixed = results("a", "b")

    cleaned = sanitize_tool_pairs([calls("b"), mixed])

    assert cleaned == [calls("b"), results("b")]
    assert len(mixed["parts"]) == 2


def test_a_message_that_never_had_parts_stays():
    empty = {"id": "e", "role": "user", "parts": []}

    assert sanitize_tool_pairs([empty]) == [empty]


def test_each_lost_result_gets_a_stub_after_its_call():
    messages = [calls("a", "b"), user()]

    assert sanitize_tool_pairs(messages) == [calls("a", "b"), stub("a"), stub("b"), user()]


def test_a_stub_names_the_tool_by_the_rules_of_parts():
    call = {"id": "c", "role": "assistant", "parts": [{"type": "tool-dig", "toolCallId": "a"}]}

    assert sanitize_tool_pairs([call, user()])[1] == stub("a", "dig")


def test_calls_of_the_last_message_are_still_pending():
    messages = [user(), calls("a")]

    assert sanitize_tool_pairs(messages) == messages


@pytest.mark.parametrize("key", ["output", "result"])
def test_an_answer_may_stand_in_the_call_itself_and_be_null(key):
    part = {"type": "tool-x", "toolCallId": "a", key: None}
    messages = [{"id": "c", "role": "assistant", "parts": [part]}, user()]

    assert sanitize_tool_pairs(messages) == messages


def test_a_call_repeated_in_two_messages_gets_one_stub():
    messages = [calls("a", name="c"), calls("a", name="d"), user()]

    assert [one["id"] for one in sanitize_tool_pairs(messages)] == ["c", "stub-a", "d", "u"]


any_message = st.one_of(
    st.just(user()),
    st.builds(lambda ids: calls(*ids), some_ids),
    st.builds(
        lambda ids, role: results(*ids, role=role), some_ids, st.sampled_from(["tool", "assistant"])
    ),
)


@given(st.lists(any_message, max_size=8))
def test_sanitizing_twice_is_sanitizing_once_and_leaves_the_input_alone(messages):
    before = deepcopy(messages)

    once = sanitize_tool_pairs(messages)

    assert sanitize_tool_pairs(once) == once
    assert messages == before
