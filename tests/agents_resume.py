"""One half of a run, for a process of its own: `start` stops at an approval, `resume` goes on from it.

The state of the run is JSON in a file between them; the conversation is in the workspace.
"""

from __future__ import annotations

import asyncio
import json
import sys
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
ENDS = [assistant_message("Room 12 is yours.")]


async def run(agent: Agent, given, session, *, streamed: bool = False):
    """Run to the end, in either way."""
    if not streamed:
        return await Runner.run(agent, given, session=session)
    result = Runner.run_streamed(agent, given, session=session)
    async for _event in result.stream_events():
        pass
    return result


async def start(root: Path, streamed: bool) -> None:
    session = AgentsSession.open(root / "ws", "s", durability="os")
    result = await run(agent_that(root / "calls", ASKS), "a room", session, streamed=streamed)
    assert len(result.interruptions) == 1
    (root / "state.json").write_text(json.dumps(result.to_state().to_json()))
    session.close()


async def resume(root: Path, streamed: bool) -> None:
    session = AgentsSession.open(root / "ws", "s", durability="os")
    agent = agent_that(root / "calls", ENDS)
    state = await RunState.from_json(agent, json.loads((root / "state.json").read_text()))
    for interruption in state.get_interruptions():
        state.approve(interruption)
    result = await run(agent, state, session, streamed=streamed)
    sys.stdout.write(f"{result.final_output}\n")
    session.close()


if __name__ == "__main__":
    half, root, how = sys.argv[1:]
    asyncio.run({"start": start, "resume": resume}[half](Path(root), how == "streamed"))
