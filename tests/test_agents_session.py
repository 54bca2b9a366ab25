"""What the OpenAI Agents SDK expects of a session, of ours: on disk, on a synced disk, in memory."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
import threading

import pytest
from agents import SessionSettings, SQLiteSession
from agents.memory import Session
from agents.memory.session import _session_accepts_wrapper
from hypothesis import given
from hypothesis import strategies as st
from session_contract.talk import on_a_loop

from workspace_session import (
    InvalidId,
    InvalidMessage,
    SearchNotSupported,
    SessionExists,
    UnknownMessage,
    Workspace,
)
from workspace_session.adapters.openai_agents import AgentsSession


def user(text: str, **more) -> dict:
    return {"role": "user", "content": text, **more}


def answer(text: str) -> dict:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": "assistant", "status": "completed", "content": content}


def call(name: str = "look") -> list[dict]:
    asked = {"type": "function_call", "call_id": f"c-{name}", "name": name, "arguments": "{}"}
    return [asked, {"type": "function_call_output", "call_id": f"c-{name}", "output": "seen"}]


FIVE = [user("one"), answer("two"), *call(), user("five")]


def open_session(kind: str, root, session_id: str = "s", **more) -> AgentsSession:
    if kind == "memory":
        return AgentsSession.in_memory(session_id, **more)
    return AgentsSession.open(root, session_id, durability=kind, **more)


@pytest.fixture(params=["os", "disk", "memory"])
def session(request, tmp_path):
    with open_session(request.param, tmp_path) as opened:
        yield opened
        assert opened.tree.verify() == []


@pytest.fixture
def on_disk(tmp_path):
    with open_session("os", tmp_path) as opened:
        yield opened


# -- the four methods --------------------------------------------------------------------------------


def test_it_is_a_session_of_the_sdk_that_takes_the_context_of_a_run(session):
    assert isinstance(session, Session)
    assert _session_accepts_wrapper(session)
    assert (session.session_id, session.session_settings) == ("s", None)


@on_a_loop
async def test_a_new_session_is_empty(session):
    assert await session.get_items() == []
    assert await session.get_items(limit=5) == []
    assert await session.pop_item() is None
    await session.clear_session()
    assert not session.tree.exists()


@on_a_loop
async def test_items_come_back_in_order_and_equal_to_what_was_added(session):
    await session.add_items(FIVE[:2])
    await session.add_items(FIVE[2:])

    assert await session.get_items() == FIVE


@on_a_loop
async def test_adding_nothing_writes_nothing(session):
    await session.add_items([])

    assert not session.tree.exists()


@pytest.mark.parametrize(
    "item",
    [
        {},
        {"__enc__": 1, "v": 1, "kid": "hkdf-v1", "payload": "gAAAAA=="},
        {"id": "", "role": None, "type": 7, "content": {"deep": [[], {}, None, True, 1.5]}},
        {"id": "same", "role": "user", "content": "x"},
        user('用户喜欢咖啡 🙂 \u2028 \x00 \\ " naïve'),
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x" * 5000},
        {"type": "unheard_of", "n": 2**80, "f": 1e300, "parts": [{"type": "text", "text": "hi"}]},
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "…"},
        {"batch": {"id": "x", "size": 9}, "timestamp": "never", "parentId": 1, "message": {"a": 1}},
    ],
    ids=lambda item: "-".join(item)[:30] or "empty",
)
@on_a_loop
async def test_any_json_object_is_an_item(session, item):
    await session.add_items([item, user("next")])

    (found, _) = await session.get_items()

    assert found == item
    assert json.dumps(found) == json.dumps(item)  # and no key has moved
    assert await session.pop_item() == user("next")
    assert await session.pop_item() == item


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(
    st.lists(st.dictionaries(st.text(st.characters(codec="utf-8")), values, max_size=4), max_size=6)
)
def test_whatever_items_hold_they_come_back_the_same(items):
    session = AgentsSession.in_memory()

    async def main():
        await session.add_items(items)
        assert await session.get_items() == items
        assert [await session.pop_item() for _ in items] == items[::-1]

    asyncio.run(main())


@pytest.mark.parametrize("wrong", [["text"], [user("fine"), None], [user("fine"), {"f": {1, 2}}]])
@on_a_loop
async def test_when_one_item_is_no_json_object_none_is_added(session, wrong):
    with pytest.raises(InvalidMessage):
        await session.add_items(wrong)

    assert await session.get_items() == []


@on_a_loop
async def test_a_retried_batch_is_a_second_batch(session):
    batch = [user("again", id="msg_1"), user("again", id="msg_1")]

    await session.add_items(batch)
    await session.add_items(batch)

    assert await session.get_items() == batch * 2


@on_a_loop
async def test_what_a_caller_does_to_items_changes_nothing_stored(session):
    mine = user("one", tags=["a"])
    await session.add_items([mine])
    mine["tags"].append("b")
    (theirs,) = await session.get_items()
    theirs["tags"].clear()

    assert await session.get_items() == [user("one", tags=["a"])]


@on_a_loop
async def test_pop_gives_the_newest_and_the_next_item_takes_its_place(session):
    await session.add_items(FIVE)

    assert await session.pop_item() == FIVE[-1]
    assert await session.get_items() == FIVE[:-1]
    await session.add_items([user("instead")])

    assert await session.get_items() == [*FIVE[:-1], user("instead")]
    assert [await session.pop_item() for _ in range(6)] == [user("instead"), *FIVE[-2::-1], None]


@on_a_loop
async def test_clear_hides_everything_and_the_session_goes_on(session):
    await session.add_items(FIVE)
    await session.clear_session()

    assert await session.get_items() == []
    assert await session.pop_item() is None
    await session.add_items([user("new")])

    assert await session.get_items() == [user("new")]


@on_a_loop
async def test_sessions_of_one_workspace_do_not_see_each_other(tmp_path):
    workspace = Workspace(tmp_path, durability="os")
    agents = workspace.agent("a"), workspace.agent("a", user="u"), workspace.agent("b")
    sessions = [AgentsSession(agent, name) for agent in agents for name in ("s", "S2")]
    for number, session in enumerate(sessions):
        await session.add_items([user(str(number))])

    await sessions[0].pop_item()
    await sessions[1].clear_session()

    found = [await session.get_items() for session in sessions]
    assert found == [[], [], *([user(str(number))] for number in range(2, 6))]


# -- limits ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "start"), [(1, 4), (2, 3), (5, 0), (6, 0), (2**31 - 1, 0), (0, 5), (-1, 5), (-7, 5)]
)
@pytest.mark.parametrize("cold", [False, True])
@on_a_loop
async def test_a_limit_gives_the_newest(tmp_path, limit, start, cold):
    with open_session("os", tmp_path) as session:
        await session.add_items(FIVE)
        if cold:
            session = open_session("os", tmp_path)

        assert await session.get_items(limit) == FIVE[start:]
        assert await session.get_items(limit=limit) == FIVE[start:]


@pytest.mark.parametrize("settings", [SessionSettings(limit=2), {"limit": 2}])
@pytest.mark.parametrize("kind", ["os", "memory"])
@on_a_loop
async def test_the_settings_limit_what_is_read_and_an_explicit_limit_beats_them(
    tmp_path, kind, settings
):
    with open_session(kind, tmp_path, session_settings=settings) as session:
        await session.add_items(FIVE)

        assert session.session_settings == SessionSettings(limit=2)
        assert await session.get_items() == FIVE[-2:]
        assert await session.get_items(4) == FIVE[-4:]
        assert await session.get_items(0) == []
        session.session_settings = None
        assert await session.get_items() == FIVE


@on_a_loop
async def test_what_makes_no_sense_is_refused_in_one_sentence_and_changes_nothing(
    session, tmp_path
):
    with pytest.raises(TypeError, match="limt"):
        AgentsSession.in_memory(session_settings={"limt": 2})
    with pytest.raises(TypeError, match="settings are SessionSettings or a dict, not 5"):
        session.session_settings = 5
    for agent in (tmp_path, Workspace(tmp_path / "ws")):
        with pytest.raises(TypeError, match=r"AgentsSession\.open\(root, session_id\)"):
            AgentsSession(agent, "s")
    with pytest.raises(TypeError, match="a limit is a whole number, not '2'"):
        await session.get_items("2")
    for items in (user("alone"), "text"):
        with pytest.raises(InvalidMessage, match="items come as a list"):
            await session.add_items(items)
    with pytest.raises(TypeError, match="usage is that of a run's result, not of 5"):
        await session.record_usage(5)

    assert session.session_settings is None
    assert await session.get_items() == []


@on_a_loop
async def test_items_may_come_from_any_iterable(session):
    await session.add_items(iter(FIVE))

    assert await session.get_items() == FIVE


@on_a_loop
async def test_a_line_that_cannot_be_read_hides_no_item_and_a_limit_counts_items(tmp_path, caplog):
    with open_session("os", tmp_path) as session:
        await session.add_items(FIVE)
        for path in (tmp_path / "agents/default/sessions").glob("s.*jsonl"):
            lines = path.read_bytes().split(b"\n")
            path.write_bytes(b"\n".join([*lines[:-1], b'{"type":"mess', b"garbage", b""]))

        again = open_session("os", tmp_path)
        assert await again.get_items(2) == FIVE[-2:]
        assert await again.get_items() == await session.get_items() == FIVE
        assert await again.pop_item() == FIVE[-1]


# -- summaries ---------------------------------------------------------------------------------------


@on_a_loop
async def test_a_summary_reads_as_a_message_of_the_assistant_and_pops_as_a_whole(session):
    await session.add_items(FIVE)
    ids = [entry.id for entry in await session.history()]
    session.tree.compact("They looked.", ids[1], ids[3])
    summary = {"role": "assistant", "content": "They looked."}

    assert await session.get_items() == [FIVE[0], summary, FIVE[4]]
    assert await session.get_items(2) == [summary, FIVE[4]]
    assert [await session.pop_item(), await session.pop_item()] == [FIVE[4], summary]
    assert await session.get_items() == [FIVE[0]]


# -- opening and closing -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["os", "memory"])
@on_a_loop
async def test_after_close_every_method_raises(tmp_path, kind):
    session = open_session(kind, tmp_path)
    await session.add_items(FIVE)
    session.close()
    session.close()

    for attempt in (
        lambda: session.get_items(),
        lambda: session.get_items(0),
        lambda: session.add_items([]),
        lambda: session.add_items([user("x")]),
        lambda: session.pop_item(),
        lambda: session.clear_session(),
        lambda: session.branch_from(0),
        lambda: session.switch("x"),
        lambda: session.branches(),
        lambda: session.turns(),
        lambda: session.history(),
        lambda: session.search("one"),
        lambda: session.undo(),
        lambda: session.usage(),
        lambda: session.record_usage(None),
        lambda: session.fork("t"),
        lambda: session._get_compaction_snapshot(5),
        lambda: session._atomic_replace_items([]),
    ):
        with pytest.raises(RuntimeError, match="session 's' is closed"):
            await attempt()


@on_a_loop
async def test_it_closes_itself_behind_a_block(tmp_path):
    left = AgentsSession.open(tmp_path, "s")
    await left.aclose()
    with pytest.raises(RuntimeError):
        await left.get_items()
    async with AgentsSession.open(tmp_path, "s") as session:
        await session.add_items(FIVE)
    with AgentsSession.open(tmp_path, "s", "default") as again:
        assert await again.get_items() == FIVE
    for closed in (session, again):
        with pytest.raises(RuntimeError):
            await closed.get_items()


def test_closing_one_session_leaves_the_workspace_it_was_given_open(agent):
    one, other = AgentsSession(agent, "one"), AgentsSession(agent, "other")
    one.close()

    asyncio.run(other.add_items([user("still here")]))

    assert agent.search("still").total == 1


def test_one_session_is_used_from_several_loops_and_threads(session):
    def work(name):
        for number in range(10):
            asyncio.run(session.add_items([user(f"{name}-{number}-a"), user(f"{name}-{number}-b")]))

    threads = [threading.Thread(target=work, args=(name,)) for name in "xyz"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    texts = [item["content"] for item in asyncio.run(session.get_items())]
    assert len(texts) == 60
    assert all(a[:-1] == b[:-1] for a, b in zip(texts[::2], texts[1::2], strict=True))


def test_two_handles_pop_each_item_once(tmp_path):
    handles = [open_session("os", tmp_path) for _ in range(4)]
    asyncio.run(handles[0].add_items([user(str(number)) for number in range(40)]))
    popped: list[str] = []

    def pop_all(handle):
        while (item := asyncio.run(handle.pop_item())) is not None:
            popped.append(item["content"])

    threads = [threading.Thread(target=pop_all, args=(handle,)) for handle in handles]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(popped, key=int) == [str(number) for number in range(40)]


@on_a_loop
async def test_calls_at_the_same_time_keep_batches_together(session):
    batches = [[user(f"{number}"), answer(f"{number}")] for number in range(20)]

    await asyncio.gather(*(session.add_items(batch) for batch in batches))

    items = await session.get_items()
    assert sorted(map(json.dumps, items)) == sorted(json.dumps(i) for b in batches for i in b)
    assert all(items[at : at + 2] in batches for at in range(0, 40, 2))


@pytest.mark.parametrize("kind", ["os", "disk"])
def test_a_cancelled_add_has_either_happened_or_not_begun(tmp_path, kind):
    async def main():
        with open_session(kind, tmp_path) as session:
            await session.add_items([user("first")])
            for number in range(20):
                task = asyncio.create_task(session.add_items([user(str(number))] * 3))
                await asyncio.sleep(number / 20_000)
                task.cancel()
                result = (await asyncio.gather(task, return_exceptions=True))[0]
                assert result is None or isinstance(result, asyncio.CancelledError)
                texts = [item["content"] for item in await session.get_items()]
                assert texts.count(str(number)) in (0, 3)
            assert session.tree.verify() == []

    asyncio.run(main())


def test_neither_making_one_nor_using_one_needs_the_sdk(tmp_path):
    program = textwrap.dedent("""
        import asyncio, sys
        sys.modules["agents"] = None

        from workspace_session.adapters.openai_agents import AgentsSession

        async def main():
            session = AgentsSession.open(sys.argv[1], "s", session_settings={"limit": 1})
            await session.add_items([{"role": "user", "content": "hi"}] * 2)
            print(len(await session.get_items()), await session._get_compaction_snapshot(5))

        asyncio.run(main())
    """)

    done = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True)

    assert (done.stdout, done.stderr) == ("1 None\n", "")


# -- beyond the protocol -----------------------------------------------------------------------------


@pytest.mark.parametrize("place", [1, -4])
@on_a_loop
async def test_a_branch_starts_after_an_item_and_the_old_one_stays(session, place):
    await session.add_items(FIVE)

    entry_id = await session.branch_from(place)
    await session.add_items([user("other")])

    assert entry_id == (await session.history())[1].id
    assert await session.get_items() == [*FIVE[:2], user("other")]
    old, new = await session.branches()
    assert (old.item_count, old.is_active, new.item_count, new.is_active) == (5, False, 3, True)
    await session.switch(old.entry_id)
    assert await session.get_items() == FIVE


@on_a_loop
async def test_a_tip_in_the_middle_is_a_branch_too(session):
    await session.add_items(FIVE)
    await session.pop_item()

    assert [(branch.item_count, branch.is_active) for branch in await session.branches()] == [
        (5, False),
        (4, True),
    ]


@on_a_loop
async def test_a_branch_from_a_summary_starts_behind_what_it_covers(session):
    await session.add_items(FIVE)
    ids = [entry.id for entry in await session.history()]
    session.tree.compact("sum", ids[0], ids[3])

    assert await session.branch_from(0) == ids[3]
    assert await session.get_items() == [{"role": "assistant", "content": "sum"}]


@on_a_loop
async def test_what_is_not_there_cannot_be_branched_from(session):
    await session.add_items(FIVE)

    for place in (5, -6):
        with pytest.raises(IndexError, match=rf"there is no item {place}: the session has 5"):
            await session.branch_from(place)
    for place in (None, True, 1.0):
        with pytest.raises(TypeError, match="an item is named by its place or the id of its entry"):
            await session.branch_from(place)
    for attempt in (session.branch_from("nobody"), session.switch("nobody")):
        with pytest.raises(UnknownMessage):
            await attempt
    assert await session.get_items() == FIVE


@on_a_loop
async def test_a_session_goes_on_from_its_start_too(session):
    await session.add_items(FIVE)

    await session.switch(None)
    await session.add_items([user("instead")])

    assert await session.get_items() == [user("instead")]
    assert [branch.item_count for branch in await session.branches()] == [5, 1]


@on_a_loop
async def test_turns_begin_with_what_users_say(session):
    await session.add_items([answer("welcome"), *FIVE])

    turns = await session.turns()

    assert [(turn.number, turn.items) for turn in turns] == [
        (0, [answer("welcome")]),
        (1, FIVE[:4]),
        (2, FIVE[4:]),
    ]
    assert turns[1].entry_id == (await session.history())[1].id


@on_a_loop
async def test_history_has_ids_and_times_also_of_what_a_summary_hides(session):
    await session.add_items(FIVE)
    ids = [entry.id for entry in await session.history()]
    session.tree.compact("sum", ids[0], ids[3])

    history = await session.history()

    assert [entry.message for entry in history] == FIVE
    assert [entry.timestamp for entry in history] == sorted(entry.timestamp for entry in history)


@on_a_loop
async def test_every_word_is_found_on_all_branches_and_sealed_items_are_not_in_the_way(on_disk):
    await on_disk.add_items([user("the blue boat"), {"__enc__": 1, "payload": "blue"}])
    await on_disk.branch_from(0)
    await on_disk.add_items([answer("a bluebird")])
    await on_disk.clear_session()
    await on_disk.add_items([user("blue again")])

    hits = await on_disk.search("blue")

    assert sorted(hit.content for hit in hits) == ["blue again"]
    with pytest.raises(SearchNotSupported):
        await AgentsSession.in_memory().search("blue")


@on_a_loop
async def test_pops_and_clears_are_undone(session):
    await session.add_items(FIVE)
    await session.pop_item()
    await session.clear_session()

    assert await session.undo()
    assert await session.get_items() == FIVE[:-1]
    await session.pop_item()
    await session.pop_item()
    while await session.undo():
        pass

    assert await session.get_items() == FIVE[:-1]


@on_a_loop
async def test_a_fork_begins_alike_and_goes_on_alone(session):
    await session.add_items(FIVE)

    fork = await session.fork("t")
    await fork.add_items([user("theirs")])

    assert (fork.session_id, type(fork)) == ("t", AgentsSession)
    assert await fork.get_items() == [*FIVE, user("theirs")]
    assert await session.get_items() == FIVE
    assert fork.tree.header().parent_session == "s"


@on_a_loop
async def test_an_empty_session_can_be_forked_and_a_fork_replaces_nothing(on_disk):
    fork = await on_disk.fork("t")

    assert await fork.get_items() == []
    await on_disk.add_items(FIVE)
    with pytest.raises(SessionExists):
        await on_disk.fork("t")
    assert await fork.get_items() == []


@on_a_loop
async def test_a_database_of_the_sdk_and_a_workspace_hold_the_same(session, tmp_path):
    """The same calls, with the same answers."""
    peer = SQLiteSession("s", tmp_path / "peer.db")
    steps = [
        lambda s: s.add_items(FIVE),
        lambda s: s.get_items(),
        lambda s: s.get_items(3),
        lambda s: s.pop_item(),
        lambda s: s.get_items(limit=1),
        lambda s: s.add_items([user("x")] * 2),
        lambda s: s.get_items(100),
        lambda s: s.clear_session(),
        lambda s: s.pop_item(),
        lambda s: s.get_items(),
        lambda s: s.add_items(call()),
        lambda s: s.get_items(),
    ]

    for step in steps:
        assert await step(session) == await step(peer)
    peer.close()


@pytest.mark.parametrize("unfit", ["", "a\0b", "x" * 200, None, 42])
def test_what_can_be_no_id_is_none_in_memory_either(tmp_path, unfit):
    with pytest.raises(InvalidId):
        AgentsSession.open(tmp_path, unfit)
    with pytest.raises(InvalidId):
        AgentsSession.in_memory(unfit)
