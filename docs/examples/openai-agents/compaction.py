"""Compaction with any model: older items give way to a summary, and nothing is lost.

python compaction.py WORKSPACE
"""

from __future__ import annotations

import asyncio
from typing import Any

from agents import Runner
from scripted import directory, line, says, scripted

from workspace_session.adapters.openai_agents import AgentsSession, LocalCompactionSession


async def summarize(items: list[dict[str, Any]]) -> str:
    """Yours asks a model: `(await Runner.run(summarizer, as_text(items))).final_output`."""
    return f"They have exchanged {len(items)} messages about Porto."


async def main(root: str) -> None:
    agent = scripted("guide", *(says(f"Answer {number}.") for number in range(12)))
    async with AgentsSession.open(root, "long") as store:
        session = LocalCompactionSession(store, summarize, keep_recent=2)
        for number in range(12):
            await Runner.run(agent, f"Question {number}?", session=session)

        for item in await session.get_items():
            print(line(item))
        print(f"{len(await session.history())} items are still there")


asyncio.run(main(directory()))
