"""AgentScope 1.x: its agents, on our session. Run by `test_agentscope_python.py`."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from pathlib import Path

import agentscope
import pytest
from agentscope.agent import ReActAgent
from agentscope.formatter import FormatterBase
from agentscope.memory import InMemoryMemory
from agentscope.message import Msg, TextBlock, ToolUseBlock
from agentscope.model import ChatModelBase, ChatResponse
from agentscope.module import StateModule
from agentscope.session import SessionBase
from agentscope.tool import Toolkit, ToolResponse
from environments import examples_for
from test_docs import DOCS, run, sections

from workspace_session import (
    Harness,
    JsonSession,
    NamespaceMismatch,
    RuntimeContext,
    StateLoadFailed,
    StateNotSerializable,
    Workspace,
)
from workspace_session.adapters.agentscope_v1 import AgentScopeSession


class Plain(FormatterBase):
    """Messages as the scripted model wants them."""

    async def format(self, msgs, **_):
        return [msg.to_dict() for msg in msgs]


class Scripted(ChatModelBase):
    """Says what it is told to, and remembers what it was shown."""

    def __init__(self, *replies):
        super().__init__("scripted", stream=False)
        self.replies = list(replies)
        self.shown = []

    async def __call__(self, messages, **_):
        self.shown.append([text_of(message) for message in messages])
        reply = self.replies.pop(0)
        blocks = reply if isinstance(reply, list) else [TextBlock(type="text", text=reply)]
        return ChatResponse(content=blocks)


def text_of(message):
    content = message["content"]
    if isinstance(content, str):
        return content
    return " ".join(block.get("text", block["type"]) for block in content)


def agent_of(model, toolkit=None):
    agent = ReActAgent(
        name="Friday",
        sys_prompt="You help.",
        model=model,
        formatter=Plain(),
        toolkit=toolkit or Toolkit(),
        memory=InMemoryMemory(),
    )
    agent.set_console_output_enabled(False)
    return agent


class Counter(StateModule):
    def __init__(self, count=0):
        super().__init__()
        self.count = count
        self.register_state("count")


@pytest.fixture
def session(tmp_path):
    return AgentScopeSession(tmp_path / "states")


def test_this_is_the_first_generation():
    assert agentscope.__version__.startswith("1.")


def test_it_is_a_session_of_theirs(session):
    assert isinstance(session, SessionBase)


def in_another_process(script, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments), str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


IN_ANOTHER_PROCESS = """
import asyncio, json, sys
sys.path.insert(0, sys.argv[2])
from suite import Scripted, agent_of
from agentscope.message import Msg
from workspace_session import Workspace
from workspace_session.adapters.agentscope_v1 import AgentScopeSession

async def main():
    session = AgentScopeSession(Workspace(sys.argv[1], create=False).agent("Friday").state)
    model = Scripted("Your name is Ada.")
    agent = agent_of(model)
    await session.load_session_state("s", user_id="alice", agent=agent)
    reply = await agent(Msg("alice", "What is my name?", "user"))
    await session.save_session_state("s", user_id="alice", agent=agent)
    print(json.dumps([model.shown[-1], reply.get_text_content()]))

