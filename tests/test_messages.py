"""What each message shape says, and that no JSON value can make the readers fail."""

from __future__ import annotations

from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspace_session.model.blocks import Media, Text, Thinking, ToolCall, ToolResult, compact_json
from workspace_session.model.dialects import is_tool_part, tool_name
from workspace_session.model.messages import (
    blocks,
    dangling_tool_calls,
    describe,
    one_line,
    plain,
    role,
    text,
    tool_calls,
    tool_results,
    tool_text,
)


def user(*parts):
    return {"id": "m1", "role": "user", "parts": list(parts)}


def assistant(*parts):
    return {"id": "m2", "role": "assistant", "parts": list(parts)}


def chat(content, role="assistant", **more):
    return {"role": role, "content": content, **more}


# -- UI messages -----------------------------------------------------------------------------------


def test_the_text_of_a_ui_message_is_its_text_parts_joined_by_newlines():
    message = user(
        {"type": "text", "text": "one"},
        {"type": "reasoning", "text": "hidden"},
        {"type": "step-start"},
        {"type": "text", "text": "two"},
    )

    assert text(message) == "one\ntwo"


def test_a_reasoning_part_may_keep_its_words_under_either_name():
    message = assistant({"type": "reasoning", "text": "a"}, {"type": "reasoning", "reasoning": "b"})

    assert blocks(message) == [Thinking("a"), Thinking("b")]


def test_a_tool_part_with_an_output_is_a_call_and_its_result():
    part = {"type": "tool-search", "toolCallId": "c1", "input": {"q": "x"}, "output": ["y"]}

    assert blocks(assistant(part)) == [
        ToolCall("c1", "search", {"q": "x"}),
        ToolResult("c1", "search", ["y"]),
    ]


def test_a_tool_part_without_an_answer_is_a_call_that_still_waits():
    part = {
        "type": "dynamic-tool",
        "toolName": "run",
        "toolCallId": "c1",
        "state": "input-available",
    }

    assert blocks(assistant(part)) == [ToolCall("c1", "run", None)]


def test_a_tool_part_that_only_answers_is_a_result():
    part = {"type": "tool-result", "toolCallId": "c1", "toolName": "run", "result": False}

    assert blocks(assistant(part)) == [ToolResult("c1", "run", False)]


def test_a_tool_part_that_failed_is_answered_by_its_error():
    part = {"type": "tool-run", "toolCallId": "c1", "input": {}, "errorText": "no such file"}

    assert tool_results(assistant(part)) == [ToolResult("c1", "run", "no such file")]
    assert dangling_tool_calls([assistant(part)]) == []


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ({"type": "tool-search", "toolName": "find"}, "find"),
        ({"type": "tool-search"}, "search"),
        ({"type": "dynamic-tool"}, "unknown"),
        ({"type": "tool-call"}, "unknown"),
        ({"type": "tool-result"}, "unknown"),
        ({"type": "tool-"}, "unknown"),
        ({"type": "text"}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_the_tool_of_a_part_is_its_tool_name_or_the_end_of_its_type(part, name):
    assert tool_name(part) == name


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("tool-x", True), ("dynamic-tool", True), ("text", False), ("tool_use", False), (None, False)],
)
def test_tool_parts_are_known_by_their_type(kind, expected):
    assert is_tool_part({"type": kind}) is expected


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ({"type": "file", "mediaType": "image/png", "url": "data:…"}, "image"),
        ({"type": "file", "mediaType": "application/pdf"}, "file"),
        ({"type": "file"}, "file"),
    ],
)
def test_a_file_part_is_media_named_after_its_media_type(part, kind):
    assert blocks(user(part)) == [Media(kind)]


def test_parts_win_over_a_content_that_repeats_them():
    message = {**user({"type": "text", "text": "hi"}), "content": "hi"}

    assert text(message) == "hi"


# -- Gemini ----------------------------------------------------------------------------------------


