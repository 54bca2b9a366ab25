"""Sessions on files: the contract of every store, and what only files promise.

Other processes are programs that are given to a new interpreter; they say what they saw on their
standard output.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from session_contract import SessionStoreContract
from session_contract.talk import (
    Heard,
    compacting,
    fill,
    loads,
    m,
    names,
    on_a_loop,
    says,
    shown,
)

import workspace_session
from workspace_session import (
    AgentContextProvider,
    AgentSearchProvider,
    AgentSessionProvider,
    CompactResult,
    MissingProvider,
    Session,
    SessionDeleted,
    SessionManager,
    UnknownSession,
    Workspace,
    create_compact_function,
)


class TestFileStore(SessionStoreContract):
    @pytest.fixture
    def store(self, agent, check_clean):
        yield agent
        check_clean()


class TestDurableFileStore:
    @on_a_loop
    async def test_a_session_that_waits_for_the_disk_is_the_same(self, tmp_path):
        agent = Workspace(tmp_path).agent("a")
        session = Session(agent, session_id="s", context=[{"label": "memory"}])
        session.with_cached_prompt().on_compaction(compacting("m0", "m1"))

        await fill(session, 3)
        await session.replace_context_block("memory", "tea")
        await session.compact()

        assert await shown(session) == ["S(sum)", "m2"]
        assert "tea" in await session.freeze_system_prompt()
        assert agent.verify() == []


def again(agent):
    """The agent as another process would have it."""
    return Workspace(agent.workspace.root, durability="os").agent(agent.id, agent.user)


# -- restarts --------------------------------------------------------------------------------------


@on_a_loop
async def test_a_restart_restores_everything(agent, check_clean):
    skills = {"get": lambda: "- a", "load": lambda key: "text of a"}
    blocks = [{"label": "memory"}, {"label": "skills", "provider": skills}]
    session = Session(agent, session_id="s", context=blocks).with_cached_prompt()
    await fill(session, 3)
    await session.append_message(loads("m3", "a", "text of a"))
    await fill(session, 3, 4)
    await session.append_message(says("b"), "m4")
    await session.set_leaf("m5")
    await session.add_compaction("sum", "m0", "m2")
    await session.replace_context_block("memory", "tea")
    prompt = await session.refresh_system_prompt()
    await session.replace_context_block("memory", "tea and cake")

    restarted = Session(again(agent), session_id="s", context=blocks).with_cached_prompt()

    assert await restarted.get_history() == await session.get_history()
    assert await shown(restarted) == ["S(sum)", "m3", "m4", "m5"]
    assert await restarted.get_compactions() == await session.get_compactions()
    assert (await restarted.get_context_block("memory")).content == "tea and cake"
    assert await restarted.freeze_system_prompt() == prompt
    assert await restarted.get_loaded_skill_keys() == {"skills:a"}
    check_clean()


@on_a_loop
async def test_what_is_loaded_is_found_without_reading_plain_talk(agent):
    session = await fill(Session(agent, session_id="s"), 3)
    await session.append_message(loads("m3", "a", "text of a"))
    await session.append_message(loads("b", "b", "text of b"), "m0")
    await session.set_leaf("m3")
    provider = agent.session_store().provider("s")

    on_path = await provider.get_mentions("load_context")
    everywhere = await provider.get_mentions("load_context", on_all_branches=True)

    assert [message["id"] for message in on_path] == ["m3"]
    assert [message["id"] for message in everywhere] == ["m3", "b"]


@on_a_loop
async def test_what_is_loaded_is_found_however_other_hands_wrote_it(agent):
    skills = {"get": lambda: "- a", "load": lambda key: "text of a"}
    session = await fill(Session(agent, session_id="s"), 3)
    await session.append_message(loads("m3", "a", "text of a"))
    log = agent.place.log("s")
    log.write_bytes(log.read_bytes().replace(b"load_context", b"\\u006coad_context"))

    restarted = Session(
        again(agent), session_id="s", context=[{"label": "skills", "provider": skills}]
    )

    assert await restarted.get_loaded_skill_keys() == {"skills:a"}


@on_a_loop
async def test_earlier_summaries_reach_the_summariser_after_a_restart(agent):
    prompts = []

    def summarize(prompt):
        prompts.append(prompt)
        return f"summary {len(prompts)}"

    function = create_compact_function(summarize=summarize, protect_head=1, tail_token_budget=0)
    await (await fill(Session(agent, session_id="s", on_compaction=function), 8)).compact()

    restarted = await fill(Session(again(agent), session_id="s", on_compaction=function), 4, 8)
    await restarted.compact()

    assert await shown(restarted) == ["m0", "S(summary 2)", "m10", "m11"]
    assert "PREVIOUS SUMMARY:" not in prompts[0]
    assert prompts[1].count("summary 1") == 1


@on_a_loop
async def test_a_manager_lists_the_same_after_a_restart(agent):
    manager = SessionManager.create(agent)
    info = await manager.create("Trip", model="large")
    await manager.append(info.id, says("m0"))
    await manager.add_usage(info.id, 1, 2, 0.5)
    await manager.fork(info.id, "m0", "Fork")

    assert await SessionManager.create(again(agent)).list() == await manager.list()


# -- where things are ------------------------------------------------------------------------------


@on_a_loop
async def test_blocks_and_prompt_are_snapshots_of_the_session(agent):
    session = Session(agent, session_id="s", context=[{"label": "memory"}]).with_cached_prompt()
    await session.replace_context_block("memory", "tea")
    prompt = await session.freeze_system_prompt()

    directory = agent.workspace.root / "agents" / "a" / "context" / "s"
    snapshots = {path.name: json.loads(path.read_text()) for path in directory.iterdir()}

    assert snapshots == {"block.memory.json": "tea", "prompt.system.json": prompt}


@on_a_loop
async def test_a_state_module_of_the_same_name_is_something_else(agent):
    agent.state.save("s", "memory", {"a": 1})
    session = Session(agent, session_id="s", context=[{"label": "memory"}])

    await session.replace_context_block("memory", "tea")

    assert agent.state.get("s", "memory") == {"a": 1}
    assert (await session.get_context_block("memory")).content == "tea"


@on_a_loop
async def test_agents_and_users_have_sessions_of_their_own(workspace):
    places = [
        workspace.agent("a"),
        workspace.agent("b"),
        workspace.agent("a", user="u"),
    ]
    for number, agent in enumerate(places):
        await Session(agent, session_id="s").append_message(says(f"m{number}"))

    for number, agent in enumerate(places):
        assert await shown(Session(agent, session_id="s")) == [f"m{number}"]
        assert len(await SessionManager.create(agent).list()) == 1


@on_a_loop
async def test_what_is_no_session_message_is_skipped(agent):
    tree = agent.tree("s")
    tree.append({"id": "item", "role": "user", "content": "of another kind"})
    session = await fill(Session(agent, session_id="s"), 2)
    tree.append({"id": "other", "type": "function_call_output", "output": "4"}, "m0")

    assert await shown(session, "m1") == ["m0", "m1"]
    assert await session.get_message("item") is None
    assert names(await session.get_branches("m0")) == ["m1"]
    assert await session.get_path_length("m1") == 3
    assert await session.get_path_length() == 3
    assert [row.id for row in await session.get_history_row_stats()] == ["item", "m0", "other"]
    assert names((await session.get_recent_history(10**6)).messages) == ["m0"]


@on_a_loop
async def test_what_is_no_session_message_costs_nothing(agent):
    tree = agent.tree("s")
    tree.append({"id": "item", "role": "user", "content": "of another kind"})
    session = Session(agent, session_id="s")
    heard = Heard(session)

    await session.append_message(says("m0"))

    assert heard.of("status")[0]["token_estimate"] == 7


@on_a_loop
async def test_a_fork_takes_labels_along(agent):
    manager = SessionManager.create(agent)
    await manager.append_all("s", [says(name) for name in m(0, 3)])
    agent.tree("s").label("m1", "good")
    agent.tree("s").label("m3", "beyond")

    child = await manager.fork("s", "m2", "Fork")

    assert agent.tree(child.id).labels() == {"m1": "good"}


@on_a_loop
async def test_a_deleted_session_can_be_brought_back(agent, check_clean):
    blocks = [{"label": "memory"}]
    session = await fill(Session(agent, session_id="s", context=blocks), 2)
    await session.replace_context_block("memory", "tea")
    manager = SessionManager.create(agent)
    await manager.delete("s")

    agent.restore("s")

    back = Session(agent, session_id="s", context=blocks)
    assert await shown(back) == ["m0", "m1"]
    assert (await back.get_context_block("memory")).content == "tea"
    assert await manager.get("s") is not None
    check_clean()


# -- parts for full control ------------------------------------------------------------------------


@on_a_loop
async def test_a_block_of_the_agent_is_shared_by_its_sessions(agent):
    for name in ("s", "t"):
        shared = AgentContextProvider(agent, "memory")
        session = Session(agent, session_id=name, context=[{"label": "memory", "provider": shared}])
        await session.append_context_block("memory", f"from {name}")

    own = Session(agent, session_id="s", context=[{"label": "memory"}])
    assert (await own.get_context_block("memory")).content == ""
    assert await AgentContextProvider(again(agent), "memory").get() == "from s\nfrom t"


@pytest.mark.parametrize("session_id", ["agent", "@agent", "blocks", "memory"])
@on_a_loop
async def test_no_deleted_session_takes_a_block_of_the_agent_along(agent, session_id, check_clean):
    await AgentContextProvider(agent, "memory").set("tea")
    session = Session(agent, session_id=session_id, context=[{"label": "memory"}])
    await session.replace_context_block("memory", "cake")

    await SessionManager.create(agent).delete(session_id)

    assert await AgentContextProvider(agent, "memory").get() == "tea"
    check_clean()


@on_a_loop
async def test_a_block_of_a_session_can_be_reached_by_its_id(agent):
    session = Session(agent, session_id="s", context=[{"label": "memory"}])
    await AgentContextProvider(agent, "memory", "s").set("tea")

    assert (await session.get_context_block("memory")).content == "tea"
    assert await AgentContextProvider(agent, "memory", "t").get() is None


@on_a_loop
async def test_a_session_on_a_provider_of_the_agent_wires_nothing(agent):
    sent = []
    agent.broadcast = sent.append
    provider = AgentSessionProvider(agent)
    session = Session.create(provider).with_context("memory").with_cached_prompt()

    await session.append_message(says("m0"))

    assert session.id == "default"
    assert not (await session.get_context_block("memory")).writable
    assert await session.freeze_system_prompt() == ""
    with pytest.raises(MissingProvider):
        await session.add_context("more")
    assert sent == []
    assert not (agent.workspace.root / "agents" / "a" / "context").exists()
    assert await shown(Session(agent)) == ["m0"]


@on_a_loop
async def test_entries_of_an_agent_can_be_written_and_searched(agent):
    entries = AgentSearchProvider(agent)
    session = Session(agent, session_id="s", context=[{"label": "notes", "provider": entries}])
    assert (await session.get_context_block("notes")).content == ""

    block = await session.set_search_entry("notes", "tea", "The user likes green tea.")
    assert block.content == "1 entries indexed."
    await session.set_search_entry("notes", "cake", "The user bakes cakes.")
    await session.set_search_entry("notes", "tea", "The user likes black tea.")
    search = (await session.tools())["search_context"]

    assert await search.execute(label="notes", query="like") == "[tea]\nThe user likes black tea."
    assert await search.execute(label="notes", query="green") == "No results found."
    both = await search.execute(label="notes", query="user")
    assert sorted(both.split("\n\n")) == [
        "[cake]\nThe user bakes cakes.",
        "[tea]\nThe user likes black tea.",
    ]


@on_a_loop
async def test_entries_are_of_one_label_and_of_one_session_or_of_all(agent):
    def notes(label, session_id=None):
        provider = AgentSearchProvider(again(agent), session_id)
        provider.init(label)
        return provider

    await notes("notes").set("a", "for all")
    await notes("notes", "s").set("a", "for one")

    assert await notes("notes").search("for") == "[a]\nfor all"
    assert await notes("notes", "s").search("for") == "[a]\nfor one"
    assert await notes("notes", "t").get() is None
    assert await notes("other").get() is None
    await SessionManager.create(agent).delete("s")
    assert await notes("notes", "s").get() is None
    assert await notes("notes").get() == "1 entries indexed."


@on_a_loop
async def test_no_more_than_ten_entries_are_found(agent):
    provider = AgentSearchProvider(agent)
    for number in range(12):
        await provider.set(f"k{number}", "alike")

    assert (await provider.search("alike")).count("alike") == 10


# -- broadcast -------------------------------------------------------------------------------------


@on_a_loop
async def test_status_and_errors_are_broadcast(agent):
    sent = []
    session = Session(agent, session_id="s", on_compaction=compacting("m0", "m1"), compact_after=20)
    agent.broadcast = sent.append  # in time: nothing was used yet
    await fill(session, 3)
    session.on_compaction(lambda messages: 1 / 0)
    await session.compact()

    def status(phase, estimate, **more):
        wire = {"type": "session_status", "sessionId": "s", "phase": phase}
        return {**wire, "tokenEstimate": estimate, "tokenThreshold": 20, **more}

    assert [json.loads(text) for text in sent] == [
        status("idle", 7),
        status("idle", 14),
        status("idle", 21),
        status("compacting", 21),
        status("idle", 13, compacted={"tokensBefore": 21}),
        status("compacting", 13),
        {"type": "session_error", "sessionId": "s", "error": "division by zero"},
        status("idle", 13),
    ]


@on_a_loop
async def test_a_broadcast_that_fails_harms_nobody(agent, caplog):
    async def broadcast(text):
        raise OSError("nobody is there")

    agent.broadcast = broadcast
    result = await Session(agent, session_id="s").append_message(says("m0"))

    assert result.inserted
    assert "nobody is there" in caplog.text


# -- other processes -------------------------------------------------------------------------------

COMMON = """
    import asyncio, os, sys, time
    from workspace_session import *

    agent = Workspace(sys.argv[1], durability="os").agent("a")

    def says(message_id, text="hello world"):
        return {"id": message_id, "role": "user", "parts": [{"type": "text", "text": text}]}
