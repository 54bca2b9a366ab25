"""A chat with memory: what was said is there in the next turn, and in the next process.

python chat.py WORKSPACE
"""

from __future__ import annotations

import asyncio

from agents import Runner
from scripted import directory, line, says, scripted

from workspace_session.adapters.openai_agents import AgentsSession


async def main(root: str) -> None:
    agent = scripted("guide", says("Porto, then."), says("The Douro."))

    async with AgentsSession.open(root, "trip") as session:
        await Runner.run(agent, "Somewhere by a river?", session=session)

    # Another process would open it just so.
    async with AgentsSession.open(root, "trip") as session:
        result = await Runner.run(agent, "Which river?", session=session)
        await session.record_usage(result)
        for item in await session.get_items():
            print(line(item))


asyncio.run(main(directory()))
