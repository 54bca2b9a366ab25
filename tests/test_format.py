"""`docs/format.md` says enough: a reader written from it alone sees what the library sees."""

from __future__ import annotations

import json
import random
import re
import shutil
import tempfile
from pathlib import Path

import format_reader as reader
import pytest
from hypothesis import given
from hypothesis import strategies as st
from logs import line, logs, wire
from make_sample import SAMPLE

from workspace_session import SessionTree, Workspace
from workspace_session.files.layout import decode_name, encode_id, encode_namespace_part
from workspace_session.model.entries import Compaction
from workspace_session.model.lines import _KINDS, decode
from workspace_session.model.tree import Tree
from workspace_session.model.trim import plan

PAGE = (Path(__file__).parents[1] / "docs" / "format.md").read_text("utf-8")
EXAMPLES = re.findall(r"^\*\*`(\w+)`\*\*.*?^```jsonl\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL)

# -- what both say of a session ----------------------------------------------------------------------


def as_read(session: reader.Session, leaves: list[str]) -> dict:
    """What the reader of the page says."""
    return {
        "agent": session.header and session.header["agent"],
        "parent session": session.header and session.header["parentSession"],
        "messages": {one: session.contents[one] for one in session.messages},
        "order": list(session.messages),
        "roots": session.children(None),
        "parents": {one: session.parents[one] for one in session.messages},
        "tip": session.tip,
        "leaves": session.leaves(),
        "context": session.context(session.tip),
        "contexts": {leaf: session.context(leaf) for leaf in leaves},
        "labels": session.labels,
        "facts": session.facts,
        "spent": pytest.approx(tuple(session.spent)),
    }


def as_known(tree: SessionTree) -> dict:
    """What the library says."""
    header, every = tree.header(), tree.all_messages()
    return {
        "agent": header and header.agent,
        "parent session": header and header.parent_session,
        "messages": {entry.id: entry.message for entry in every},
        "order": [entry.id for entry in every],
        "roots": [entry.id for entry in tree.children(None)],
        "parents": {
            child.id: one for one in [None, *(e.id for e in every)] for child in tree.children(one)
        },
        "tip": tree.leaf,
        "leaves": tree.leaves(),
        "context": [item.message for item in tree.context()] if tree.leaf else [],
        "contexts": {leaf: [item.message for item in tree.context(leaf)] for leaf in tree.leaves()},
        "labels": tree.labels(),
        "facts": tree.facts(),
        "spent": (tree.info().input_tokens, tree.info().output_tokens, tree.info().estimated_cost),
    }


def agree(data: bytes, tree: SessionTree) -> None:
    """Both read the same from a log."""
    assert as_known(tree) == as_read(reader.read_log(data), tree.leaves())


# -- the page itself ---------------------------------------------------------------------------------


def test_every_type_has_an_example_and_no_other_has_one():
    assert sorted(kind for kind, _ in EXAMPLES) == sorted([*_KINDS, "custom"])


@pytest.mark.parametrize(("kind", "text"), EXAMPLES)
def test_the_example_of_a_type_is_an_entry_of_it_as_we_write_it(kind, text):
    entry = decode(text.encode())

    assert json.loads(text)["type"] == kind
    assert reader.entry_of(text.encode()) is not None
    assert type(entry) is _KINDS.get(kind, type(entry))
    assert json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":")) == text


@pytest.mark.parametrize(("kind", "text"), EXAMPLES)
def test_both_readers_need_the_same_fields_of_the_same_types(kind, text):
    good = json.loads(text)
    for name in [*good, "batch"]:
        for value in (
            None,
            "",
            "x",
            7,
            7.5,
            True,
            [],
            ["a"],
            [1],
            {},
            {"id": "b", "size": 1},
            "absent",
        ):
            wire = {key: one for key, one in good.items() if key != name}
            if value != "absent":
                wire[name] = value
            self_made = line(wire)
            assert (reader.entry_of(self_made) is None) == (not is_entry(self_made)), self_made


def is_entry(data: bytes) -> bool:
    try:
        decode(data)
    except ValueError:
        return False
    return True


# -- sessions ----------------------------------------------------------------------------------------


