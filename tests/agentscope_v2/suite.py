"""AgentScope 2.x: its agents, with our middleware and our offloader. Run by `test_agentscope_python.py`."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import agentscope
import pytest
from agentscope.agent import Agent, ContextConfig
from agentscope.credential import CredentialBase
from agentscope.message import (
    AssistantMsg,
    Base64Source,
    DataBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    URLSource,
    UserMsg,
)
from agentscope.model import ChatModelBase, ChatResponse, ChatUsage, StructuredResponse
from agentscope.permission import PermissionBehavior, PermissionDecision
from agentscope.state import AgentState
from agentscope.tool import FunctionTool, Toolkit
from environments import examples_for
from test_docs import DOCS, run, sections

from workspace_session import (
    ABSENT,
    ConflictPolicy,
    ReentrantCall,
    StateConflict,
    StateLoadFailed,
    TurnConflict,
    TurnNotSaved,
    Workspace,
    current_context,
)
from workspace_session.adapters.agentscope_v2 import (
    PersistenceMiddleware,
    WorkspaceOffloader,
    load_agent_state,
    save_agent_state,
)

ALLOWED = PermissionDecision(behavior=PermissionBehavior.ALLOW, message="")


class Scripted(ChatModelBase):
    """Says what it is told to, and remembers what it was shown."""

    def __init__(self, *replies):
        super().__init__(
            CredentialBase(), "scripted", self.Parameters(), stream=False, max_retries=0
        )
        self.formatter = SimpleNamespace(supported_input_media_types=[])
        self.replies = list(replies)
        self.shown = []

    async def _call_api(self, model_name, messages, tools=None, tool_choice=None, **_):
        self.shown.append([message.get_text_content() for message in messages])
        reply = self.replies.pop(0)
        if callable(reply):
            reply = await reply()
        blocks = [TextBlock(text=reply)] if isinstance(reply, str) else reply
        usage = ChatUsage(input_tokens=10, output_tokens=1, time=0.0)
        return ChatResponse(content=blocks, is_last=True, usage=usage)

    async def generate_structured_output(self, messages, structured_model, **_):
        fields = structured_model["properties"]
        return StructuredResponse(content=dict.fromkeys(fields, "short"), is_last=True)


def agent_of(workspace, model, state=None, **more):
    policy = more.pop("conflict_policy", ConflictPolicy.MERGE)
    user = more.pop("user_id", None)
    return Agent(
        name="Friday",
        system_prompt="You help.",
        model=model,
        state=state or AgentState(session_id="s"),
        middlewares=[PersistenceMiddleware(workspace, user, policy)],
        **more,
    )


def ask(agent, question):
    return asyncio.run(agent.reply(UserMsg("alice", question)))


def said(workspace, session="s", user=None):
    return [
        spoken(one.message) for one in workspace.agent("Friday", user=user).tree(session).path()
    ]


def spoken(message):
    """The texts of a message, without the hints that the agent adds."""
    return "\n".join(block["text"] for block in message["content"] if block["type"] == "text")


@pytest.fixture
def workspace(tmp_path):
    with Workspace(tmp_path / "ws", durability="os") as opened:
        yield opened
        assert [str(problem) for problem in opened.verify()] == []


@pytest.fixture
def store(workspace):
    return workspace.agent("Friday").state


def test_this_is_the_second_generation():
    assert agentscope.__version__.startswith("2.")


# -- resuming --------------------------------------------------------------------------------------

IN_ANOTHER_PROCESS = """
import asyncio, json, sys
sys.path.insert(0, sys.argv[2])
from suite import AgentState, Scripted, Workspace, agent_of, ask, load_agent_state
workspace = Workspace(sys.argv[1], create=False)
state = load_agent_state(workspace.agent("Friday", user="alice").state, "s", AgentState)
model = Scripted("Your name is Ada.")
reply = ask(agent_of(workspace, model, state, user_id="alice"), "What is my name?")
print(json.dumps([model.shown[-1], reply.get_text_content()]))
"""


def in_another_process(script, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments), str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_an_agent_resumes_its_memory_in_a_new_process(workspace):
    ask(agent_of(workspace, Scripted("Hello Ada."), user_id="alice"), "I am Ada.")

    shown, reply = in_another_process(IN_ANOTHER_PROCESS, workspace.root)

    assert [one for one in shown if "<system-" not in one] == [
        "You help.",
        "I am Ada.",
        "Hello Ada.",
        "What is my name?",
    ]
    assert reply == "Your name is Ada."
    assert said(workspace, user="alice")[::3] == ["I am Ada.", "Your name is Ada."]
    assert said(workspace) == []


CONFIRM = """
import asyncio, json, sys
sys.path.insert(0, sys.argv[2])
from agentscope.event import ConfirmResult, UserConfirmResultEvent
from suite import *
workspace = Workspace(sys.argv[1], create=False)
state = load_agent_state(workspace.agent("Friday").state, "s", AgentState)
agent = agent_of(workspace, Scripted("It is done."), state, toolkit=toolkit())
call = state.get_awaiting_tool_calls("Friday")[0]
event = UserConfirmResultEvent(reply_id=state.reply_id, confirm_results=[ConfirmResult(confirmed=True, tool_call=call)])
reply = asyncio.run(agent.reply(event))
print(json.dumps(reply.get_text_content()))
"""


def toolkit(permission=None):
    async def erase(path: str) -> str:
        """Erase a file.

        Args:
            path (str): the file
        """
        return f"erased {path}"

    return Toolkit(tools=[FunctionTool(erase, permission=permission)])


def call(path="x"):
    return [ToolCallBlock(id="t1", name="erase", input=json.dumps({"path": path}))]


def test_a_reply_that_waits_for_its_user_goes_on_in_another_process(workspace):
    agent = agent_of(workspace, Scripted(call()), toolkit=toolkit())
    ask(agent, "Erase x.")
    tree = workspace.agent("Friday").tree("s")
    waiting = [block["type"] for block in tree.path()[-1].message["content"]]

    reply = in_another_process(CONFIRM, workspace.root)

    tree = workspace.agent("Friday").tree("s")
    kinds = [block["type"] for block in tree.path()[-1].message["content"]]
    assert reply == "It is done."
    assert [kind for kind in waiting if kind != "hint"] == ["tool_call"]
    assert [kind for kind in kinds if kind != "hint"] == ["tool_call", "tool_result", "text"]
    assert len(tree.path()) == 2, "the reply grew under its id"
    assert workspace.agent("Friday").sessions()[0].input_tokens == 20


# -- state -----------------------------------------------------------------------------------------


def test_a_state_comes_back_as_it_was(store):
    state = AgentState(session_id="s", summary="so far", context=[UserMsg("u", "hi")])
    state.middle_context["other"] = {"n": 1}

    etag = save_agent_state(store, "s", state)
    loaded = load_agent_state(store, "s", AgentState)

    assert loaded == state
    assert store.get_versioned("s", "agent_state").etag == etag
    assert load_agent_state(store, "new", AgentState).session_id == "new"


def test_a_state_is_saved_only_over_the_one_that_is_meant(store):
    state = AgentState(session_id="s")
    etag = save_agent_state(store, "s", state, if_match=ABSENT)
    state.summary = "more"

    newer = save_agent_state(store, "s", state, if_match=etag)

    with pytest.raises(StateConflict):
        save_agent_state(store, "s", state, if_match=etag)
    assert store.get_versioned("s", "agent_state").etag == newer


def test_a_stored_state_that_is_none_is_said(store):
    store.save("s", "agent_state", {"context": 5})

    with pytest.raises(StateLoadFailed):
        load_agent_state(store, "s", AgentState)


# -- the middleware --------------------------------------------------------------------------------


def test_only_replies_are_looked_at(workspace):
    middleware = PersistenceMiddleware(workspace)
    hooks = ("on_reply", "on_reasoning", "on_acting", "on_model_call", "on_compress_context")

    assert [hook for hook in hooks if middleware.is_implemented(hook)] == ["on_reply"]


def test_events_pass_unchanged(workspace):
    async def events(agent):
        agent.state.session_id = "s"
        return [
            type(event).__name__
            async for event in agent.reply_stream(UserMsg("u", "hi"), yield_final_msg=True)
        ]

    ours = asyncio.run(events(agent_of(workspace, Scripted("hello"))))
    plain = asyncio.run(events(Agent("Friday", "You help.", Scripted("hello"))))

    assert ours == plain
    assert ours[-1] == "Msg"


def test_each_message_is_there_once_however_many_turns_there_are(workspace):
    agent = agent_of(workspace, Scripted(*(f"answer {n}" for n in range(8))))
    for n in range(8):
        ask(agent, f"question {n}")

    turns = [(f"question {n}", f"answer {n}") for n in range(8)]
    info = workspace.agent("Friday").sessions()[0]
    assert said(workspace) == [one for turn in turns for one in turn]
    assert (info.input_tokens, info.output_tokens) == (80, 8)
    assert info.end_reason is None


async def fails():
    raise RuntimeError("no model")


async def hangs():
    await asyncio.sleep(60)


def test_what_was_said_before_an_error_is_saved_and_the_error_goes_on(workspace, store):
    agent = agent_of(workspace, Scripted(call(), fails), toolkit=toolkit(ALLOWED))

    with pytest.raises(RuntimeError, match="no model"):
        ask(agent, "Erase x.")

    assert said(workspace)[0] == "Erase x."
    assert workspace.agent("Friday").sessions()[0].end_reason == "error"
    assert load_agent_state(store, "s", AgentState) == agent.state


def test_a_reply_that_is_cancelled_is_saved(workspace, store):
    agent = agent_of(workspace, Scripted(hangs))

    async def run():
        task = asyncio.ensure_future(agent.reply(UserMsg("u", "hi")))
        while not agent.model.shown:
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(run())

    assert said(workspace)[0] == "hi"
    assert workspace.agent("Friday").sessions()[0].end_reason == "cancelled"
    assert load_agent_state(store, "s", AgentState) == agent.state


def test_a_stream_that_is_closed_is_saved_also_from_another_task(workspace, store):
    agent = agent_of(workspace, Scripted("hello", "and again"))

    async def run():
        stream = agent.reply_stream(UserMsg("u", "hi"))
        while not agent.model.shown:
            await anext(stream)
        await asyncio.create_task(stream.aclose())

    asyncio.run(run())  # whose end is that of the turn, if it has not come before

    assert said(workspace)[0] == "hi"
    assert workspace.agent("Friday").sessions()[0].end_reason == "cancelled"
    ask(agent, "still there?")
    assert said(workspace)[-2:] == ["still there?", "and again"]


def test_a_reply_that_is_interrupted_ends_as_the_agent_wants_it(workspace):
    async def interrupted(agent):
        task = asyncio.ensure_future(agent.reply(UserMsg("u", "hi")))
        while not agent.model.shown:
            await asyncio.sleep(0.01)
        task.cancel()
        return (await task).get_text_content()

    ours = asyncio.run(interrupted(agent_of(workspace, Scripted(hangs))))
    plain = asyncio.run(interrupted(Agent("Friday", "You help.", Scripted(hangs))))

    assert ours == plain


def test_tools_see_the_context_of_their_turn(workspace):
    seen = []

    async def look():
        seen.append((current_context().session_id, current_context().user_id))
        return "looked"

    ask(agent_of(workspace, Scripted(look), user_id="alice"), "look")

    assert seen == [("s", "alice")]
    assert current_context() is None


def test_a_turn_inside_of_itself_is_refused(workspace):
    async def again():
        await agent_of(workspace, Scripted("never")).reply(UserMsg("u", "inner"))

    with pytest.raises(ReentrantCall):
        ask(agent_of(workspace, Scripted(again)), "outer")


def test_sessions_and_users_are_apart_when_they_talk_at_once(workspace):
    async def run():
        agents = [
            agent_of(
                workspace,
                Scripted(f"for {n}"),
                AgentState(session_id=f"s{n % 5}"),
                user_id=f"u{n // 5}",
            )
            for n in range(10)
        ]
        await asyncio.gather(
            *(one.reply(UserMsg("u", f"from {n}")) for n, one in enumerate(agents))
        )

    asyncio.run(run())

    for n in range(10):
        assert said(workspace, f"s{n % 5}", f"u{n // 5}") == [f"from {n}", f"for {n}"]


def test_turns_of_one_session_wait_for_each_other(workspace):
    running, most = 0, 0

    async def slow():
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.02)
        running -= 1
        return "done"

    async def run():
        agents = [agent_of(workspace, Scripted(slow)) for _ in range(4)]
        await asyncio.gather(*(one.reply(UserMsg("u", f"q{n}")) for n, one in enumerate(agents)))

    asyncio.run(run())

    assert most == 1
    assert len(said(workspace)) == 8


# -- conflicts -------------------------------------------------------------------------------------


def two(workspace, store, policy):
    """Two agents that have loaded the same state, of which the first has talked since."""
    ask(agent_of(workspace, Scripted("first answer")), "first")
    agents = [
        agent_of(
            workspace,
            Scripted(f"answer {name}"),
            load_agent_state(store, "s", AgentState),
            conflict_policy=policy,
        )
        for name in ("one", "two")
    ]
    ask(agents[0], "question one")
    return agents[1]


def context(store):
    return [
        message.get_text_content() for message in load_agent_state(store, "s", AgentState).context
    ]


def test_what_both_have_said_is_merged(workspace, store):
    other = two(workspace, store, ConflictPolicy.MERGE)

    ask(other, "question two")
    other.model.replies.append("answer three")
    ask(other, "question three")

    everything = [
        "first",
        "first answer",
        "question one",
        "answer one",
        "question two",
        "answer two",
    ]
    assert context(store) == [*everything, "question three", "answer three"]
    assert said(workspace) == context(store)


def test_a_conflict_is_said_and_the_reply_is_not_lost(workspace, store):
    other = two(workspace, store, ConflictPolicy.FAIL)

    with pytest.raises(TurnConflict) as raised:
        ask(other, "question two")

    assert raised.value.reply.get_text_content() == "answer two"
    assert context(store)[-1] == "answer one"
    assert said(workspace)[-1] == "answer two", "the transcript has it"


def test_the_last_one_wins_if_that_is_wanted(workspace, store):
    other = two(workspace, store, ConflictPolicy.OVERWRITE)

    ask(other, "question two")

    assert context(store) == ["first", "first answer", "question two", "answer two"]


def test_a_state_that_was_never_loaded_does_not_replace_a_stored_one(workspace, store):
    ask(agent_of(workspace, Scripted("a")), "first life")
    ask(agent_of(workspace, Scripted("b")), "second life")

    assert context(store) == ["first life", "a", "second life", "b"]


def test_what_cannot_be_saved_is_said_with_the_reply(workspace):
    agent = agent_of(workspace, Scripted("hello"))
    agent.state.middle_context["broken"] = object()

    with pytest.raises(TurnNotSaved) as raised:
        ask(agent, "hi")

    assert raised.value.reply.get_text_content() == "hello"
    assert said(workspace) == ["hi", "hello"]


# -- the offloader ---------------------------------------------------------------------------------


def test_a_compressed_context_is_in_the_transcript_whole(workspace, store):
    model = Scripted(call("a" * 400), "b" * 400, "c" * 400)
    model.context_size = 400
    agent = agent_of(
        workspace,
        model,
        toolkit=toolkit(ALLOWED),
        offloader=WorkspaceOffloader(workspace, "Friday"),
        context_config=ContextConfig(
            trigger_ratio=0.5, reserve_ratio=0.1, context_buffer_ratio=0.1
        ),
    )

    ask(agent, "Erase a.")
    ask(agent, "And now?")

    path = workspace.agent("Friday").tree("s").path()
    kinds = [[b["type"] for b in one.message["content"] if b["type"] != "hint"] for one in path]
    assert "agents/Friday/sessions/s.log.jsonl" in agent.state.summary
    assert len(agent.state.context) < 4, "the context was compressed"
    assert kinds == [["text"], ["tool_call", "tool_result", "text"], ["text"], ["text"]]
    assert said(workspace)[0::2] == ["Erase a.", "And now?"]


def test_a_reply_that_was_cut_in_two_is_one_in_the_transcript(workspace):
    offloader = WorkspaceOffloader(workspace, "Friday")
    blocks = [TextBlock(text=str(n), id=str(n)) for n in range(4)]

    def part(*chosen):
        return AssistantMsg("Friday", [blocks[n] for n in chosen], id="r")

    async def run():
        first = await offloader.offload_context("s", [UserMsg("u", "hi", id="q"), part(0, 1)])
        assert first == await offloader.offload_context("s", [part(2, 3)])
        return await offloader.offload_context("s", [part(2)])

    assert asyncio.run(run()) == "agents/Friday/sessions/s.log.jsonl"
    (_, reply) = workspace.agent("Friday").tree("s").path()
    assert spoken(reply.message) == "0\n1\n2\n3"


def test_equal_payloads_are_one_file(workspace):
    offloader = WorkspaceOffloader(workspace, "Friday", user_id="a@b")
    picture = base64.b64encode(b"not a picture").decode()
    block = DataBlock(source=Base64Source(data=picture, media_type="image/png"), name="p")

    first, second = (asyncio.run(offloader.offload_data_block(block)) for _ in range(2))

    directory = workspace.root / "a%40b/agents/Friday/files"
    (file,) = directory.iterdir()
    assert file.read_bytes() == b"not a picture"
    assert file.suffix == ".png"
    assert first.source == second.source
    assert str(first.source.url) == f"workspace:///a%2540b/agents/Friday/files/{file.name}"
    assert (first.id, first.name, first.source.media_type) == (block.id, "p", "image/png")
    assert block.source.data == picture


def test_a_block_with_a_url_comes_back_as_it_is(workspace):
    block = DataBlock(source=URLSource(url="https://example.org/x.png", media_type="image/png"))

    assert asyncio.run(WorkspaceOffloader(workspace, "Friday").offload_data_block(block)) is block


def test_what_a_tool_gave_back_is_kept_as_text(workspace):
    offloader = WorkspaceOffloader(workspace, "Friday")
    data = Base64Source(data=base64.b64encode(b"x").decode(), media_type="image/png")
    output = [TextBlock(text="one"), TextBlock(text="two"), DataBlock(source=data)]

    plain = ToolResultBlock(id="t", name="n", output="héllo")
    path = asyncio.run(offloader.offload_tool_result("s", plain))
    mixed = ToolResultBlock(id="t", name="n", output=output)
    other = asyncio.run(offloader.offload_tool_result("s", mixed))

    assert (workspace.root / path).read_text("utf-8") == "héllo"
    lines = (workspace.root / other).read_text("utf-8").split("\n")
    assert lines[:2] == ["one", "two"]
    assert lines[2].startswith("[image/png: workspace:///agents/Friday/files/")
    assert path.startswith("agents/Friday/files/")
    assert path.endswith(".txt")


def test_the_examples_of_the_page_print_what_it_shows(tmp_path, monkeypatch):
    page = examples_for(DOCS / "agentscope.md", "agentscope-v2", tmp_path / "agentscope.md")
    monkeypatch.chdir(tmp_path)
    (section,) = sections(page)

    run(section)
