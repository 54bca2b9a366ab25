"""The ready compaction function: what it cuts, what it absorbs, what it asks for."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspace_session.model.tokens import estimate_message_tokens
from workspace_session.session.summaries import (
    absorbed_summaries,
    create_compact_function,
    summary_prompt,
    tail_cut,
)
from workspace_session.session.values import CompactContext, CompactResult, TokenCountInput


def run(awaitable):
    return asyncio.run(awaitable)


def message(name, text="hello world", role="user"):
    return {"id": name, "role": role, "parts": [{"type": "text", "text": text}]}


def summary(name, text):
    return message(f"compaction_{name}", text, "assistant")


def numbered(count):
    return [message(f"m{number}") for number in range(count)]


def compacting(summarize=lambda prompt: "S", **options):
    return create_compact_function(summarize=summarize, **options)


def compacted(messages, context=None, **options):
    return run(compacting(**options)(messages, context))


def ids(result):
    return None if result is None else (result.from_message_id, result.to_message_id)


# -- the tail --------------------------------------------------------------------------------------


async def seven(_message):
    return 7


@pytest.mark.parametrize(
    ("count", "start", "budget", "least", "cut"),
    [
        (10, 3, 20_000, 2, 3),
        (10, 3, 10, 2, 8),
        (10, 3, 30, 2, 6),
        (10, 3, 0, 2, 8),
        (10, 3, 0, 0, 9),
        (6, 3, 0, 5, 5),
        (6, 6, 0, 2, 6),
        (5, 1, 14, 1, 3),
    ],
)
def test_the_golden_cuts(count, start, budget, least, cut):
    assert run(tail_cut(numbered(count), start, budget, least, seven)) == cut


@given(
    st.lists(st.integers(0, 9), max_size=12),
    st.integers(0, 12),
    st.integers(0, 40),
    st.integers(0, 6),
)
def test_the_tail_has_its_least_length_and_beyond_that_fits_its_budget(costs, start, budget, least):
    start = min(start, len(costs))
    messages = [{"cost": cost} for cost in costs]

    async def cost(one):
        return one["cost"]

    cut = run(tail_cut(messages, start, budget, least, cost))

    assert start <= cut <= len(costs)
    assert len(costs) - cut >= least or len(costs) - least < start
    shortest = len(costs) - max(1, least) if len(costs) - least >= start else len(costs) - 1
    assert sum(costs[cut:]) <= budget or cut == max(start, shortest)


def test_the_least_tail_may_begin_right_where_the_head_ends():
    assert run(tail_cut(numbered(5), 3, 0, 2, seven)) == 3


def test_no_more_messages_are_counted_than_it_takes():
    seen = []

    async def count(one):
        seen.append(one["id"])
        return 7

    run(tail_cut(numbered(1000), 3, 10, 2, count))

    assert seen == ["m999", "m998"]


# -- ranges ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "expected"),
    [(5, None), (6, ("m3", "m3")), (7, ("m3", "m4")), (10, ("m3", "m7"))],
)
def test_the_golden_ranges(count, expected):
    assert ids(compacted(numbered(count), tail_token_budget=1)) == expected


def test_what_fits_the_tail_is_not_summarised():
    def refuse(prompt):
        raise AssertionError("summarize was called")

    assert compacted(numbered(30), summarize=refuse) is None


def test_tool_groups_stay_whole_at_both_ends():
    def call(name):
        part = {"type": "tool-call", "toolCallId": name, "toolName": "t"}
        return {"id": f"call-{name}", "role": "assistant", "parts": [part]}

    def result(name):
        part = {"type": "tool-result", "toolCallId": name, "result": "r"}
        return {"id": f"result-{name}", "role": "tool", "parts": [part]}

    messages = [message("m0"), message("m1"), call("a"), result("a"), message("m4"), message("m5")]
    messages += [call("b"), result("b"), message("m8")]

    found = compacted(messages, tail_token_budget=1)

    assert ids(found) == ("m4", "m5")


def test_trailing_summaries_stay_out_of_the_range():
    messages = [*numbered(4), summary("x", "X"), message("m5"), message("m6")]

    assert ids(compacted(messages, tail_token_budget=1)) == ("m3", "m3")


def test_nothing_but_summaries_in_the_middle_is_nothing_to_compact():
    messages = [*numbered(3), summary("x", "X"), message("m4"), message("m5")]

    assert compacted(messages, tail_token_budget=1) is None


def test_the_answer_is_the_summary():
    found = compacted(numbered(6), summarize=lambda prompt: " sum\n", tail_token_budget=1)

    assert found == CompactResult(" sum\n", "m3", "m3")


def test_an_async_summarizer_is_awaited():
    async def summarize(prompt):
        return "later"

    assert compacted(numbered(6), summarize=summarize, tail_token_budget=1).summary == "later"


@pytest.mark.parametrize("answer", ["", "  \n", None])
def test_a_blank_answer_is_no_compaction(answer):
    assert compacted(numbered(6), summarize=lambda prompt: answer, tail_token_budget=1) is None


def test_an_answer_that_is_no_text_is_an_error():
    with pytest.raises(TypeError, match="summarize gave int"):
        compacted(numbered(6), summarize=lambda prompt: 5, tail_token_budget=1)


def test_an_exception_of_the_summarizer_goes_on():
    def summarize(prompt):
        raise RuntimeError("no model")

    with pytest.raises(RuntimeError, match="no model"):
        compacted(numbered(6), summarize=summarize, tail_token_budget=1)


def test_numbers_of_messages_are_not_negative():
    with pytest.raises(ValueError, match="protect_head is zero or more, not -1"):
        compacting(protect_head=-1)


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ({"summarize": None}, "summarize is a function, not NoneType"),
        ({"protect_head": "3"}, "protect_head is a whole number, not str"),
        ({"tail_token_budget": None}, "tail_token_budget is a number, not NoneType"),
        ({"min_tail_messages": 1.5}, "min_tail_messages is a whole number, not float"),
        ({"token_counter": 4}, "a token_counter is a function, not int"),
    ],
)
def test_a_wrong_setting_is_named(setting, sentence):
    with pytest.raises(TypeError, match=sentence):
        create_compact_function(**{"summarize": lambda prompt: "", **setting})


# -- earlier summaries -----------------------------------------------------------------------------


def test_summaries_inside_a_range_and_just_before_it_are_absorbed():
    messages = [
        summary("far", "far"),
        message("m1"),
        summary("near", "near"),
        summary("next", "next"),
        message("m4"),
        summary("inside", "inside"),
        message("m6"),
        summary("after", "after"),
    ]

    assert absorbed_summaries(messages, "m4", "m6") == ["near", "next", "inside"]


def test_a_range_may_begin_with_a_summary():
    messages = [summary("a", "A"), summary("b", "B"), message("m2")]

    assert absorbed_summaries(messages, "compaction_b", "m2") == ["A", "B"]


def test_an_unknown_or_reversed_range_absorbs_nothing():
    messages = [summary("a", "A"), message("m1"), message("m2")]

    assert absorbed_summaries(messages, "nope", "m2") == []
    assert absorbed_summaries(messages, "m1", "nope") == []
    assert absorbed_summaries(messages, "m2", "m1") == []


def test_each_earlier_summary_is_passed_on_exactly_once():
    prompts = []
    messages = [message("m0"), message("m1"), summary("x", "EARLIER"), *numbered(9)[3:]]
    compact = compacting(
        summarize=lambda prompt: prompts.append(prompt) or "S", tail_token_budget=1
    )

    run(compact(messages))
    run(compact(messages))

    assert [prompt.count("EARLIER") for prompt in prompts] == [1, 1]
    assert prompts[0] == prompts[1]


# -- counters --------------------------------------------------------------------------------------


def test_the_function_has_its_own_counter_before_that_of_the_session():
    seen = []

    def own(messages):
        seen.append(messages)
        return 7

    def of_session(given):
        raise AssertionError("the session's counter was called")

    found = compacted(
        numbered(10), CompactContext(of_session), token_counter=own, tail_token_budget=30
    )

    assert ids(found) == ("m3", "m5")
    assert seen[0] == [message("m9")]


def test_the_session_counter_gets_one_message_at_a_time_and_nothing_else():
    seen = []

    async def of_session(given):
        seen.append(given)
        return 7

    found = compacted(numbered(10), CompactContext(of_session), tail_token_budget=30)

    assert ids(found) == ("m3", "m5")
    assert all(isinstance(one, TokenCountInput) for one in seen)
    assert [(list(one.messages), one.system_prompt, tuple(one.context_blocks)) for one in seen] == [
        ([message(f"m{number}")], "", ()) for number in (9, 8, 7, 6, 5)
    ]


def test_a_counter_that_counts_whole_prompts_leaves_the_least_tail():
    found = compacted(numbered(10), token_counter=lambda messages: 1e9)

    assert ids(found) == ("m3", "m7")


@pytest.mark.parametrize("strange", [-5, float("nan"), float("inf")])
def test_what_is_no_number_of_tokens_counts_as_none(strange):
    assert compacted(numbered(10), token_counter=lambda messages: strange) is None


def test_fractions_are_rounded_up():
    found = compacted(numbered(10), token_counter=lambda messages: 9.1, tail_token_budget=39)

    assert ids(found) == ("m3", "m6")


# -- the prompt ------------------------------------------------------------------------------------


def test_a_first_summary_is_asked_for_a_conversation():
    prompt = summary_prompt([message("a", "hi"), message("b", "yo", "assistant")], [], 100)

    assert "CONVERSATION:\n[user]\nhi\n\n---\n\n[assistant]\nyo\n" in prompt
    assert "PREVIOUS SUMMARY:" not in prompt
    assert "NEW TURNS:" not in prompt


def test_earlier_summaries_are_to_be_brought_up_to_date():
    prompt = summary_prompt([message("a", "hi")], ["one", "two"], 100)

    assert "PREVIOUS SUMMARY:\none\n\ntwo\n\nNEW TURNS:\n[user]\nhi\n" in prompt
    assert (
        "keep what is still relevant, add what is new, and drop only what is clearly obsolete"
        in prompt
    )
    assert "CONVERSATION:" not in prompt


def test_the_headings_and_the_budget_close_the_prompt():
    prompt = summary_prompt([message("a")], [], 321)

    places = [
        prompt.index(f"## {name}")
        for name in ("Topic", "Key Points", "Current State", "Open Items")
    ]
    assert places == sorted(places)
    assert "~321 tokens" in prompt.splitlines()[-1]


def test_braces_in_a_conversation_are_text():
    assert "{turns} {previous}" in summary_prompt([message("a", "{turns} {previous}")], ["{x}"], 1)


def transcript(*parts):
    prompt = summary_prompt([{"id": "m", "role": "assistant", "parts": list(parts)}], [], 100)
    return prompt.partition("CONVERSATION:\n")[2].partition("\n\nAnswer")[0]


def test_text_comes_before_tools_and_the_rest_is_left_out():
    said = transcript(
        {"type": "reasoning", "text": "hm"},
        {"type": "tool-dig", "toolCallId": "a", "input": {"deep": True}, "output": "gold"},
        {"type": "file", "url": "data:"},
        {"type": "text", "text": "one"},
        {"type": "text", "text": "two"},
    )

    assert said == '[assistant]\none\ntwo\n[tool: dig]\ninput: {"deep":true}\noutput: gold'


@pytest.mark.parametrize("empty", [None, "", [], {}])
def test_empty_inputs_and_outputs_are_left_out(empty):
    assert (
        transcript({"type": "tool-x", "input": empty, "output": empty}) == "[assistant]\n[tool: x]"
    )


@pytest.mark.parametrize(("value", "shown"), [(False, "false"), (0, "0"), ([0], "[0]"), ("é", "é")])
def test_values_that_only_look_empty_are_shown(value, shown):
    assert (
        transcript({"type": "tool-x", "output": value})
        == f"[assistant]\n[tool: x]\noutput: {shown}"
    )


def test_a_result_is_an_output_too():
    assert transcript({"type": "tool-x", "result": 1}).endswith("\noutput: 1")


def test_values_are_cut_to_five_hundred_characters():
    said = transcript({"type": "tool-x", "input": "i" * 900, "output": ["o" * 900]})

    assert said == "[assistant]\n[tool: x]\ninput: " + "i" * 500 + '\noutput: ["' + "o" * 498


def test_the_budget_is_a_fifth_of_what_is_summarised_but_at_least_a_hundred():
    prompts = []
    long = [message(f"m{number}", "x" * 4000) for number in range(6)]

    for messages in (numbered(6), long):
        compacted(
            messages, summarize=lambda prompt: prompts.append(prompt) or "S", tail_token_budget=1
        )

    assert "~100 tokens" in prompts[0]
    assert f"~{estimate_message_tokens(long[3:4]) // 5} tokens" in prompts[1]