def test_the_reader_knows_nothing_of_the_library():
    source = Path(reader.__file__).read_text("utf-8")

    assert "workspace_session" not in source


def test_the_reader_finds_and_reads_every_session_of_the_sample(tmp_path):
    shutil.copytree(SAMPLE, tmp_path / "sample")
    with Workspace(tmp_path / "sample", create=False) as workspace:
        trees = {
            (agent.place.namespace, agent.id, one): agent.tree(one)
            for agent in workspace.agents()
            for one in agent.session_ids()
        }

        found = reader.sessions(workspace.root)

        assert found.keys() == trees.keys()
        for key, tree in trees.items():
            agree(found[key].read_bytes(), tree)
            working_set = reader.read_working_set(tree.place.tree(tree.id).read_bytes())
            assert working_set.context(working_set.tip) == tree.messages()


@given(logs(wild=True, max_size=30), st.randoms(use_true_random=False))
def test_the_reader_reads_any_log_as_the_library_does(wires, chance):
    lines = [line(wire) for wire in wires]
    mistreated = mistreat(lines, chance)

    with tempfile.TemporaryDirectory() as directory:
        tree = Workspace(directory, durability="os").agent("a").tree("s")
        log = tree.place.log("s")
        log.parent.mkdir(parents=True)
        log.write_bytes(mistreated)
        agree(mistreated, tree)


