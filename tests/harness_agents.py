"""Agents for tests: small, real, and without a model."""

from __future__ import annotations

import asyncio
import copy


class Memory:
    """A module that keeps the conversation."""

    def __init__(self, messages=()) -> None:
        self.messages = list(messages)

    def state_dict(self):
        return {"messages": self.messages}

    def load_state_dict(self, state):
        self.messages = state["messages"]


class Counter:
    """A module that is a number."""

    def __init__(self, number=0) -> None:
        self.number = number

    def state_dict(self):
        return {"number": self.number}

    def load_state_dict(self, state):
        self.number = state["number"]


class Talker:
    """Remembers what it is told and answers with how much that is; `script` may do more."""

    def __init__(self, script=None) -> None:
        self.memory = Memory()
        self.script = script
        self.seen: list[tuple] = []  # (session, what it remembered when asked)

    async def call(self, message, ctx):
        self.seen.append((ctx.session_id, copy.deepcopy(self.memory.messages)))
        self.memory.messages.append({"role": "user", "content": message})
        await asyncio.sleep(0)
        if self.script is not None:
            await self.script(message, ctx, self)
        reply = {"role": "assistant", "content": f"{message}: {len(self.memory.messages)}"}
        self.memory.messages.append(reply)
        return reply


def texts(tree):
    return [entry.message["content"] for entry in tree.path()]