def test_gemini_parts_are_known_by_their_keys():
    message = {
        "role": "model",
        "parts": [
            {"text": "pondering", "thought": True},
            {"text": "Reading."},
            {"functionCall": {"id": "f1", "name": "read", "args": {"path": "a"}}},
            {"functionResponse": {"id": "f1", "name": "read", "response": {"output": "A"}}},
            {"inlineData": {"mimeType": "audio/wav", "data": "UklGR"}},
        ],
    }

    assert role(message) == "assistant"
    assert blocks(message) == [
        Thinking("pondering"),
        Text("Reading."),
        ToolCall("f1", "read", {"path": "a"}),
        ToolResult("f1", "read", {"output": "A"}),
        Media("audio"),
    ]


# -- OpenAI ----------------------------------------------------------------------------------------


def test_an_input_item_may_have_plain_or_typed_content():
    typed = chat(
        [
            {"type": "output_text", "text": "Sorry,", "annotations": []},
            {"type": "refusal", "refusal": "I can't."},
            {"type": "input_image", "image_url": "data:…"},
        ],
        type="message",
    )

    assert text(chat("hello", role="user")) == "hello"
    assert text(typed) == "Sorry,\nI can't."
    assert Media("image") in blocks(typed)


def test_a_reasoning_item_says_its_summary():
    item = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}],
        "encrypted_content": "gAAAA",
    }

    assert blocks(item) == [Thinking("a\nb")]
    assert text(item) == ""


def test_a_reasoning_item_without_a_summary_is_thinking_that_was_withheld():
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"}

    assert blocks(item) == [Thinking("")]
    assert describe(item) == "[thinking]"


@pytest.mark.parametrize(
    ("item", "speaker", "shown"),
    [
        (
            {"type": "mcp_approval_request", "name": "send", "arguments": '{"to":1}', "id": "a"},
            "assistant",
            '[mcp_approval_request send({"to":1})]',
        ),
        ({"type": "compaction", "id": "c", "encrypted_content": "gAAAA"}, "assistant", "[compaction]"),
        ({"__enc__": 1, "v": 1, "kid": "k", "payload": "gAAAA"}, "", "[encrypted]"),
    ],
)  # fmt: skip
def test_items_that_say_nothing_are_told_apart(item, speaker, shown):
    assert (role(item), describe(item), text(item)) == (speaker, shown, "")


PAIRED_ITEMS = [
    (
        {
            "type": "function_call",
            "call_id": "c",
            "id": "fc_1",
            "name": "get",
            "arguments": '{"a":1}',
        },
        {"type": "function_call_output", "call_id": "c", "output": "ok"},
        ("get", '{"a":1}', "ok"),
    ),
    (
        {"type": "custom_tool_call", "call_id": "c", "name": "sh", "input": "ls"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "a.txt"},
        ("sh", "ls", "a.txt"),
    ),
    (
        {"type": "computer_call", "id": "cu_1", "call_id": "c", "action": {"type": "wait"}},
        {
            "type": "computer_call_output",
            "call_id": "c",
            "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"},
        },
        ("computer", '{"type":"wait"}', "[image]"),
    ),
    (
        {"type": "local_shell_call", "id": "ls_1", "call_id": "c", "action": {"command": ["ls"]}},
        {"type": "local_shell_call_output", "id": "c", "output": "a.txt"},
        ("local_shell", '{"command":["ls"]}', "a.txt"),
    ),
    (
        {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}},
        {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "a", "stderr": ""}]},
        ("shell", '{"commands":["ls"]}', '[{"stdout":"a","stderr":""}]'),
    ),
    (
        {"type": "apply_patch_call", "call_id": "c", "operation": {"path": "a"}},
        {"type": "apply_patch_call_output", "call_id": "c", "status": "completed"},
        ("apply_patch", '{"path":"a"}', ""),
    ),
    (
        {
            "type": "tool_search_call",
            "call_id": "c",
            "execution": "client",
            "arguments": {"q": "x"},
        },
        {"type": "tool_search_output", "call_id": "c", "tools": []},
        ("tool_search", '{"q":"x"}', "[]"),
    ),
    (
        {"type": "program", "id": "p", "call_id": "c", "code": "1+1", "fingerprint": "f"},
        {"type": "program_output", "id": "o", "call_id": "c", "result": "2"},
        ("program", "1+1", "2"),
    ),
]