def mistreat(lines: list[bytes], chance: random.Random) -> bytes:
    """The lines in any order, some twice, with batches, and with lines between that are none."""
    made = [in_batches(one, chance) for one in lines] if chance.random() < 0.3 else list(lines)
    if chance.random() < 0.5:
        chance.shuffle(made)
    purges = [
        wire(
            chance.randrange(len(lines) + 9),
            "purge",
            f"p{number}",
            targetId=chance.choice([f"m{chance.randrange(12)}", f"e{chance.randrange(20)}"]),
        )
        for number in range(3)
    ]
    for purge in purges[: chance.choice([0, 0, 1, 3])]:
        made.insert(chance.randrange(len(made) + 1), line(purge))
    for _ in range(chance.randrange(4)):
        made.insert(chance.randrange(len(made) + 1), chance.choice([*made, *BROKEN]))
    ends = [chance.choice([b"\n", b"\n", b"\n", b"\r\n"]) for _ in made]
    torn = chance.choice([b"", made[-1][: len(made[-1]) // 2]])
    return b"".join(one + end for one, end in zip(made, ends, strict=True)) + torn


def in_batches(data: bytes, chance: random.Random) -> bytes:
    batch = {"id": chance.choice("ab"), "size": 3}
    return line({**json.loads(data), "batch": batch}) if chance.random() < 0.5 else data


BROKEN = [
    b"",
    b"   ",
    b"<<<<<<< ours",
    b"{",
    b"[]",
    b'{"type":"info","id":"x","timestamp":"2026-05-15T08:00:00.5Z","n":NaN}',
    b'{"type":"message"}',
    b'{"type":"abort","id":"z","timestamp":"2026-05-15T08:00:00.5+00:00","batchId":"a"}',
    b'\xef\xbb\xbf{"type":"info","id":"y","timestamp":"2026-05-15T08:59:00","name":"half \\ud83d"}',
]


@given(logs(max_size=30), st.integers(0, 30))
def test_a_trimmed_working_set_shows_what_the_log_shows(wires, cut):
    """What was kept, the trim, and the rest: where the reader does not ask for the log, it is right."""
    before, after = wires[: max(cut, 1)], wires[max(cut, 1) :]
    entries = [decode(line(wire)) for wire in before]
    trimmed = plan(Tree.of(entries))
    kept = [entry.line for entry in (*trimmed.kept, trimmed.trim)]
    data = b"".join(one + b"\n" for one in (*kept, *map(line, after)))
    log = b"".join(line(wire) + b"\n" for wire in wires)
    full = reader.read_log(log)

    try:
        session = reader.read_working_set(data)
    except reader.ReadTheLog:
        return

    assert session.context(session.tip) == full.context(full.tip)
    assert (session.tip, session.facts) == (full.tip, full.facts)
    assert session.labels == full.labels
    assert session.spent == pytest.approx(full.spent)
    assert len(session.messages) + session.hidden == len(full.messages)


def test_after_a_trim_the_reader_does_without_the_log(agent):
    """So that the test above cannot pass by always asking for it."""
    tree = agent.tree("s")
    ids = [
        tree.append({"id": f"m{number}", "role": "user", "content": "x" * 900}).entry.id
        for number in range(60)
    ]
    tree.label(ids[3], "hidden")
    tree.compact("the beginning", ids[0], ids[-1])
    tree.trim()
    tree.append({"id": "later", "role": "user", "content": "on we go"})

    data = agent.place.tree("s").read_bytes()
    session = reader.read_working_set(data)

    assert len(data) < 10_000
    assert b'"type":"trim"' in data
    assert session.context(session.tip) == tree.messages()
    assert session.hidden == 60
    assert session.labels == {"m3": "hidden"}


def test_a_log_that_was_lost_and_made_anew_reads_the_same(agent):
    tree = agent.tree("s")
    ids = [
        tree.append({"id": f"m{number}", "role": "user", "content": "x" * 900}).entry.id
        for number in range(60)
    ]
    tree.compact("the beginning", ids[0], ids[-2])
    tree.trim()
    agent.place.log("s").unlink()
    again = agent.tree("s")
    again.append({"id": "later", "role": "user", "content": "on we go"})
    data = agent.place.log("s").read_bytes()

    session = reader.read_log(data)

    assert b'"type":"trim"' in data
    assert session.context(session.tip) == again.messages()
    assert [item.type for item in again.context()] == [Compaction.type, "message", "message"]


# -- names, the index, state -------------------------------------------------------------------------

AWKWARD = [
    "a", "a b/c", "波尔图", ".x", "x.", "..", ".", "a.log", "a.LOG", ".log", "con", "CON", "con.txt", "com1", "lpt9.x",
    "console", "agents", "Memory", "memory.md", "agents.md", "%41", "a%b", "é", "x" * 180, "-", "_", "a.b", "log", "nul.",
    "a:b", "a\\b", "🙂", "skills.", "x.log.", "ab.log.log",
]  # fmt: skip


@pytest.mark.parametrize("text", AWKWARD)
def test_ids_become_the_names_that_the_page_says(text):
    name, user = encode_id("session", text), encode_namespace_part(text)

    assert (reader.encoded(text), reader.encoded(text, user=True)) == (name, user)
    assert (reader.decoded(name), reader.decoded(user, user=True)) == (text, text)


@given(st.text(max_size=12))
def test_a_name_means_the_same_to_both(name):
    assert reader.decoded(name) == decode_name(name)


def test_the_index_and_the_states_are_what_the_page_says(agent, workspace):
    tree = agent.tree("s")
    tree.append({"role": "user", "content": "hello"})
    tree.annotate(name="n", tags=["b", "a"], end_reason="done")
    tree.add_usage(input_tokens=2, output_tokens=1, cost=0.5)
    agent.state.save("s", "value", {"b": 1, "a": [True, None]})
    agent.state.save_list("s", "items", [{"b": 1, "a": 2}, 3])
    workspace.close()

    index = json.loads(agent.place.index.read_bytes())
    member = index["sessions"]["s"]
    said = set(re.findall(r"`(\w+)`", PAGE.partition("## sessions.json")[2].partition("\n## ")[0]))

    assert index["version"] == 1
    assert member["logBytes"] == agent.place.log("s").stat().st_size
    assert member.keys() | {"version", "sessions"} <= said
    assert (
        agent.place.states.document("s", "value").read_bytes()
        == b'{\n  "a": [\n    true,\n    null\n  ],\n  "b": 1\n}\n'
    )
    assert agent.place.states.items("s", "items").read_bytes() == b'{"a":2,"b":1}\n3\n'


def test_locks_are_where_the_page_says(agent, workspace):
    agent.tree("a b").append({"role": "user", "content": "x"})
    agent.state.save("a b", "k", 1)

    locks = {
        path.relative_to(workspace.root).as_posix()
        for path in workspace.layout.locks.rglob("*.lock")
    }

    assert {
        ".workspace/locks/agents/a/sessions/a%20b.lock",
        ".workspace/locks/agents/a/context/a%20b.lock",
    } <= locks
