"""Sessions that go between files and Postgres, in both directions, and stay what they are."""

from __future__ import annotations

import asyncio
import json
import uuid

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from session_contract.talk import fill, names, on_a_loop, says
from test_postgres_machine import play, steps

from workspace_session import (
    InvalidMessage,
    PostgresStore,
    Session,
    SessionManager,
    UnknownSession,
    Workspace,
)
from workspace_session.cli import main
from workspace_session.postgres import Copied, Progress, pull, push
from workspace_session.stores.postgres import paths, transfer


@pytest.fixture(autouse=True, scope="module")
def many_milestones():
    """One at every second message or so: what they say is in what is told of a session."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "_EVERY", 2)
        yield


@pytest.fixture
def store(connection, fresh_name):
    return PostgresStore(connection, fresh_name)


@pytest.fixture
def other(tmp_path):
    """The same agent in another workspace."""
    with Workspace(tmp_path / "other", durability="os") as opened:
        yield opened.agent("a")
        assert opened.verify() == []


@pytest.fixture
def rich(tree):
    """A session in which everything has happened that can."""
    for number in range(10):
        tree.append(says(f"m{number}", f"deploy number {number}"))
    tree.append(says("b", "你好 世界", createdAt="2020-01-01T00:00:00Z"), "m3")
    tree.append({"role": "assistant", "content": "another dialect", "big": 2**70})
    tree.extend([says("e0"), says("e1")], "m9", author="somebody")
    tree.update("m2", says("m2", "changed"))
    tree.update("b", says("b", "你们好", createdAt="2030-01-01T00:00:00Z"))
    tree.compact("what was said", "m0", "m3")
    tree.compact("what is gone", "m6", "m7")
    tree.delete(["m5", "m7"])
    tree.append(says("m5", "said again"), "m4")
    tree.label("m1", "good")
    tree.annotate(name="Trip", model="large", tags=["x", "y"], own={"k": [1]}, end_reason="done")
    tree.add_usage(input_tokens=5, output_tokens=2, cost=0.5)
    tree.add_custom("theirs", {"y": 2})
    tree.set_leaf("m4")
    return tree


def everything(tree):
    """What a session is, on files."""
    return {
        "messages": [(e.id, e.parent_id, e.timestamp, e.message) for e in tree.all_messages()],
        "context": [getattr(item, "summary", item.id) for item in tree.context()],
        "overlays": [(o.id, o.summary, o.from_id, o.to_id) for o in tree.compactions()],
        "labels": tree.labels(),
        "facts": tree.facts(),
        "tip": tree.leaf,
        "info": tree.info(),
        "lines": sorted(entry.line for entry in tree.log()),
    }


async def told(store, session_id="s"):
    """What a session says, wherever it is."""
    session = Session(store, session_id=session_id)
    leaf = await session.get_latest_leaf()
    every = [message async for message in session._provider.iter_messages()]
    return {
        "tip": leaf and leaf["id"],
        "history": await session.get_history(),
        "children": [names(await session.get_branches(one["id"])) for one in every],
        "messages": every,
        "overlays": await session.get_compactions(),
        "recent": await session.get_recent_history(500),
        "found": {(h.message_id, h.content, h.created_at) for h in await session.search("deploy")},
    }


# -- there and back --------------------------------------------------------------------------------


@on_a_loop
async def test_a_round_trip_gives_the_same_session(agent, rich, store, other):
    assert await push(agent, store) == [Copied("s", len(list(rich.log())))]
    (copied,) = await pull(store, other)

    assert copied == Copied("s", len(list(rich.log())))
    assert everything(other.tree("s")) == everything(rich)


@on_a_loop
async def test_a_pushed_session_says_in_postgres_what_it_says_on_files(agent, rich, store):
    await push(agent, store)

    assert await told(store) == await told(agent)
    here, there = rich.info(), await store.info("s")
    for fact in (
        "name", "summary", "model", "end_reason", "tags", "labels", "message_count",
        "input_tokens", "output_tokens", "estimated_cost", "created_at", "updated_at",
    ):  # fmt: skip
        assert (fact, getattr(there, fact)) == (fact, getattr(here, fact))


@on_a_loop
async def test_searches_find_the_same_on_both_sides_of_a_trip(agent, rich, store, other):
    await push(agent, store)
    await pull(store, other)

    for query in (
        "deploy",
        "DEPLOYED 3",
        '"number 4"',
        "你们好",
        "们好",
        "世界",
        "changed",
        "gone",
    ):
        found = [
            {hit.message_id for hit in await SessionManager.create(one).search(query)}
            for one in (agent, store, other)
        ]
        assert found[0] == found[1] == found[2], query


@on_a_loop
async def test_copying_twice_is_copying_once(agent, rich, store, other):
    await push(agent, store)
    before = await told(store), await store.info("s")

    assert await push(agent, store) == [Copied("s", 0)]
    assert (await told(store), await store.info("s")) == before
    await pull(store, other)
    files = {path: path.read_bytes() for path in other.place.files.parent.rglob("*.jsonl")}
    assert await pull(store, other) == [Copied("s", 0)]
    assert {path: path.read_bytes() for path in files} == files


@on_a_loop
async def test_what_was_done_in_postgres_comes_back(agent, rich, store):
    await push(agent, store)
    session = Session(store, session_id="s")
    await session.append_message(says("n1", "native"))
    await session.update_message(says("m1", "updated there"))
    await session.delete_messages(["m4"])
    await session.append_message(says("m4", "said again there"))
    overlay = await session.add_compaction("there", "m1", "m3")
    manager = SessionManager.create(store)
    await manager.rename("s", "Another name")
    await manager.add_usage("s", 1, 2, 0.25)
    await session.set_leaf("b")
    here = Session(agent, session_id="s")
    assert await here.get_message("n1") is None

    await pull(store, agent)

    assert await told(agent) == await told(store)
    assert (await here.get_compactions())[-1] == overlay
    info = rich.info()
    assert (info.name, info.input_tokens, info.estimated_cost) == ("Another name", 6, 0.75)
    assert info.updated_at == (await store.info("s")).updated_at
    assert await push(agent, store) == [Copied("s", 0)]


@on_a_loop
async def test_a_session_that_was_made_in_postgres_comes_to_files(store, other):
    manager = SessionManager.create(store)
    made = await manager.create("Trip", parent_session_id="p", model="large")
    session = await manager.get_session(made.id)
    await fill(session, 6)
    await session.append_message(says("b", createdAt="2031-01-01T00:00:00Z"), "m2")
    await session.add_compaction("sum", "m0", "m1")
    child = await manager.fork(made.id, "b", "Fork")

    await pull(store, other)

    for session_id in (made.id, child.id):
        assert await told(other, session_id) == await told(store, session_id)
    info = other.tree(made.id).info()
    assert (info.name, info.parent_session_id, info.model) == ("Trip", "p", "large")
    assert other.tree(child.id).info().parent_session_id == made.id
    assert await pull(store, other) == [Copied(one, 0) for one in sorted([made.id, child.id])]


@on_a_loop
async def test_an_empty_session_is_copied_too(agent, store, other):
    agent.tree("s").start(name="Nothing yet")

    await push(agent, store)
    await pull(store, other)

    assert (await store.info("s")).name == other.tree("s").info().name == "Nothing yet"


@on_a_loop
async def test_a_fork_of_a_pushed_session_has_its_labels(agent, rich, store, other):
    await push(agent, store)

    child = await SessionManager.create(store).fork("s", "m4", "Fork")
    await pull(store, other)

    assert child.labels == {"m1": "good"}
    assert other.tree(child.id).labels() == {"m1": "good"}


@on_a_loop
async def test_a_clear_in_postgres_comes_to_files(store, other):
    session = await fill(Session(store, session_id="s"), 4)
    await session.add_compaction("sum", "m0", "m1")
    await pull(store, other)

    await session.clear_messages()
    await session.append_message(says("m0", "a new beginning"))
    await pull(store, other)

    assert await told(other) == await told(store)
    assert [entry.type for entry in other.tree("s").log()].count("clear") == 1


@on_a_loop
async def test_what_was_written_on_both_sides_is_merged(agent, rich, store, other):
    await push(agent, store)
    await pull(store, other)
    rich.append(says("here", "on files"))
    other.tree("s").append(says("elsewhere", "in the other workspace"))
    await Session(store, session_id="s").append_message(says("there", "in Postgres"))

    for copying in (push(agent, store), push(other, store), pull(store, agent), pull(store, other)):
        await copying

    assert await told(agent) == await told(store) == await told(other)
    assert {"here", "there", "elsewhere"} <= {e.id for e in rich.all_messages()}
    assert everything(rich)["lines"] == everything(other.tree("s"))["lines"]


@on_a_loop
async def test_a_pushed_session_is_deleted_and_pushed_again(agent, rich, store):
    await push(agent, store)
    handle = Session(store, session_id="s")
    before = await told(store)
    await store.delete("s")

    assert (await push(agent, store))[0].entries == len(list(rich.log()))

    assert await told(store) == before
    assert await handle.get_history() == before["history"]  # it had not been used


@on_a_loop
async def test_a_long_history_that_was_trimmed_is_pushed_whole(agent, tree, store, other):
    for number in range(60):
        tree.append(says(f"m{number}", "a long text " * 20))
    tree.compact("sum", "m0", "m55")
    tree.trim()

    await push(agent, store)
    await pull(store, other)

    assert await Session(store, session_id="s").get_path_length() == 60
    assert everything(other.tree("s"))["lines"] == everything(tree)["lines"]


# -- step by step ----------------------------------------------------------------------------------


@on_a_loop
async def test_lines_go_in_batches_and_progress_is_told(agent, rich, store, other, monkeypatch):
    monkeypatch.setattr(transfer, "_BATCH_LINES", 10)
    total = len(list(rich.log()))
    pushed, pulled = [], []

    await push(agent, store, report=pushed.append)
    await pull(store, other, report=pulled.append)

    wanted = [Progress("s", done, total) for done in (*range(10, total, 10), total)]
    assert pushed == pulled == wanted


@on_a_loop
async def test_a_push_that_was_cut_short_goes_on_where_it_stopped(
    agent, rich, store, monkeypatch, connection
):
    monkeypatch.setattr(transfer, "_BATCH_LINES", 10)
    total = len(list(rich.log()))

    def cut(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await push(agent, store, report=cut)
    assert await store.list() == []  # half a session is none
    assert await Session(store, session_id="s").get_history() == []

    assert await push(agent, store) == [Copied("s", total - 10)]
    assert await told(store) == await told(agent)


@on_a_loop
async def test_a_second_push_that_was_cut_short_takes_nothing_away(
    agent, rich, store, other, monkeypatch
):
    await push(agent, store)
    for number in range(20):
        rich.append(says(f"late{number}"))
    rich.delete(["m8"])
    monkeypatch.setattr(transfer, "_BATCH_LINES", 10)
    session = Session(store, session_id="s")
    before = await session.get_history()

    with pytest.raises(ZeroDivisionError):
        await push(agent, store, report=lambda progress: 1 / 0)
    assert await session.get_history() == before
    await session.append_message(says("meanwhile"))
    await pull(store, other)
    assert await told(other) == await told(store)

    await push(agent, store)
    await pull(store, agent)
    assert await told(agent) == await told(store)
    assert await session.get_message("m8") is None
    assert await session.get_message("meanwhile") is not None


@on_a_loop
async def test_sessions_can_be_named(agent, store, other):
    for name in ("s", "t"):
        agent.tree(name).append(says("m0"))

    assert [one.session_id for one in await push(agent, store, ["t"])] == ["t"]
    assert [info.id for info in await store.list()] == ["t"]
    with pytest.raises(UnknownSession, match="nobody"):
        await push(agent, store, ["s", "nobody"])
    with pytest.raises(UnknownSession, match="'s'"):
        await pull(store, other, ["t", "s"])
    assert [info.id for info in await store.list()] == ["t"]
    assert other.session_ids() == []


@pytest.mark.parametrize("message_id", ["a\0b", "x" * 801])
@on_a_loop
async def test_what_postgres_cannot_hold_is_refused_before_anything_is_copied(
    agent, store, message_id
):
    tree = agent.tree("s")
    tree.append(says("m0"))
    tree.append(says(message_id))

    with pytest.raises(InvalidMessage):
        await push(agent, store)

    assert await store.list() == []


@on_a_loop
async def test_texts_with_nul_come_back_as_they_were(agent, store, other):
    tree = agent.tree("s")
    tree.append(says("m0", "a\0b"))
    tree.compact("sum\0mary", "m0", "m0")
    tree.label("m0", "la\0bel")
    tree.annotate(name="na\0me")

    await push(agent, store)
    await pull(store, other)

    assert everything(other.tree("s")) == everything(tree)
    assert await push(agent, store) == await pull(store, other) == [Copied("s", 0)]


# -- anything at all -------------------------------------------------------------------------------

moves = st.one_of(
    st.tuples(st.sampled_from(["files", "postgres", "other"]), steps),
    st.tuples(st.sampled_from(["files", "postgres", "other"]), steps),
    st.tuples(st.sampled_from(["push", "pull", "push other", "pull other"])),
)


@given(st.lists(moves, max_size=14))
@settings(max_examples=15)
def test_whatever_was_done_where_all_sides_agree_in_the_end(tmp_path_factory, connection, doing):
    async def work():
        root = tmp_path_factory.mktemp("trip")
        files = Workspace(root / "a", durability="os").agent("a")
        other = Workspace(root / "b", durability="os").agent("a")
        store = PostgresStore(connection, uuid.uuid4().hex)
        sides = {"files": files, "postgres": store, "other": other}
        copying = {
            "push": lambda: push(files, store),
            "pull": lambda: pull(store, files),
            "push other": lambda: push(other, store),
            "pull other": lambda: pull(store, other),
        }
        for kind, *step in doing:
            if step:
                await play(Session(sides[kind], session_id="s"), step[0])
            else:
                await copying[kind]()

        for kind in ("push", "push other", "pull", "pull other"):
            await copying[kind]()

        assert await told(files) == await told(store) == await told(other)
        assert await push(files, store) == await pull(store, other)
        for agent in (files, other):
            mends = [problem.mend for problem in agent.verify()]
            assert all(mend.startswith(("none needed", "merge the clone")) for mend in mends)

    asyncio.run(work())


# -- the commands ----------------------------------------------------------------------------------


@pytest.fixture
def command(workspace, agent, dsn, fresh_name):
    """Runs a command on the workspace, with an agent of a name that Postgres does not know yet."""
    workspace.agent(fresh_name).tree("trip").append(says("m0", "hello"))
    workspace.agent(fresh_name, "u").tree("trip").append(says("m0", "hello of u"))

    def run(name, *arguments, root=workspace.root, agent=fresh_name):
        scope = ["-C", str(root), "--agent", agent] if agent else ["-C", str(root)]
        return CliRunner().invoke(main, [name, *arguments, *scope, "--dsn", dsn])

    return run


def test_the_commands_copy_sessions_of_all_users(command, tmp_path, fresh_name):
    elsewhere = Workspace(tmp_path / "elsewhere")

    pushed = command("push")
    pulled = command("pull", root=elsewhere.root)
    again = command("pull", root=elsewhere.root)

    assert (pushed.exit_code, pushed.stdout) == (0, "trip  2 lines\ntrip  2 lines\n")
    assert pushed.stderr == "pushed 2 sessions, 4 new lines\n"
    assert (pulled.exit_code, pulled.stderr) == (0, "pulled 2 sessions, 4 new lines\n")
    assert (again.stdout, again.stderr) == ("", "pulled 2 sessions, 0 new lines\n")
    texts = [
        json.dumps(elsewhere.agent(fresh_name, user).tree("trip").messages())
        for user in (None, "u")
    ]
    assert "hello of u" not in texts[0]
    assert "hello of u" in texts[1]


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["push", "nobody"], 1, "there is no session 'nobody'"),
        (["pull", "nobody"], 1, "there is no session 'nobody' in Postgres"),
        (["pull", "@latest"], 2, "@latest is the latest session here"),
    ],
)
def test_the_commands_say_what_is_wrong_in_one_sentence(command, arguments, code, complaint):
    result = command(*arguments)

    assert (result.exit_code, complaint in result.stderr) == (code, True), result.stderr
    assert len(result.stderr.splitlines()) == 1


@on_a_loop
async def test_a_purged_text_leaves_postgres_too_and_comes_back_from_nowhere(
    agent, rich, store, other
):
    await push(agent, store)
    await pull(store, other)
    agent.purge("s", "m2")
    assert "changed" in str(await told(store))

    await push(agent, store)
    await pull(store, other)

    assert await told(store) == await told(agent) == await told(other)
    assert "changed" not in str(await told(store))
    assert everything(other.tree("s")) == everything(rich)
    for path in other.workspace.root.rglob("*.jsonl"):
        assert b"changed" not in path.read_bytes()
    async with store.database.operation() as run:
        lines = await run.rows(transfer._LINES, store.record("s").values)
    assert len(lines) == len(list(rich.log()))
    assert "changed" not in str(lines)
