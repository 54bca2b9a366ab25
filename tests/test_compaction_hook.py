"""Compaction around a turn: what leaves an agent's memory is on disk, and a summary stands in for it."""

from __future__ import annotations

import asyncio

import pytest
from harness_agents import Talker, texts
from hypothesis import given
from hypothesis import strategies as st

from workspace_session import (
    CompactionHook,
    Harness,
    MemoryFlushManager,
    RuntimeContext,
    TurnNotSaved,
    WorkspaceSession,
)
from workspace_session.harness.compaction import tail_start
from workspace_session.model.entries import Compaction

CTX = RuntimeContext(session_id="s")


def run(awaitable):
    return asyncio.run(asyncio.wait_for(awaitable, 30))


@pytest.fixture(autouse=True)
def clean_afterwards(workspace):
    yield
    assert workspace.verify() == []


@pytest.fixture
def tree(workspace):
    return workspace.agent("bot").tree("s")


def memory_of(workspace):
    return WorkspaceSession(workspace, "bot").get("s", "memory")["messages"]


def compacting(workspace, summarize=lambda messages, previous: "short", script=None, **limits):
    limits = {"max_messages": 6, "keep_last": 2, **limits}
    hook = CompactionHook(summarize, **limits)
    return Harness(Talker(script), "bot", workspace, hooks=[hook])


def talk(harness, *messages):
    async def main():
        for message in messages:
            await harness.call(message, CTX)

    run(main())


def test_under_the_limits_nothing_happens_and_at_one_the_memory_gives_way(workspace, tree):
    asked = []

    def summarize(messages, previous):
        asked.append(([message["content"] for message in messages], previous))
        return "They said hello."

    harness = compacting(workspace, summarize)

    talk(harness, "a", "b", "c")
    assert asked == []
    talk(harness, "d")

    assert asked == [(["a", "a: 1", "b", "b: 3"], None)]
    (overlay,) = tree.compactions()
    path = tree.path()
    assert (overlay.summary, overlay.from_id, overlay.to_id) == (
        "They said hello.",
        path[0].id,
        path[3].id,
    )
    assert memory_of(workspace) == [
        {
            "id": f"compaction:{overlay.id}",
            "role": "user",
            "content": "Summary of the earlier conversation (4 messages):\n\nThey said hello.",
        },
        {"role": "user", "content": "c"},
        {"role": "assistant", "content": "c: 5"},
        {"role": "user", "content": "d"},
        {"role": "assistant", "content": "d: 4"},
    ]
    assert texts(tree) == ["a", "a: 1", "b", "b: 3", "c", "c: 5", "d", "d: 4"]  # nothing is lost
    assert [type(item) is Compaction for item in tree.context()] == [True] + [False] * 4


def test_the_next_summary_is_told_the_one_before_and_covers_it(workspace, tree):
    asked = []

    def summarize(messages, previous):
        asked.append(([message["content"] for message in messages], previous))
        return f"summary {len(asked)}"

    talk(compacting(workspace, summarize), *"abcdefgh")

    assert asked[1] == (["c", "c: 5", "d", "d: 4"], "summary 1")
    assert asked[2][1] == "summary 2"
    shown = tree.context()
    assert [item.summary for item in shown if isinstance(item, Compaction)] == ["summary 3"]
    assert shown[0].from_id == tree.path()[0].id
    assert memory_of(workspace)[0]["content"].startswith(
        f"Summary of the earlier conversation ({shown[0].covers.messages} messages):"
    )
    assert len(tree.path()) == 16


def test_tokens_count_too_and_a_limit_of_none_is_off(workspace, tree):
    talk(compacting(workspace, max_messages=None, max_tokens=None), *"abcdefghij")
    assert tree.compactions() == []

    counted = []

    def count_tokens(messages):
        counted.append(len(messages))
        return 10 * len(messages)

    hook = {"max_messages": None, "max_tokens": 30, "count_tokens": count_tokens, "keep_last": 1}
    talk(compacting(workspace, **hook), "k")

    assert counted == [20]
    assert len(tree.compactions()) == 1


@pytest.mark.parametrize(
    "wrong",
    [{"max_messages": 0}, {"max_tokens": -1}, {"keep_last": -1}],
)
def test_limits_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        CompactionHook(lambda messages, previous: "", **wrong)


@pytest.mark.parametrize("given_back", ["  \n", None, 3, OSError("no model")])
def test_a_summary_that_fails_leaves_everything_and_the_turn_goes_on(
    workspace, tree, caplog, given_back
):
    def summarize(messages, previous):
        if isinstance(given_back, Exception):
            raise given_back
        return given_back

    talk(compacting(workspace, summarize), *"abcd")

    assert tree.compactions() == []
    assert len(memory_of(workspace)) == 8
    assert "session 's' is not compacted" in caplog.text


def test_what_cannot_be_offloaded_stays_in_memory(workspace, tree, caplog):
    log = tree.place.log("s")
    aside = log.with_name("aside")

    async def script(message, ctx, agent):
        if message == "c":
            log.rename(aside)
            log.mkdir()  # nothing can be appended to it
            messages = agent.memory.messages
            assert await ctx.compact(messages, force=True) == messages

    harness = compacting(workspace, script=script)
    talk(harness, *"ab")

    with pytest.raises(TurnNotSaved, match="Is a directory"):
        talk(harness, "c")

    assert "session 's' is not compacted" in caplog.text
    assert len(memory_of(workspace)) == 6
    log.rmdir()
    aside.rename(log)
    talk(compacting(workspace, max_messages=None), "d")
    assert texts(tree) == ["a", "a: 1", "b", "b: 3", "c", "c: 5", "d", "d: 7"]


