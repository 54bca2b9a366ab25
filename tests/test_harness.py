"""The harness: each moment of a turn, and what has happened to the files by then."""

from __future__ import annotations

import asyncio
import json
import random
import threading

import pytest
from harness_agents import Counter, Memory, Talker, texts

from workspace_session import (
    ConflictPolicy,
    Harness,
    HarnessClosed,
    InvalidId,
    JsonSession,
    MemoryFlushHook,
    NamespaceMismatch,
    PerCall,
    ReentrantCall,
    RuntimeContext,
    SessionPersistenceHook,
    StateConflict,
    StateCorrupt,
    StateLoadFailed,
    StateNotSerializable,
    TurnConflict,
    TurnNotSaved,
    Workspace,
    WorkspaceContextHook,
    WorkspaceManager,
    WorkspaceSession,
    current_context,
)


def run(awaitable):
    return asyncio.run(asyncio.wait_for(awaitable, 30))


def at(session="s", user=None, **more):
    return RuntimeContext(session_id=session, user_id=user, **more)


def member(workspace, agent="bot", session="s", user=None):
    return WorkspaceManager(workspace).update_session_index(
        agent, session, ctx=RuntimeContext(user_id=user)
    )


def stored(workspace, session="s", agent="bot", user=None, key="memory"):
    return WorkspaceSession(workspace, agent, user).get(session, key)


@pytest.fixture(autouse=True)
def clean_afterwards(workspace):
    yield
    assert workspace.verify() == []


@pytest.fixture
def bot(workspace):
    return workspace.agent("bot")


# -- a turn that goes well -------------------------------------------------------------------------


def test_a_turn_stores_the_conversation_the_usage_and_the_state(workspace, bot):
    class Costly(Talker):
        async def call(self, message, ctx):
            reply = await super().call(message, ctx)
            reply["usage"] = {"input_tokens": 7, "output_tokens": 3, "cost": 0.5}
            return reply

    harness = Harness(Costly(), "bot", workspace)

    reply = run(harness.call("hi", at()))

    assert reply["content"] == "hi: 1"
    assert texts(bot.tree("s")) == ["hi", "hi: 1"]
    assert stored(workspace)["messages"] == [{"role": "user", "content": "hi"}, reply]
    info = bot.tree("s").info()
    assert (info.input_tokens, info.output_tokens, info.estimated_cost) == (7, 3, 0.5)
    index = json.loads((workspace.root / "agents/bot/sessions/sessions.json").read_text())
    assert index["sessions"]["s"]["messageCount"] == 2
    assert "endReason" not in index["sessions"]["s"]


def test_a_turn_goes_on_where_the_last_one_ended_also_in_a_new_harness(workspace, bot):
    run(Harness(Talker(), "bot", workspace).call("one", at()))
    run(Harness(Talker(), "bot", Workspace(workspace.root, durability="os")).call("two", at()))

    assert texts(bot.tree("s")) == ["one", "one: 1", "two", "two: 3"]


def test_fifty_turns_store_each_message_once(workspace, bot):
    harness = Harness(Talker(), "bot", workspace)

    async def main():
        for number in range(50):
            await harness.call(f"m{number}", at())

    run(main())

    assert texts(bot.tree("s")) == [
        text for n in range(50) for text in (f"m{n}", f"m{n}: {2 * n + 1}")
    ]
    assert sum(entry.type in ("message", "update") for entry in bot.tree("s").log()) == 100


def test_an_agent_without_memory_has_the_two_messages_of_each_turn_stored(workspace, bot):
    harness = Harness(lambda message: f"echo {message}", "bot", workspace)

    assert run(harness.call("hi", at())) == "echo hi"
    assert run(harness.call("hi", at())) == "echo hi"
    run(Harness(lambda message: None, "bot", workspace).call({"role": "user", "content": 1}, at()))
    run(Harness(lambda message: 42, "bot", workspace).call("?", at()))

    assert texts(bot.tree("s")) == ["hi", "echo hi", "hi", "echo hi", 1, "?", "42"]
    assert [e.message["role"] for e in bot.tree("s").path()][:2] == ["user", "assistant"]


def test_agents_are_callables_or_have_a_call_and_get_the_context_if_they_take_one(workspace):
    class Called:
        async def __call__(self, message, ctx):
            return (message, ctx.session_id, threading.current_thread() is main)

    class Sync:
        def call(self, message, *, ctx=None):
            return (message, ctx.session_id, threading.current_thread() is main)

    async def bare(message):
        return (message, current_context().session_id, threading.current_thread() is main)

    def kwargs(message, **more):
        return (message, current_context().session_id, more == {})

    main = threading.current_thread()

    answers = [
        Harness(agent, "bot", workspace).call_sync("m", at())
        for agent in (Called(), Sync(), bare, kwargs)
    ]

    assert answers == [("m", "s", True), ("m", "s", False), ("m", "s", True), ("m", "s", True)]
    with pytest.raises(TypeError, match="an agent is a callable or has a call"):
        Harness(object(), "bot", workspace)


