"""Runs of the SDK in tests: how they are started, what was said in them, and what goes wrong."""

from __future__ import annotations

import asyncio
import resource
from contextlib import contextmanager

import agents
from agents import Agent, Runner
from agents.testing import ScriptedModel, assistant_message

from workspace_session.adapters.openai_agents import AgentsSession

agents.set_tracing_disabled(True)

WAYS = ["run", "sync", "streamed"]


async def run(way: str, agent: Agent, given, **more):
    if way == "run":
        return await Runner.run(agent, given, **more)
    if way == "sync":
        return await asyncio.to_thread(sync, agent, given, **more)
    result = Runner.run_streamed(agent, given, **more)
    async for _event in result.stream_events():
        pass
    return result


def sync(agent, given, **more):
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return Runner.run_sync(agent, given, **more)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def speaker(*texts: str, **more) -> Agent:
    steps = [[assistant_message(text)] for text in texts]
    return Agent(name="speaker", model=ScriptedModel(steps), **more)


def gist(items) -> list[str]:
    """Each item in a word or two."""
    found = []
    for item in items:
        content = item.get("content")
        text = content if isinstance(content, str) else content and content[0]["text"]
        found.append(text or f"{item['type']} {item['call_id']}")
    return found


def asked(agent: Agent) -> list[list[str]]:
    """What the model was given, call by call."""
    return [gist(call.input) for call in agent.model.calls]


class Unreliable(AgentsSession):
    """A session whose writes fail once: before anything is stored, or after everything is."""

    failing: str | None = None

    async def add_items(self, items, *, wrapper=None):
        failing, self.failing = self.failing, None
        if failing == "before":
            raise ConnectionError("nothing was stored")
        await super().add_items(items, wrapper=wrapper)
        if failing == "after":
            raise ConnectionError("the answer was lost")


@contextmanager
def full_disk(session: AgentsSession, room: int):
    """No file grows by more than so many bytes beyond the log of the session."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = session.tree.place.log(session.session_id).stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + room, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
