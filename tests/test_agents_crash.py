"""A batch of items that a crash cuts short is there as a whole or not at all, and runs go on."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from agents import Runner, RunState
from agents.run_internal.session_persistence import resume_pending_session_write
from agents_resume import ASKS, ENDS, agent_that
from session_contract.talk import on_a_loop

from workspace_session.adapters.openai_agents import AgentsSession

FIRST = {"role": "user", "content": "first"}
FIVE = [
    {"role": "user", "content": "go → 行け"},
    {"type": "reasoning", "id": "rs", "summary": []},
    {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": "seen\nwell"},
    {"role": "assistant", "content": "done"},
]


def opened(root) -> AgentsSession:
    return AgentsSession.open(root, "s", durability="os")


@pytest.fixture
def cut(tmp_path):
    """A session that crashed after so many bytes of a batch of five had reached its log.

    Its working set is as it was before, or, once all of the log is there, cut short too.
    """
    whole = opened(tmp_path / "whole")
    asyncio.run(whole.add_items([FIRST]))
    log, tree = (whole.tree.place.log("s"), whole.tree.place.tree("s"))
    before = log.read_bytes(), tree.read_bytes()
    asyncio.run(whole.add_items(FIVE))
    after = log.read_bytes(), tree.read_bytes()
    crashed = opened(tmp_path / "crashed")._agent
    log, tree = crashed.place.log("s"), crashed.place.tree("s")
    log.parent.mkdir(parents=True)

    def make(of_log: int, of_tree: int) -> AgentsSession:
        log.write_bytes(after[0][: len(before[0]) + of_log])
        tree.write_bytes(after[1][: len(before[1]) + of_tree])
        return AgentsSession(crashed, "s")

    make.log_size = len(after[0]) - len(before[0])
    make.tree_size = len(after[1]) - len(before[1])
    return make


def test_cut_at_any_byte_a_batch_of_five_is_there_whole_or_not_at_all(cut):
    async def main():
        for length in range(cut.log_size + 1):
            session = cut(length, 0)
            # The very last newline is closed by the next writer; until then nobody relies on it.
            expected = [FIRST, *FIVE] if length == cut.log_size else [FIRST]
            assert await session.get_items() == expected, length
            assert await session.get_items(2) == expected[-2:], length

            if length % 4 and cut.log_size - length > 2:
                continue
            await session.add_items([{"role": "user", "content": "next"}])
            items = await session.get_items()
            assert items[-1]["content"] == "next", length
            assert items[:-1] in ([FIRST], [FIRST, *FIVE]), length
            assert await AgentsSession(session._agent, "s").get_items() == items, length

    asyncio.run(main())


def test_cut_at_any_byte_of_the_working_set_all_five_are_there(cut):
    async def main():
        for length in range(0, cut.tree_size + 1, 5):
            session = cut(cut.log_size, length)
            assert await session.get_items() == [FIRST, *FIVE], length
            assert await session.get_items(3) == FIVE[-3:], length
            assert await session.pop_item() == FIVE[-1], length
            assert session.tree.verify() == [], length

    asyncio.run(main())


def test_a_resumed_run_goes_on_whatever_byte_its_write_was_cut_at(cut):
    """The SDK compares the end of the session with what it meant to write."""

    async def main():
        for length in range(0, cut.log_size + 1, 7):
            session = cut(length, 0)
            agent = agent_that(session.tree.place.layout.root / "calls")
            state = RunState(context=None, original_input="go", starting_agent=agent, max_turns=5)
            state._pending_session_write = pending()

            await resume_pending_session_write(state, session)

            assert await session.get_items() == [FIRST, *FIVE], length
            assert state._pending_session_write is None

    asyncio.run(main())


def pending() -> dict:
    """What a run that was about to add the five has in its state: they came after the first."""
    from hashlib import sha256

    from agents.run_internal.items import fingerprint_input_item

    digest = sha256(fingerprint_input_item(FIRST).encode()).hexdigest()
    return {
        "session_id": "s",
        "items": json.loads(json.dumps(FIVE)),
        "before": [digest],
        "persisted_count": 5,
    }


WRITER = textwrap.dedent("""
    import asyncio, json, os, sys
    from workspace_session.adapters.openai_agents import AgentsSession

    async def main():
        session = AgentsSession.open(sys.argv[1], "s", durability=sys.argv[2])
        number = 0
        while True:
            text = "x" * (number % 7 * 300)
            batch = [{"role": "user", "content": f"{number}-{part} {text}"} for part in range(5)]
            await session.add_items(batch)
            os.write(1, b"%d\\n" % number)
            number += 1

    asyncio.run(main())