"""


def start(agent, program, *arguments):
    """Another process, working on the same files."""
    text = textwrap.dedent(COMMON) + textwrap.dedent(program)
    root = os.fspath(agent.workspace.root)
    package = Path(workspace_session.__file__).parent.parent
    return subprocess.Popen(
        [sys.executable, "-c", text, root, *map(str, arguments)],
        cwd=package,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def said(process):
    """What a process said until its end, which is a good one."""
    out, _ = process.communicate(timeout=50)
    assert process.returncode == 0
    return out.split()


def elsewhere(agent, program, *arguments):
    """What another process says."""
    return said(start(agent, program, *arguments))


WRITER = """
    async def main():
        session = Session(agent, session_id="s", context=[{"label": "memory"}])
        session.with_context("soul", provider={"get": lambda: sys.argv[2]}).with_cached_prompt()
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(int(sys.argv[3])):
            await session.append_message(says(f"{sys.argv[2]}{number}"))
            await session.append_context_block("memory", f"{sys.argv[2]}{number}")
        print(hash_of(await session.freeze_system_prompt()))

    def hash_of(text):
        import hashlib
        return hashlib.sha256(text.encode()).hexdigest()

    asyncio.run(main())
"""


@on_a_loop
async def test_processes_that_append_form_one_chain(agent, check_clean):
    writers = [start(agent, WRITER, name, 40) for name in "xyz"]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    prompts = [said(writer)[0] for writer in writers]

    session = Session(agent, session_id="s", context=[{"label": "memory"}])
    wanted = sorted(f"{name}{number}" for name in "xyz" for number in range(40))
    assert sorted(await shown(session)) == wanted
    content = (await session.get_context_block("memory")).content
    assert sorted(content.split("\n")) == wanted
    assert len(set(prompts)) == 1
    check_clean()


@on_a_loop
async def test_what_another_process_appends_to_what_is_compacted_stays_to_be_seen(agent):
    session = await fill(Session(agent, session_id="s"), 4)
    program = """
        asyncio.run(Session(agent, session_id="s").append_message(says("theirs")))
    """

    def slowly(messages):
        elsewhere(agent, program)
        return CompactResult("sum", "m0", "m3")

    await session.on_compaction(slowly).compact()

    assert await shown(session) == ["S(sum)", "theirs"]


COMPACTOR = """
    async def main():
        calls = []
        session = Session(agent, session_id="s", on_compaction=calls.append)
        print(await session.compact(), len(calls))
        session.compact_after(0)
        await session.append_message(says(sys.argv[2]))
        print(len(calls))

    asyncio.run(main())