@pytest.mark.parametrize(("call", "output", "said"), PAIRED_ITEMS)
def test_a_call_item_waits_for_the_output_item_with_its_call_id(call, output, said):
    name, given, gave = said

    assert dangling_tool_calls([call]) == ["c"]
    assert dangling_tool_calls([call, output]) == []
    assert [(block.name, plain(block.input)) for block in tool_calls(call)] == [(name, given)]
    assert [plain(block.output) for block in tool_results(output)] == [gave]
    assert (role(call), role(output)) == ("assistant", "tool")


HOSTED_ITEMS = [
    {"type": "web_search_call", "id": "ws", "action": {"type": "search", "query": "x"}},
    {"type": "file_search_call", "id": "fs", "queries": ["x"], "results": [{"text": "found"}]},
    {"type": "code_interpreter_call", "id": "ci", "code": "1+1", "outputs": None},
    {"type": "image_generation_call", "id": "ig", "result": "iVBOR", "status": "completed"},
    {"type": "mcp_call", "id": "m", "name": "ask", "server_label": "s", "arguments": "{}"},
    {"type": "tool_search_call", "id": "ts", "call_id": None, "execution": "server"},
    {"type": "web_search_call", "id": "ws", "status": "in_progress"},
]


@pytest.mark.parametrize("item", HOSTED_ITEMS)
def test_a_call_that_the_provider_runs_is_never_dangling(item):
    assert [call.hosted for call in tool_calls(item)] == [True]
    assert dangling_tool_calls([item]) == []


def test_the_result_of_a_hosted_call_stands_in_its_own_item():
    item = {"type": "mcp_call", "id": "m", "name": "ask", "arguments": "{}", "output": "42"}

    assert tool_results(item) == [ToolResult("m", "ask", "42")]


def test_a_generated_picture_is_media_and_its_bytes_are_no_output():
    item = {
        "type": "image_generation_call",
        "id": "ig",
        "result": "iVBOR",
        "revised_prompt": "a cat",
    }

    assert describe(item) == "[tool_call image_generation(a cat)]\n[image]"


def test_chat_completions_keep_calls_beside_the_content_and_results_in_tool_messages():
    call = {"id": "c1", "type": "function", "function": {"name": "get", "arguments": "{}"}}
    custom = {"id": "c2", "type": "custom", "custom": {"name": "sh", "input": "ls"}}
    asking = chat(None, tool_calls=[call, custom], reasoning_content="hm")
    answer = {"role": "tool", "tool_call_id": "c1", "content": "ok"}

    assert blocks(asking) == [
        Thinking("hm"),
        ToolCall("c1", "get", "{}"),
        ToolCall("c2", "sh", "ls"),
    ]
    assert blocks(answer) == [ToolResult("c1", "", "ok")]
    assert text(answer) == ""
    assert dangling_tool_calls([asking, answer]) == ["c2"]


# -- AgentScope, Anthropic, pi ---------------------------------------------------------------------


def test_an_agentscope_message_has_text_or_blocks():
    said = {"id": "1", "name": "A", "role": "assistant", "content": "hi", "metadata": None}
    made = {
        **said,
        "content": [
            {"type": "thinking", "thinking": "hm"},
            {"type": "hint", "hint": [{"type": "text", "text": "be brief"}]},
            {"type": "tool_use", "id": "t1", "name": "search", "input": {"q": "x"}},
            {"type": "tool_result", "id": "t1", "name": "search", "output": "y"},
            {"type": "tool_call", "id": "t2", "name": "run", "input": '{"a": 1}'},
            {"type": "video", "source": {"type": "url", "url": "http://…"}},
            {"type": "data", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}},
        ],
    }

    assert blocks(said) == [Text("hi")]
    assert blocks(made) == [
        Thinking("hm"),
        Text("be brief"),
        ToolCall("t1", "search", {"q": "x"}),
        ToolResult("t1", "search", "y"),
        ToolCall("t2", "run", '{"a": 1}'),
        Media("video"),
        Media("image"),
    ]


