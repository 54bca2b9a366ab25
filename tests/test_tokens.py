"""The token estimate: its golden values, and that it holds for every shape of message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspace_session.model.tokens import estimate_message_tokens, estimate_tokens

WORDS = st.sampled_from(["type", "text", "tool-x", "parts", "content", "input", "output", "result"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=15,
)


def message(*parts):
    return {"id": "m", "role": "assistant", "parts": list(parts)}


@pytest.mark.parametrize(
    ("value", "tokens"),
    [
        (None, 0),
        ("", 0),
        ("a", 2),
        ("   ", 1),
        ("hello world", 3),
        ("one two three", 4),
        ("x" * 400, 100),
        ("word " * 50, 65),
        ("用户喜欢咖啡", 2),
        ("😀" * 5, 2),
        ("1 2 3 4 5 6 7 8 9 10", 13),
    ],
)
def test_the_golden_strings(value, tokens):
    assert estimate_tokens(value) == tokens


@pytest.mark.parametrize(
    ("value", "tokens"),
    [
        (5, 2),
        (False, 2),
        ({"a": 1}, 2),
        ({"b": [1, 2]}, 3),
        ({"k": "é" * 40}, 12),
        (2**80, 7),
        ({1, 2}, 3),
    ],
)
def test_other_values_are_estimated_as_compact_json_or_as_their_str(value, tokens):
    assert estimate_tokens(value) == tokens


@pytest.mark.parametrize(
    ("parts", "tokens"),
    [
        ([], 4),
        ([{"type": "text", "text": "hello world"}], 7),
        ([{"type": "reasoning", "reasoning": "hello world"}], 7),
        ([{"type": "reasoning", "text": "", "reasoning": "hello world"}], 4),
        ([{"type": "tool-x", "input": {"a": 1}, "output": "hello world"}], 9),
        ([{"type": "dynamic-tool", "result": {"b": [1, 2]}}], 7),
        ([{"type": "tool-x", "output": False}], 6),
        ([{"type": "tool-x", "output": None, "result": "hello world"}], 4),
        ([{"type": "tool-x", "input": 5}], 6),
        ([{"type": "step-start"}], 4),
        ([{"type": "file", "url": "data:image/png;base64,AAAA"}], 4),
        ([{"type": "note", "text": "hello world", "result": "unused"}], 7),
        ([{"type": "note", "result": "hello world"}], 7),
        (["not a part", None, 5], 4),
    ],
)
def test_the_golden_messages(parts, tokens):
    assert estimate_message_tokens([message(*parts)]) == tokens


def test_a_message_without_parts_costs_its_overhead():
    assert estimate_message_tokens([{"id": "m", "role": "user"}]) == 4


@pytest.mark.parametrize(
    ("item", "tokens"),
    [
        ({"role": "user", "content": "hello world"}, 7),
        ({"role": "assistant", "content": [{"type": "text", "text": "hello world"}]}, 7),
        ({"role": "assistant", "content": [{"type": "thinking", "thinking": "hello world"}]}, 7),
        ({"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a":1}'}, 6),
        ({"type": "function_call_output", "call_id": "c", "output": "hello world"}, 7),
        ({"role": "user", "content": [{"type": "image", "source": {"data": "A" * 4000}}]}, 4),
        ({"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"a": 1}}}]}, 6),
    ],
)
def test_the_other_shapes_are_estimated_by_the_same_rules(item, tokens):
    assert estimate_message_tokens([item]) == tokens


def test_pictures_in_a_tool_result_do_not_count_by_their_bytes():
    picture = {"type": "image", "source": {"type": "base64", "data": "A" * 40_000}}
    item = {"role": "user", "content": [{"type": "tool_result", "content": [picture]}]}

    assert estimate_message_tokens([item]) < 10


@given(st.lists(JSON, max_size=4))
def test_the_estimate_of_a_list_is_the_sum_over_its_messages(messages):
    alone = [estimate_message_tokens([one]) for one in messages]

    assert estimate_message_tokens(messages) == sum(alone)
    assert all(tokens >= 4 for tokens in alone)


def test_nesting_without_bound_costs_no_stack():
    deep = []
    for _ in range(100_000):
        deep = [deep]

    assert estimate_message_tokens([message({"type": "tool-x", "input": deep})]) > 4
