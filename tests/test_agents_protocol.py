"""What the SDK's runner and its wrappers rely on in any session, of ours: on disk and in memory."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager

import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    MaxTurnsExceeded,
    ModelRetrySettings,
    ModelSettings,
    RunConfig,
    Runner,
    SessionSettings,
    UserError,
    function_tool,
    input_guardrail,
    output_guardrail,
)
from agents.run_internal.session_persistence import rewind_session_items
from agents.testing import ScriptedModel, assistant_message, function_call
from agents_resume import ASKS, ENDS, agent_that
from agents_talk import WAYS, asked, full_disk, gist, run, speaker
from session_contract.talk import on_a_loop

from workspace_session.adapters.openai_agents import AgentsSession


def user(text: str) -> dict:
    return {"role": "user", "content": text}


def said(text: str) -> dict:
    return {"role": "assistant", "content": text}


LOOKED = [
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "seen"},
]


@pytest.fixture(params=["disk", "memory"])
def make(request, tmp_path):
    """Opens a session of a class and an id, in one workspace or in memory."""
    opened = []

    def open_one(kind=AgentsSession, session_id="s", **more):
        if request.param == "memory":
            session = kind.in_memory(session_id, **more)
        else:
            session = kind.open(tmp_path / "ws", session_id, durability="os", **more)
        opened.append(session)
        return session

    yield open_one
    for session in opened:
        if not session._closed:
            assert session.tree.verify() == []


@pytest.fixture
def session(make):
    return make()


# -- what a run hands to a session -------------------------------------------------------------------


class Watched(AgentsSession):
    """A session that notes which calls a run makes, and with what context."""

    @property
    def calls(self) -> list[tuple[str, object]]:
        return self.__dict__.setdefault("_calls", [])

    async def get_items(self, limit=None, *, wrapper=None):
        self.calls.append(("get", wrapper))
        return await super().get_items(limit, wrapper=wrapper)

    async def add_items(self, items, *, wrapper=None):
        self.calls.append(("add", wrapper))
        await super().add_items(items, wrapper=wrapper)

    async def pop_item(self, *, wrapper=None):
        self.calls.append(("pop", wrapper))
        return await super().pop_item(wrapper=wrapper)


class Old(AgentsSession):
    """A session written before runs had a context to hand on."""

    async def get_items(self, limit=None):
        return await super().get_items(limit)

    async def add_items(self, items):
        await super().add_items(items)

    async def pop_item(self):
        return await super().pop_item()

    async def clear_session(self):
        await super().clear_session()


@pytest.mark.parametrize("way", WAYS)
@on_a_loop
async def test_every_call_of_a_run_has_the_context_of_the_run(make, way):
    session = make(Watched)

    result = await run(way, speaker("hi"), "hello", session=session, context={"tenant": 7})

    assert [name for name, _ in session.calls] == ["get", "add", "add"]
    assert all(wrapper is result.context_wrapper for _, wrapper in session.calls)
    assert session.calls[0][1].context == {"tenant": 7}


@pytest.mark.parametrize("way", ["run", "streamed"])
@on_a_loop
async def test_a_resumed_run_and_one_that_a_guardrail_stops_hand_it_on_too(make, tmp_path, way):
    @input_guardrail(run_in_parallel=False)
    async def nothing(_context, _agent, _given):
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)

    session, context = make(Watched), object()
    agent = agent_that(tmp_path / "calls", ASKS, ENDS)
    first = await run(way, agent, "a room", session=session, context=context)
    state = first.to_state()
    state.approve(first.interruptions[0])
    await run(way, agent, state, session=session)
    guarded = speaker("never", input_guardrails=[nothing])
    with pytest.raises(InputGuardrailTripwireTriggered):
        await run(way, guarded, "stop", session=session, context=context)

    assert len(session.calls) >= 6
    assert all(wrapper.context is context for _, wrapper in session.calls)


@on_a_loop
async def test_a_retry_takes_items_back_in_the_context_of_its_run(make):
    session = make(Watched)
    result = await Runner.run(speaker("hi"), "hello", session=session)
    newest = (await session.get_items())[-2:]
    session.calls.clear()

    await rewind_session_items(session, newest, wrapper=result.context_wrapper)

    assert await AgentsSession.get_items(session) == []
    assert [name for name, _ in session.calls].count("pop") == 2
    assert all(wrapper is result.context_wrapper for _, wrapper in session.calls)


@on_a_loop
async def test_items_are_put_back_when_a_retry_could_take_only_some_of_them(make):
    class Stubborn(Watched):
        async def pop_item(self, *, wrapper=None):
            if self.calls[-1][0] == "pop":
                raise ConnectionError("the second pop fails")
            return await super().pop_item(wrapper=wrapper)

    session = make(Stubborn)
    await session.add_items([user("one"), user("two"), user("three")])

    await rewind_session_items(session, [user("two"), user("three")])

    assert gist(await session.get_items()) == ["one", "two", "three"]


@pytest.mark.parametrize("way", WAYS)
@on_a_loop
async def test_a_subclass_that_knows_of_no_context_is_called_without_one(make, way):
    session = make(Old)

    for text in ("one", "two"):
        await run(way, speaker(text.upper()), text, session=session, context=object())

    assert gist(await session.get_items()) == ["one", "ONE", "two", "TWO"]


# -- what the model is given -------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@on_a_loop
async def test_a_list_of_items_follows_what_is_remembered_and_is_remembered_whole(session, way):
    agent = speaker("fine", "good")
    await run(way, agent, "first", session=session)

    await run(way, agent, [user("second"), said("hm"), user("third")], session=session)

    told = ["first", "fine", "second", "hm", "third"]
    assert asked(agent)[-1] == told
    assert gist(await session.get_items()) == [*told, "good"]


@pytest.mark.parametrize(
    ("limit", "start"), [(0, 4), (1, 3), (2, 3), (3, 1), (4, 0), (99, 0), (None, 0)]
)
@on_a_loop
async def test_a_limit_gives_no_output_without_its_call_and_keeps_all(session, limit, start):
    history = [user("look"), *LOOKED, said("seen?")]
    await session.add_items(history)
    agent = speaker("yes")

    config = RunConfig(session_settings=SessionSettings(limit=limit))
    await Runner.run(agent, "well", session=session, run_config=config)

    assert asked(agent) == [[*gist(history[start:]), "well"]]
    assert (await session.get_items())[:5] == [*history, user("well")]
    assert session.session_settings is None  # what one run asks for is its own


@pytest.mark.parametrize("way", WAYS)
@on_a_loop
async def test_history_that_a_callback_repeats_is_not_remembered_twice(session, way):
    config = RunConfig(session_input_callback=lambda old, new: [*old, *old[:1], *new])
    agent = speaker("a", "b", "c")

    for text in ("one", "two", "three"):
        await run(way, agent, text, session=session, run_config=config)

    assert asked(agent)[-1] == ["one", "a", "two", "b", "one", "three"]
    assert gist(await session.get_items()) == ["one", "a", "two", "b", "three", "c"]


@pytest.mark.parametrize("way", WAYS)
@on_a_loop
async def test_a_callback_that_waits_may_drop_reorder_and_add(session, way):
    await session.add_items([user("old")])

    async def turned(old, new):
        await asyncio.sleep(0)
        return [user("note"), *reversed(new[1:]), *old]

    agent = speaker("fine")
    config = RunConfig(session_input_callback=turned)
    given = [user("dropped"), user("first"), user("second")]
    await run(way, agent, given, session=session, run_config=config)

    assert asked(agent) == [["note", "second", "first", "old"]]
    assert gist(await session.get_items()) == ["old", "note", "second", "first", "fine"]


@pytest.mark.parametrize("way", ["run", "streamed"])
@on_a_loop
async def test_a_request_that_is_sent_again_is_remembered_once(session, way):
    await session.add_items([user("before")])
    agent = Agent(
        name="a",
        model=ScriptedModel([ConnectionError("no line"), [assistant_message("done")]]),
        model_settings=ModelSettings(
            retry=ModelRetrySettings(max_retries=1, policy=lambda _context: True)
        ),
    )

    await run(way, agent, "hello", session=session)

    assert gist(await session.get_items()) == ["before", "hello", "done"]


# -- runs that end otherwise -------------------------------------------------------------------------


def looking(*steps, **more) -> Agent:
    look = function_tool(lambda: "seen", name_override="look")
    return Agent(name="looker", tools=[look], model=ScriptedModel(steps), **more)


LOOKS = [function_call("look", {}, call_id="c1")]


@pytest.mark.parametrize("way", ["run", "streamed"])
@pytest.mark.parametrize("remembered", [True, False])
@on_a_loop
async def test_a_run_that_is_out_of_turns_keeps_what_it_did_and_what_it_says_instead(
    session, way, remembered
):
    told = {"final_output": "enough", "include_in_history": remembered}
    more = {"session": session, "max_turns": 1}
    with pytest.raises(MaxTurnsExceeded):
        await run(way, looking(LOOKS), "look", **more)
    handlers = {"max_turns": lambda _data: told}

    result = await run(way, looking(LOOKS), "again", error_handlers=handlers, **more)

    turn = ["function_call c1", "function_call_output c1"]
    assert result.final_output == "enough"
    kept = gist(await session.get_items())
    assert kept == ["look", *turn, "again", *turn, *["enough"] * remembered]


@pytest.mark.parametrize("way", ["run", "streamed"])
@on_a_loop
async def test_a_guardrail_that_breaks_keeps_the_answer_it_was_to_judge(session, way):
    @output_guardrail
    async def broken(_context, _agent, _output):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await run(way, speaker("kept", output_guardrails=[broken]), "hello", session=session)

    assert gist(await session.get_items()) == ["hello", "kept"]


@pytest.mark.parametrize("way", ["run", "streamed"])
@on_a_loop
async def test_a_tool_that_fails_leaves_no_call_without_an_output(session, way):
    def fail() -> str:
        raise ZeroDivisionError

    agent = looking([*LOOKS, function_call("fail", {}, call_id="c2")], [assistant_message("so")])
    agent.tools.append(function_tool(fail, failure_error_function=None))

    with pytest.raises(UserError, match="Error running tool fail"):
        await run(way, agent, "try", session=session)
    await run(way, agent, "again", session=session)

    given = agent.model.calls[-1].input
    calls = [item["call_id"] for item in given if item.get("type") == "function_call"]
    outputs = [item["call_id"] for item in given if item.get("type") == "function_call_output"]
    assert calls == outputs
    assert gist(given)[0] == "try"
    assert gist(await session.get_items())[-2:] == ["again", "so"]


@pytest.mark.parametrize("way", WAYS)
@on_a_loop
async def test_a_session_that_was_closed_meanwhile_is_an_error_of_the_run(make, way):
    session = make()

    def leave() -> str:
        session.close()
        return "left"

    agent = looking([function_call("leave", {}, call_id="c1")], [assistant_message("lost")])
    agent.tools.append(function_tool(leave))

    with pytest.raises(RuntimeError, match="session 's' is closed"):
        await run(way, agent, "leave", session=session)


@on_a_loop
async def test_a_stream_that_is_cancelled_after_its_second_turn_goes_on_from_there(session):
    agent = looking(LOOKS, [function_call("look", {}, call_id="c2")], [assistant_message("both")])
    result = Runner.run_streamed(agent, "look twice", session=session)
    outputs = 0
    async for event in result.stream_events():
        outputs += getattr(event, "name", None) == "tool_output"
        if outputs == 2:
            result.cancel(mode="after_turn")

    turns = [f"function_call{kind} c{number}" for number in "12" for kind in ("", "_output")]
    assert gist(await session.get_items()) == ["look twice", *turns]
    await Runner.run(agent, "well?", session=session)
    assert gist(await session.get_items()) == ["look twice", *turns, "well?", "both"]


@on_a_loop
async def test_an_agent_that_is_a_tool_remembers_in_a_session_of_its_own(make):
    ours, theirs = make(session_id="front"), make(session_id="expert")
    expert = speaker("one", "two")
    tool = expert.as_tool("ask", "Ask.", session=theirs)
    asks = [[function_call("ask", {"input": f"q{n}"}, call_id=f"a{n}")] for n in "12"]
    steps = [asks[0], [assistant_message("A")], asks[1], [assistant_message("B")]]
    front = Agent(name="front", tools=[tool], model=ScriptedModel(steps))

    for text in ("first", "second"):
        await Runner.run(front, text, session=ours)

    assert asked(expert)[-1] == ["q1", "one", "q2"]
    assert gist(await theirs.get_items()) == ["q1", "one", "q2", "two"]
    turn = ["function_call a1", "function_call_output a1", "A"]
    assert gist(await ours.get_items())[:4] == ["first", *turn]


# -- calls that fail, wait or are cancelled ----------------------------------------------------------


CALLS = {
    "add": (lambda session: session.add_items([user("new")] * 2), ["big", "two", "new", "new"]),
    "pop": (lambda session: session.pop_item(), ["big"]),
    "clear": (lambda session: session.clear_session(), []),
}
each_call = pytest.mark.parametrize(("call", "left"), CALLS.values(), ids=CALLS)


async def filled(session: AgentsSession) -> AgentsSession:
    await session.add_items([user("big"), user("two")])
    return session


@each_call
@on_a_loop
async def test_a_call_that_fails_changes_nothing_and_is_made_again(tmp_path, call, left):
    session = AgentsSession.open(tmp_path, "s")
    await session.add_items([{**user("big"), "more": "x" * 1_000_000}, user("two")])
    before = await session.get_items()

    with full_disk(session, 0), pytest.raises(OSError, match="File too large"):
        await call(session)
    assert await session.get_items() == before
    assert await AgentsSession.open(tmp_path, "s").get_items() == before
    await call(session)

    assert gist(await session.get_items()) == left
    assert gist(await AgentsSession.open(tmp_path, "s").get_items()) == left
    assert session.tree.verify() == []


@contextmanager
def somebody_writing(session: AgentsSession):
    """Another thread has the lock of the session until the block ends."""
    has_it, done = threading.Event(), threading.Event()

    def hold() -> None:
        with session.tree._lock:
            has_it.set()
            done.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    assert has_it.wait(10)
    try:
        yield done.set
    finally:
        done.set()
        holder.join()


@each_call
@pytest.mark.parametrize("durability", ["os", "disk"])
@on_a_loop
async def test_a_call_that_is_cancelled_while_it_waits_ends_before_its_caller_goes_on(
    tmp_path, call, left, durability
):
    session = await filled(AgentsSession.open(tmp_path, "s", durability=durability))

    with somebody_writing(session) as let_go:
        waiting = asyncio.create_task(call(session))
        for _ in range(3):
            await asyncio.sleep(0)
            waiting.cancel()
        assert not waiting.done()
        let_go()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    assert gist(await session.get_items()) == left
    await session.add_items([user("next")])
    assert gist(await session.get_items()) == [*left, "next"]


@pytest.mark.parametrize("durability", ["os", "disk"])
@on_a_loop
async def test_closing_lets_a_call_end_that_has_begun_and_no_other_begin(tmp_path, durability):
    session = await filled(AgentsSession.open(tmp_path, "s", durability=durability))

    with somebody_writing(session):
        waiting = asyncio.create_task(session.add_items([user("new")] * 2))
        await asyncio.sleep(0)
        session.close()
        late = asyncio.create_task(session.add_items([user("late")]))
        with pytest.raises(RuntimeError, match="is closed"):
            await late
    await waiting

    assert gist(await AgentsSession.open(tmp_path, "s").get_items()) == ["big", "two", "new", "new"]


@on_a_loop
async def test_pops_at_the_same_time_give_each_item_to_one(session):
    await session.add_items([user(str(number)) for number in range(10)])

    popped = await asyncio.gather(*(session.pop_item() for _ in range(12)))

    assert popped.count(None) == 2
    assert sorted(gist(filter(None, popped))) == sorted(map(str, range(10)))


def test_the_first_writers_of_a_workspace_that_is_not_there_yet_do_not_lose_each_other(tmp_path):
    ready = threading.Barrier(6)

    def write(name: str) -> None:
        async def main() -> None:
            ready.wait(10)
            session = AgentsSession.open(tmp_path / "ws", name[0], durability="os")
            await session.add_items([user(name), said(name)])

        asyncio.run(main())

    names = [f"{session}{number}" for session in "ab" for number in range(3)]
    threads = [threading.Thread(target=write, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for session_id in "ab":
        session = AgentsSession.open(tmp_path / "ws", session_id)
        told = gist(asyncio.run(session.get_items()))
        assert sorted(told) == sorted(2 * [name for name in names if name[0] == session_id])
        assert told[::2] == told[1::2]
        assert session.tree.verify() == []


STRANGE = [
    "'; DROP TABLE s; --",
    "../../s",
    "a/b",
    "..",
    " ",
    "$ne",
    "会話 🙂",
    "a\nb",
    "s.jsonl",
]


@on_a_loop
async def test_any_text_is_an_id_of_its_own(make):
    sessions = [make(session_id=session_id) for session_id in STRANGE]
    for session in sessions:
        await session.add_items([user(session.session_id)])
    again = [AgentsSession(one._agent, one.session_id) if one._agent else one for one in sessions]

    assert [session.session_id for session in sessions] == STRANGE
    assert [gist(await session.get_items()) for session in again] == [[name] for name in STRANGE]