asyncio.run(main())
"""


def test_an_agent_resumes_its_memory_in_a_new_process(tmp_path):
    workspace = Workspace(tmp_path / "ws")
    session = AgentScopeSession(workspace.agent("Friday").state)
    search = ToolUseBlock(type="tool_use", id="t1", name="search", input={"q": "Ada"})
    toolkit = Toolkit()

    async def search_tool(q: str) -> ToolResponse:
        """Search.

        Args:
            q (str): what for
        """
        return ToolResponse(content=[TextBlock(type="text", text=f"found {q}")])

    toolkit.register_tool_function(search_tool, func_name="search")
    agent = agent_of(Scripted([search], "Hello Ada."), toolkit)

    async def first():
        await agent(Msg("alice", "I am Ada.", "user"))
        await session.save_session_state("s", user_id="alice", agent=agent)

    asyncio.run(first())

    shown, reply = in_another_process(IN_ANOTHER_PROCESS, tmp_path / "ws")
    assert shown == [
        "You help.",
        "I am Ada.",
        "tool_use",
        "tool_result",
        "Hello Ada.",
        "What is my name?",
    ]
    assert reply == "Your name is Ada."
    state = workspace.agent("Friday", user="alice").state.get("s", "agent")
    assert len(state["memory"]["content"]) == 6
    assert workspace.verify() == []


IN_A_HARNESS = """
import asyncio, json, sys
sys.path.insert(0, sys.argv[2])
from suite import Scripted, agent_of
from agentscope.message import Msg
from workspace_session import Harness, RuntimeContext

