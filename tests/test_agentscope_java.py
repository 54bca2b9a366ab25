"""Transcripts of AgentScope for Java: read exactly, brought in once, written down byte for byte."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspace_session import StateCorrupt, UnknownSession, Workspace
from workspace_session.adapters.agentscope_java import (
    export_transcript,
    import_state,
    import_transcript,
    read,
)
from workspace_session.adapters.agentscope_java.lines import decode, render
from workspace_session.adapters.agentscope_java.shapes import original, to_message
from workspace_session.adapters.agentscope_java.shortening import cut, length
from workspace_session.adapters.agentscope_java.times import ExactFloat, of_entry, understood

MESSAGES = """\
{"type":"message","id":"m1","timestamp":1778832000.000000000,"role":"USER","content":"hi 你好"}
{"type":"message","id":"m2","parentId":"m1","timestamp":1778832000.123456789,"role":"ASSISTANT","content":"x","toolCallId":"call-1"}
{"type":"message","id":"m3","parentId":"m2","timestamp":1778832001.000000000,"role":"USER","content":"and?"}
"""
SUMMARY = """\
{"type":"summary","id":"s1","parentId":"m3","timestamp":1778832001.000001000,"summary":"sum","format":"structured"}
{"type":"compaction","id":"c1","parentId":"s1","timestamp":1778832001.000002000,"firstKeptEntryId":"m3","summaryEntryId":"s1"}
"""
AFTER = """\
{"type":"message","id":"m4","parentId":"c1","timestamp":1778832001.500000000,"role":"ASSISTANT","content":"so"}
{"type":"message","id":"img1","timestamp":1785585600.000000000,"role":"USER","content":"","blockTypes":["image"]}
"""
TOOLS = """\
{"type":"message","id":"a1","timestamp":1778832001.750000000,"role":"ASSISTANT","content":"looking"}
{"type":"tool_use","id":"a1:use:t1","parentId":"a1","timestamp":1778832002.000000000,"toolCallId":"t1","name":"search","input":{"q":"cats"},"truncated":false}
{"type":"tool_result","id":"r1:result:t1","parentId":"a1:use:t1","timestamp":1778832003.000000000,"toolCallId":"t1","name":"search","output":"meow","outputBlockTypes":["text"],"truncated":false}
"""
EVERYTHING = MESSAGES + SUMMARY + AFTER + TOOLS


def put(directory, text, name="s.log.jsonl"):
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def exported(tree, directory, **options):
    log, context = export_transcript(tree, directory / "out", **options)
    return log.read_text("utf-8"), context.read_text("utf-8")


def said(tree):
    """What the model sees, as texts."""
    return [
        "".join(block.get("text", "") for block in item.message.get("content", []))
        or item.message.get("parts", [{}])[0].get("text", "")
        for item in tree.context()
    ]


# -- reading ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", EVERYTHING.splitlines())
def test_a_line_is_written_as_it_was_read(line):
    entry = decode(line.encode(), 1, None)

    assert render(entry).decode() == line


@pytest.mark.parametrize(
    "line", [one for one in EVERYTHING.splitlines() if '"compaction"' not in one]
)
def test_an_entry_comes_back_from_its_message(line):
    entry = decode(line.encode(), 1, None)

    assert original(to_message(entry)) == entry


def test_fields_come_in_any_order_and_roles_in_any_case():
    shuffled = b'{"content":"hi","role":"user","timestamp":0,"id":"m1","type":"message"}'

    line = render(original(to_message(decode(shuffled, 1, None))))

    assert (
        line == b'{"type":"message","id":"m1","timestamp":0.000000000,"role":"USER","content":"hi"}'
    )


def test_unknown_fields_are_kept_and_nulls_left_out():
    line = b'{"type":"message","id":7,"parentId":null,"timestamp":1,"role":"USER","content":"","x":{"y":null},"z":null}'

    entry = decode(line, 1, None)

    assert entry.id == "7"
    assert render(entry) == (
        b'{"type":"message","id":"7","timestamp":1.000000000,"role":"USER","content":"","x":{"y":null}}'
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("1778832000.123456789", "1778832000.123456789"),
        ("1778832000.9999999999", "1778832000.999999999"),
        ("1778832000", "1778832000.000000000"),
        ("1.778832e9", "1778832000.000000000"),
        ("0", "0.000000000"),
        ("-0.5", "-0.500000000"),
        ('"1778832000.123456789"', "1778832000.123456789"),
        ('"2026-05-15T08:00:00Z"', "1778832000.000000000"),
        ('"2026-05-15T10:00:00.123456789+02:00"', "1778832000.123456789"),
        ('"20260515T080000.123456Z"', "1778832000.123456000"),
    ],
)
def test_a_time_is_exact_to_nine_digits(value, text):
    line = f'{{"type":"message","id":"m","timestamp":{value},"role":"USER","content":"x"}}'

    entry = decode(line.encode(), 1, None)

    assert (entry.timestamp, entry.doubts) == (text, ())


@given(st.integers(-(10**20), 10**20))
def test_every_nanosecond_is_told_from_the_next(nanos):
    seconds, rest = divmod(abs(nanos), 10**9)
    text = f"{'-' * (nanos < 0)}{seconds}.{rest:09d}"

    assert understood(ExactFloat(text)).text == text
    assert understood(text).text == text


def test_a_time_of_ours_has_nine_digits_too():
    assert of_entry("2026-05-15T08:00:00.000001Z") == "1778832000.000001000"


def test_what_is_doubtful_is_named_and_read(tmp_path):
    path = put(
        tmp_path,
        '{"type":"message","id":"a","timestamp":5,"role":"USER","content":"a"}\n'
        '{"type":"message","id":"b","role":"USER","content":"b"}\n'
        '{"type":"message","id":"c","timestamp":"2026-05-15T08:00:00","role":"USER","content":"c"}\n'
        '{"type":"message","id":"d","timestamp":"soon","role":"USER","content":"d"}\n'
        '{"type":"message","id":[],"timestamp":6,"role":"USER","content":"e"}\n'
        '{"type":"message","id":"a","timestamp":7,"role":"USER","content":"other"}\n',
    )

    found = read(path)

    assert [one.timestamp for one in found.entries[:4]] == [
        "5.000000000",
        "5.000000000",
        "1778832000.000000000",
        "1778832000.000000000",
    ]
    assert [str(problem) for problem in found.problems] == [
        "s.log.jsonl:3: the time '2026-05-15T08:00:00' has no zone; it counts as UTC",
        "s.log.jsonl:4: the time is not understood; that of the line before is taken",
        "s.log.jsonl:5: id is not an id; it is left out",
        "s.log.jsonl:6: the id 'a' is used again for something else; the first stays",
    ]
    assert found.skipped == 0


def test_what_is_no_entry_is_skipped_with_its_number_and_the_reason(tmp_path):
    lines = [
        b"\xef\xbb\xbf" + MESSAGES.encode().splitlines()[0] + b"\r",
        b"null",
        b"[1]",
        b'{"type":"message","id":"n","timestamp":NaN,"role":"USER","content":"x"}',
        b'{"type":"dance","id":"d"}',
        b'{"id":"d"}',
        b"\xff",
        b'{"type":"message","id":"q","message":{"role":"user"}}',
        b'{"type":"message","id":"big","timestamp":1e999,"role":"USER","content":"x"}',
        b'{"type":"message","id":"deep","role":"USER","content":"x","y":'
        + b"[" * 100_000
        + b"]" * 100_000
        + b"}",
        b"",
        b'{"type":"message","id":"torn","con',
    ]

    found = read(put(tmp_path, b"\n".join(lines)))

    assert [entry.id for entry in found.entries] == ["m1"]
    assert found.skipped == 10
    assert [(problem.line, problem.reason.split(":")[0]) for problem in found.problems] == [
        (2, "it is not a JSON object"),
        (3, "it is not a JSON object"),
        (4, "it is not JSON"),
        (5, "the type 'dance' is unknown"),
        (6, "it has no type"),
        (7, "it is not UTF-8"),
        (8, "a message with neither role nor content"),
        (9, "it is not JSON"),
        (10, "it is nested too deeply"),
        (12, "it is not JSON"),
    ]
    assert found.problems[-1].reason.endswith("(torn)")


def test_only_a_newline_ends_a_line(tmp_path):
    text = '{"type":"message","id":"m","timestamp":1,"role":"USER","content":"a\u2028b\u0085c"}\n'

    assert [one.fields["content"] for one in read(put(tmp_path, text)).entries] == ["a\u2028b\x85c"]


# -- importing -------------------------------------------------------------------------------------


def test_a_transcript_becomes_a_session(tmp_path, agent, check_clean):
    report = import_transcript(put(tmp_path, EVERYTHING), agent, "s")

    tree = agent.tree("s")
    assert (report.added, report.known, report.skipped, report.problems) == (10, 0, 0, ())
    assert [message.id for message in tree.path()] == [
        *("m1", "m2", "m3", "m4", "img1", "a1", "a1:use:t1", "r1:result:t1")
    ]
    assert said(tree) == ["sum", "and?", "so", "", "looking", "", ""]
    assert tree.get("m2").message == {
        "id": "m2",
        "name": "assistant",
        "role": "assistant",
        "content": [{"type": "text", "text": "x"}],
        "metadata": {
            "agentscope": {
                "parentId": "m1",
                "timestamp": "1778832000.123456789",
                "toolCallId": "call-1",
            }
        },
    }
    assert tree.facts()["source"] == "import:agentscope"
    check_clean()


def test_entries_keep_their_times_as_far_as_entries_of_ours_can_have_them(tmp_path, agent):
    odd = (
        '{"type":"message","id":"m5","parentId":"m4","timestamp":-1,"role":"USER","content":"before"}\n'
        '{"type":"message","id":"m6","parentId":"m5","timestamp":99999999999,"role":"USER","content":"to come"}\n'
    )
    import_transcript(
        put(tmp_path, MESSAGES + SUMMARY + AFTER.splitlines()[0] + "\n" + odd), agent, "s"
    )
    tree = agent.tree("s")

    times = {entry.id: entry.timestamp[:23] for entry in tree.path()}
    assert times == {
        "m1": "2026-05-15T08:00:00.000",
        "m2": "2026-05-15T08:00:00.123",
        "m3": "2026-05-15T08:00:01.000",
        "m4": "2026-05-15T08:00:01.500",
        "m5": "2026-05-15T08:00:01.500",
        "m6": "2026-05-15T08:00:01.500",
    }
    assert tree.latest[:19] == "2026-05-15T08:00:01"
    tree.append({"role": "user", "content": "here"})
    assert tree.latest > "2026-05-16"


def test_what_comes_after_a_summary_or_an_edit_keeps_its_time(tmp_path, agent):
    last = '{"type":"message","id":"m5","parentId":"m4","timestamp":1778918400,"role":"USER","content":"%s"}\n'
    head = MESSAGES + SUMMARY + AFTER.splitlines()[0] + "\n"
    import_transcript(put(tmp_path, head), agent, "s")
    grown = head.replace("and?", "and now?") + last % "next day" + last.replace("m5", "m6") % "so"
    import_transcript(put(tmp_path, grown), agent, "s")

    tree = agent.tree("s")
    assert tree.get("m3").message["content"][0]["text"] == "and now?"
    assert {one: tree.get(one).timestamp[:19] for one in ("m4", "m5", "m6")} == {
        "m4": "2026-05-15T08:00:01",
        "m5": "2026-05-16T08:00:00",
        "m6": "2026-05-16T08:00:00",
    }


def test_a_second_import_adds_nothing(tmp_path, agent):
    path = put(
        tmp_path, EVERYTHING + '{"type":"message","timestamp":9,"role":"USER","content":"?"}\n'
    )
    first = import_transcript(path, agent, "s")
    before = [entry.line for entry in agent.tree("s").log()]

    second = import_transcript(path, agent, "s")

    assert (second.added, second.known, second.updated) == (0, first.added, 0)
    assert [entry.line for entry in agent.tree("s").log()] == before


def test_the_log_and_the_other_file_are_one(tmp_path, agent):
    put(tmp_path, MESSAGES, "s.log.jsonl")
    path = put(tmp_path, "".join(MESSAGES.splitlines(True)[2:]) + AFTER, "s.jsonl")

    report = import_transcript(path, agent, "s")

    assert report.added == 5
    assert [message.id for message in agent.tree("s").path()] == ["m1", "m2", "m3", "m4", "img1"]


def test_an_import_goes_on_where_the_last_one_ended(tmp_path, agent):
    import_transcript(put(tmp_path, MESSAGES), agent, "s")

    report = import_transcript(put(tmp_path, EVERYTHING), agent, "s")

    assert (report.added, report.known) == (7, 3)
    assert said(agent.tree("s")) == ["sum", "and?", "so", "", "looking", "", ""]


def test_what_the_session_went_on_with_stays_the_tip(tmp_path, agent):
    import_transcript(put(tmp_path, MESSAGES), agent, "s")
    ours = agent.tree("s").append({"role": "user", "content": "ours"}).entry.id

    import_transcript(put(tmp_path, MESSAGES + SUMMARY), agent, "s")

    assert agent.tree("s").leaf == ours


def test_a_reply_that_grew_is_updated_and_an_edit_of_ours_is_kept(tmp_path, agent):
    path = put(tmp_path, MESSAGES)
    import_transcript(path, agent, "s")
    tree = agent.tree("s")
    tree.update("m1", {**tree.get("m1").message, "content": [{"type": "text", "text": "edited"}]})

    put(tmp_path, MESSAGES.replace('"content":"x"', '"content":"x and more"'))
    report = import_transcript(path, agent, "s")

    assert (report.added, report.updated, report.known) == (0, 1, 2)
    assert said(agent.tree("s")) == ["edited", "x and more", "and?"]


def test_a_message_of_ours_with_the_same_id_is_left_alone(tmp_path, agent):
    agent.tree("s").append({"id": "m1", "role": "user", "content": "ours"})

    report = import_transcript(put(tmp_path, MESSAGES), agent, "s")

    assert agent.tree("s").get("m1").message["content"] == "ours"
    assert [problem.reason for problem in report.problems] == [
        "the session has another message 'm1', which stays as it is"
    ]


def test_what_was_deleted_does_not_come_back(tmp_path, agent, check_clean):
    path = put(tmp_path, MESSAGES)
    import_transcript(path, agent, "s")
    agent.tree("s").delete(["m3"])

    report = import_transcript(put(tmp_path, MESSAGES + AFTER.replace("c1", "m3")), agent, "s")

    assert report.added == 2
    assert [message.id for message in agent.tree("s").path()] == ["m1", "m2", "m4", "img1"]
    check_clean()


def line(entry_id, text, role="USER", **more):
    return (
        json.dumps({"type": "message", "id": entry_id, "role": role, "content": text, **more})
        + "\n"
    )


def test_history_that_was_sent_again_is_known(tmp_path, agent):
    turns = [("USER", "q1"), ("ASSISTANT", "a1"), ("USER", "q2"), ("ASSISTANT", "a2")]
    text = ""
    for turn in range(1, 3):
        text += "".join(
            line(f"{turn}-{index}", said, role)
            for index, (role, said) in enumerate(turns[: turn * 2])
        )
    text += line("next", "q3", parentId="2-3")

    report = import_transcript(put(tmp_path, text), agent, "s")

    assert (report.added, report.known) == (5, 2)
    assert said(agent.tree("s")) == ["q1", "a1", "q2", "a2", "q3"]


def test_only_the_whole_history_counts_as_sent_again(tmp_path, agent):
    text = line("1", "a") + line("2", "b") + line("3", "a") + line("4", "c") + line("5", "b")

    import_transcript(put(tmp_path, text), agent, "s")

    assert said(agent.tree("s")) == ["a", "b", "a", "c", "b"]


def test_what_has_parents_is_not_history_sent_again(tmp_path, agent):
    text = line("1", "a") + line("2", "a", parentId="1")

    import_transcript(put(tmp_path, text), agent, "s")

    assert said(agent.tree("s")) == ["a", "a"]


def test_branches_children_before_parents_and_circles_are_placed(tmp_path, agent, check_clean):
    text = (
        line("late", "late", parentId="root")
        + line("root", "root")
        + line("other", "other", parentId="root")
        + line("x", "x", parentId="y")
        + line("y", "y", parentId="x")
        + line("lost", "lost", parentId="nowhere")
    )

    report = import_transcript(put(tmp_path, text), agent, "s")

    tree = agent.tree("s")
    assert [message.id for message in tree.children("root")] == ["late", "other"]
    assert [message.id for message in tree.path("y")] == ["x", "y"]
    assert [message.id for message in tree.path()] == ["x", "y", "lost"]
    assert [str(problem) for problem in report.problems] == [
        "s.log.jsonl:6: there is no entry 'nowhere' to be its parent",
        "s.log.jsonl:4: its parents form a circle; it is cut here",
    ]
    check_clean()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            ('"firstKeptEntryId":"m3"', '"firstKeptEntryId":"m9"'),
            "there is no entry 'm9' to be the first that is kept; nothing is hidden",
        ),
        (
            ('"firstKeptEntryId":"m3",', ""),
            "there is no entry None to be the first that is kept; nothing is hidden",
        ),
        (
            ('"summaryEntryId":"s1"', '"summaryEntryId":"s9"'),
            "there is no summary for it; nothing is hidden",
        ),
        (('"summary":"sum"', '"summary":" "'), "there is no summary for it; nothing is hidden"),
    ],
)
def test_a_compaction_that_cannot_be_followed_hides_nothing_and_is_kept(
    tmp_path, agent, change, reason
):
    text = (MESSAGES + SUMMARY + AFTER).replace(*change)

    report = import_transcript(put(tmp_path, text), agent, "s")

    assert [problem.reason for problem in report.problems] == [reason]
    assert said(agent.tree("s")) == ["hi 你好", "x", "and?", "so", ""]
    assert exported(agent.tree("s"), tmp_path)[0] == text


def test_a_summary_of_what_is_not_in_the_file_becomes_a_message(tmp_path, agent):
    context = "".join(MESSAGES.splitlines(True)[2:]) + SUMMARY + AFTER
    path = put(tmp_path, context, "s.jsonl")

    report = import_transcript(path, agent, "s")
    again = import_transcript(path, agent, "s")

    assert said(agent.tree("s")) == ["sum", "and?", "so", ""]
    assert (report.added, again.added, again.known) == (5, 0, 5)


def test_an_import_that_was_cut_short_anywhere_is_completed_by_the_next(tmp_path, workspace):
    path = put(tmp_path, EVERYTHING)
    import_transcript(path, workspace.agent("whole"), "s")
    whole = workspace.agent("whole").place.log("s").read_bytes()
    expected = export_transcript(workspace.agent("whole").tree("s"), tmp_path / "whole")

    for end in range(0, len(whole), 97):
        agent = workspace.agent(f"cut-{end}")
        agent.place.sessions.mkdir(parents=True)
        agent.place.log("s").write_bytes(whole[:end])  # as a crash leaves it

        import_transcript(path, agent, "s")

        found = export_transcript(agent.tree("s"), tmp_path / f"{end}")
        assert [one.read_bytes() for one in found] == [one.read_bytes() for one in expected], end
        assert said(agent.tree("s")) == ["sum", "and?", "so", "", "looking", "", ""]


def test_custom_entries_of_others_are_none_of_theirs(tmp_path, agent):
    import_transcript(put(tmp_path, MESSAGES), agent, "s")
    tree = agent.tree("s")
    for data in (None, {}, {"type": "summary"}, {"type": [], "id": "x"}):
        tree.add_custom("agentscope", data)

    assert exported(tree, tmp_path)[0] == MESSAGES


def test_a_file_that_is_not_there_makes_no_session(tmp_path, agent):
    with pytest.raises(FileNotFoundError):
        import_transcript(tmp_path / "gone.jsonl", agent, "s")

    assert agent.session_ids() == []


def test_a_session_of_our_own_is_no_transcript_of_theirs(agent, tmp_path):
    agent.tree("own").append({"role": "user", "content": "hi"})

    report = import_transcript(agent.place.log("own"), agent, "s")

    assert (report.added, report.skipped) == (0, 4)  # two lines in each file
    assert agent.session_ids() == ["own"]


# -- exporting -------------------------------------------------------------------------------------


def test_what_was_imported_is_exported_byte_for_byte(tmp_path, agent):
    import_transcript(put(tmp_path, EVERYTHING), agent, "s")

    log, context = exported(agent.tree("s"), tmp_path)

    assert log == EVERYTHING
    assert context == SUMMARY + MESSAGES.splitlines(True)[2] + AFTER + TOOLS


def test_what_was_exported_can_be_imported_again(tmp_path, agent):
    import_transcript(put(tmp_path, EVERYTHING), agent, "s")
    log, _ = export_transcript(agent.tree("s"), tmp_path / "out")

    import_transcript(log, agent, "copy")

    assert [entry.message for entry in agent.tree("copy").path()] == [
        entry.message for entry in agent.tree("s").path()
    ]
    assert said(agent.tree("copy")) == said(agent.tree("s"))


def ours(agent):
    """A session that was written here: a compaction in the middle, a branch, tools, an image."""
    tree = agent.tree("ours")
    for index in range(4):
        role = ["user", "assistant"][index % 2]
        tree.append({"id": f"m{index}", "role": role, "content": f"text {index}"})
    overlay = tree.compact("so far", "m0", "m1")
    tree.append(
        {"id": "m4", "role": "user", "content": [{"type": "image", "source": {"data": ""}}]}
    )
    tree.append(
        {
            "id": "m5",
            "role": "assistant",
            "content": [
                {"type": "text", "text": "looking"},
                {"type": "tool_use", "id": "t1", "name": "search", "input": {"q": "é" * 600}},
                {"type": "tool_use", "id": "t2", "name": "now", "input": {}},
            ],
        }
    )
    tree.append(
        {
            "id": "m6",
            "role": "tool",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "😀" * 600}],
        }
    )
    tree.append({"id": "m7", "role": "assistant", "parts": [{"type": "text", "text": "done"}]})
    return tree, overlay


def test_a_session_of_ours_is_told_as_theirs(tmp_path, agent):
    tree, overlay = ours(agent)

    log, context = exported(tree, tmp_path)

    told = [json.loads(one) for one in log.splitlines()]
    assert [(one["id"], one.get("parentId"), one.get("content")) for one in told] == [
        ("m0", None, "text 0"),
        ("m1", "m0", "text 1"),
        ("m2", "m1", "text 2"),
        ("m3", "m2", "text 3"),
        (f"{overlay.id}:summary", "m3", None),
        (overlay.id, f"{overlay.id}:summary", None),
        ("m4", overlay.id, ""),
        (
            "m5",
            "m4",
            'looking\n[tool_call: search({"q":"' + "é" * 494 + "...)]\n[tool_call: now]",
        ),
        ("m6", "m5", "[tool_result: search] " + "😀" * 500 + "...(truncated)"),
        ("m7", "m6", "done"),
    ]
    assert [one["role"] for one in told if "role" in one] == [
        *("USER", "ASSISTANT") * 2,
        "USER",
        "ASSISTANT",
        "TOOL",
        "ASSISTANT",
    ]
    assert told[4]["summary"] == "so far"
    assert told[5]["firstKeptEntryId"] == "m2"
    assert told[6]["blockTypes"] == ["image"]
    assert [one.get("toolCallId") for one in told[7:]] == ["t1", "t1", None]
    assert (
        context.splitlines() == log.splitlines()[4:6] + log.splitlines()[2:4] + log.splitlines()[6:]
    )


def test_tools_are_entries_of_their_own_if_that_is_wanted(tmp_path, agent):
    tree, _ = ours(agent)

    log, _ = exported(tree, tmp_path, tool_entries=True)

    told = [json.loads(one) for one in log.splitlines()][7:]
    given = json.dumps({"q": "é" * 600}, ensure_ascii=False, separators=(",", ":"))
    assert [" ".join(list(one)[4:]) for one in told] == [
        "role content",
        "toolCallId name input truncated originalSize",
        "toolCallId name input truncated",
        "toolCallId name output outputBlockTypes truncated originalSize",
        "role content",
    ]
    assert [(one["id"], one["parentId"]) for one in told] == [
        ("m5", "m4"),
        ("m5:use:t1", "m5"),
        ("m5:use:t2", "m5:use:t1"),
        ("m6:result:t1", "m5:use:t2"),
        ("m7", "m6:result:t1"),
    ]
    assert told[1]["input"] == {"_preview": given[:500], "_truncated": True, "_originalSize": 608}
    assert (told[1]["truncated"], told[1]["originalSize"]) == (True, 608)
    assert (told[2]["input"], told[2]["truncated"]) == ({}, False)
    assert (told[3]["name"], told[3]["output"], told[3]["originalSize"]) == (
        "search",
        "😀" * 500,
        1200,
    )


def test_a_compaction_after_which_nothing_came_keeps_nothing(tmp_path, agent):
    tree = agent.tree("s")
    tree.extend(
        [{"id": "a", "role": "user", "content": "a"}, {"id": "b", "role": "user", "content": "b"}]
    )
    tree.compact("sum", "a", "b")
    log, _ = export_transcript(tree, tmp_path / "out")

    import_transcript(log, agent, "copy")

    assert said(agent.tree("copy")) == ["sum"]


def test_a_message_of_theirs_that_was_edited_is_told_as_it_is_now(tmp_path, agent):
    import_transcript(put(tmp_path, MESSAGES), agent, "s")
    tree = agent.tree("s")
    tree.update("m2", {**tree.get("m2").message, "content": [{"type": "text", "text": "new"}]})

    log, _ = exported(tree, tmp_path)

    assert log.splitlines()[1] == (
        '{"type":"message","id":"m2","parentId":"m1","timestamp":1778832000.123456789,'
        '"role":"ASSISTANT","content":"new","toolCallId":"call-1"}'
    )


def test_every_branch_is_in_the_log_and_the_tips_in_the_other_file(tmp_path, agent):
    tree = agent.tree("a/b")
    tree.append({"id": "1", "role": "user", "content": "q"})
    tree.append({"id": "2", "role": "assistant", "content": "one"})
    tree.append({"id": "3", "role": "assistant", "content": "two"}, parent="1")

    log, context = export_transcript(tree, tmp_path / "out")

    assert (log.name, context.name) == ("a%2fb.log.jsonl", "a%2fb.jsonl")
    assert [json.loads(one)["id"] for one in log.read_text().splitlines()] == ["1", "2", "3"]
    assert [json.loads(one)["id"] for one in context.read_text().splitlines()] == ["1", "3"]


def test_an_export_never_lands_on_the_sessions_of_a_workspace(workspace, agent):
    tree = agent.tree("s")
    tree.append({"role": "user", "content": "hi"})
    before = agent.place.log("s").read_bytes()

    with pytest.raises(FileExistsError, match="a workspace keeps its own sessions there"):
        export_transcript(tree, agent.place.sessions)

    assert agent.place.log("s").read_bytes() == before


def test_a_session_that_is_not_there_is_not_exported(tmp_path, agent):
    with pytest.raises(UnknownSession):
        export_transcript(agent.tree("none"), tmp_path / "out")

    assert not (tmp_path / "out").exists()


@given(st.text(alphabet="aé你😀", max_size=12), st.integers(0, 26))
def test_a_cut_counts_units_and_splits_no_character(text, limit):
    beginning = cut(text, limit)

    assert text.startswith(beginning)
    assert length(beginning) <= limit
    assert length(beginning) >= min(limit, length(text)) - 1
    assert length(text) == len(text.encode("utf-16-le")) // 2


ids = st.sampled_from(["a", "b", "c", "d", "e", "f", 7, "", None])
entries = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("message"), "id": ids, "role": st.sampled_from(["USER", "assistant", ""])},
        optional={
            "parentId": ids,
            "timestamp": st.sampled_from([1, "2", "x", None]),
            "content": st.sampled_from(["", "hi", "ho", None, 5, ["x"]]),
            "blockTypes": st.sampled_from([["image"], "image", []]),
            "other": st.sampled_from([None, 1.5, {"x": None}]),
        },
    ),
    st.fixed_dictionaries(
        {"type": st.just("summary"), "id": ids},
        optional={"parentId": ids, "summary": st.sampled_from(["sum", "more", " ", 5])},
    ),
    st.fixed_dictionaries(
        {"type": st.just("compaction"), "id": ids},
        optional={"parentId": ids, "firstKeptEntryId": ids, "summaryEntryId": ids},
    ),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["tool_use", "tool_result"]), "id": ids},
        optional={
            "parentId": ids,
            "toolCallId": ids,
            "name": st.just("n"),
            "input": st.just({"q": 1}),
        },
    ),
    st.sampled_from([None, 5, {"type": "?"}]),
)
lines = st.lists(entries, max_size=12).map(
    lambda found: "".join(json.dumps(one) + "\n" for one in found)
)


@given(lines, lines)
def test_whatever_a_transcript_holds_it_is_imported_once_and_told_again(log, tree):
    with TemporaryDirectory() as directory, Workspace(directory, durability="os") as workspace:
        agent = workspace.agent("a")
        path = put(Path(directory) / "java", log)
        put(Path(directory) / "java", tree, "s.jsonl")
        first = import_transcript(path, agent, "s")
        before = [entry.line for entry in agent.tree("s").log()]

        second = import_transcript(path, agent, "s")

        assert (second.added, second.updated) == (0, 0)
        assert second.known == first.added + first.known
        assert [entry.line for entry in agent.tree("s").log()] == before
        assert [str(problem) for problem in workspace.verify()] == []
        if not first.added:
            return
        told, _ = export_transcript(agent.tree("s"), Path(directory) / "out")
        import_transcript(told, agent, "copy")
        ours, copies = (
            {one.id: one.message["content"] for one in agent.tree(name).all_messages()}
            for name in ("s", "copy")
        )
        if len(set(map(repr, ours.values()))) == len(ours):  # else it may look like a repetition
            assert copies == ours


# -- state -----------------------------------------------------------------------------------------


def test_state_files_are_copied_and_stay_as_they_are(tmp_path, agent, check_clean):
    source = tmp_path / "java"
    put(source, '{"b":1,\r\n"a":[null]}', "agent_meta.json")
    put(source, '{"role":"USER"}\n{"role":"ASSISTANT"}\n', "memory_messages.jsonl")
    put(source, "abc", "memory_messages.jsonl.hash")
    put(source, "{}", ".hidden.json")

    names = import_state(source, agent.state, "s")

    assert names == ["agent_meta", "memory_messages"]
    assert agent.state.get("s", "agent_meta") == {"a": [None], "b": 1}
    assert agent.state.get_list("s", "memory_messages") == [{"role": "USER"}, {"role": "ASSISTANT"}]
    assert agent.state.list_keys("s") == names
    assert (source / "agent_meta.json").read_bytes() == b'{"b":1,\r\n"a":[null]}'
    check_clean()


@pytest.mark.parametrize(("name", "text"), [("b.json", "{"), ("a.jsonl", "{}\n")])
def test_state_that_cannot_be_copied_whole_is_not_copied(tmp_path, agent, name, text):
    source = tmp_path / "java"
    put(source, "{}", "a.json")
    put(source, text, name)

    with pytest.raises((StateCorrupt, FileExistsError)):
        import_state(source, agent.state, "s")

    assert not agent.state.exists("s")
