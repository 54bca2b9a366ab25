"""Runs that hold back what they have to write until an approval has come, over our session.

An agent whose tools may end a run, and whose output is judged, writes a call that waits for an approval
only with its output: the state of the run carries it until then.
"""

from __future__ import annotations

import json

import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    OutputGuardrailTripwireTriggered,
    Runner,
    RunState,
    StopAtTools,
    UserError,
    function_tool,
    output_guardrail,
)
from agents.testing import ScriptedModel, assistant_message, function_call
from agents_talk import Unreliable, gist, run
from session_contract.talk import on_a_loop

from workspace_session.adapters.openai_agents import AgentsSession, LocalCompactionSession

streamed_or_not = pytest.mark.parametrize("way", ["run", "streamed"])

LOOKED = ["go", "function_call l", "function_call_output l"]


def pair(call_id: str) -> list[str]:
    return [f"function_call {call_id}", f"function_call_output {call_id}"]


@function_tool
def look() -> str:
    return "seen"


@function_tool(needs_approval=True)
def book(room: str) -> str:
    return f"{room} is booked"


def judge(trips: bool = False, breaks: bool = False):
    @output_guardrail
    async def judged(_context, _agent, _output):
        if breaks:
            raise ZeroDivisionError
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=trips)

    return judged


def clerk(*rooms: str, ends_with: str = "other", **judged) -> Agent:
    """An agent that looks, then asks to book all rooms at once, then says that it is done."""
    steps = [
        [function_call("look", {}, call_id="l")],
        [function_call("book", {"room": room}, call_id=room) for room in rooms],
        [assistant_message("done")],
    ]
    return Agent(
        name="clerk",
        tools=[look, book],
        model=ScriptedModel(steps),
        output_guardrails=[judge(**judged)],
        tool_use_behavior=StopAtTools(stop_at_tool_names=[ends_with]),
    )


async def carried(result, agent: Agent) -> RunState:
    """The state of a run as another process would have it."""
    return await RunState.from_json(agent, json.loads(json.dumps(result.to_state().to_json())))


async def asked(way: str, agent: Agent, session, *, approve: str | None = None) -> RunState:
    """The state of a run that has asked, with one answer, or with all."""
    state = await carried(await run(way, agent, "go", session=session), agent)
    answer(state, approve)
    return state


def answer(state: RunState, approve: str | None = None) -> None:
    for interruption in state.get_interruptions():
        if approve in (None, interruption.raw_item.call_id):
            state.approve(interruption)


@pytest.fixture(params=["disk", "memory"])
def session(request, tmp_path):
    """A session on disk, and one in memory that could be compacted."""
    if request.param == "memory":
        store = AgentsSession.in_memory("s")
        yield LocalCompactionSession(store, lambda _items: "never", keep_recent=99)
        return
    with AgentsSession.open(tmp_path, "s", durability="os") as opened:
        yield opened
        assert opened.tree.verify() == []


@streamed_or_not
@on_a_loop
async def test_a_call_that_waits_is_written_with_its_output_in_one_batch(session, way):
    agent = clerk("12")

    state = await asked(way, agent, session)
    assert gist(await session.get_items()) == LOOKED
    await run(way, agent, state, session=session)

    assert gist(await session.get_items()) == [*LOOKED, *pair("12"), "done"]
    batches = [entry.batch for entry in await session.history()]
    assert batches[3] is not None
    assert batches[3].id == batches[4].id


@streamed_or_not
@on_a_loop
async def test_a_refused_call_is_written_with_the_refusal(session, way):
    agent = clerk("12")
    state = await carried(await run(way, agent, "go", session=session), agent)
    state.reject(state.get_interruptions()[0])

    await run(way, agent, state, session=session)

    items = await session.get_items()
    assert gist(items) == [*LOOKED, *pair("12"), "done"]
    assert "not approved" in items[4]["output"]


@streamed_or_not
@on_a_loop
async def test_two_calls_that_are_approved_one_after_the_other_are_written_once(session, way):
    agent = clerk("12", "14")

    state = await asked(way, agent, session, approve="12")
    half = await run(way, agent, state, session=session)
    assert gist(await session.get_items()) == LOOKED
    state = await carried(half, agent)
    answer(state)
    await run(way, agent, state, session=session)

    told = gist(await session.get_items())
    assert told[:3] == LOOKED
    assert sorted(told[3:-1]) == sorted([*pair("12"), *pair("14")])
    assert told[-1] == "done"


@streamed_or_not
@pytest.mark.parametrize("judged", [{}, {"breaks": True}, {"trips": True}], ids=str)
@on_a_loop
async def test_a_call_that_ends_the_run_is_written_whatever_the_judge_says(session, way, judged):
    agent = clerk("12", ends_with="book", **judged)
    state = await asked(way, agent, session)

    if judged:
        with pytest.raises((ZeroDivisionError, OutputGuardrailTripwireTriggered)):
            await run(way, agent, state, session=session)
    else:
        await run(way, agent, state, session=session)

    assert gist(await session.get_items()) == [*LOOKED, *pair("12")]


@streamed_or_not
@on_a_loop
async def test_what_was_held_back_goes_into_no_other_session(session, way):
    agent, other = clerk("12"), AgentsSession.in_memory("other")
    state = await asked(way, agent, session)

    with pytest.raises(UserError, match="pending Session write"):
        await run(way, agent, state, session=other)

    assert await other.get_items() == []
    await run(way, agent, state, session=session)
    assert gist(await session.get_items()) == [*LOOKED, *pair("12"), "done"]


@on_a_loop
async def test_a_run_that_went_on_without_its_session_brings_the_rest_when_it_comes_back(session):
    agent = clerk("12")
    state = await asked("streamed", agent, session)
    apart = Runner.run_streamed(agent, state, session=None)
    apart.cancel(mode="after_turn")
    async for _event in apart.stream_events():
        pass
    assert gist(await session.get_items()) == LOOKED

    await run("streamed", agent, await carried(apart, agent), session=session)

    assert gist(await session.get_items()) == [*LOOKED, *pair("12"), "done"]


@streamed_or_not
@pytest.mark.parametrize("failing", ["before", "after"])
@on_a_loop
async def test_what_was_held_back_is_written_once_when_its_write_fails(tmp_path, way, failing):
    session = Unreliable.open(tmp_path, "s", durability="os")
    agent = clerk("12")
    state = await asked(way, agent, session)

    session.failing = failing
    with pytest.raises(ConnectionError):
        await run(way, agent, state, session=session)
    state = await RunState.from_json(agent, json.loads(json.dumps(state.to_json())))
    again = Unreliable.open(tmp_path, "s", durability="os")
    await run(way, agent, state, session=again)

    assert gist(await session.get_items()) == [*LOOKED, *pair("12"), "done"]
    assert session.tree.verify() == []


@streamed_or_not
@on_a_loop
async def test_approvals_of_one_conversation_after_another_are_all_remembered(session, way):
    for room in ("12", "14", "16"):
        agent = clerk(room)
        state = await asked(way, agent, session)
        await run(way, agent, state, session=session)

    told = gist(await session.get_items())
    assert told[4::6] == [
        "function_call_output 12",
        "function_call_output 14",
        "function_call_output 16",
    ]
    assert told[5::6] == ["done"] * 3