def test_the_reply_is_returned_untouched(workspace):
    reply = {"role": "assistant", "content": "x"}

    async def agent(message):
        return reply

    assert run(Harness(agent, "bot", workspace).call("hi")) is reply
    assert reply == {"role": "assistant", "content": "x"}


def test_modules_are_found_under_their_names_or_are_the_agent_itself(workspace):
    class Full(Talker):
        toolkit = Counter(3)
        plan_notebook = "no module"

    class Stateful(Counter):
        def __call__(self, message):
            self.number += 1
            return str(self.number)

    run(Harness(Full(), "full", workspace).call("hi", at()))
    run(Harness(Stateful(), "itself", workspace).call("hi", at()))
    run(Harness(Talker(), "given", workspace, modules={"n": Counter(9)}).call("hi", at()))

    keys = [
        WorkspaceSession(workspace, name).list_keys("s") for name in ("full", "itself", "given")
    ]
    assert keys == [["memory", "toolkit"], ["agent"], ["n"]]
    assert stored(workspace, agent="itself", key="agent") == {"number": 1}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"agent": None}, "an agent is a callable"),
        ({"name": ""}, "invalid agent id: empty"),
        ({"hooks": [3]}, "int is no hook"),
        ({"modules": {"x": 3}}, "module 'x' has neither"),
        ({"messages": 3}, "a message source has get_messages"),
        ({"extract": 3}, "extract is a function"),
        ({"summarize": 3}, "summarize is a function"),
        ({"conflict_policy": "x"}, "'x' is not a valid ConflictPolicy"),
        ({"agent": PerCall(lambda ctx: 3), "modules": {}}, "the factory gives the modules"),
    ],
)
def test_what_makes_no_harness_is_said_at_once(workspace, wrong, said):
    given = {"agent": lambda message: 1, "name": "bot", "workspace": workspace, **wrong}

    with pytest.raises((TypeError, ValueError), match=said):
        Harness(**given)


def test_a_factory_is_callable_and_gives_a_pair(workspace):
    with pytest.raises(TypeError, match="a factory is called"):
        PerCall(3)
    with pytest.raises(TypeError, match="as a pair"):
        run(Harness(PerCall(lambda ctx: 3), "bot", workspace).call("hi"))


def test_call_sync_is_refused_where_a_loop_runs(workspace):
    harness = Harness(lambda message: "x", "bot", workspace)

    async def main():
        with pytest.raises(RuntimeError, match="await call"):
            harness.call_sync("hi")

    run(main())


# -- binding ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "state", "transcript"),
    [
        (None, "bot", "bot"),
        (RuntimeContext(session_id="s"), "s", "s"),
        (RuntimeContext(session_key="k"), "k", "k"),
        (RuntimeContext(session_id="s", session_key="k"), "k", "s"),
    ],
)
def test_both_tracks_go_by_what_the_context_says(workspace, bot, given, state, transcript):
    run(Harness(Talker(), "bot", workspace).call("hi", given))

    assert bot.state.list_session_keys() == [state]
    assert bot.place.session_ids() == [transcript]


@pytest.mark.parametrize(
    "bad",
    [
        RuntimeContext(session_id=""),
        RuntimeContext(user_id=""),
        RuntimeContext(session_key=""),
        RuntimeContext(session_id="a\0b"),
    ],
)
def test_a_bad_id_is_refused_before_anything_happens(workspace, bot, bad):
    agent = Talker()
    harness = Harness(agent, "bot", workspace)

    with pytest.raises(InvalidId):
        run(harness.call("hi", bad))
    with pytest.raises(InvalidId):
        harness.stream("hi", bad)  # not only once it is read

    assert agent.seen == []
    assert not bot.place.directory.exists()


def test_binding_leaves_the_given_context_alone_and_adds_to_a_new_one(workspace):
    given = RuntimeContext(user_id="alice", metadata={"k": 1})
    seen = []

    async def agent(message, ctx):
        seen.append(ctx)

    run(Harness(agent, "bot", workspace).call("hi", given))

    (ctx,) = seen
    assert ctx is not given
    assert (given.session_id, given.session) == (None, None)
    assert (ctx.agent_id, ctx.session_id, ctx.namespace) == ("bot", "bot", ("alice",))
    assert (ctx.user_id, ctx.metadata, ctx.modules) == ("alice", {"k": 1}, {})
    with pytest.raises(AttributeError):
        ctx.session_id = "other"
    assert current_context() is None


def test_the_namespace_is_asked_for_once_a_turn_and_applies_to_both_tracks(tmp_path):
    asked = []

    def namespace(ctx):
        asked.append(ctx.user_id)
        return ("org", ctx.user_id)

    with Workspace(tmp_path, durability="os", namespace=namespace) as workspace:
        run(Harness(Talker(), "bot", workspace).call("hi", at(user="alice")))

    assert asked == ["alice"]
    assert (tmp_path / "org/alice/agents/bot/sessions/s.log.jsonl").exists()
    assert (tmp_path / "org/alice/agents/bot/context/s/memory.json").exists()