"""


@on_a_loop
async def test_one_process_at_a_time_compacts(agent):
    session = await fill(Session(agent, session_id="s"), 4)
    seen = []

    async def slowly(messages):
        seen.extend(await asyncio.to_thread(elsewhere, agent, COMPACTOR, "theirs"))
        return CompactResult("sum", "m0", "m3")

    result = await session.on_compaction(slowly).compact()

    assert seen == ["None", "0", "0"]
    assert result == CompactResult("sum", "m0", "m3")
    assert elsewhere(agent, COMPACTOR, "more") == ["None", "1", "2"]


@on_a_loop
async def test_a_killed_process_no_longer_compacts(agent):
    session = await fill(Session(agent, session_id="s"), 4)
    program = """
        def forever(messages):
            print("compacting", flush=True)
            time.sleep(60)

        asyncio.run(Session(agent, session_id="s", on_compaction=forever).compact())
    """
    process = start(agent, program)
    assert process.stdout.readline() == "compacting\n"
    session.on_compaction(compacting("m0", "m1"))

    assert await session.compact() is None
    process.kill()
    process.communicate()

    assert await session.compact() == CompactResult("sum", "m0", "m1")


@pytest.mark.parametrize(
    "then", ["", "await Session(agent, session_id='s').append_message(says('n'))"]
)
@on_a_loop
async def test_handles_see_that_another_process_deleted_their_session(agent, then, check_clean):
    manager = SessionManager.create(agent)
    cached = await fill(await manager.get_session("s"), 2)
    handle = Session(agent, session_id="s", context=[{"label": "memory"}])
    await handle.get_history()
    program = f"""
        async def main():
            await SessionManager.create(agent).delete("s")
            {then or "pass"}

        asyncio.run(main())
    """

    elsewhere(agent, program)

    for session in (cached, handle):
        with pytest.raises(SessionDeleted):
            await session.get_history()
        with pytest.raises(SessionDeleted):
            await session.append_message(says("m2"))
    with pytest.raises(SessionDeleted):
        await handle.replace_context_block("memory", "tea")
    if then:
        assert names(await manager.get_history("s")) == ["n"]
    else:
        with pytest.raises(UnknownSession):
            await manager.get_history("s")
    assert await shown(await manager.get_session("s")) == (["n"] if then else [])
    check_clean()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_session_can_be_used_on_both_sides_of_a_fork(agent):
    program = """
        async def use(name):
            await session.append_message(says(name))
            await session.delete_messages(["nobody"])  # in a thread
            await session.compact()

        session = Session(agent, session_id="s", on_compaction=lambda messages: None)
        asyncio.run(use("m0"))
        child = os.fork()
        asyncio.run(use("child" if child == 0 else "parent"))
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    """

    elsewhere(agent, program)

    assert sorted(names(agent.tree("s").messages())) == ["child", "m0", "parent"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_in_the_midst_of_a_compaction_does_not_wait_for_it(agent):
    program = """
        def forking(messages):
            global child
            child = os.fork()
            if child == 0:
                session.on_compaction(lambda messages: None)
                asyncio.set_event_loop(None)
                import threading
                thread = threading.Thread(target=asyncio.run, args=(session.compact(),))
                thread.start()
                thread.join(20)
                os._exit(thread.is_alive())

        session = Session(agent, session_id="s", on_compaction=forking)
        asyncio.run(session.append_message(says("m0")))
        asyncio.run(session.compact())
        assert os.waitpid(child, 0)[1] == 0
    """

    elsewhere(agent, program)


# -- what it costs ---------------------------------------------------------------------------------


def bytes_read():
    """How many bytes this process has read."""
    return int(Path("/proc/self/io").read_text().split()[1])


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="the kernel has to count")
@on_a_loop
async def test_opening_a_session_costs_what_its_context_costs(agent):
    tree = agent.tree("s")
    for start_at in range(0, 100_000, 10_000):
        tree.extend([says(f"m{number}") for number in range(start_at, start_at + 10_000)])
    tree.compact("sum", "m0", "m99989")
    session = Session(again(agent), session_id="s", context=[{"label": "memory"}])
    before = bytes_read()

    history = await session.get_history()
    await session.append_message({"role": "user", "parts": []})
    await session.get_context_blocks()
    await session.get_latest_leaf()

    assert len(history) == 11
    assert (bytes_read() - before) * 100 < agent.place.log("s").stat().st_size


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="the kernel has to count")
@on_a_loop
async def test_the_tip_and_the_blocks_of_a_long_session_are_had_without_reading_it(agent):
    agent.tree("s").extend([says(f"m{number}") for number in range(10_000)])
    session = Session(again(agent), session_id="s", context=[{"label": "memory"}])
    session.with_cached_prompt()
    before = bytes_read()

    assert (await session.get_latest_leaf())["id"] == "m9999"
    await session.get_context_blocks()
    await session.freeze_system_prompt()
    await session.tools()

    assert (bytes_read() - before) * 10 < agent.place.log("s").stat().st_size