def test_an_agent_that_loops_compacts_before_each_model_call_and_when_its_context_overflows(
    workspace, tree
):
    async def script(message, ctx, agent):
        for number in range(3):
            agent.memory.messages.append({"role": "assistant", "content": f"step {number}"})
        messages = await ctx.before_reasoning(agent.memory.messages)
        assert len(messages) == 4  # under the limit: as they are
        messages = await ctx.compact(agent.memory.messages, force=True)
        assert [m["content"] for m in messages[1:]] == ["step 1", "step 2"]
        assert messages == agent.memory.messages
        again = await ctx.compact(messages, force=True)
        assert again == messages  # only a summary stands before the end

    talk(compacting(workspace, script=script), "go")

    assert texts(tree) == ["go", "step 0", "step 1", "step 2", "go: 3"]


def test_without_the_hook_lists_stay_as_they_are(workspace):
    async def script(message, ctx, agent):
        assert await ctx.compact(["a"], force=True) == ["a"]

    talk(Harness(Talker(script), "bot", workspace), "hi")


def test_summarize_may_be_async_and_is_given_to_the_harness_alone(workspace, tree):
    async def summarize(messages, previous):
        await asyncio.sleep(0)
        return "by the harness"

    harness = Harness(Talker(), "bot", workspace, summarize=summarize)
    talk(harness, *map(str, range(26)))

    assert [overlay.summary for overlay in tree.compactions()] == ["by the harness"]
    assert len(memory_of(workspace)) == 1 + 20 + 2


def test_notes_are_taken_of_what_leaves_memory(workspace):
    taken = []

    async def extract(messages):
        taken.append([message["content"] for message in messages])
        return "Noted."

    hook = CompactionHook(lambda messages, previous: "short", max_messages=6, keep_last=2)
    harness = Harness(Talker(), "bot", workspace, hooks=[hook], extract=extract)
    talk(harness, *"abcd")

    assert taken == [["a", "a: 1", "b", "b: 3"]]
    (note,) = (workspace.root / "memory").iterdir()
    assert note.read_text().endswith("Noted.\n")


def test_a_compaction_repeated_after_a_crash_stores_no_message_twice(workspace, tree):
    talk(compacting(workspace), *"abc")
    old = memory_of(workspace)
    talk(compacting(workspace), "d")
    before = texts(tree)
    # The process dies after the compaction and before the state is saved.
    WorkspaceSession(workspace, "bot").save("s", "memory", {"messages": old})

    talk(compacting(workspace), "e")

    assert texts(tree) == [*before, "e", "e: 4"]
    assert memory_of(workspace)[0]["id"] == f"compaction:{tree.compactions()[-1].id}"


def test_a_summary_in_a_memory_is_never_offloaded(workspace, tree):
    talk(compacting(workspace), *"abcd")
    size = len(tree.path())

    result = MemoryFlushManager(workspace).offload_messages("bot", "s", memory_of(workspace))

    assert (result.added, result.ignored, result.unchanged) == (0, 1, 4)
    assert len(tree.path()) == size
    assert result.entry_ids[0] == tree.compactions()[0].id


# -- where the end begins --------------------------------------------------------------------------


def call(*ids):
    return {"role": "assistant", "tool_calls": [{"id": i, "function": {"name": "f"}} for i in ids]}


def result(call_id):
    return {"role": "tool", "tool_call_id": call_id, "content": "x"}


SAID = {"role": "user", "content": "x"}


@pytest.mark.parametrize(
    ("messages", "keep", "start"),
    [
        ([SAID] * 5, 2, 3),
        ([SAID] * 5, 9, 0),
        ([SAID] * 5, 0, 5),
        ([SAID, call("a"), result("a"), SAID], 2, 1),
        ([SAID, call("a"), result("a"), SAID], 1, 3),
        ([SAID, call("a", "b"), result("a"), SAID, result("b"), SAID], 2, 1),
        ([SAID, SAID, result("nobody"), SAID], 2, 1),
        ([SAID, call("a"), SAID, call("b"), result("a"), result("b")], 2, 1),
        ([call("a"), result("a"), SAID, call("a"), result("a")], 1, 3),  # the same id again
        ([SAID, call("a"), SAID, SAID], 1, 3),  # a call without a result holds nothing back
    ],
)
def test_the_end_is_made_longer_until_no_call_is_parted_from_its_result(messages, keep, start):
    assert tail_start(messages, keep) == start


@given(
    kinds=st.lists(st.sampled_from(["say", "call", "answer"]), max_size=20),
    keep=st.integers(0, 20),
)
def test_no_end_begins_with_a_result_or_parts_a_call_from_its_own(kinds, keep):
    messages, open_calls = [], []
    for number, kind in enumerate(kinds):
        if kind == "call":
            open_calls.append(f"c{number}")
            messages.append(call(f"c{number}"))
        elif kind == "answer" and open_calls:
            messages.append(result(open_calls.pop(0)))
        else:
            messages.append(SAID)

    start = tail_start(messages, keep)

    tail = messages[start:]
    assert len(tail) >= min(keep, len(messages))
    if tail and start:
        assert tail[0]["role"] != "tool"
    called = {c["id"] for m in messages[:start] for c in m.get("tool_calls", ())}
    assert called.isdisjoint(m.get("tool_call_id") for m in tail)