def test_the_store_of_the_context_comes_before_that_of_the_harness(workspace, tmp_path):
    ours, theirs = JsonSession(tmp_path / "ours", "os"), JsonSession(tmp_path / "theirs", "os")
    harness = Harness(Talker(), "bot", workspace, ours)

    run(harness.call("hi", at(user="alice")))
    run(harness.call("hi", RuntimeContext("s", "alice", theirs)))

    assert [store.scoped(("alice",)).list_session_keys() for store in (ours, theirs)] == [["s"]] * 2
    with pytest.raises(NamespaceMismatch):
        run(harness.call("hi", RuntimeContext("s", "bob", theirs.scoped(("alice",)))))


def test_a_foreign_store_is_used_as_it_is(workspace):
    class Foreign(dict):
        def save_to(self, session_key, modules):
            self[session_key] = {name: module.state_dict() for name, module in modules.items()}

        async def load_if_exists(self, session_key, modules, *, initial=None):
            for name, state in (self.get(session_key) or initial).items():
                modules[name].load_state_dict(json.loads(json.dumps(state)))

    store = Foreign()
    harness = Harness(Talker(), "bot", workspace, store)

    for session in "sts":
        run(harness.call("hi", at(session)))

    assert {key: len(state["memory"]["messages"]) for key, state in store.items()} == {
        "s": 4,
        "t": 2,
    }


def test_a_child_is_a_session_of_the_same_user_that_names_its_parent(workspace):
    helper = Harness(lambda message: "done", "helper", workspace)

    async def agent(message, ctx):
        return await helper.call("help", ctx.child())

    run(Harness(agent, "bot", workspace).call("hi", at(user="alice")))

    (child,) = workspace.agent("helper", "alice").sessions()
    assert child.id.startswith("sub-")
    assert child.parent_session_id == "s"


# -- isolation -------------------------------------------------------------------------------------


def check_isolated(harness, seen, workspace):
    """A hundred turns of users and sessions, interleaved; none sees anything of another."""
    rng = random.Random(7)
    places = [(user, session) for user in ("alice", "bob", None) for session in ("s", "t", "alice")]
    plan = [(*rng.choice(places), number) for number in range(100)]

    async def main():
        await asyncio.gather(
            *(harness.call(f"{user} {session} {n}", at(session, user)) for user, session, n in plan)
        )

    run(main())

    for user, session in places:
        told = [f"{user} {session} {n}" for u, s, n in plan if (u, s) == (user, session)]
        path = texts(workspace.agent("bot", user).tree(session))
        assert path == [text for n, one in enumerate(told) for text in (one, f"{one}: {2 * n + 1}")]
        assert [m["content"] for m in stored(workspace, session, user=user)["messages"]] == path
    for message, remembered in seen:
        whose = message.rpartition(" ")[0]
        assert all(text.startswith(whose + " ") for text in remembered)


def slow_talker(seen):
    async def script(message, ctx, agent):
        await asyncio.sleep(random.random() / 500)
        seen.append((message, [m["content"] for m in agent.memory.messages]))

    return Talker(script)


def test_interleaved_turns_with_shared_modules_never_see_each_others_state(workspace):
    seen = []

    check_isolated(Harness(slow_talker(seen), "bot", workspace), seen, workspace)


def test_interleaved_turns_with_an_agent_each_never_see_each_others_state(workspace):
    seen, inside, most = [], set(), []

    def factory(ctx):
        assert ctx is current_context()
        agent = slow_talker(seen)
        return agent, None

    class Watch:
        def before_call(self, ctx, message):
            inside.add(ctx)
            most.append(len(inside))

        def after_call(self, ctx, message, reply):
            inside.discard(ctx)

    harness = Harness(PerCall(factory), "bot", workspace, hooks=[Watch()])

    check_isolated(harness, seen, workspace)
    assert max(most) > 1  # they did run side by side


def test_turns_without_modules_of_different_sessions_run_side_by_side(workspace):
    together = asyncio.Barrier(3)

    async def agent(message):
        await together.wait()

    async def main():
        harness = Harness(agent, "bot", workspace)
        await asyncio.gather(*(harness.call("hi", at(session)) for session in "abc"))

    run(main())


def test_harnesses_that_share_a_module_take_turns_too(workspace):
    agent = Talker()
    harnesses = [Harness(agent, name, workspace) for name in ("one", "two")]

    async def main():
        await asyncio.gather(*(h.call(f"{h.name} {n}", at()) for n in range(10) for h in harnesses))

    run(main())

    for name in ("one", "two"):
        assert all(text.startswith(name) for text in texts(workspace.agent(name).tree("s")))


