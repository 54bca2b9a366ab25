"""Talking with sessions in tests: what is said, shown and heard.

Messages are called m0, m1, … and a summary shows as `S(text)`.
"""

from __future__ import annotations

import asyncio
import functools
import inspect

import pytest

from workspace_session import CompactResult, Session, SessionManager, is_compaction_message

RULE = "═" * 46


def on_a_loop(test):
    """An async test as one that pytest can run."""

    @functools.wraps(test)
    def run(*args, **kwargs):
        return asyncio.run(test(*args, **kwargs))

    return run


class AsyncTests:
    """Test classes whose tests may be async, with a session and a manager of the store at hand."""

    @pytest.fixture
    def session(self, store):
        return Session(store, session_id="s")

    @pytest.fixture
    def manager(self, store):
        return SessionManager.create(store)

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        for name, member in list(vars(cls).items()):
            if name.startswith("test_") and inspect.iscoroutinefunction(member):
                setattr(cls, name, on_a_loop(member))


# -- saying and showing ----------------------------------------------------------------------------


def says(message_id, text="hello world", role="user", **more):
    return {"id": message_id, "role": role, "parts": [{"type": "text", "text": text}], **more}


def loads(message_id, key, output, label="skills"):
    """A message in which a skill was loaded."""
    part = {
        "type": "tool-load_context",
        "toolCallId": f"call-{message_id}",
        "input": {"label": label, "key": key},
        "output": output,
        "state": "output-available",
    }
    return {"id": message_id, "role": "assistant", "parts": [part]}


async def fill(session, count, start=0):
    """Append m<start>, m<start+1>, …"""
    for number in range(start, start + count):
        await session.append_message(says(f"m{number}"))
    return session


def names(messages):
    return [
        f"S({message['parts'][0]['text']})" if is_compaction_message(message) else message["id"]
        for message in messages
    ]


async def shown(session, leaf_id=None):
    return names(await session.get_history(leaf_id))


async def children(session, message_id):
    return names(await session.get_branches(message_id))


def m(first, last):
    """The names from one message to another."""
    return [f"m{number}" for number in range(first, last + 1)]


def compacting(from_id, to_id, summary="sum"):
    """A compaction function that always summarises the same range."""
    return lambda messages: CompactResult(summary, from_id, to_id)


class Heard(list):
    """The events of a session; `kinds()` tells them shortly."""

    def __init__(self, session):
        super().__init__()
        self.stop = session.subscribe(self.append)

    def kinds(self):
        return [self._kind(event) for event in self]

    def statuses(self):
        """The sequence of statuses and errors."""
        return [kind for kind in self.kinds() if kind.startswith(("idle", "compacting", "error"))]

    @staticmethod
    def _kind(event):
        if event.type != "status":
            return event.type
        return event.data["phase"] + (" compacted" if "compacted" in event.data else "")

    def of(self, kind):
        return [event.data for event in self if event.type == kind]


class Broken:
    """A read-only provider that can be made to fail."""

    def __init__(self, text):
        self.text = text
        self.is_broken = False

    def get(self):
        if self.is_broken:
            raise OSError("soul is broken")
        return self.text


async def until(ready):
    """Let other tasks run until something is so."""
    async with asyncio.timeout(10):
        while not ready():
            await asyncio.sleep(0)
