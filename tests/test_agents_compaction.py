"""The SDK's compaction and encryption over our session, and our own compaction with any model."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import agents
import pytest
from agents import Agent, RunConfig, Runner, function_tool
from agents.extensions.memory import EncryptedSession
from agents.memory import OpenAIResponsesCompactionSession, SQLiteSession
from agents.testing import ScriptedModel, assistant_message, function_call
from agents_resume import ASKS, ENDS, agent_that
from session_contract.talk import on_a_loop

from workspace_session import InvalidCompaction
from workspace_session.adapters.openai_agents import AgentsSession, LocalCompactionSession

agents.set_tracing_disabled(True)

SUMMARY = {"type": "compaction", "id": "cmp_1", "encrypted_content": "all of it"}
SPOKEN = {"role": "assistant", "content": "what was said"}


def user(text: str) -> dict:
    return {"role": "user", "content": text}


def said(text: str) -> dict:
    return {"role": "assistant", "content": text}


def talk(count: int) -> list[dict]:
    return [(said if number % 2 else user)(str(number)) for number in range(count)]


class Client:
    """An OpenAI client that compacts as it is told, and remembers what it was asked."""

    def __init__(self, output=(SUMMARY,), meanwhile=None) -> None:
        self.asked: list[dict] = []
        self.output, self.meanwhile = list(output), meanwhile
        self.responses = self

    async def compact(self, **asked):
        self.asked.append(asked)
        if self.meanwhile is not None:
            await self.meanwhile()
        if isinstance(self.output[0] if self.output else None, Exception):
            raise self.output[0]
        return SimpleNamespace(output=self.output, usage=None)


def compacting(session, client, **more) -> OpenAIResponsesCompactionSession:
    more.setdefault("should_trigger_compaction", lambda _context: True)
    return OpenAIResponsesCompactionSession("s", session, client=client, **more)


async def reply(session, given="go on", text="done", **more):
    """One run; without a limit it gives the model all there is."""
    agent = Agent(name="a", model=ScriptedModel([[assistant_message(text)]]))
    return await Runner.run(agent, given, session=session, **more)


def texts(items) -> list[str]:
    found = []
    for item in items:
        content = item.get("content") or item.get("encrypted_content") or item.get("type")
        found.append(content if isinstance(content, str) else content[0]["text"])
    return found


@pytest.fixture(params=["disk", "memory"])
def ours(request, tmp_path):
    if request.param == "memory":
        yield AgentsSession.in_memory("s")
        return
    with AgentsSession.open(tmp_path, "s", durability="os") as session:
        yield session
        assert session.tree.verify() == []


# -- the SDK's own compaction ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "sent"), [("input", "input"), ("previous_response_id", "previous_response_id"), ("auto", "previous_response_id")]
)  # fmt: skip
@on_a_loop
async def test_the_sdk_compacts_in_each_of_its_modes_and_what_it_replaced_stays(ours, mode, sent):
    client = Client()
    await ours.add_items(talk(4))

    await reply(compacting(ours, client, compaction_mode=mode))

    assert [set(asked) for asked in client.asked] == [{"model", sent}]
    assert await ours.get_items() == [SUMMARY]
    old, new = await ours.branches()
    assert (old.item_count, new.item_count, new.is_active) == (6, 1, True)
    await ours.switch(old.entry_id)
    assert texts(await ours.get_items()) == ["0", "1", "2", "3", "go on", "done"]


@on_a_loop
async def test_a_response_that_was_not_stored_is_compacted_from_its_input(ours):
    client = Client()
    agent = Agent(
        name="a",
        model=ScriptedModel([[assistant_message("done")]]),
        model_settings=agents.ModelSettings(store=False),
    )

    await Runner.run(agent, "go on", session=compacting(ours, client))

    assert texts(client.asked[0]["input"]) == ["go on", "done"]
    assert await ours.get_items() == [SUMMARY]


@on_a_loop
async def test_what_the_model_did_not_see_is_not_replaced(ours):
    await ours.add_items(talk(4))
    client = Client()

    config = RunConfig(session_settings=agents.SessionSettings(limit=1))
    await reply(compacting(ours, client, compaction_mode="input"), run_config=config)

    assert texts(client.asked[0]["input"]) == ["go on", "done"]
    assert await ours.get_items() == [*talk(4), SUMMARY]


@on_a_loop
async def test_what_was_added_meanwhile_stops_a_replacement(ours):
    await ours.add_items(talk(2))
    client = Client(meanwhile=lambda: ours.add_items([user("newer")]))

    await reply(compacting(ours, client, compaction_mode="input"))

    assert texts(await ours.get_items()) == ["0", "1", "go on", "done", "newer"]
    assert len(await ours.branches()) == 1


@pytest.mark.parametrize("mode", ["input", "previous_response_id", "auto"])
@on_a_loop
async def test_a_compaction_by_hand_replaces_everything_at_once(ours, mode):
    await ours.add_items(talk(3))
    session = compacting(ours, Client(), should_trigger_compaction=lambda _context: False)
    args = {"force": True, "compaction_mode": mode, "response_id": "resp_1"}

    await session.run_compaction(args)

    assert await ours.get_items() == await session.get_items() == [SUMMARY]
    assert [branch.item_count for branch in await ours.branches()] == [3, 1]


@on_a_loop
async def test_a_compaction_that_fails_changes_nothing(ours):
    await ours.add_items(talk(3))
    session = compacting(ours, Client([ConnectionError("no model")]))

    with pytest.raises(ConnectionError):
        await session.run_compaction({"force": True})

    assert await ours.get_items() == talk(3)


@on_a_loop
async def test_a_compaction_to_nothing_leaves_nothing(ours):
    await ours.add_items(talk(3))

    await compacting(ours, Client([])).run_compaction({"force": True})

    assert await ours.get_items() == []
    assert await ours.undo()
    assert await ours.get_items() == talk(3)


@on_a_loop
async def test_an_sdk_without_its_hooks_clears_and_adds(ours, monkeypatch):
    monkeypatch.delattr(AgentsSession, "_atomic_replace_items")
    monkeypatch.delattr(AgentsSession, "_get_compaction_snapshot")
    await ours.add_items(talk(2))

    await reply(compacting(ours, Client()))
    assert await ours.get_items() == [SUMMARY]

    assert await ours.pop_item() == SUMMARY
    await ours.undo()
    assert await ours.get_items() == [SUMMARY]


@on_a_loop
async def test_a_subclass_that_gives_items_another_form_is_not_bypassed():
    class Shouting(AgentsSession):
        async def add_items(self, items, *, wrapper=None):
            loud = [{**item, "content": item["content"].upper()} for item in items]
            await super().add_items(loud, wrapper=wrapper)

    session = Shouting.in_memory("s")
    await session.add_items(talk(2))
    await compacting(session, Client([user("quiet")])).run_compaction({"force": True})

    assert await session.get_items() == [user("QUIET")]


@on_a_loop
async def test_a_snapshot_is_bounded_and_knows_whether_it_is_complete(ours):
    await ours.add_items(talk(5))

    for limit, complete in ((4, False), (5, True), (50, True)):
        snapshot = await ours._get_compaction_snapshot(limit)
        assert (snapshot.items, snapshot.complete) == (talk(5)[-limit:], complete)

    snapshot = await ours._get_compaction_snapshot(3)
    assert await snapshot.replace_suffix(3, [user("x")]) is False
    assert await snapshot.replace_suffix(1, [user("x")]) is True
    assert await snapshot.replace_suffix(1, [user("y")]) is False  # it has changed by now
    assert await ours.get_items() == [*talk(3), user("x")]


@on_a_loop
async def test_a_cancelled_replacement_ends_before_the_next_write(ours):
    await ours.add_items(talk(4))
    snapshot = await ours._get_compaction_snapshot(9)

    task = asyncio.create_task(snapshot.replace_suffix(2, [SUMMARY]))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await ours.add_items([user("newer")])

    assert await ours.get_items() in ([*talk(2), SUMMARY, user("newer")], [*talk(4), user("newer")])


@on_a_loop
async def test_tools_put_a_compaction_off_until_their_outputs_were_answered(ours):
    client = Client()
    steps = [[function_call("look", {}, call_id="l")], [assistant_message("seen")]]
    agent = Agent(
        name="a",
        tools=[function_tool(lambda: "fine", name_override="look")],
        model=ScriptedModel(steps),
    )

    await Runner.run(agent, "look", session=compacting(ours, client, compaction_mode="input"))

    assert len(client.asked) == 1
    assert len(client.asked[0]["input"]) == 4
    assert await ours.get_items() == [SUMMARY]


# -- encryption --------------------------------------------------------------------------------------


def sealed(session, key="the right key", **more) -> EncryptedSession:
    return EncryptedSession("s", session, encryption_key=key, **more)


@on_a_loop
async def test_what_is_encrypted_is_read_with_its_key_only(ours):
    session = sealed(ours)
    for number in range(3):
        await reply(session, f"secret {number}", f"answer {number}")

    told = [f"{who} {number}" for number in range(3) for who in ("secret", "answer")]
    assert texts(await session.get_items()) == told
    assert texts(await session.get_items(3)) == told[-3:]
    assert "secret" not in str(await ours.get_items())
    assert await sealed(ours, "a wrong key").get_items() == []
    assert [text for item in [await session.pop_item()] for text in texts([item])] == ["answer 2"]


@on_a_loop
async def test_a_wrong_key_loses_nothing(ours):
    """The SDK pops what a key does not open; here that only moves the tip."""
    right, wrong = sealed(ours), sealed(ours, "a wrong key")
    await right.add_items(talk(6))
    (branch,) = await ours.branches()

    assert await wrong.pop_item() is None
    assert await right.get_items() == []
    await ours.switch(branch.entry_id)
    assert await right.get_items() == talk(6)

    assert await wrong.pop_item() is None
    await wrong.clear_session()
    while await ours.undo():
        pass
    await ours.switch(branch.entry_id)
    assert await right.get_items() == talk(6)


@pytest.mark.parametrize("outside", ["encryption", "compaction"])
@pytest.mark.parametrize("expired", [0, 1, 30])
@on_a_loop
async def test_encryption_and_compaction_of_the_sdk_work_together(
    ours, monkeypatch, outside, expired
):
    now = [1000]
    monkeypatch.setattr("time.time", lambda: now[0])
    client = Client()
    if outside == "encryption":
        session = sealed(compacting(ours, client), ttl=10)
    else:
        session = compacting(sealed(ours, ttl=10), client)
    if expired:
        await session.add_items([user("expired")] * expired)
    now[0] += 11
    await session.add_items(talk(12))

    await reply(session)

    assert len(client.asked) == 1
    assert "expired" not in str(client.asked)
    assert await session.get_items() == [SUMMARY]
    assert all(item["__enc__"] == 1 for item in await ours.get_items())


@on_a_loop
async def test_expired_items_go_out_of_the_way_when_the_sdk_says_so(ours):
    await ours.add_items(talk(6))
    snapshot = await ours._get_compaction_snapshot(
        3, prune_prefix=lambda item: item["content"] < "2"
    )

    assert await snapshot.replace_suffix(1, [SUMMARY])

    assert await ours.get_items() == [*talk(6)[2:4], SUMMARY]
    assert texts(entry.message for entry in ours.tree.log() if entry.type == "message")[:6] == list(
        "012345"
    )


# -- compaction with any model -----------------------------------------------------------------------


class Model:
    """A summariser that remembers what it was given."""

    def __init__(self, text="what was said") -> None:
        self.text = text
        self.given: list[list[str]] = []

    def __call__(self, items):
        self.given.append(texts(items))
        return self.text

    async def later(self, items):
        await asyncio.sleep(0)
        return self(items)


@pytest.mark.parametrize("name", ["__call__", "later"])
@on_a_loop
async def test_a_summary_stands_in_for_the_older_items_and_all_of_them_stay(ours, name):
    model = Model()
    session = LocalCompactionSession(ours, getattr(model, name), keep_recent=2)
    await session.add_items(talk(6))

    await session.run_compaction({"force": True})

    assert model.given == [["0", "1", "2", "3"]]
    assert await session.get_items() == [SPOKEN, *talk(6)[4:]]
    assert [entry.message for entry in await session.history()] == talk(6)
    assert len(await session.branches()) == 1


@on_a_loop
async def test_a_later_summary_takes_the_earlier_one_in(ours):
    model = Model()
    session = LocalCompactionSession(ours, model, keep_recent=0)
    for _ in range(2):
        await session.add_items(talk(2))
        await session.run_compaction({"force": True})
    await session.run_compaction({"force": True})

    assert model.given == [["0", "1"], ["what was said", "0", "1"]]
    assert await session.get_items() == [SPOKEN]


@on_a_loop
async def test_runs_compact_once_ten_items_that_are_not_the_users_have_come(ours):
    model = Model()
    session = LocalCompactionSession(ours, model)
    agent = Agent(name="a", model=ScriptedModel([[assistant_message(str(n))] for n in range(25)]))

    counts = []
    for number in range(25):
        await Runner.run(agent, f"q{number}", session=session)
        counts.append(len(model.given))

    assert counts == [0] * 9 + [1] * 10 + [2] * 6
    assert model.given[1][:2] == ["what was said", "q8"]
    assert len(agent.model.calls[10].input) == 1 + 4 + 1  # a summary, the recent ones, the question
    assert len(await session.history()) == 50


@on_a_loop
async def test_a_trigger_is_asked_with_what_the_sdk_tells_its_own(ours):
    asked = []
    session = LocalCompactionSession(
        ours, Model(), should_trigger=lambda it: asked.append(it) or False
    )
    await session.add_items([SUMMARY, *talk(2), {"type": "reasoning", "id": "r", "summary": []}])

    await session.run_compaction(
        {"response_id": "resp_1", "compaction_mode": "input", "store": False}
    )
    await session.run_compaction()

    assert asked[0]["response_id"] == "resp_1"
    assert asked[0]["compaction_mode"] == "input"
    assert len(asked[0]["compaction_candidate_items"]) == 2
    assert asked[0]["session_items"] == await ours.get_items()
    assert asked[1]["response_id"] is None


CALLS = [
    {"type": "reasoning", "id": "r", "summary": []},
    {"type": "function_call", "call_id": "a", "name": "x", "arguments": "{}"},
    {"type": "function_call", "call_id": "b", "name": "x", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "a", "output": ""},
    {"type": "function_call_output", "call_id": "b", "output": ""},
]
APPROVAL = [
    {"type": "mcp_approval_request", "id": "m", "name": "x", "server_label": "s", "arguments": ""},
    {"type": "mcp_approval_response", "approval_request_id": "m", "approve": True},
]


@pytest.mark.parametrize(
    ("items", "keep", "summarised"),
    [
        ([*talk(2), *CALLS, said("end")], 1, 7),
        ([*talk(2), *CALLS, said("end")], 2, 2),  # no call without its output, no thought alone
        ([*talk(2), *CALLS, said("end")], 5, 2),
        ([*talk(2), *CALLS, said("end")], 7, 1),
        ([*CALLS, said("end")], 3, 0),
        ([*talk(2), *APPROVAL, said("end")], 2, 2),
        ([*talk(2), CALLS[1]], 0, 2),  # it waits for an approval
        ([*talk(2), APPROVAL[0]], 0, 2),
        ([*talk(2), CALLS[1], user("never mind"), said("fine")], 0, 5),  # it waits no more
        ([user("q"), {"type": "web_search_call", "id": "w", "status": "done"}, said("a")], 1, 2),
    ],
)
@on_a_loop
async def test_a_summary_parts_nothing_that_belongs_together(ours, items, keep, summarised):
    model = Model()
    session = LocalCompactionSession(ours, model, keep_recent=keep)
    await session.add_items(items)

    await session.run_compaction({"force": True})

    expected = [SPOKEN, *items[summarised:]] if summarised else items
    assert await session.get_items() == expected


@on_a_loop
async def test_what_comes_while_a_summary_is_made_follows_it(ours):
    async def slowly(_items):
        await ours.add_items([user("meanwhile")])
        return "what was said"

    session = LocalCompactionSession(ours, slowly, keep_recent=1)
    await session.add_items(talk(4))
    await session.run_compaction({"force": True})

    assert await session.get_items() == [SPOKEN, said("3"), user("meanwhile")]


@on_a_loop
async def test_a_summary_of_what_was_taken_back_meanwhile_is_dropped(ours):
    async def slowly(_items):
        for _ in range(3):
            await ours.pop_item()
        return "what was said"

    session = LocalCompactionSession(ours, slowly, keep_recent=1)
    await session.add_items(talk(4))
    await session.run_compaction({"force": True})

    assert await session.get_items() == talk(1)


@on_a_loop
async def test_who_summarises_may_put_it_off(ours):
    session = LocalCompactionSession(ours, lambda _items: None, keep_recent=1)
    await session.add_items(talk(4))

    await session.run_compaction({"force": True})

    assert await session.get_items() == talk(4)
    assert ours.tree.compactions() == []


@pytest.mark.parametrize("made", ["", "  \n", 7])
@on_a_loop
async def test_a_summary_that_is_none_changes_nothing(ours, made):
    session = LocalCompactionSession(ours, lambda _items: made, keep_recent=1)
    await session.add_items(talk(4))

    with pytest.raises(InvalidCompaction, match="the summary is blank"):
        await session.run_compaction({"force": True})

    assert await session.get_items() == talk(4)


@on_a_loop
async def test_what_is_encrypted_is_never_given_to_a_model(ours, caplog):
    model = Model()
    session = sealed(LocalCompactionSession(ours, model, keep_recent=1))
    await session.add_items(talk(14))

    await reply(session)
    await reply(session)

    assert model.given == []
    assert caplog.text.count("it is not summarised") == 1  # not after each response
    assert texts(await session.get_items())[-3:] == ["done", "go on", "done"]


@on_a_loop
async def test_an_encrypted_session_is_summarised_by_who_has_its_key_and_the_summary_is_sealed(
    ours,
):
    model = Model()
    session = LocalCompactionSession(sealed(ours), model, keep_recent=2)
    await session.add_items(talk(6))

    await session.run_compaction({"force": True})
    await reply(session)
    await session.run_compaction({"force": True})

    assert model.given == [["0", "1", "2", "3"], ["what was said", "4", "5"]]
    assert texts(await session.get_items()) == ["what was said", "go on", "done"]
    assert all(item["__enc__"] == 1 for item in await ours.get_items())
    assert "what was said" not in ours.tree.info().summary + str([e.line for e in ours.tree.log()])
    assert await sealed(ours, "a wrong key").get_items() == []


@on_a_loop
async def test_what_another_key_has_sealed_is_never_hidden(ours):
    model = Model()
    await sealed(ours, "another key").add_items(talk(4))
    session = LocalCompactionSession(sealed(ours), model, keep_recent=1)
    await session.run_compaction({"force": True})
    await session.add_items(talk(3))

    await session.run_compaction({"force": True})

    assert model.given == [["0", "1"]]
    assert texts(await session.get_items()) == ["what was said", "2"]
    assert await sealed(ours, "another key").get_items() == talk(4)


@pytest.mark.parametrize("text", ['{"__enc__":1,', '{"__enc__":1,"v":1', "{}"])
@on_a_loop
async def test_a_summary_that_looks_like_an_envelope_and_is_none_is_a_text(ours, text):
    session = LocalCompactionSession(ours, lambda _items: text, keep_recent=1)
    await session.add_items(talk(3))
    await session.run_compaction({"force": True})

    assert await session.get_items() == [said(text), user("2")]


@on_a_loop
async def test_a_limit_and_a_callback_hold_for_summaries_too(ours):
    session = LocalCompactionSession(ours, Model(), keep_recent=2)
    session.session_settings = {"limit": 3}
    await session.add_items(talk(8))
    await session.run_compaction({"force": True})

    seen = []
    config = RunConfig(session_input_callback=lambda old, new: seen.append(old) or old + new)
    await reply(session, [user("q")], run_config=config)

    assert seen == [[SPOKEN, *talk(8)[6:]]]
    assert ours.session_settings.limit == session.session_settings.limit == 3


@pytest.mark.parametrize("streamed", [False, True])
@on_a_loop
async def test_a_run_that_waits_for_an_approval_is_resumed_over_a_summary(ours, tmp_path, streamed):
    model = Model()
    session = LocalCompactionSession(
        ours, model, should_trigger=lambda _context: True, keep_recent=0
    )
    await session.add_items(talk(4))
    agent = agent_that(tmp_path / "calls", ASKS, ENDS)

    first = await (
        finished(agent, "a room", session)
        if streamed
        else Runner.run(agent, "a room", session=session)
    )
    state = await agents.RunState.from_json(agent, first.to_state().to_json())
    state.approve(state.get_interruptions()[0])
    await (
        finished(agent, state, session) if streamed else Runner.run(agent, state, session=session)
    )

    assert (tmp_path / "calls").read_text() == "12\n"
    assert await session.get_items() == [SPOKEN]
    assert [item.get("call_id") for item in (e.message for e in await session.history())].count(
        "c1"
    ) == 2


@pytest.mark.parametrize("streamed", [False, True])
@on_a_loop
async def test_runs_with_tools_and_handoffs_go_on_over_summaries(ours, streamed):
    """A summary after every response: no model is ever given half of a call."""

    @agents.output_guardrail
    async def fine(_context, _agent, _output):
        return agents.GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)

    look = function_tool(lambda: "seen", name_override="look")
    expert = Agent(
        name="expert",
        tools=[look],
        output_guardrails=[fine],
        model=ScriptedModel([calls("look", "c2"), [assistant_message("I know.")]] * 3),
    )
    front = Agent(
        name="front",
        tools=[look],
        handoffs=[expert],
        model=ScriptedModel([calls("look", "c1"), calls("transfer_to_expert", "h1")] * 3),
    )
    model = Model()
    session = LocalCompactionSession(ours, model, should_trigger=lambda _it: True, keep_recent=1)

    for number in range(3):
        if streamed:
            result = await finished(front, f"q{number}", session)
        else:
            result = await Runner.run(front, f"q{number}", session=session)
        assert result.final_output == "I know."

    for call in (*front.model.calls, *expert.model.calls):
        asked = [one["call_id"] for one in call.input if one.get("type") == "function_call"]
        answered = [one["call_id"] for one in call.input if one.get("type", "").endswith("_output")]
        assert sorted(asked) == sorted(answered)
    assert [given[0] for given in model.given] == ["q0", "what was said", "what was said"]
    assert len(await session.history()) == 3 * 8
    assert await session.get_items() == [SPOKEN, (await session.history())[-1].message]


def calls(name: str, call_id: str) -> list:
    return [function_call(name, {}, call_id=call_id)]


async def finished(agent, given, session):
    result = Runner.run_streamed(agent, given, session=session)
    async for _event in result.stream_events():
        pass
    return result


@on_a_loop
async def test_it_is_the_session_in_everything_else(ours):
    session = LocalCompactionSession(ours, Model())
    await session.add_items(talk(3))

    assert (session.session_id, session.session_settings) == ("s", None)
    assert await session.pop_item() == user("2")
    assert await session.undo()
    await session.branch_from(0)
    assert [branch.item_count for branch in await session.branches()] == [3, 1]
    await session.clear_session()
    assert await session.get_items() == []
    with pytest.raises(AttributeError):
        _ = session.nothing_of_the_kind


def test_only_what_can_be_compacted_is(tmp_path):
    with pytest.raises(TypeError, match="an AgentsSession is compacted, not a SQLiteSession"):
        LocalCompactionSession(SQLiteSession("s"), Model())
    with pytest.raises(ValueError, match="keep_recent is zero or more"):
        LocalCompactionSession(AgentsSession.in_memory(), Model(), keep_recent=-1)
    with pytest.raises(TypeError, match="a function is needed to compact, not 'no'"):
        LocalCompactionSession(AgentsSession.in_memory(), "no")