def test_a_session_without_state_begins_with_what_the_modules_had_at_construction(workspace):
    agent = Talker()
    agent.memory.messages.append({"role": "system", "content": "be kind"})
    harness = Harness(agent, "bot", workspace)

    for session in ("s", "t"):
        run(harness.call("hi", at(session)))

    assert agent.seen[1] == ("t", [{"role": "system", "content": "be kind"}])


def test_turns_of_a_session_are_served_across_harnesses_threads_and_loops(workspace, bot):
    threads = [
        threading.Thread(
            target=lambda n=n: [
                Harness(Talker(), "bot", workspace).call_sync(f"{n} {k}", at()) for k in range(5)
            ]
        )
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    counts = [int(text.rpartition(": ")[2]) for text in texts(bot.tree("s"))[1::2]]
    assert counts == list(range(1, 41, 2))  # each turn saw all before it


def test_a_call_from_inside_its_own_turn_is_refused(workspace):
    async def script(message, ctx, agent):
        if message == "outer":
            with pytest.raises(ReentrantCall):
                await harness.call("inner", at("s"))
            with pytest.raises(ReentrantCall):  # another session, and the same modules
                await harness.call("inner", at("t"))
            with pytest.raises(ReentrantCall):
                await harness.close()

    harness = Harness(Talker(script), "bot", workspace)

    assert run(harness.call("outer", at("s")))["content"] == "outer: 1"


def test_a_sync_agent_may_call_another_session_and_not_its_own(workspace):
    def agent(message, ctx):
        if message == "outer":
            with pytest.raises(ReentrantCall):
                harness.call_sync("inner", ctx)
            return harness.call_sync("inner", at("t"))
        return ctx.session_id

    harness = Harness(agent, "bot", workspace)

    assert harness.call_sync("outer", at("s")) == "t"


# -- hooks -----------------------------------------------------------------------------------------


class Spy:
    def __init__(self, log, name, order=None) -> None:
        self.log, self.name = log, name
        if order is not None:
            self.order = order

    def before_call(self, ctx, message):
        self.log.append(("before_call", self.name))

    async def before_reasoning(self, ctx, messages):
        self.log.append(("before_reasoning", self.name))
        return [*messages, self.name]

    def after_call(self, ctx, message, reply):
        self.log.append(("after_call", self.name))

    async def on_error(self, ctx, message, error):
        self.log.append(("on_error", self.name))


def test_hooks_run_upwards_before_the_agent_and_downwards_after_it(workspace, bot):
    log = []

    class First(Spy):
        def before_call(self, ctx, message):
            super().before_call(ctx, message)
            assert (stored(workspace) is None) is (message == "hi")

        def after_call(self, ctx, message, reply):
            super().after_call(ctx, message, reply)
            assert stored(workspace) is not None  # saved last but for this one

    async def script(message, ctx, agent):
        log.append("agent")
        assert await ctx.before_reasoning(["m"]) == ["m", "first", "own", "last"]
        if message == "boom":
            raise ValueError(message)

    hooks = [Spy(log, "last"), First(log, "first", 50), Spy(log, "own", 250)]
    harness = Harness(Talker(script), "bot", workspace, hooks=hooks)

    run(harness.call("hi", at()))

    names = ["first", "own", "last"]
    upwards = [(kind, name) for kind in ("before_call", "before_reasoning") for name in names]
    thinking = upwards[3:]
    assert log == [*upwards, "agent", *thinking, *(("after_call", name) for name in names[::-1])]
    log.clear()
    with pytest.raises(ValueError, match="boom"):
        run(harness.call("boom", at()))
    assert log == [*upwards, "agent", *thinking, *(("on_error", name) for name in names[::-1])]


def test_a_default_hook_is_replaced_by_one_of_its_kind_and_removed_by_without(workspace, bot):
    class Silent(MemoryFlushHook):
        async def flush(self, ctx, **how):
            pass

    run(Harness(Talker(), "bot", workspace, hooks=[Silent()]).call("hi", at()))
    assert (bot.place.session_ids(), bot.state.list_session_keys()) == ([], ["s"])

    without = (SessionPersistenceHook, WorkspaceContextHook)
    run(Harness(Talker(), "other", workspace, without=without).call("hi", at()))
    other = workspace.agent("other")
    assert (other.place.session_ids(), other.state.list_session_keys()) == (["s"], [])

    with pytest.raises(TypeError, match="object is no hook"):
        Harness(Talker(), "bot", workspace, hooks=[object()])


def test_the_agent_is_told_of_the_workspace_and_of_calls_without_a_result(workspace):
    (workspace.root / "AGENTS.md").write_text("Be brief.\n")
    seen = []

    async def script(message, ctx, agent):
        seen.append((ctx.workspace_prompt, ctx.dangling_tool_calls))
        call = {"type": "tool_use", "id": f"c{message}", "name": "f", "input": {}}
        agent.memory.messages.append({"role": "assistant", "content": [call]})

    harness = Harness(Talker(script), "bot", workspace)
    for number in (1, 2):
        run(harness.call(f"{number}", at()))

    assert "Be brief." in seen[0][0]
    assert [dangling for _prompt, dangling in seen] == [(), ("c1",)]
    assert member(workspace)["danglingToolCalls"] == ["c1", "c2"]


# -- turns that go wrong ---------------------------------------------------------------------------


def test_when_the_agent_raises_all_is_stored_and_the_error_goes_on_unchanged(workspace, bot):
    error = ValueError("boom")

    async def script(message, ctx, agent):
        if message == "boom":
            raise error

    harness = Harness(Talker(script), "bot", workspace)

    with pytest.raises(ValueError) as raised:
        run(harness.call("boom", at()))

    assert raised.value is error
    assert not hasattr(error, "__notes__")
    assert texts(bot.tree("s")) == ["boom"]
    assert len(stored(workspace)["messages"]) == 1
    assert member(workspace)["endReason"] == "error"

    run(harness.call("again", at()))
    assert "endReason" not in member(workspace)
    assert texts(bot.tree("s")) == ["boom", "again", "again: 2"]


def test_when_the_call_is_cancelled_the_writes_are_seen_through(workspace, bot):
    async def script(message, ctx, agent):
        started.set()
        await asyncio.sleep(30)

    async def main():
        task = asyncio.create_task(Harness(Talker(script), "bot", workspace).call("hi", at()))
        await started.wait()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()  # however often
        with pytest.raises(asyncio.CancelledError):
            await task

    started = asyncio.Event()
    run(main())

    assert texts(bot.tree("s")) == ["hi"]
    assert len(stored(workspace)["messages"]) == 1
    assert member(workspace)["endReason"] == "cancelled"


def test_a_cancellation_while_the_turn_is_saved_waits_until_it_is(workspace, bot):
    class Slow:
        async def after_call(self, ctx, message, reply):
            saving.set()
            await asyncio.sleep(0.05)

    async def main():
        saving.clear()
        harness = Harness(Talker(), "bot", workspace, hooks=[Slow()])
        task = asyncio.create_task(harness.call("hi", at()))
        await saving.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(stored(workspace)["messages"]) == 2

    saving = asyncio.Event()
    run(main())

    assert texts(bot.tree("s")) == ["hi", "hi: 1"]
    assert "endReason" not in member(workspace)


def test_a_cancelled_sync_agent_is_waited_for(workspace, bot):
    started, go_on = threading.Event(), threading.Event()

    def agent(message):
        started.set()
        go_on.wait(10)

    async def main():
        task = asyncio.create_task(Harness(agent, "bot", workspace).call("hi", at()))
        while not started.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.sleep(0.01)
        assert not task.done()  # or it would go on while others have their turn
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main())

    assert texts(bot.tree("s")) == ["hi"]
    assert member(workspace)["endReason"] == "cancelled"