def test_an_anthropic_conversation_pairs_tool_use_with_tool_result():
    asking = chat(
        [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "redacted_thinking", "data": "AAAA"},
            {"type": "text", "text": "Looking."},
            {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}},
            {"type": "tool_use", "id": "t2", "name": "read", "input": {"path": "b"}},
        ]
    )
    shown = [{"type": "text", "text": "A"}, {"type": "image", "source": {"data": "AAAA"}}]
    answer = chat([{"type": "tool_result", "tool_use_id": "t1", "content": shown}], role="user")

    assert blocks(asking)[:3] == [Thinking("hm"), Thinking(""), Text("Looking.")]
    assert tool_results(answer) == [ToolResult("t1", "", shown)]
    assert text(answer) == ""
    assert dangling_tool_calls([asking, answer]) == ["t2"]


def test_a_tool_that_anthropic_runs_is_hosted_and_answers_with_its_own_block():
    message = chat(
        [
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
            {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
            {"type": "server_tool_use", "id": "s2", "name": "web_search", "input": {"query": "y"}},
        ]
    )

    assert tool_results(message) == [ToolResult("s1", "web_search", [])]
    assert dangling_tool_calls([message]) == []


def test_pi_writes_tool_call_blocks_and_tool_result_messages():
    asking = chat(
        [{"type": "toolCall", "id": "t1", "name": "bash", "arguments": {"command": "ls"}}]
    )
    answer = {
        "role": "toolResult",
        "toolCallId": "t1",
        "toolName": "bash",
        "content": [{"type": "text", "text": "a.txt"}],
    }

    assert tool_calls(asking) == [ToolCall("t1", "bash", {"command": "ls"})]
    assert role(answer) == "tool"
    assert describe(answer) == "[tool_result bash] a.txt"
    assert dangling_tool_calls([asking, answer]) == []


# -- role ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("user", "user"),
        ("USER", "user"),
        ("human", "user"),
        ("model", "assistant"),
        ("toolResult", "tool"),
        ("developer", "developer"),
        ("Narrator", "Narrator"),
        ("", ""),
        (None, ""),
        (5, ""),
    ],
)
def test_known_roles_have_one_name_and_others_stay_as_they_are(named, expected):
    assert role({"role": named, "content": ""}) == expected


# -- pairs -----------------------------------------------------------------------------------------


def test_dangling_calls_are_named_once_in_the_order_they_were_made():
    def call(call_id):
        return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": ""}

    answer = {"type": "function_call_output", "call_id": "b", "output": ""}

    assert dangling_tool_calls([call("z"), call("b"), call("a"), call("z"), answer]) == ["z", "a"]


def test_an_answer_may_come_before_its_call():
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": ""}
    answer = {"type": "function_call_output", "call_id": "c", "output": ""}

    assert dangling_tool_calls([answer, call]) == []


def test_a_call_without_an_id_cannot_be_named_as_dangling():
    message = {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}}]}

    assert dangling_tool_calls([message]) == []


# -- for people ------------------------------------------------------------------------------------


def test_a_description_shows_every_block():
    message = chat(
        [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "Two\nlines"},
            {"type": "image", "source": {}},
            {"type": "tool_use", "id": "t", "name": "search", "input": {"q": "cats", "你": 1}},
            {"type": "tool_use", "id": "u", "name": "now"},
            {"type": "tool_result", "id": "t", "name": "search", "output": "meow"},
        ]
    )

    assert describe(message) == (
        "[thinking] hm\n"
        "Two\nlines\n"
        "[image]\n"
        '[tool_call search({"q":"cats","你":1})]\n'
        "[tool_call now]\n"
        "[tool_result search] meow"
    )


def test_a_description_takes_the_names_of_results_from_the_calls_it_is_told_about():
    answer = {"type": "function_call_output", "call_id": "c", "output": "ok"}

    assert describe(answer) == "[tool_result] ok"
    assert describe(answer, {"c": "get"}) == "[tool_result get] ok"


def test_what_is_not_understood_is_described_by_its_type():
    assert describe({"type": "mcp_list_tools", "tools": []}) == "[mcp_list_tools]"
    assert describe({"type": "message", "role": "user", "content": []}) == ""
    assert describe({"encrypted": "…"}) == ""


