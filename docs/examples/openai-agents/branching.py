"""Branches: an answer is made again, both stay, and the first one becomes the active one.

python branching.py WORKSPACE
"""

from __future__ import annotations

import asyncio

from agents import Runner
from scripted import directory, line, says, scripted

from workspace_session.adapters.openai_agents import AgentsSession


async def main(root: str) -> None:
    agent = scripted("guide", says("The bridge."), says("The cellars."))
    async with AgentsSession.open(root, "answers") as session:
        await Runner.run(agent, "What first?", session=session)

        # Answer once more: stand behind the question, and run without a new one.
        question = (await session.turns())[-1]
        await session.branch_from(question.entry_id)
        await Runner.run(agent, [], session=session)

        for branch in await session.branches():
            print("* active" if branch.is_active else "- other ", f"{branch.item_count} items")
            for entry in session.tree.path(branch.entry_id):
                print(line(entry.message))

        await session.switch((await session.branches())[0].entry_id)
        print("now:", line((await session.get_items())[-1]).strip())


asyncio.run(main(directory()))
