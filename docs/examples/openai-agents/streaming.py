"""Streaming, with tools: every call and its output are in the session when the stream has ended.

python streaming.py WORKSPACE
"""

from __future__ import annotations

import asyncio

from agents import Runner, function_tool
from openai.types.responses import ResponseTextDeltaEvent
from scripted import calls, directory, line, says, scripted

from workspace_session.adapters.openai_agents import AgentsSession


@function_tool
def weather(city: str) -> str:
    """What the weather is like."""
    return f"it rains in {city}"


async def main(root: str) -> None:
    agent = scripted(
        "guide",
        calls("weather", {"city": "Porto"}, call_id="call_1"),
        says("Take an umbrella."),
        tools=[weather],
    )
    async with AgentsSession.open(root, "weather") as session:
        result = Runner.run_streamed(agent, "Do I need an umbrella?", session=session)
        async for event in result.stream_events():
            if event.type == "raw_response_event" and isinstance(
                event.data, ResponseTextDeltaEvent
            ):
                print(event.data.delta, end="", flush=True)
        print("\n--")
        for item in await session.get_items():
            print(line(item))


asyncio.run(main(directory()))
