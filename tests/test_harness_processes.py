"""Harnesses in several processes, and in processes that are killed: what is acknowledged is there."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from harness_agents import Counter, Talker, texts

import workspace_session
from workspace_session import Harness, RuntimeContext, WorkspaceSession

PACKAGE = Path(workspace_session.__file__).parent.parent
TESTS = Path(__file__).parent

CTX = RuntimeContext(session_id="s")

COMMON = """
    import asyncio, os, signal, sys
    sys.path.insert(0, sys.argv[2])
    from harness_agents import Counter, Memory, Talker
    from workspace_session import *

    workspace = Workspace(sys.argv[1], durability="os")
    ctx = RuntimeContext(session_id="s")

    def die():
        os.kill(os.getpid(), signal.SIGKILL)
"""


def start(workspace, program, *arguments):
    code = textwrap.dedent(COMMON) + textwrap.dedent(program)
    command = [sys.executable, "-c", code, os.fspath(workspace.root), os.fspath(TESTS), *arguments]
    return subprocess.Popen(command, cwd=PACKAGE, stdout=subprocess.PIPE, text=True)


def outcome(child):
    with child:
        said = child.communicate(timeout=60)[0]
    return child.returncode, said


@pytest.fixture(autouse=True)
def clean_afterwards(workspace, check_clean):
    yield
    check_clean()


@pytest.fixture
def tree(workspace):
    return workspace.agent("bot").tree("s")


def test_killed_between_transcript_and_state_the_next_turn_repeats_nothing(workspace, tree):
    program = """
        class Fatal(SessionPersistenceHook):
            async def after_call(self, ctx, message, reply):
                if message == "two":
                    die()
                await super().after_call(ctx, message, reply)

        harness = Harness(Talker(), "bot", workspace, hooks=[Fatal()])
        harness.call_sync("one", ctx)
        harness.call_sync("two", ctx)
    """
    assert outcome(start(workspace, program))[0] == -signal.SIGKILL
    assert texts(tree) == ["one", "one: 1", "two", "two: 3"]
    memory = WorkspaceSession(workspace, "bot").get("s", "memory")["messages"]
    assert len(memory) == 2  # the transcript knows more than the state

    Harness(Talker(), "bot", workspace).call_sync("three", CTX)

    assert texts(tree) == ["one", "one: 1", "two", "two: 3", "three", "three: 3"]


def test_killed_there_with_ids_the_next_turn_repeats_nothing_either(workspace, tree):
    program = """
        async def script(message, ctx, agent):
            for number, one in enumerate(agent.memory.messages):
                one.setdefault("id", f"m{number}")

        class Fatal(SessionPersistenceHook):
            async def after_call(self, ctx, message, reply):
                die()

        memory = Memory([{"id": "m0", "role": "system", "content": "be kind"}])
        agent = Talker(script)
        agent.memory = memory
        Harness(agent, "bot", workspace, hooks=[Fatal()]).call_sync("one", ctx)
    """
    assert outcome(start(workspace, program))[0] == -signal.SIGKILL
    size = len(tree)

    agent = Talker()
    agent.memory.messages = [entry.message for entry in tree.path()][:2]
    Harness(agent, "bot", workspace).call_sync("two", CTX)

    assert len(tree) == size + 2


@pytest.mark.parametrize("moment", ["before the note", "after the note", "between the renames"])
def test_killed_while_several_modules_are_saved_the_next_sees_all_or_none(workspace, moment):
    program = """
        from pathlib import Path

        class Both:
            def __init__(self): self.memory, self.toolkit = Counter(), Counter()
            def call(self, message):
                self.memory.number = self.toolkit.number = int(message)

        moment = sys.argv[3]
        harness = Harness(Both(), "bot", workspace)
        harness.call_sync("1", ctx)

        replace, after_note = Path.replace, []
        def replace_or_die(self, target):
            is_note = Path(target).name == ".commit.json"
            if is_note and moment == "before the note":
                die()
            if len(after_note) == 2 and moment == "between the renames":
                die()
            result = replace(self, target)
            if is_note and moment == "after the note":
                die()
            if is_note or after_note:
                after_note.append(target)
            return result
        Path.replace = replace_or_die
        harness.call_sync("2", ctx)
    """
    code, _said = outcome(start(workspace, program, moment))
    assert code == -signal.SIGKILL
    seen = []

    class Both:
        def __init__(self):
            self.memory, self.toolkit = Counter(), Counter()

        def call(self, message):
            seen.append((self.memory.number, self.toolkit.number))

    Harness(Both(), "bot", workspace).call_sync("look", CTX)

    assert seen == [(1, 1) if moment == "before the note" else (2, 2)]
    assert not list(workspace.agent("bot").place.state("s").glob(".commit.json"))


def test_killed_at_any_moment_every_acknowledged_turn_is_there_once(workspace, tree):
    program = """
        harness = Harness(Talker(), "bot", workspace)

        async def main():
            for number in range(int(sys.argv[3]), 100_000):
                await harness.call(f"turn {number}", ctx)
                print(number, flush=True)

        asyncio.run(main())
    """
    number = 0
    for patience in (1, 4, 9):
        child = start(workspace, program, str(number))
        with child:
            for line in child.stdout:
                number = int(line)
                patience -= 1
                if not patience:
                    break
            child.send_signal(signal.SIGKILL)
            number = max([number, *map(int, child.stdout)]) + 1

        said = [text for text in texts(tree) if ":" not in text]
        assert [text for text in said if text == f"turn {number - 1}"] == [f"turn {number - 1}"]
        assert len(said) == len(set(said))
        assert {f"turn {n}" for n in range(number)} <= set(said)
        number += f"turn {number}" in said  # one that was not acknowledged may be there


def test_two_processes_that_merge_lose_nothing_of_each_other(workspace):
    program = """
        class Both:
            def __init__(self):
                self.memory, self.toolkit = Memory(), Counter()
            async def call(self, message, ctx):
                self.memory.messages.append({"id": message, "role": "user", "content": message})
                self.toolkit.number += 1
                await asyncio.sleep(0.002)
                self.memory.messages.append(reply := {"id": f"r-{message}", "role": "assistant", "content": "ok"})
                return reply

        async def main():
            harness = Harness(Both(), "bot", workspace, conflict_policy=sys.argv[4])
            for number in range(20):
                try:
                    await harness.call(f"{sys.argv[3]}-{number}", ctx)
                except TurnConflict as error:
                    print("conflict", error.reply["id"], flush=True)

        asyncio.run(main())
    """
    children = [start(workspace, program, name, "merge") for name in "ab"]
    assert [outcome(child) for child in children] == [(0, "")] * 2

    wanted = {f"{prefix}{name}-{n}" for prefix in ("", "r-") for name in "ab" for n in range(20)}
    state = WorkspaceSession(workspace, "bot")
    memory = [message["id"] for message in state.get("s", "memory")["messages"]]
    path = [entry.id for entry in workspace.agent("bot").tree("s").all_messages()]
    assert sorted(memory) == sorted(wanted)
    assert sorted(path) == sorted(wanted)


@pytest.mark.parametrize("policy", ["fail", "overwrite"])
def test_two_processes_that_fail_say_so_and_that_overwrite_do_not(workspace, policy):
    program = """
        def wait_for(name):
            while not (workspace.root / name).exists():
                pass

        async def script(message, ctx, agent):
            (workspace.root / f"{message}-has-loaded").touch()
            for other in ("a-has-loaded", "b-has-loaded"):
                wait_for(other)
            if message == "b":
                wait_for("a-is-saved")

        name = sys.argv[3]
        harness = Harness(Talker(script), "bot", workspace, conflict_policy=sys.argv[4])
        try:
            print(harness.call_sync(name, ctx)["content"])
            (workspace.root / f"{name}-is-saved").touch()
        except TurnConflict as error:
            print("conflict", error.reply["content"])
    """
    children = [start(workspace, program, name, policy) for name in "ab"]
    (code_a, said_a), (code_b, said_b) = [outcome(child) for child in children]

    assert (code_a, code_b, said_a) == (0, 0, "a: 1\n")
    memory = WorkspaceSession(workspace, "bot").get("s", "memory")["messages"]
    last = "a" if policy == "fail" else "b"
    assert said_b == ("conflict b: 1\n" if policy == "fail" else "b: 1\n")
    assert [message["content"] for message in memory] == [last, f"{last}: 1"]
    # The conversation is there in any case: transcripts have no conflicts.
    everything = {e.message["content"] for e in workspace.agent("bot").tree("s").all_messages()}
    assert everything == {"a", "a: 1", "b", "b: 1"}


def test_a_fork_inside_a_turn_has_turns_of_its_own(workspace):
    program = """
        harness = Harness(Talker(), "bot", workspace)
        async def main():
            await harness.call("one", ctx)
        asyncio.run(main())
        pid = os.fork()
        harness.call_sync("child" if pid == 0 else "parent", RuntimeContext(session_id=f"after-{pid == 0}"))
        if pid:
            assert os.waitpid(pid, 0)[1] == 0
            print("ok")
        else:
            os._exit(0)
    """
    assert outcome(start(workspace, program)) == (0, "ok\n")

    agent = workspace.agent("bot")
    assert texts(agent.tree("after-True")) == ["child", "child: 1"]
    assert texts(agent.tree("after-False")) == ["parent", "parent: 1"]


def test_interrupting_a_synchronous_program_saves_its_turn(workspace, tree):
    program = """
        async def script(message, ctx, agent):
            print("started", flush=True)
            await asyncio.sleep(30)

        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            Harness(Talker(script), "bot", workspace).call_sync("hi", ctx)
        except KeyboardInterrupt:
            print("interrupted")
    """
    child = start(workspace, program)
    assert child.stdout.readline() == "started\n"
    child.send_signal(signal.SIGINT)

    assert outcome(child) == (0, "interrupted\n")
    assert texts(tree) == ["hi"]
    index = json.loads(workspace.agent("bot").place.index.read_text())
    assert index["sessions"]["s"]["endReason"] == "cancelled"


def test_a_turn_in_another_process_is_seen_by_the_next_here(workspace):
    harness = Harness(Talker(), "bot", workspace)
    asyncio.run(harness.call("here", CTX))
    outcome(start(workspace, 'Harness(Talker(), "bot", workspace).call_sync("there", ctx)'))

    assert asyncio.run(harness.call("here again", CTX))["content"] == "here again: 5"
