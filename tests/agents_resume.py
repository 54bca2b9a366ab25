"""One half of a run, for a process of its own: `start` stops at an approval, `resume` goes on from it.

The state of the run is JSON in a file between them; the conversation is in the workspace. `kill` resumes
again and again, from the same beginning, in processes that are killed in the middle of a write.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import signal
import sys
from itertools import count
from pathlib import Path

import agents
from agents import Agent, Runner, RunState, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from workspace_session.adapters.openai_agents import AgentsSession

agents.set_tracing_disabled(True)


def agent_that(calls: Path, *steps) -> Agent:
    """An agent with a tool that leaves a line for each time it was run."""

    @function_tool(needs_approval=True)
    def book(room: str) -> str:
        """Book a room."""
        with calls.open("a") as file:
            file.write(f"{room}\n")
        return f"{room} is booked"

    return Agent(name="clerk", model=ScriptedModel(steps), tools=[book])


ASKS = [function_call("book", {"room": "12"}, call_id="c1")]
ASKS_FIVE = [function_call("book", {"room": str(n)}, call_id=f"c{n}") for n in range(5)]
ENDS = [assistant_message("Room 12 is yours.")]


async def run(agent: Agent, given, session, *, streamed: bool = False):
    """Run to the end, in either way."""
    if not streamed:
        return await Runner.run(agent, given, session=session)
    result = Runner.run_streamed(agent, given, session=session)
    async for _event in result.stream_events():
        pass
    return result


async def start(root: Path, streamed: bool, asks=ASKS) -> None:
    session = AgentsSession.open(root / "ws", "s", durability="os")
    result = await run(agent_that(root / "calls", asks), "a room", session, streamed=streamed)
    assert len(result.interruptions) == len(asks)
    (root / "state.json").write_text(json.dumps(result.to_state().to_json()))
    session.close()


async def resume(root: Path, streamed: bool) -> str:
    session = AgentsSession.open(root / "ws", "s", durability="os")
    agent = agent_that(root / "calls", ENDS)
    state = await RunState.from_json(agent, json.loads((root / "state.json").read_text()))
    for interruption in state.get_interruptions():
        state.approve(interruption)
    result = await run(agent, state, session, streamed=streamed)
    session.close()
    return result.final_output


def kill(root: Path, streamed: bool, step: int) -> None:
    """For each so many bytes of what a resumed run writes, tell what the log held after the kill at
    that byte and after another resumption, and what the killed one had acknowledged."""
    asyncio.run(start(root, streamed, ASKS_FIVE))
    log = AgentsSession.open(root / "ws", "s").tree.place.log("s").relative_to(root)
    size = (root / log).stat().st_size
    for more in count(0, step):
        copy = root / str(more)
        shutil.copytree(root / "ws", copy / "ws")
        shutil.copy(root / "state.json", copy)
        killed = _in_a_child(copy, streamed, size + more)
        held = _items(copy)
        assert not _in_a_child(copy, streamed)
        found = {"killed": killed, "held": held, "after": _items(copy)}
        sys.stdout.write(f"{json.dumps(found)}\n")
        sys.stdout.flush()  # or the next child would have it too
        shutil.rmtree(copy)
        if not killed:
            break


def _in_a_child(root: Path, streamed: bool, limit: int | None = None) -> bool:
    """Resume in a process that is killed when a file would grow beyond a limit; whether it was."""
    child = os.fork()
    if not child:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        said = asyncio.run(resume(root, streamed))
        os._exit(said != "Room 12 is yours.")
    _pid, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status)
    assert killed or status == 0, status
    assert not killed or os.WTERMSIG(status) == signal.SIGXFSZ
    return killed


def _items(root: Path) -> list:
    with AgentsSession.open(root / "ws", "s") as session:
        return asyncio.run(session.get_items())


if __name__ == "__main__":
    half, root, how, *step = sys.argv[1:]
    if half == "kill":
        kill(Path(root), how == "streamed", int(*step))
    else:
        said = asyncio.run({"start": start, "resume": resume}[half](Path(root), how == "streamed"))
        sys.stdout.write(f"{said}\n" if said else "")
