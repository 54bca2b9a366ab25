"""Runs of the real OpenAI Agents SDK, with a scripted model, on our session."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import agents
import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    ModelSettings,
    OutputGuardrailTripwireTriggered,
    RunConfig,
    Runner,
    RunState,
    SessionSettings,
    function_tool,
    input_guardrail,
    output_guardrail,
)
from agents.run_internal.session_persistence import rewind_session_items
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from agents.usage import Usage
from agents_resume import ASKS, ENDS, agent_that
from agents_talk import WAYS, Unreliable, asked, full_disk, gist, run, speaker
from session_contract.talk import on_a_loop

from workspace_session.adapters.openai_agents import AgentsSession

agents.set_tracing_disabled(True)


@pytest.fixture(params=["disk", "memory"])
def session(request, tmp_path):
    if request.param == "memory":
        yield AgentsSession.in_memory("s")
        return
    with AgentsSession.open(tmp_path / "ws", "s") as opened:
        yield opened
        assert opened.tree.verify() == []


# -- ordinary runs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@on_a_loop
async def test_a_conversation_is_remembered_from_turn_to_turn(session, way):
    agent = speaker("Porto.", "Portugal.", "The Douro.")

    for question in ("Which city?", "Which country?", "Which river?"):
        await run(way, agent, question, session=session)

    told = ["Which city?", "Porto.", "Which country?", "Portugal.", "Which river?", "The Douro."]
    assert asked(agent) == [told[:1], told[:3], told[:5]]
    assert gist(await session.get_items()) == told


@pytest.mark.parametrize("way", WAYS)
@on_a_loop
async def test_calls_and_outputs_of_tools_are_kept(session, way):
    @function_tool
    def look(where: str) -> str:
        return f"{where} is fine"

    first = [function_call("look", {"where": place}, call_id=f"c-{place}") for place in "ab"]
    agent = Agent(
        name="looker",
        tools=[look],
        model=ScriptedModel([first, [assistant_message("Both are.")], [assistant_message("Yes.")]]),
    )

    await run(way, agent, "Look.", session=session)
    await run(way, agent, "Really?", session=session)

    turn = [
        "Look.", "function_call c-a", "function_call c-b",
        "function_call_output c-a", "function_call_output c-b", "Both are.",
    ]  # fmt: skip
    assert gist(await session.get_items()) == [*turn, "Really?", "Yes."]
    assert asked(agent)[-1] == [*turn, "Really?"]
    assert session.tree.info().dangling_tool_calls == ()


@pytest.mark.parametrize("way", WAYS)
@on_a_loop
async def test_a_handoff_is_part_of_the_conversation(session, way):
    expert = speaker("I know.", "Still.")
    expert.name = "expert"
    front = Agent(
        name="front",
        handoffs=[expert],
        model=ScriptedModel([[function_call("transfer_to_expert", {}, call_id="h1")]]),
    )

    result = await run(way, front, "Who knows?", session=session)
    await run(way, result.last_agent, "Sure?", session=session)

    told = ["Who knows?", "function_call h1", "function_call_output h1", "I know."]
    assert gist(await session.get_items()) == [*told, "Sure?", "Still."]


@pytest.mark.parametrize("way", WAYS)
@on_a_loop
async def test_a_guardrail_that_trips_leaves_a_conversation_that_goes_on(session, way):
    @input_guardrail(run_in_parallel=False)
    async def no_secrets(_context, _agent, given):
        said = given if isinstance(given, str) else given[-1]["content"]
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered="secret" in said)

    @output_guardrail
    async def no_shouting(_context, _agent, output):
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=output.isupper())

    agent = speaker("LOUD", "quiet", input_guardrails=[no_secrets], output_guardrails=[no_shouting])

    with pytest.raises(InputGuardrailTripwireTriggered):
        await run(way, agent, "a secret", session=session)
    assert gist(await session.get_items()) == ["a secret"]
    with pytest.raises(OutputGuardrailTripwireTriggered):
        await run(way, agent, "speak up", session=session)
    before = gist(await session.get_items())
    await run(way, agent, "softly", session=session)

    assert before[:2] == ["a secret", "speak up"]
    assert gist(await session.get_items()) == [*before, "softly", "quiet"]


@pytest.mark.parametrize("way", WAYS)
@on_a_loop
async def test_a_callback_decides_what_the_model_is_given_and_all_that_is_new_is_kept(session, way):
    agent = speaker("one", "two")
    await run(way, agent, "first", session=session)

    def only_users(history, new):
        return [item for item in history if item["role"] == "user"] + new

    config = RunConfig(session_input_callback=only_users)
    given = [{"role": "user", "content": "second"}]
    await run(way, agent, given, session=session, run_config=config)

    assert asked(agent)[-1] == ["first", "second"]
    assert gist(await session.get_items()) == ["first", "one", "second", "two"]


@pytest.mark.parametrize("way", WAYS)
@on_a_loop
async def test_settings_limit_what_the_model_is_given(session, way):
    agent = speaker("one", "two", "three")
    session.session_settings = SessionSettings(limit=1)

    await run(way, agent, "first", session=session)
    await run(way, agent, "second", session=session)
    config = RunConfig(session_settings=SessionSettings(limit=2))
    await run(way, agent, "third", session=session, run_config=config)

    assert asked(agent)[1:] == [["one", "second"], ["second", "two", "third"]]
    told = ["first", "one", "second", "two", "third", "three"]
    assert gist(await session.get_items(100)) == told


@on_a_loop
async def test_two_agents_share_one_conversation(tmp_path):
    with AgentsSession.open(tmp_path, "s", durability="os") as mine:
        theirs = AgentsSession.open(tmp_path, "s", durability="os")

        await Runner.run(speaker("one"), "first", session=mine)
        await Runner.run(speaker("two"), "second", session=theirs)

        told = ["first", "one", "second", "two"]
        assert gist(await mine.get_items()) == gist(await theirs.get_items()) == told


@on_a_loop
async def test_a_run_reads_once_and_writes_each_step_once(tmp_path):
    """No more lines than items: a run costs what it says, and nothing else."""
    with AgentsSession.open(tmp_path, "s", durability="os") as session:
        await Runner.run(speaker("one"), "first", session=session)

        kinds = [entry.type for entry in session.tree.log()]
    assert kinds == ["session", "message", "message"]


# -- what runs use -----------------------------------------------------------------------------------


@on_a_loop
async def test_runs_are_told_apart_however_their_use_is_recorded(session):
    used = [Usage(requests=1, input_tokens=10, output_tokens=1, total_tokens=11) for _ in range(2)]

    for one in (*used, *used):
        await session.record_usage(one)
    used[0].input_tokens += 5
    await asyncio.gather(*(session.record_usage(used[0]) for _ in range(4)))

    assert tuple(await session.usage()) == (25, 2, 0.0)


@on_a_loop
async def test_what_runs_use_is_recorded_once(session):
    used = Usage(requests=1, input_tokens=100, output_tokens=20, total_tokens=120)
    steps = [ModelStep(output=[assistant_message("hi")], usage=used) for _ in range(2)]
    agent = Agent(name="a", model=ScriptedModel(steps))
    with pytest.raises(ValueError, match="no run has used session 's' yet"):
        await session.record_usage()

    first = await Runner.run(agent, "one", session=session)
    await session.record_usage(first, cost=0.5)
    await session.record_usage(first)
    await session.record_usage()
    assert tuple(await session.usage()) == (100, 20, 0.5)
    second = await Runner.run(agent, "two", session=session)
    await session.record_usage()
    await session.record_usage(second.context_wrapper.usage)

    assert tuple(await session.usage()) == (200, 40, 0.5)
    assert [entry.type for entry in session.tree.log()].count("usage") == 2
    info = session.tree.info()
    assert (info.input_tokens, info.output_tokens, info.estimated_cost) == (200, 40, 0.5)


# -- runs that stop for an approval ------------------------------------------------------------------


def in_a_process(half: str, root: Path, way: str) -> str:
    script = Path(__file__).with_name("agents_resume.py")
    command = [sys.executable, "-W", "error", script, half, root, way]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


CALL = ["a room", "function_call c1", "function_call_output c1", "Room 12 is yours."]


def test_a_run_that_waits_for_an_approval_goes_on_in_another_process(tmp_path):
    in_a_process("start", tmp_path, "streamed")
    assert not (tmp_path / "calls").exists()

    assert in_a_process("resume", tmp_path, "run") == "Room 12 is yours.\n"

    with AgentsSession.open(tmp_path / "ws", "s") as session:
        assert gist(asyncio.run(session.get_items())) == CALL
        assert session.tree.verify() == []
    assert (tmp_path / "calls").read_text() == "12\n"


@pytest.mark.parametrize("failing", ["before", "after"])
@pytest.mark.parametrize("way", ["run", "streamed"])
@pytest.mark.parametrize("through_json", [False, True])
@on_a_loop
async def test_a_resumed_run_is_tried_again_after_a_failed_write(
    tmp_path, failing, way, through_json
):
    session = Unreliable.open(tmp_path / "ws", "s", durability="os")
    agent = agent_that(tmp_path / "calls", ASKS, ENDS)
    state = (await run(way, agent, "a room", session=session)).to_state()
    for interruption in state.get_interruptions():
        state.approve(interruption)

    session.failing = failing
    with pytest.raises(ConnectionError):
        await run(way, agent, state, session=session)
    if through_json:
        state = await RunState.from_json(agent, json.loads(json.dumps(state.to_json())))
        session = Unreliable.open(tmp_path / "ws", "s", durability="os")
    result = await run(way, agent, state, session=session)

    assert result.final_output == "Room 12 is yours."
    assert gist(await session.get_items()) == CALL
    assert (tmp_path / "calls").read_text() == "12\n"  # the tool was not run again


@pytest.mark.parametrize("room", [0, 100, 200])
@on_a_loop
async def test_a_full_disk_stores_nothing_of_a_batch_and_the_run_is_tried_again(tmp_path, room):
    session = AgentsSession.open(tmp_path / "ws", "s")
    await session.add_items(
        [{"role": "user", "content": "x" * 2_000_000}]
    )  # so that logs still fit
    agent = agent_that(tmp_path / "calls", ASKS, ENDS)
    state = (await Runner.run(agent, "a room", session=session)).to_state()
    state.approve(state.get_interruptions()[0])
    before = await session.get_items()

    with full_disk(session, room), pytest.raises(OSError, match="File too large"):
        await Runner.run(agent, state, session=session)
    assert await session.get_items() == before
    result = await Runner.run(agent, state, session=session)

    assert result.final_output == "Room 12 is yours."
    assert gist(await session.get_items())[1:] == CALL
    assert (tmp_path / "calls").read_text() == "12\n"
    assert session.tree.verify() == []


@pytest.mark.parametrize("way", WAYS)
@on_a_loop
async def test_an_approval_that_is_refused_is_part_of_the_conversation(session, tmp_path, way):
    agent = agent_that(tmp_path / "calls", ASKS, [assistant_message("Then not.")])
    state = (await run(way, agent, "a room", session=session)).to_state()
    state.reject(state.get_interruptions()[0])

    await run(way, agent, state, session=session)

    assert gist(await session.get_items()) == [*CALL[:-1], "Then not."]
    assert not (tmp_path / "calls").exists()


@on_a_loop
async def test_items_that_a_retry_takes_back_are_gone_and_others_stay(session):
    items = [{"role": "user", "content": text} for text in ("keep", "one", "two")]
    await session.add_items(items)

    await rewind_session_items(session, items[1:])
    assert await session.get_items() == items[:1]
    await rewind_session_items(session, [{"role": "user", "content": "not the tail"}])

    assert await session.get_items() == items[:1]


# -- runs that are cut short -------------------------------------------------------------------------


@dataclass
class Slow:
    """A tool that waits until it is told to go on."""

    begun: asyncio.Event

    def tool(self):
        @function_tool
        async def wait() -> str:
            self.begun.set()
            await asyncio.sleep(60)
            return "never"

        return wait


@pytest.mark.parametrize("mode", ["immediate", "task"])
@on_a_loop
async def test_a_stream_that_is_cancelled_in_the_middle_leaves_whole_items(session, mode):
    slow = Slow(asyncio.Event())
    steps = [[function_call("wait", {}, call_id="w1")], [assistant_message("later")]]
    agent = Agent(name="a", tools=[slow.tool()], model=ScriptedModel(steps))
    result = Runner.run_streamed(agent, "wait", session=session)

    async def consume():
        async for _event in result.stream_events():
            pass

    task = asyncio.create_task(consume())
    await asyncio.wait_for(slow.begun.wait(), 10)
    if mode == "immediate":
        result.cancel()
        await asyncio.wait_for(task, 10)
    else:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        result.cancel()
        await asyncio.sleep(0)
    await asyncio.gather(*(one for one in [result.run_loop_task] if one), return_exceptions=True)

    before = gist(await session.get_items())
    assert before[:1] == ["wait"]
    await Runner.run(speaker("fine"), "go on", session=session)
    assert gist(await session.get_items()) == [*before, "go on", "fine"]


@on_a_loop
async def test_a_stream_that_is_cancelled_after_the_turn_has_all_of_it(session):
    agent = Agent(
        name="a",
        tools=[function_tool(lambda: "seen", name_override="look")],
        model=ScriptedModel([[function_call("look", {}, call_id="l1")], [assistant_message("x")]]),
        model_settings=ModelSettings(),
    )
    result = Runner.run_streamed(agent, "look", session=session)
    async for event in result.stream_events():
        if getattr(event, "name", None) == "tool_called":
            result.cancel(mode="after_turn")

    told = gist(await session.get_items())
    assert told == ["look", "function_call l1", "function_call_output l1"]