def test_when_waiting_is_cancelled_nothing_is_saved(workspace, bot):
    async def script(message, ctx, agent):
        await go_on.wait()

    async def main():
        harness = Harness(Talker(script), "bot", workspace)
        first = asyncio.create_task(harness.call("one", at()))
        second = asyncio.create_task(harness.call("two", at()))
        await asyncio.sleep(0.02)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        go_on.set()
        await first

    go_on = asyncio.Event()
    run(main())

    assert texts(bot.tree("s")) == ["one", "one: 1"]


def test_when_loading_fails_the_agent_does_not_run_and_nothing_is_saved(workspace, bot):
    class Picky(Counter):
        def load_state_dict(self, state):
            if state["number"] == 7:
                raise ValueError("not seven")
            super().load_state_dict(state)

    agent = Talker()
    agent.memory.messages.append({"role": "system", "content": "initial"})
    harness = Harness(agent, "bot", workspace, modules={"memory": agent.memory, "count": Picky()})
    bot.state.save("s", "memory", {"messages": []})
    bot.state.save("s", "count", {"number": 7})

    with pytest.raises(StateLoadFailed):
        run(harness.call("hi", at()))
    assert agent.seen == []
    assert [m["content"] for m in agent.memory.messages] == ["initial"]
    assert bot.place.session_ids() == []

    (bot.place.state("s") / "memory.json").write_text("{")
    with pytest.raises(StateCorrupt):
        run(harness.call("hi", at()))
    assert agent.seen == []
    assert (bot.place.state("s") / "memory.json").read_text() == "{"
    (bot.place.state("s") / "memory.json").unlink()