model = Scripted("Your name is Ada.")
harness = Harness(agent_of(model), "Friday", sys.argv[1])
ctx = RuntimeContext(session_id="s", user_id="alice")
reply = harness.call_sync(Msg("alice", "What is my name?", "user"), ctx)
print(json.dumps([model.shown[-1], reply.get_text_content()]))
"""


def test_an_agent_in_a_harness_resumes_in_a_new_process_and_has_a_transcript(tmp_path):
    harness = Harness(agent_of(Scripted("Hello Ada.")), "Friday", tmp_path / "ws")
    ctx = RuntimeContext(session_id="s", user_id="alice")
    harness.call_sync(Msg("alice", "I am Ada.", "user"), ctx)

    shown, reply = in_another_process(IN_A_HARNESS, tmp_path / "ws")

    workspace = Workspace(tmp_path / "ws")
    path = workspace.agent("Friday", user="alice").tree("s").path()
    assert shown == ["You help.", "I am Ada.", "Hello Ada.", "What is my name?"]
    assert reply == "Your name is Ada."
    assert [text_of(entry.message) for entry in path] == [*shown[1:], reply]
    assert workspace.verify() == []


def test_each_module_has_a_file_and_others_stay(session, tmp_path):
    async def run():
        await session.save_session_state("s", a=Counter(1), b=Counter(2))
        await session.save_session_state("s", a=Counter(3))

    asyncio.run(run())

    files = sorted(path.name for path in (tmp_path / "states" / "s").iterdir())
    assert files == ["a.json", "b.json"]
    assert asyncio.run(session.get_session_state_dict("s")) == {
        "a": {"count": 3},
        "b": {"count": 2},
    }


def test_what_is_stored_is_loaded_and_the_rest_left_alone(session):
    known, unknown = Counter(), Counter(7)

    async def run():
        await session.save_session_state("s", a=Counter(1))
        await session.load_session_state("s", a=known, b=unknown)

    asyncio.run(run())

    assert (known.count, unknown.count) == (1, 7)


def test_states_are_taken_before_anything_is_awaited(session):
    counter = Counter(1)
    memory = InMemoryMemory()

    async def run():
        await memory.add(Msg("u", [TextBlock(type="text", text="before")], "user"))
        saving = asyncio.ensure_future(session.save_session_state("s", c=counter, m=memory))
        await asyncio.sleep(0)
        counter.count = 2
        memory.content[0][0].content[0]["text"] = "after"
        await saving
        return await session.get_session_state_dict("s")

    states = asyncio.run(run())

    assert states["c"] == {"count": 1}
    assert states["m"]["content"][0][0]["content"][0]["text"] == "before"


def test_modules_are_loaded_where_the_caller_runs(session):
    class Watched(Counter):
        def load_state_dict(self, state_dict, strict=True):
            self.thread = threading.current_thread()
            super().load_state_dict(state_dict, strict)

    watched = Watched(1)

    async def run():
        await session.save_session_state("s", w=watched)
        await session.load_session_state("s", w=watched)

    asyncio.run(run())

    assert watched.thread is threading.main_thread()


def test_users_and_sessions_never_meet(session):
    async def run():
        await session.save_session_state("b_c", user_id="a", m=Counter(1))
        await session.save_session_state("c", user_id="a_b", m=Counter(2))
        await session.save_session_state("c", m=Counter(3))
        places = [("b_c", "a"), ("c", "a_b"), ("c", ""), ("b_c", "")]
        return [await session.get_session_state_dict(*place) for place in places]

    counts = [states.get("m", {}).get("count") for states in asyncio.run(run())]

    assert counts == [1, 2, 3, None]


def test_a_store_of_one_user_refuses_another(tmp_path):
    store = JsonSession(tmp_path).scoped(("alice",))
    session = AgentScopeSession(store)

    asyncio.run(session.save_session_state("s", user_id="alice", m=Counter(1)))

    assert store.get("s", "m") == {"count": 1}
    with pytest.raises(NamespaceMismatch):
        asyncio.run(session.save_session_state("s", user_id="bob", m=Counter(1)))


def test_an_absent_session_is_nothing_or_an_error(session, tmp_path):
    counter = Counter(5)
    asyncio.run(session.load_session_state("s", c=counter))
    assert counter.count == 5
    assert asyncio.run(session.get_session_state_dict("s")) == {}

    for call in (
        session.load_session_state("s", allow_not_exist=False, c=counter),
        session.get_session_state_dict("s", allow_not_exist=False),
        session.update_session_state("s", "a.b", 1, create_if_not_exist=False),
    ):
        with pytest.raises(ValueError, match=r"^session does not exist: s$"):
            asyncio.run(call)
    assert not (tmp_path / "states" / "s").exists()


def test_one_member_of_a_state_is_updated(session):
    async def run():
        await session.update_session_state("s", "agent.plan.step", 1)
        await session.update_session_state("s", ("agent", "plan", "a.b"), [True])
        await session.update_session_state("s", "agent.plan.step.deeper", "was a number")
        await session.update_session_state("s", "whole", {"x": None})
        return await session.get_session_state_dict("s")

    assert asyncio.run(run()) == {
        "agent": {"plan": {"a.b": [True], "step": {"deeper": "was a number"}}},
        "whole": {"x": None},
    }


def test_an_empty_key_is_refused(session):
    for key in ("", "a.", ".a", "a..b", (), ("", "a")):
        with pytest.raises(ValueError, match="the key of a state is empty"):
            asyncio.run(session.update_session_state("s", key, 1))
    with pytest.raises(TypeError, match="a text or a sequence of texts"):
        asyncio.run(session.update_session_state("s", ("a", 1), 1))
    assert asyncio.run(session.get_session_state_dict("s")) == {}


def test_updates_at_the_same_time_lose_nothing(session):
    async def run():
        updates = [session.update_session_state("s", ("m", f"k{n}"), n) for n in range(40)]
        await asyncio.gather(*updates)
        return await session.get_session_state_dict("s")

    assert asyncio.run(run()) == {"m": {f"k{n}": n for n in range(40)}}


def test_what_cannot_be_saved_or_loaded_is_said_and_changes_nothing(session):
    broken = Counter(1)

    async def run():
        await session.save_session_state("s", a=Counter(1))
        broken.count = object()
        with pytest.raises(StateNotSerializable):
            await session.save_session_state("s", a=broken)
        with pytest.raises(TypeError, match="module 'a' has neither"):
            await session.save_session_state("s", a=object())
        await session.update_session_state("s", "a", {"other": 1})
        with pytest.raises(StateLoadFailed, match="'a'"):
            await session.load_session_state("s", a=Counter())

    asyncio.run(run())


def test_the_examples_of_the_page_print_what_it_shows(tmp_path, monkeypatch):
    page = examples_for(DOCS / "agentscope.md", "agentscope-v1", tmp_path / "agentscope.md")
    monkeypatch.chdir(tmp_path)
    (section,) = sections(page)

    run(section)
