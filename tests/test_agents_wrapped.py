"""The SDK's own wrappers over our session, where they meet other writers, keys and failures."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from agents import Agent, RunConfig, Runner, RunState, SessionSettings
from agents.extensions.memory import EncryptedSession
from agents.memory import OpenAIResponsesCompactionSession
from agents.testing import ScriptedModel, assistant_message
from agents_resume import ASKS, ENDS, agent_that
from agents_talk import Unreliable, asked, full_disk, gist, run, speaker
from session_contract.talk import on_a_loop

from workspace_session.adapters.openai_agents import AgentsSession

SUMMARY = {"role": "assistant", "content": "all of it"}


def user(text: str) -> dict:
    return {"role": "user", "content": text}


def said(text: str) -> dict:
    return {"role": "assistant", "content": text}


def talk(count: int) -> list[dict]:
    return [(said if number % 2 else user)(str(number)) for number in range(count)]


def sealed(session, key: str = "ours", **more) -> EncryptedSession:
    return EncryptedSession("s", session, encryption_key=key, **more)


@pytest.fixture(params=["disk", "memory"])
def ours(request, tmp_path):
    if request.param == "memory":
        yield AgentsSession.in_memory("s")
        return
    with AgentsSession.open(tmp_path, "s", durability="os") as session:
        yield session
        assert session.tree.verify() == []


# -- encryption --------------------------------------------------------------------------------------


@pytest.fixture
def mixed(ours):
    """Four items that our key opens; behind them what it does not: another's, and open text."""

    async def fill() -> None:
        await sealed(ours).add_items(talk(4))
        await sealed(ours, "theirs").add_items(talk(3))
        await ours.add_items([user("open")])

    asyncio.run(fill())
    return ours


@pytest.mark.parametrize(("limit", "start"), [(None, 0), (2, 2), (4, 0), (9, 0), (0, 4)])
@pytest.mark.parametrize("by_settings", [False, True])
@on_a_loop
async def test_a_limit_reaches_past_what_a_key_does_not_open(mixed, limit, start, by_settings):
    session = sealed(mixed)
    if by_settings:
        session.session_settings = SessionSettings(limit=limit)

    assert await session.get_items(*[limit] * (not by_settings)) == talk(4)[start:]
    assert mixed.session_settings == (SessionSettings(limit=limit) if by_settings else None)


@on_a_loop
async def test_a_read_that_may_look_at_few_items_only_says_when_it_has_not_found_all(mixed):
    assert await sealed(mixed, max_scan_items=50).get_items(2) == talk(4)[2:]
    with pytest.raises(RuntimeError, match="max_scan_items"):
        await sealed(mixed, max_scan_items=3).get_items(2)


@on_a_loop
async def test_a_pop_gives_the_newest_item_that_a_key_opens(mixed):
    assert await sealed(mixed).pop_item() == talk(4)[3]
    assert await sealed(mixed).get_items() == talk(3)


@on_a_loop
async def test_what_has_expired_is_neither_given_to_a_model_nor_popped(ours, monkeypatch):
    now = [1000]
    monkeypatch.setattr("time.time", lambda: now[0])
    session = sealed(ours, ttl=10)
    await session.add_items([user("stale")] * 3)
    now[0] += 11
    agent = speaker("one", "two")

    for text in ("first", "second"):
        await Runner.run(agent, text, session=session)

    assert asked(agent)[-1] == ["first", "one", "second"]
    assert gist([await session.pop_item() for _ in range(4)]) == ["two", "second", "one", "first"]
    assert await session.pop_item() is None


@on_a_loop
async def test_the_context_of_a_run_goes_through_the_encryption():
    class Watched(AgentsSession):
        async def add_items(self, items, *, wrapper=None):
            self.context = wrapper.context
            await super().add_items(items, wrapper=wrapper)

    session, context = Watched.in_memory("s"), object()

    await Runner.run(speaker("hi"), "hello", session=sealed(session), context=context)

    assert session.context is context


@pytest.mark.parametrize("failing", ["before", "after"])
@pytest.mark.parametrize("way", ["run", "streamed"])
@on_a_loop
async def test_an_encrypted_run_is_resumed_after_a_write_that_failed(tmp_path, failing, way):
    """Whether the write was done is told from what the key opens: no two envelopes are equal."""
    store = Unreliable.open(tmp_path / "ws", "s", durability="os")
    agent = agent_that(tmp_path / "calls", ASKS, ENDS)
    state = (await run(way, agent, "a room", session=sealed(store))).to_state()
    state.approve(state.get_interruptions()[0])

    store.failing = failing
    with pytest.raises(ConnectionError):
        await run(way, agent, state, session=sealed(store))
    state = await RunState.from_json(agent, state.to_json())
    await run(way, agent, state, session=sealed(store))

    told = ["a room", "function_call c1", "function_call_output c1", "Room 12 is yours."]
    assert gist(await sealed(store).get_items()) == told
    assert len(await store.get_items()) == 4
    assert (tmp_path / "calls").read_text() == "12\n"


# -- compaction --------------------------------------------------------------------------------------


class Client:
    """An OpenAI client that compacts; what it is told to do meanwhile, it does first."""

    def __init__(self, meanwhile=None, output=(SUMMARY,)) -> None:
        self.meanwhile, self.output = meanwhile, list(output)
        self.asked: list[dict] = []
        self.responses = self

    async def compact(self, **given):
        self.asked.append(given)
        if self.meanwhile is not None:
            await self.meanwhile()
        return SimpleNamespace(output=self.output, usage=None)