def test_when_loading_is_cancelled_modules_go_back_and_nothing_is_saved(workspace, bot):
    class Slow:
        order = 150

        async def before_call(self, ctx, message):
            assert agent.memory.messages == [{"role": "user", "content": "stored"}]
            loaded.set()
            await asyncio.sleep(30)

    async def main():
        task = asyncio.create_task(
            Harness(agent, "bot", workspace, hooks=[Slow()]).call("hi", at())
        )
        await loaded.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    agent, loaded = Talker(), asyncio.Event()
    bot.state.save("s", "memory", {"messages": [{"role": "user", "content": "stored"}]})
    run(main())

    assert (agent.seen, agent.memory.messages) == ([], [])
    assert bot.place.session_ids() == []
    assert len(stored(workspace)["messages"]) == 1


def test_when_a_hook_fails_before_the_agent_it_does_not_run_and_nothing_is_saved(workspace, bot):
    class Failing:
        def before_call(self, ctx, message):
            raise OSError("no")

    agent = Talker()

    with pytest.raises(OSError, match="no"):
        run(Harness(agent, "bot", workspace, hooks=[Failing()]).call("hi", at()))

    assert (agent.seen, agent.memory.messages, bot.session_ids()) == ([], [], [])


def test_all_closing_hooks_run_when_one_fails_and_the_reply_is_not_lost(workspace, bot):
    class Failing:
        def after_call(self, ctx, message, reply):
            raise OSError("disk full")

    harness = Harness(Talker(), "bot", workspace, hooks=[Failing(), Failing()])

    with pytest.raises(
        TurnNotSaved, match=r"the agent has answered, but .*OSError: disk full"
    ) as error:
        run(harness.call("hi", at()))

    assert error.value.reply["content"] == "hi: 1"
    assert [type(one) for one in error.value.errors] == [OSError, OSError]
    assert not isinstance(error.value, StateConflict)
    assert texts(bot.tree("s")) == ["hi", "hi: 1"]
    assert len(stored(workspace)["messages"]) == 2


def test_what_fails_after_an_error_becomes_a_note_on_it(workspace, bot):
    class Failing:
        def on_error(self, ctx, message, error):
            raise OSError("disk full")

    async def script(message, ctx, agent):
        raise ValueError("boom")

    with pytest.raises(ValueError) as error:
        run(Harness(Talker(script), "bot", workspace, hooks=[Failing()]).call("hi", at()))

    assert error.value.__notes__ == ["the turn is not saved: OSError: disk full"]
    assert texts(bot.tree("s")) == ["hi"]


def test_a_state_that_is_no_json_is_not_saved_and_said(workspace, bot):
    async def script(message, ctx, agent):
        agent.count.number = {1, 2}

    agent = Talker(script)
    agent.count = Counter()
    modules = {"memory": agent.memory, "count": agent.count}

    with pytest.raises(TurnNotSaved) as error:
        run(Harness(agent, "bot", workspace, modules=modules).call("hi", at()))

    assert isinstance(error.value.errors[0], StateNotSerializable)
    assert bot.state.list_session_keys() == []  # neither of the two
    assert texts(bot.tree("s")) == ["hi", "hi: 1"]


# -- conflicts -------------------------------------------------------------------------------------


def interfered(workspace, policy, ours, theirs, base=None):
    """A turn in which somebody else saves too: what was saved in the end."""
    store = WorkspaceSession(workspace, "bot")
    if base is not None:
        store.save("s", "n", base)

    class Module:
        def state_dict(self):
            return self.state

        def load_state_dict(self, state):
            self.state = state

    module = Module()
    module.state = {}

    async def agent(message):
        module.state = ours
        store.save("s", "n", theirs)
        return "done"

    harness = Harness(agent, "bot", workspace, modules={"n": module}, conflict_policy=policy)
    assert run(harness.call("hi", at())) == "done"
    return store.get("s", "n")


def test_overwrite_saves_what_the_turn_has(workspace):
    assert interfered(workspace, ConflictPolicy.OVERWRITE, {"a": 1}, {"b": 2}) == {"a": 1}


def test_fail_says_so_and_has_the_reply(workspace, bot):
    with pytest.raises(TurnConflict) as error:
        interfered(workspace, ConflictPolicy.FAIL, {"a": 1}, {"b": 2}, base={})

    assert error.value.reply == "done"
    assert isinstance(error.value, TurnNotSaved)
    assert isinstance(error.value, StateConflict)
    assert (error.value.session_key, error.value.key) == ("s", "n")
    assert stored(workspace, key="n") == {"b": 2}
    assert texts(bot.tree("s")) == ["hi", "done"]


def test_merge_saves_what_both_say(workspace):
    base = {"n": 1, "l": [1]}

    merged = interfered(
        workspace, ConflictPolicy.MERGE, {"n": 2, "l": [1, 2]}, {"n": 1, "l": [1, 3], "x": 0}, base
    )

    assert merged == {"l": [1, 3, 2], "n": 2, "x": 0}
    assert interfered(workspace, "merge", {"l": [1, 5]}, {"l": [1, 4]}, {"l": [1]}) == {
        "l": [1, 4, 5]
    }


