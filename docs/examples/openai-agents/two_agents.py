"""Two agents, one workspace: a handoff in one conversation, and a session of its own for each.

python two_agents.py WORKSPACE
"""

from __future__ import annotations

import asyncio

from agents import Runner
from scripted import calls, directory, line, says, scripted

from workspace_session import Workspace
from workspace_session.adapters.openai_agents import AgentsSession


async def main(root: str) -> None:
    cook = scripted("cook", says("Fish, by the river."), says("Bread, salt, sardines."))
    front = scripted("front", calls("transfer_to_cook", {}, call_id="call_1"), handoffs=[cook])

    with Workspace(root) as workspace:
        desk = AgentsSession(workspace.agent("front"), "guest-7")
        notes = AgentsSession(workspace.agent("cook"), "shopping")

        # Both write at the same time, to sessions of their own.
        await asyncio.gather(
            Runner.run(front, "What is there to eat?", session=desk),
            Runner.run(scripted("cook", says("Sardines, then.")), "What do we buy?", session=notes),
        )

        for item in await desk.get_items():
            print(line(item))
        for hit in workspace.search("sardines"):
            print(f"{hit.agent_id}/{hit.session_id}: {hit.snippet}")


asyncio.run(main(directory()))