def compacting(session, client) -> OpenAIResponsesCompactionSession:
    return OpenAIResponsesCompactionSession(
        "s",
        session,
        client=client,
        compaction_mode="input",
        should_trigger_compaction=lambda _context: True,
    )


async def reply(session, **more) -> None:
    agent = Agent(name="a", model=ScriptedModel([[assistant_message("done")]]))
    await Runner.run(agent, "go on", session=session, **more)


@pytest.mark.parametrize(
    ("call", "left"),
    [
        (lambda other: other.add_items([user("newer")]), ["0", "1", "go on", "done", "newer"]),
        (lambda other: other.pop_item(), ["0", "1", "go on"]),
        (lambda other: other.clear_session(), []),
        (lambda other: other.branch_from(0), ["0"]),
    ],
    ids=["add", "pop", "clear", "branch"],
)
@on_a_loop
async def test_what_another_handle_does_meanwhile_is_not_overwritten(tmp_path, call, left):
    ours, other = (AgentsSession.open(tmp_path, "s", durability="os") for _ in range(2))
    await ours.add_items(talk(2))

    await reply(compacting(ours, Client(lambda: call(other))))

    assert gist(await ours.get_items()) == gist(await other.get_items()) == left


@pytest.mark.parametrize(
    ("call", "left"),
    [
        (lambda session: session.add_items([user("newer")]), ["all of it", "newer"]),
        (lambda session: session.pop_item(), []),
        (lambda session: session.clear_session(), []),
    ],
    ids=["add", "pop", "clear"],
)
@on_a_loop
async def test_what_the_same_session_is_asked_meanwhile_comes_after_the_summary(ours, call, left):
    waiting = []

    async def ask() -> None:
        waiting.append(asyncio.create_task(call(session)))
        await asyncio.sleep(0)

    session = compacting(ours, Client(ask))
    await session.add_items(talk(4))
    await session.run_compaction({"force": True})
    await asyncio.gather(*waiting)

    assert len(waiting) == 1
    assert gist(await ours.get_items()) == left


@on_a_loop
async def test_a_replacement_that_cannot_be_written_changes_nothing(tmp_path):
    ours = AgentsSession.open(tmp_path, "s")
    await ours.add_items([{**user("0"), "more": "x" * 1_000_000}, said("1")])
    before = await ours.get_items()
    snapshot = await ours._get_compaction_snapshot(9)

    with full_disk(ours, 0), pytest.raises(OSError, match="File too large"):
        await snapshot.replace_suffix(0, [SUMMARY])
    with full_disk(ours, 0), pytest.raises(OSError, match="File too large"):
        await ours._atomic_replace_items([SUMMARY])

    assert await ours.get_items() == before
    assert await snapshot.replace_suffix(0, [SUMMARY])
    assert await ours.get_items() == [SUMMARY]
    assert ours.tree.verify() == []


@on_a_loop
async def test_when_all_that_is_left_has_expired_nothing_is_left(ours):
    await ours.add_items([*[user("expired")] * 3, *talk(2)])
    snapshot = await ours._get_compaction_snapshot(
        2, prune_prefix=lambda item: item["content"] == "expired"
    )

    assert await snapshot.replace_suffix(0, [])

    assert await ours.get_items() == []
    await ours.add_items([user("next")])
    assert await ours.get_items() == [user("next")]


@on_a_loop
async def test_expired_items_stay_when_something_else_stands_before_them(ours):
    await ours.add_items([user("kept"), *[user("expired")] * 3, *talk(2)])
    snapshot = await ours._get_compaction_snapshot(
        2, prune_prefix=lambda item: item["content"] == "expired"
    )

    assert await snapshot.replace_suffix(0, [SUMMARY])

    assert gist(await ours.get_items()) == ["kept", *["expired"] * 3, "all of it"]


@pytest.mark.parametrize("outside", ["encryption", "compaction"])
@on_a_loop
async def test_a_compaction_leaves_what_another_key_has_sealed_and_all_before_it(ours, outside):
    await sealed(ours).add_items(talk(2))
    await sealed(ours, "theirs").add_items([user("theirs")])
    await sealed(ours).add_items(talk(4))
    client = Client()
    if outside == "encryption":
        session = sealed(compacting(ours, client))
    else:
        session = compacting(sealed(ours), client)

    await reply(session)

    assert gist(client.asked[0]["input"]) == ["0", "1", "2", "3", "go on", "done"]
    assert await sealed(ours).get_items() == [*talk(2), SUMMARY]
    assert await sealed(ours, "theirs").get_items() == [user("theirs")]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5])
@on_a_loop
async def test_a_compaction_of_the_newest_items_parts_no_call_from_its_output(ours, limit):
    look = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
    seen = {"type": "function_call_output", "call_id": "c", "output": "seen"}
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    history = [user("look"), thought, look, seen, said("fine")]
    await ours.add_items(history)

    config = RunConfig(session_settings=SessionSettings(limit=limit))
    await reply(compacting(ours, Client()), run_config=config)

    whole = limit == 5
    assert await ours.get_items() == ([SUMMARY] if whole else [*history, SUMMARY])
