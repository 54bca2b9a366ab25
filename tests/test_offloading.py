"""Offloading: an agent's conversation reaches the transcript whole, and once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workspace_session
from workspace_session import (
    InvalidId,
    InvalidMessage,
    MemoryFlushManager,
    RuntimeContext,
    SessionTree,
    Workspace,
)
from workspace_session.model.shortening import is_only_shortened

PACKAGE = Path(workspace_session.__file__).parent.parent


@pytest.fixture
def flush(workspace):
    return MemoryFlushManager(workspace)


@pytest.fixture(autouse=True)
def clean_afterwards(workspace):
    yield
    assert workspace.verify() == []


def said(message_id, text, role="user"):
    return {"id": message_id, "role": role, "content": text}


def texts(tree):
    return [entry.message["content"] for entry in tree.path()]


# -- messages with an id ---------------------------------------------------------------------------


def test_new_messages_hang_from_the_tip_in_order_in_one_write(flush, tree):
    tree.append(said("m0", "before"))
    size = len(list(tree.log()))

    result = flush.offload_messages("a", "s", [said("m1", "one"), said("m2", "two", "assistant")])

    assert [entry.id for entry in tree.path()] == ["m0", "m1", "m2"]
    assert (result.added, result.updated, result.unchanged, result.ignored) == (2, 0, 0, 0)
    assert (result.entry_ids, result.leaf, result.aligned) == (("m1", "m2"), "m2", True)
    new = list(tree.log())[size:]
    assert len({entry.batch for entry in new}) == 1
    assert new[0].batch.size == 2


def test_the_whole_memory_offloaded_after_each_of_fifty_turns_leaves_each_message_once(flush, tree):
    memory = []
    for turn in range(50):
        memory += [
            said(f"u{turn}", f"question {turn}"),
            said(f"a{turn}", f"answer {turn}", "assistant"),
        ]
        result = flush.offload_messages("a", "s", memory)

        assert (result.added, result.unchanged) == (2, 2 * turn)

    assert [entry.id for entry in tree.path()] == [message["id"] for message in memory]
    assert sum(entry.type == "message" for entry in tree.log()) == 100
    assert not [entry for entry in tree.log() if entry.type == "update"]


def test_a_reply_that_grows_under_one_id_is_updated_and_the_log_keeps_every_revision(flush, tree):
    for text in ("I", "I will", "I will look", "I will look"):
        flush.offload_messages("a", "s", [said("q", "where?"), said("r", text, "assistant")])

    assert texts(tree) == ["where?", "I will look"]
    revisions = [
        entry.message["content"] for entry in tree.log() if entry.type in ("message", "update")
    ]
    assert revisions == ["where?", "I", "I will", "I will look"]


def test_an_edit_is_an_update_that_keeps_its_place(flush, tree):
    flush.offload_messages("a", "s", [said("m1", "one"), said("m2", "two")])

    result = flush.offload_messages("a", "s", [said("m1", "ONE"), said("m2", "two")])

    assert (result.added, result.updated, result.unchanged) == (0, 1, 1)
    assert texts(tree) == ["ONE", "two"]


def test_a_message_that_was_only_shortened_leaves_the_original(flush, tree):
    whole = {
        "id": "m1",
        "role": "assistant",
        "content": [
            {"type": "text", "text": "a long answer"},
            {"type": "tool_result", "id": "c1", "output": [{"type": "text", "text": "x" * 50}]},
        ],
    }
    flush.offload_messages("a", "s", [whole])
    less = {
        **whole,
        "content": [
            {
                "type": "tool_result",
                "id": "c1",
                "output": [{"type": "text", "text": "xxx... [truncated]"}],
            }
        ],
        "metadata": {"truncated": True},
    }

    result = flush.offload_messages("a", "s", [less])

    assert (result.ignored, result.updated, result.entry_ids) == (1, 0, ("m1",))
    assert tree.get("m1").message == whole


@pytest.mark.parametrize(
    ("less", "whole", "shortened"),
    [
        ("one", "one two", True),
        ("one…", "one two", True),
        ("one ...", "one two", True),
        ("one...(truncated)", "one two three", True),
        ("", "one", True),
        ("…", "one", True),
        ("one", "one", False),  # equal, not shortened
        ("two", "one two", False),
        ("one two three", "one two", False),
        ("one two…", "one two", False),  # nothing is missing
        ([], [{"type": "text", "text": "one"}], True),
        ([{"type": "text", "text": "o"}], [{"type": "text", "text": "one"}], True),
        ([{"type": "image"}], [{"type": "text", "text": "one"}, {"type": "image"}], True),
        ([{"type": "text", "text": "x"}], [{"type": "text", "text": "one"}], False),
        ([{"type": "image"}, {"type": "image"}], [{"type": "image"}], False),
        ([{"type": "use", "input": {"n": 1}}], [{"type": "use", "input": {"n": 12}}], False),
        ([{"type": "use", "name": "ab"}], [{"type": "use", "name": "abc"}], False),
        ([{"type": "use", "metadata": 1}], [{"type": "use", "metadata": 2}], False),
        ([{"type": "use", "more": 1}], [{"type": "use"}], False),
        (None, "one", False),
    ],
)
def test_shortened_is_what_says_less_and_nothing_else(less, whole, shortened):
    assert (
        is_only_shortened({"role": "user", "content": less}, {"role": "user", "content": whole})
        is shortened
    )


def test_a_summary_of_earlier_messages_is_never_stored(flush, tree):
    flush.offload_messages("a", "s", [said("m1", "one")])

    result = flush.offload_messages(
        "a",
        "s",
        [said("compaction:e1", "Summary …"), said("compaction_e2", "…"), said("m2", "two")],
    )

    assert (result.ignored, result.added, result.entry_ids) == (2, 1, ("e1", "e2", "m2"))
    assert texts(tree) == ["one", "two"]


def test_what_was_deleted_or_cleared_is_not_brought_back_by_a_memory_that_still_has_it(flush, tree):
    flush.offload_messages("a", "s", [said("m1", "one"), said("m2", "two")])
    tree.delete(["m1"])
    result = flush.offload_messages("a", "s", [said("m1", "one"), said("m2", "two")])
    assert (result.ignored, result.unchanged, texts(tree)) == (1, 1, ["two"])

    tree.clear()
    result = flush.offload_messages(
        "a", "s", [said("m1", "one"), said("m2", "two"), said("m3", "new")]
    )

    assert (result.ignored, result.added, texts(tree)) == (2, 1, ["new"])


def test_a_new_message_under_the_id_of_a_deleted_one_is_stored(flush, tree):
    flush.offload_messages("a", "s", [said("m1", "one")])
    tree.clear()

    flush.offload_messages("a", "s", [said("m1", "something else")])

    assert texts(tree) == ["something else"]


def test_a_text_that_was_purged_does_not_come_back_from_a_memory(flush, tree):
    secret = said("m2", "my number is 4711")
    memory = [said("m1", "one"), secret, said("m3", "three")]
    flush.offload_messages("a", "s", memory)
    tree.purge("m2")

    result = flush.offload_messages("a", "s", [*memory, said("m4", "four")])
    assert (result.added, result.ignored, result.updated) == (1, 1, 0)
    tree.delete(["m2"])
    assert flush.offload_messages("a", "s", memory).ignored == 1
    assert "4711" not in tree.place.log("s").read_text()
    assert texts(tree) == ["one", "three", "four"]


def test_a_purged_text_does_not_come_back_without_an_id_either(flush, tree):
    memory = plain("one", "my number is 4711", "three")
    flush.offload_messages("a", "s", memory)
    tree.purge(tree.path()[1].id)

    result = flush.offload_messages("a", "s", [*memory, *plain("four")])

    assert (result.added, result.unchanged, result.aligned) == (1, 3, True)
    assert "4711" not in tree.place.log("s").read_text()


def test_an_id_given_twice_is_one_message(flush, tree):
    result = flush.offload_messages(
        "a", "s", [said("m1", "I"), said("m1", "I see"), said("m1", "I…")]
    )

    assert (result.added, result.updated, result.ignored) == (1, 1, 1)
    assert texts(tree) == ["I see"]


def test_messages_that_only_the_log_of_a_trimmed_session_holds_are_known(flush, tree):
    memory = [said(f"m{number}", f"text {number} " * 20) for number in range(40)]
    flush.offload_messages("a", "s", memory)
    tree.compact("short", "m0", "m37")
    tree.trim()

    result = flush.offload_messages("a", "s", memory)
    assert (result.unchanged, result.added) == (40, 0)

    result = flush.offload_messages(
        "a", "s", [*memory[:-1], said("m39", "edited"), said("n", "new")]
    )
    assert (result.unchanged, result.updated, result.added) == (39, 1, 1)
    assert [entry.id for entry in tree.path()][-2:] == ["m39", "n"]


# -- messages without an id ------------------------------------------------------------------------


def plain(*texts):
    return [{"role": "user", "content": text} for text in texts]


def test_without_ids_the_end_of_the_session_is_the_beginning_of_the_conversation(flush, tree):
    flush.offload_messages("a", "s", plain("ok", "no", "ok"))

    result = flush.offload_messages("a", "s", plain("ok", "no", "ok", "ok"))
    assert (result.added, result.unchanged, result.aligned) == (1, 3, True)

    result = flush.offload_messages("a", "s", plain("ok", "ok", "yes"))  # the end of it
    assert (result.added, result.unchanged, result.aligned) == (1, 2, True)
    assert texts(tree) == ["ok", "no", "ok", "ok", "yes"]


def test_without_ids_and_without_overlap_equal_messages_count_as_known(flush, tree):
    flush.offload_messages("a", "s", plain("one", "two"))

    result = flush.offload_messages("a", "s", plain("one", "three"))

    assert (result.added, result.unchanged, result.aligned) == (1, 1, False)
    assert result.entry_ids[0] == tree.path()[0].id
    assert texts(tree) == ["one", "two", "three"]


def test_ids_and_none_may_be_mixed(flush, tree):
    memory = [said("m1", "one"), *plain("two"), said("m3", "three"), *plain("two")]
    flush.offload_messages("a", "s", memory)

    result = flush.offload_messages("a", "s", [*memory, *plain("two")])

    assert (result.added, result.unchanged) == (1, 4)
    assert texts(tree) == ["one", "two", "three", "two", "two"]


def test_a_tail_without_ids_is_known_behind_a_summary(flush, tree):
    flush.offload_messages("a", "s", plain(*"abcdef"))
    ids = [entry.id for entry in tree.path()]
    tree.compact("a to d", ids[0], ids[3])
    tree.trim()

    memory = [said("compaction:x", "Summary"), *plain("e", "f", "g")]

    assert flush.offload_messages("a", "s", memory).added == 1
    assert flush.offload_messages("a", "s", memory).added == 0
    assert texts(tree) == list("abcdefg")


@given(
    before=st.lists(st.sampled_from("abc"), max_size=6),
    conversation=st.lists(st.sampled_from("abc"), max_size=6),
    more=st.lists(st.sampled_from("abc"), max_size=3),
)
def test_offloading_twice_adds_nothing_whatever_was_there(before, conversation, more):
    tree = SessionTree.in_memory("s")
    tree.extend(plain(*before))

    for whole in (conversation, conversation + more, (conversation + more)[-4:]):
        tree.offload(plain(*whole))
        once = texts(tree)
        assert tree.offload(plain(*whole)).added == 0
        assert texts(tree) == once


steps = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.text("ab", min_size=1, max_size=3)),
        st.tuples(st.sampled_from(["grow", "edit", "cut", "forget"]), st.integers(0, 9)),
        st.tuples(st.sampled_from(["compact", "reopen"]), st.integers(0, 9)),
    ),
    max_size=25,
)


@given(steps=steps)
def test_whatever_a_memory_goes_through_the_transcript_has_every_message_once_at_its_fullest(
    steps, tmp_path_factory
):
    agent = Workspace(tmp_path_factory.mktemp("w"), durability="os").agent("a")
    tree = agent.tree("s")
    memory, wanted = [], {}
    for number, (what, detail) in enumerate(steps):
        chosen = memory[detail % len(memory)] if memory and isinstance(detail, int) else None
        if what == "say":
            memory.append(said(f"m{number}", detail + "x" * 30))
        elif what == "grow" and chosen:
            chosen["content"] = wanted[chosen["id"]] + "more"
        elif what == "edit" and chosen:
            chosen["content"] = f"edited {number} " + "y" * 20
        elif what == "cut" and chosen:
            chosen["content"] = chosen["content"].removesuffix("…")[: detail + 1] + "…"
        elif what == "forget" and chosen:
            memory.remove(chosen)
        elif what == "compact" and tree.leaf:
            path = tree.path()
            tree.compact("short", path[0].id, path[detail % len(path)].id)
            tree.trim()
        elif what == "reopen":
            tree = agent.tree("s")
        for message in memory:
            if what != "cut" or message is not chosen:
                stored = wanted.get(message["id"])
                if stored is None or not message["content"].endswith("…"):
                    wanted[message["id"]] = message["content"]

        tree.offload(memory)
        again = tree.offload(memory)

        assert (again.added, again.updated) == (0, 0)
        assert {entry.id: entry.message["content"] for entry in tree.path()} == wanted
        assert [entry.id for entry in tree.path()] == list(wanted)
    assert tree.verify() == []


# -- what a message may be -------------------------------------------------------------------------


class Note:
    def to_dict(self):
        return {"id": "n1", "role": "assistant", "content": "from to_dict"}


def test_a_message_is_a_mapping_a_text_or_knows_how_to_become_one(flush, tree):
    pydantic = pytest.importorskip("pydantic")

    class Model(pydantic.BaseModel):
        role: str = "system"
        content: str = "from model_dump"

    flush.offload_messages("a", "s", ["a text", Note(), Model()])

    assert [entry.message for entry in tree.path()] == [
        {"role": "user", "content": "a text"},
        {"id": "n1", "role": "assistant", "content": "from to_dict"},
        {"role": "system", "content": "from model_dump"},
    ]


@pytest.mark.parametrize("strange", [3, None, ["a"], {"id": 3}, {"content": {1}}, Note])
def test_what_is_no_message_is_refused_and_nothing_is_written(flush, tree, strange):
    with pytest.raises(InvalidMessage):
        flush.offload_messages("a", "s", [said("m1", "one"), strange])

    assert not tree.exists()


@pytest.mark.parametrize("one", ["a text", {"role": "user", "content": "x"}, b"x"])
def test_one_message_is_no_conversation(flush, tree, one):
    with pytest.raises(InvalidMessage, match="a list of messages"):
        flush.offload_messages("a", "s", one)

    assert not tree.exists()


def test_nothing_is_left_out_for_its_role_its_text_or_its_kind(flush, tree):
    memory = [
        said("m1", "", "system"),
        {"id": "m2", "role": "user", "content": [{"type": "image", "source": {"url": "x"}}]},
        {"id": "m3", "role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]},
        {"id": "m4", "strange": True},
    ]

    assert flush.offload_messages("a", "s", memory).added == 4
    assert [entry.message for entry in tree.path()] == memory


def test_nothing_to_offload_makes_no_session(flush, agent):
    result = flush.offload_messages("a", "s", [])

    assert (result.added, result.leaf, result.entry_ids) == (0, None, ())
    assert agent.session_ids() == []


# -- around it -------------------------------------------------------------------------------------


def test_a_call_without_a_result_is_stored_as_it_is_and_named(flush, workspace, tree):
    call = {
        "id": "m1",
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "c1", "name": "f"}],
    }

    result = flush.offload_messages("a", "s", [call])

    assert result.dangling == ("c1",)
    assert tree.get("m1").message == call
    index = (workspace.root / "agents/a/sessions/sessions.json").read_text()
    assert '"danglingToolCalls": [\n        "c1"\n      ]' in index


def test_the_index_is_written_at_once(flush, workspace):
    flush.offload_messages("a", "s", ["hello"])

    assert '"summary": "hello"' in (workspace.root / "agents/a/sessions/sessions.json").read_text()


def test_an_index_that_cannot_be_written_fails_no_offload(flush, workspace, tree):
    blocker = workspace.root / "agents/a/sessions/sessions.json"
    flush.offload_messages("a", "s", ["one"])
    blocker.unlink()
    blocker.mkdir()

    flush.offload_messages("a", "s", ["one", "two"])

    assert texts(tree) == ["one", "two"]
    blocker.rmdir()


def test_offloading_takes_place_in_the_namespace_of_the_context(tmp_path):
    with Workspace(
        tmp_path, durability="os", namespace=lambda ctx: ("org", ctx.user_id)
    ) as workspace:
        flush = MemoryFlushManager(workspace)

        flush.offload_messages("a", "s", ["hi"], ctx=RuntimeContext(user_id="alice"))

        assert (tmp_path / "org/alice/agents/a/sessions/s.log.jsonl").exists()
        with pytest.raises(InvalidId, match="not a string"):
            flush.offload_messages("a", "s", ["hi"])


def test_an_offload_that_is_killed_is_completed_by_the_next(tmp_path, flush, workspace, tree):
    program = """
        import sys
        from workspace_session import MemoryFlushManager
        flush = MemoryFlushManager(sys.argv[1])
        memory = []
        for turn in range(10_000):
            memory += [{"id": f"m{turn}", "role": "user", "content": f"text {turn} " * 20}]
            flush.offload_messages("a", "s", memory[-200:])
            print(turn, flush=True)
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), os.fspath(workspace.root)],
        stdout=subprocess.PIPE,
        cwd=PACKAGE,
    )
    for line in child.stdout:
        if int(line) >= 30:
            break
    child.send_signal(signal.SIGKILL)
    acknowledged = max([30, *map(int, child.stdout)])
    child.wait()
    child.stdout.close()

    memory = [said(f"m{turn}", f"text {turn} " * 20) for turn in range(acknowledged + 3)]
    flush.offload_messages("a", "s", memory)

    assert [entry.id for entry in tree.path()] == [message["id"] for message in memory]