def test_merge_begins_with_the_initial_state_where_there_is_none(workspace):
    assert interfered(workspace, ConflictPolicy.MERGE, {"a": 1}, {"b": 2}) == {"a": 1, "b": 2}


def test_two_lists_that_were_rewritten_are_a_conflict(workspace):
    with pytest.raises(TurnConflict):
        interfered(workspace, ConflictPolicy.MERGE, {"l": [2]}, {"l": [3]}, {"l": [1]})


class Contested(JsonSession):
    """A store in which somebody else is always a little faster."""

    saves = 0

    def save_to(self, session_key, modules, *, if_match=None):
        type(self).saves += 1
        self.save(session_key, "n", {"theirs": self.saves})
        return super().save_to(session_key, modules, if_match=if_match)


def test_a_merge_gives_up_after_five_rounds(workspace, tmp_path):
    store = Contested(tmp_path / "states", "os")
    harness = Harness(lambda message: "x", "bot", workspace, store, modules={"n": Counter()})

    with pytest.raises(TurnConflict):
        run(harness.call("hi", at()))

    assert Contested.saves == 1 + 5
    assert store.scoped(()).get("s", "n") == {"theirs": 6}


# -- streams ---------------------------------------------------------------------------------------


class Streamer(Talker):
    async def stream(self, message, ctx):
        self.memory.messages.append({"role": "user", "content": message})
        self.memory.messages.append(reply := {"id": "r", "role": "assistant", "content": ""})
        try:
            for word in ("I", " am", " here"):
                reply["content"] += word
                yield word
                if message == "boom":
                    raise ValueError("boom")
        finally:
            self.closed = True


async def collected(stream):
    return [event async for event in stream]


def test_a_turn_ends_with_its_stream(workspace, bot):
    harness = Harness(Streamer(), "bot", workspace)

    assert run(collected(harness.stream("hi", at()))) == ["I", " am", " here"]

    assert texts(bot.tree("s")) == ["hi", "I am here"]
    assert stored(workspace)["messages"][1]["content"] == "I am here"
    assert "endReason" not in member(workspace)


def test_a_stream_that_is_closed_early_is_cancelled_and_stored(workspace, bot):
    agent = Streamer()

    async def main():
        stream = Harness(agent, "bot", workspace).stream("hi", at())
        async for _word in stream:
            break
        await stream.aclose()
        assert current_context() is None

    run(main())

    assert agent.closed
    assert texts(bot.tree("s")) == ["hi", "I"]  # the agent did not run ahead
    assert member(workspace)["endReason"] == "cancelled"


def test_a_stream_whose_reader_is_cancelled_is_stored(workspace, bot):
    async def main():
        async def read():
            async for _word in Harness(Streamer(), "bot", workspace).stream("hi", at()):
                reading.set()
                await asyncio.sleep(30)

        reading = asyncio.Event()
        task = asyncio.create_task(read())
        await reading.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main())  # which finalises the generator that nobody closed

    assert texts(bot.tree("s")) == ["hi", "I"]
    assert member(workspace)["endReason"] == "cancelled"


def test_an_error_in_a_stream_goes_on_and_all_is_stored(workspace, bot):
    seen = []

    async def main():
        async for word in Harness(Streamer(), "bot", workspace).stream("boom", at()):
            seen.append(word)

    with pytest.raises(ValueError, match="boom"):
        run(main())

    assert seen == ["I"]
    assert texts(bot.tree("s")) == ["boom", "I"]
    assert member(workspace)["endReason"] == "error"


def test_an_agent_that_cannot_stream_gives_its_reply_as_the_one_event(workspace):
    harness = Harness(lambda message: "whole", "bot", workspace)

    assert run(collected(harness.stream("hi", at()))) == ["whole"]


def test_streams_of_agents_without_memory_are_stored_as_what_they_amount_to(workspace, bot):
    def words(message):
        yield from ("a", "b")

    async def events(message):
        yield {"delta": "x"}
        yield {"role": "assistant", "content": "final"}
        yield {"type": "done"}

    async def marked(message):
        yield "c"
        yield {"type": "usage"}
        yield "d"

    for agent in (words, events, marked):
        run(collected(Harness(agent, "bot", workspace).stream("hi", at())))

    assert texts(bot.tree("s")) == ["hi", "ab", "hi", "final", "hi", "cd"]


def test_an_agent_that_stops_an_iteration_ends_its_turn_with_an_error(workspace):
    def agent(message):
        next(iter([]))

    with pytest.raises(RuntimeError, match="StopIteration"):
        run(Harness(agent, "bot", workspace).call("hi", at()))


def test_the_context_of_a_stream_does_not_leak_to_its_reader(workspace):
    async def agent(message):
        assert current_context().session_id == message
        yield 1
        assert current_context().session_id == message
        yield 2

    async def main():
        harness = Harness(agent, "bot", workspace)
        seen = []
        async for event in harness.stream("s", at()):
            assert current_context() is None
            seen.append(event)
            if event == 1:
                assert await harness.call("t", at("t")) == 2
        assert seen == [1, 2]

    run(main())


