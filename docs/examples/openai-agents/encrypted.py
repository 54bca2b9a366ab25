"""Encryption: the SDK seals every item before it reaches the files. A wrong key reads and loses nothing.

pip install 'openai-agents[encrypt]'
python encrypted.py WORKSPACE
"""

from __future__ import annotations

import asyncio

from agents import Runner
from agents.extensions.memory import EncryptedSession
from scripted import directory, line, says, scripted

from workspace_session.adapters.openai_agents import AgentsSession


async def main(root: str) -> None:
    agent = scripted("guide", says("It is safe with me."))
    async with AgentsSession.open(root, "diary") as store:
        session = EncryptedSession("diary", store, encryption_key="a key from your vault")
        await Runner.run(agent, "A secret.", session=session)

        print(sorted((await store.get_items())[0]))
        for item in await session.get_items():
            print(line(item))

        # With a wrong key the SDK takes items back that it cannot open. Here that can be undone.
        wrong = EncryptedSession("diary", store, encryption_key="another key")
        print(await wrong.pop_item(), len(await session.get_items()))
        while await store.undo():
            pass
        print(len(await session.get_items()))


asyncio.run(main(directory()))