def test_tool_text_holds_names_inputs_and_outputs_but_no_base64():
    part = {"type": "tool-search", "toolCallId": "c", "input": {"q": "cats"}}
    picture = {"type": "image", "source": {"type": "base64", "data": "AAAA"}}

    assert tool_text(assistant({**part, "output": [picture]})) == 'search {"q":"cats"}\n[image]'
    assert tool_text(user({"type": "text", "text": "hi"})) == ""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ""),
        ("as is", "as is"),
        (False, "false"),
        ([], "[]"),
        ({"a": "é"}, '{"a":"é"}'),
        (["a", "b"], '["a","b"]'),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        ([{"type": "text", "text": ""}], ""),
        ([{"type": "file", "path": "a.py"}], '[{"type":"file","path":"a.py"}]'),
        (2**70, str(2**70)),
        ({"a": "\ud800"}, '{"a":"\ufffd"}'),
    ],
)
def test_tool_values_are_shown_as_text_where_they_are_text_and_as_json_elsewhere(value, expected):
    assert plain(value) == expected


def test_a_value_that_json_cannot_hold_is_shown_as_its_str():
    assert compact_json({1}) == "{1}"


@pytest.mark.parametrize(
    ("given_text", "limit", "expected"),
    [
        ("  two\n\n words\t", 20, "two words"),
        ("two words", 9, "two words"),
        ("two words", 8, "two word…"),
        ("two words", 4, "two …"),
        ("a b c d", 1, "a…"),
        ("a ", 1, "a"),
        ("a", 0, "…"),
        (" ", 0, ""),
        ("", 10, ""),
        ("a", -1, "…"),
    ],
)
def test_one_line_collapses_whitespace_and_cuts(given_text, limit, expected):
    assert one_line(given_text, limit) == expected


@given(st.text(alphabet="ab \n\u3000"), st.integers(0, 12))
def test_one_line_equals_collapsing_everything_and_then_cutting(given_text, limit):
    whole = " ".join(given_text.split())

    assert one_line(given_text, limit) == (whole if len(whole) <= limit else whole[:limit] + "…")


# -- any JSON --------------------------------------------------------------------------------------

KNOWN_WORDS = """
    type role content parts text reasoning thinking summary hint tool_calls function custom input
    output result results outputs arguments args id call_id toolCallId tool_use_id toolName name
    source mediaType functionCall functionResponse inlineData thought user assistant tool toolResult
    input_text reasoning_text tool-x tool-result dynamic-tool tool_use tool_result toolCall
    function_call function_call_output web_search_call image_generation_call program
    web_search_tool_result image file data image_url message refusal errorText
"""
WORDS = st.sampled_from(KNOWN_WORDS.split())
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | WORDS
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(), inner, max_size=5)
    ),
    max_leaves=25,
)


def everything(message):
    return (
        role(message),
        text(message),
        tool_text(message),
        describe(message),
        tool_calls(message),
        tool_results(message),
        dangling_tool_calls([message]),
    )


@given(JSON)
def test_no_json_value_makes_a_reader_fail(message):
    everything(message)


@given(st.dictionaries(WORDS, JSON, max_size=8))
def test_no_object_that_looks_like_a_message_makes_a_reader_fail(message):
    everything(message)


@given(JSON)
def test_the_text_is_part_of_the_description(message):
    assert all(line in describe(message) for line in text(message).split("\n"))


@pytest.mark.parametrize("key", ["parts", "content", "input", "output", "tool_calls", "summary"])
@pytest.mark.parametrize(
    "kind", [None, "tool-x", "tool_use", "tool_result", "reasoning", "mcp_call"]
)
def test_nesting_without_bound_costs_no_stack(key, kind):
    deep = []
    for _ in range(100_000):
        deep = [deep]
    block = {"type": kind, key: deep}

    for message in (block, user(block), chat([block]), {"role": "tool", key: deep}):
        everything(message)


def test_a_read_only_mapping_is_a_message_too():
    assert text(MappingProxyType(chat("hi"))) == "hi"