# -- the end ---------------------------------------------------------------------------------------


def test_end_session_stores_takes_notes_and_says_why(workspace, bot):
    def extract(messages):
        return f"There were {len(messages)} messages."

    harness = Harness(Talker(), "bot", workspace, extract=extract)
    run(harness.call("hi", at()))

    run(harness.end_session(at(), reason="timeout"))

    assert member(workspace)["endReason"] == "timeout"
    (notes,) = (workspace.root / "memory").iterdir()
    assert "There were 2 messages.\n" in notes.read_text()
    run(harness.end_session(at("unknown")))  # of which nothing comes
    assert bot.session_ids() == ["s"]
    with pytest.raises(ValueError, match="reason"):
        run(harness.end_session(at(), reason=""))


def test_end_session_waits_for_the_turn(workspace):
    async def script(message, ctx, agent):
        await asyncio.sleep(0.02)

    async def main():
        harness = Harness(Talker(script), "bot", workspace)
        await harness.call("one", at())
        turn = asyncio.create_task(harness.call("two", at()))
        await asyncio.sleep(0.005)
        await harness.end_session(at())
        assert turn.done()

    run(main())

    assert member(workspace)["endReason"] == "ended"


def test_notes_that_cannot_be_taken_are_only_logged(workspace, caplog):
    def extract(messages):
        raise OSError("no model")

    harness = Harness(Talker(), "bot", workspace, extract=extract)
    run(harness.call("hi", at()))
    run(harness.end_session(at()))

    assert "no notes of session 's'" in caplog.text
    assert member(workspace)["endReason"] == "ended"


def test_close_refuses_new_turns_and_lets_running_ones_finish(workspace, bot):
    async def script(message, ctx, agent):
        await asyncio.sleep(0.02)

    async def main():
        async with Harness(Talker(script), "bot", workspace) as harness:
            turns = [asyncio.create_task(harness.call(f"{n}", at())) for n in range(3)]
            await asyncio.sleep(0.005)
        assert all(turn.done() for turn in turns)
        for refused in (harness.call("late", at()), harness.end_session(at())):
            with pytest.raises(HarnessClosed, match="the harness of agent 'bot' is closed"):
                await refused
        with pytest.raises(HarnessClosed):
            await anext(harness.stream("late", at()))

    run(main())

    assert len(bot.tree("s")) == 6


def test_a_session_that_is_deleted_during_a_turn_begins_anew(workspace, bot):
    async def script(message, ctx, agent):
        if message == "delete":
            assert WorkspaceManager(workspace).delete_session("bot", "s") is True

    harness = Harness(Talker(script), "bot", workspace)
    run(harness.call("one", at()))

    run(harness.call("delete", at()))

    assert texts(bot.tree("s")) == ["one", "one: 1", "delete", "delete: 3"]
    assert len(stored(workspace)["messages"]) == 4
    assert len(bot.trashed()) == 1


def test_deleting_a_session_takes_both_tracks_the_index_and_the_search(workspace, bot):
    run(Harness(Talker(), "bot", workspace).call("findable", at()))
    assert len(workspace.search("findable")) == 2
    manager = WorkspaceManager(workspace)

    assert manager.delete_session("bot", "s") is True
    assert manager.delete_session("bot", "s") is False

    assert bot.session_ids() == []
    assert workspace.search("findable") == []
    assert json.loads(bot.place.index.read_text())["sessions"] == {}


def test_a_memory_is_a_source_in_each_of_its_kinds(workspace, bot):
    class Pairs:
        def __init__(self):
            self.content = []

        def state_dict(self):
            return {"content": self.content}

        def load_state_dict(self, state):
            self.content = [tuple(pair) for pair in state["content"]]

    class Getter(Memory):
        async def get_messages(self):
            return [{"role": "user", "content": "from get"}]

        def set_messages(self, messages):
            self.messages = messages

    class Other:
        def get_messages(self):
            return ["from the given source"]

        def set_messages(self, messages):
            raise AssertionError

    async def script(message, ctx, agent):
        agent.memory.content.append(({"role": "user", "content": "a pair"}, ["mark"]))

    agent = Talker()
    agent.memory = Pairs()

    async def call(message):
        agent.memory.content.append(({"role": "user", "content": "a pair"}, ["mark"]))

    agent.call = call
    run(Harness(agent, "bot", workspace).call("hi", at("pairs")))
    agent.memory = Getter()
    agent.call = lambda message: None
    run(Harness(agent, "bot", workspace).call("hi", at("getter")))
    run(Harness(agent, "bot", workspace, messages=Other()).call("hi", at("given")))

    found = [texts(bot.tree(session)) for session in ("pairs", "getter", "given")]
    assert found == [["a pair"], ["from get"], ["from the given source"]]
