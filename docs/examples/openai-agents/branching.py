"""Branches: an answer is made again, both stay, and the first one becomes the active one.

python branching.py WORKSPACE
"""

from __future__ import annotations

import asyncio
import sys

from agents import Runner
from scripted import line, says, scripted

from workspace_session.adapters.openai_agents import AgentsSession


async def main(root: str) -> None:
    agent = scripted("guide", says("The bridge."), says("The cellars."))
    async with AgentsSession.open(root, "answers") as session:
        await Runner.run(agent, "What first?", session=session)

        # Take the answer back, and the question too: the run asks it again.
        await session.pop_item()
        question = await session.pop_item()
        await Runner.run(agent, [question], session=session)

        for branch in await session.branches():
            print("* active" if branch.is_active else "- other ", f"{branch.item_count} items")
            for entry in session.tree.path(branch.entry_id):
                print(line(entry.message))

        first, _second = await session.branches()
        await session.switch(first.entry_id)
        print("now:", line((await session.get_items())[-1]).strip())


asyncio.run(main(sys.argv[1]))