""")


@pytest.mark.parametrize(
    "kills", [4, pytest.param(200, marks=[pytest.mark.soak, pytest.mark.timeout(1200)])]
)
def test_a_writer_that_is_killed_leaves_whole_batches_and_all_it_acknowledged(tmp_path, kills):
    rng = random.Random(7)
    for number in range(kills):
        root = tmp_path / str(number)
        durability = "disk" if number % 2 else "os"
        command = [sys.executable, "-c", WRITER, str(root), durability]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(rng.random() * 0.1)
            os.kill(process.pid, signal.SIGKILL)
            acknowledged = process.stdout.read().split(b"\n")[:-1]
        session = opened(root)
        items = asyncio.run(session.get_items())
        texts = [item["content"].partition(" ")[0] for item in items]

        batches = len(texts) // 5
        assert texts == [f"{batch}-{part}" for batch in range(batches) for part in range(5)]
        assert batches in (len(acknowledged) + 1, len(acknowledged) + 2)
        asyncio.run(session.add_items([FIRST]))
        assert asyncio.run(session.get_items()) == [*items, FIRST]


def kinds(items) -> list[str]:
    return [item.get("type", item.get("role")) for item in items]


BEFORE = ["user", *["function_call"] * 5]
OUTPUTS = ["function_call_output"] * 5


@pytest.mark.parametrize(
    ("way", "step"),
    [
        ("run", 251),
        ("streamed", 397),
        pytest.param("run", 7, marks=[pytest.mark.soak, pytest.mark.timeout(1200)]),
    ],
)
def test_killed_at_any_byte_of_five_outputs_there_are_all_or_none_and_the_run_goes_on(
    tmp_path, way, step
):
    """The state it is resumed from is older than the outputs: what was not stored is stored now."""
    script = Path(__file__).with_name("agents_resume.py")
    command = [sys.executable, "-W", "error", script, "kill", tmp_path, way, str(step)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    rounds = [json.loads(line) for line in done.stdout.splitlines()]

    in_the_five = [one for one in rounds if kinds(one["held"]) == BEFORE]
    later = rounds[len(in_the_five) :]
    assert len(in_the_five) > 2
    assert all(one["killed"] for one in in_the_five)
    assert all(kinds(one["after"]) == [*BEFORE, *OUTPUTS, "message"] for one in in_the_five)
    assert [one["killed"] for one in later] == [True] * (len(later) - 1) + [False]
    for one in later:  # all five; the same state once more has them stored once more
        held = one["held"]
        assert kinds(held) == [*BEFORE, *OUTPUTS, *([] if one["killed"] else ["message"])]
        assert one["after"][: len(held)] == held
        assert kinds(one["after"]) == [*kinds(held), *OUTPUTS, "message"]


@on_a_loop
async def test_a_run_that_was_killed_before_its_write_is_resumed_from_its_last_state(tmp_path):
    session = opened(tmp_path / "ws")
    agent = agent_that(tmp_path / "calls", ASKS, ENDS)
    state = (await Runner.run(agent, "a room", session=session)).to_state()
    saved = json.dumps(state.to_json())
    log = session.tree.place.log("s")
    size = log.stat().st_size
    with log.open("ab") as file:  # what a write leaves that was cut short
        file.write(b'{"type":"message","id":"x","timestamp":"2026-01-01T00:00:00.000000Z","bat')

    state = await RunState.from_json(agent, json.loads(saved))
    state.approve(state.get_interruptions()[0])
    result = await Runner.run(agent, state, session=opened(tmp_path / "ws"))

    assert result.final_output == "Room 12 is yours."
    assert kinds(await session.get_items()) == [
        "user",
        "function_call",
        "function_call_output",
        "message",
    ]
    assert log.stat().st_size > size
