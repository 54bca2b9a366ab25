"""Approval: a run stops before a tool, its state goes into a file, another process goes on with it.

python approval.py WORKSPACE ask
python approval.py WORKSPACE approve
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from agents import Runner, RunState, function_tool
from scripted import calls, line, says, scripted

from workspace_session.adapters.openai_agents import AgentsSession


@function_tool(needs_approval=True)
def book(room: str) -> str:
    """Book a room."""
    return f"room {room} is booked"


async def ask(root: Path) -> None:
    agent = scripted("clerk", calls("book", {"room": "12"}, call_id="call_1"), tools=[book])
    async with AgentsSession.open(root, "booking") as session:
        result = await Runner.run(agent, "A room with a view, please.", session=session)
        for request in result.interruptions:
            print(f"may it call {request.name}({request.arguments})?")
        (root / "state.json").write_text(json.dumps(result.to_state().to_json()))


async def approve(root: Path) -> None:
    agent = scripted("clerk", says("Room 12 is yours."), tools=[book])
    state = await RunState.from_json(agent, json.loads((root / "state.json").read_text()))
    for request in state.get_interruptions():
        state.approve(request)
    async with AgentsSession.open(root, "booking") as session:
        await Runner.run(agent, state, session=session)
        for item in await session.get_items():
            print(line(item))


steps = {"ask": ask, "approve": approve}
if len(sys.argv) != 3 or sys.argv[2] not in steps:
    sys.exit("usage: python approval.py WORKSPACE ask|approve")
asyncio.run(steps[sys.argv[2]](Path(sys.argv[1])))
