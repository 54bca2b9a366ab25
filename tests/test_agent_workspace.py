"""What an agent's part of a workspace does with whole sessions: make, fork, compact, count, retire."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest

from workspace_session import (
    InvalidCompaction,
    Retention,
    SessionChanged,
    SessionExists,
    Stats,
    UnknownMessage,
    UnknownSession,
)


def said(text, message_id=None):
    named = {} if message_id is None else {"id": message_id}
    return {**named, "role": "user", "parts": [{"type": "text", "text": text}]}


@pytest.fixture
def ten(tree):
    tree.extend([said(f"text {number}", f"m{number}") for number in range(10)])
    return tree


def shown(tree):
    return [getattr(item, "summary", item.id) for item in tree.context()]


# -- new sessions ----------------------------------------------------------------------------------


def test_a_session_is_made_with_facts_and_only_once(agent, check_clean):
    tree = agent.create("new", name="N", tags=["b", "a"])

    assert (tree.info().name, tree.info().tags) == ("N", ("a", "b"))
    with pytest.raises(SessionExists):
        agent.create("new")
    assert agent.create().id != agent.create().id
    check_clean()


def test_a_fork_goes_to_the_tip_and_says_where_it_comes_from(agent, ten, check_clean):
    ten.set_leaf("m3")

    forked = agent.fork("s", new_id="t", name="other")

    assert [entry.id for entry in forked.path()] == ["m0", "m1", "m2", "m3"]
    assert (forked.info().parent_session_id, forked.info().name) == ("s", "other")
    check_clean()


def test_what_cannot_be_forked_is_refused(agent, ten):
    with pytest.raises(UnknownSession):
        agent.fork("nobody")
    with pytest.raises(UnknownMessage):
        agent.fork("s", "nobody")
    with pytest.raises(SessionExists):
        agent.fork("s", new_id="s")


# -- the tree --------------------------------------------------------------------------------------


def test_switching_goes_to_the_newest_end_below_a_message(ten):
    ten.append(said("branch", "b1"), parent="m2")
    ten.append(said("branch", "b2"), parent="m2")

    assert [ten.switch(one) for one in ("m5", "b1", "m2", "m0")] == ["m9", "b1", "b2", "b2"]
    assert ten.leaf == "b2"
    with pytest.raises(UnknownMessage):
        ten.switch("nobody")


def test_switching_to_where_the_tip_is_writes_nothing(agent, ten):
    before = agent.place.log("s").stat().st_size

    assert ten.switch("m0") == "m9"
    assert agent.place.log("s").stat().st_size == before


def test_the_versions_of_a_message_are_all_it_ever_said(ten):
    ten.update("m1", said("second", "m1"))
    ten.update("m2", said("another", "m2"))
    ten.update("m1", said("third", "m1"))
    ten.compact("short", "m0", "m8")
    ten.trim()

    versions = ten.versions("m1")

    assert [one.message["parts"][0]["text"] for one in versions] == ["text 1", "second", "third"]
    assert versions[0].revision is None


def test_the_versions_of_an_id_that_came_again_are_those_of_the_new_message(ten):
    ten.update("m9", said("old", "m9"))
    ten.delete(["m9"])
    ten.append(said("new", "m9"))

    assert [one.message["parts"][0]["text"] for one in ten.versions("m9")] == ["new"]


def test_tags_are_added_to_those_that_are_there(agent, ten):
    assert ten.tag(add=["b", "a"]) == ["a", "b"]
    assert agent.tree("s").tag(add=["c"], remove=["a", "nothing"]) == ["b", "c"]
    before = agent.place.log("s").stat().st_size
    assert ten.tag(add=["b"]) == ["b", "c"]
    assert agent.place.log("s").stat().st_size == before
    assert ten.tag(remove=["b", "c"]) == []
    assert ten.facts().get("tags") is None


# -- compacting ------------------------------------------------------------------------------------


def test_the_middle_is_summed_up(agent, ten, check_clean):
    prompts = []

    def summarize(prompt):
        prompts.append(prompt)
        return "short"

    overlay = agent.compact("s", summarize, keep_first=2, keep_last=3, keep_tokens=0)

    assert shown(ten) == ["m0", "m1", "short", "m7", "m8", "m9"]
    assert overlay == ten.compactions()[0]
    assert "text 2" in prompts[0]
    assert "text 7" not in prompts[0]
    check_clean()


def test_messages_of_every_shape_are_in_the_prompt(agent, tree):
    tree.append({"role": "user", "content": "chat shape"})
    tree.append(
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c", "name": "look", "input": {"q": "x"}}],
        }
    )
    tree.append(
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c", "content": "found"}],
        }
    )
    prompts = []

    agent.compact("s", lambda prompt: prompts.append(prompt) or "short", to_id=tree.leaf)

    assert shown(tree) == ["short"]
    for piece in ("chat shape", "[tool: look]", '{"q":"x"}', "found"):
        assert piece in prompts[0]


def test_a_call_and_its_result_are_not_torn_apart(agent, tree):
    for number in range(3):
        call = {"type": "function_call", "call_id": f"c{number}", "name": "f", "arguments": "{}"}
        tree.append(call)
        tree.append({"type": "function_call_output", "call_id": f"c{number}", "output": "ok"})
    ids = [entry.id for entry in tree.path()]

    agent.compact("s", lambda _prompt: "short", keep_first=1, keep_last=1, keep_tokens=0)

    assert shown(tree) == [*ids[:2], "short", *ids[4:]]


@pytest.mark.parametrize("answer", [None, "", "  \n"])
def test_without_a_summary_nothing_is_stored(agent, ten, answer):
    assert agent.compact("s", lambda _prompt: answer, to_id="m5") is None
    assert ten.compactions() == []


def test_other_writers_are_not_kept_waiting_while_the_summary_is_made(agent, ten):
    def summarize(_prompt):
        writer = threading.Thread(target=lambda: agent.tree("s").append(said("meanwhile", "new")))
        writer.start()
        writer.join(timeout=10)
        assert not writer.is_alive()
        return "short"

    agent.compact("s", summarize, to_id="m8")

    assert shown(ten) == ["short", "m9", "new"]


def test_a_summary_of_what_changed_meanwhile_is_refused(agent, ten):
    def summarize(_prompt):
        agent.tree("s").delete(["m3"])
        return "short"

    with pytest.raises(SessionChanged, match="changed meanwhile"):
        agent.compact("s", summarize, to_id="m8")
    assert ten.compactions() == []


def test_what_summarize_raises_is_raised(agent, ten):
    def summarize(_prompt):
        raise RuntimeError("no model")

    with pytest.raises(RuntimeError, match="no model"):
        agent.compact("s", summarize, to_id="m8")


@pytest.mark.parametrize(
    ("cut", "error"),
    [
        ({"from_id": "nobody"}, UnknownMessage),
        ({"from_id": "m5", "to_id": "m3"}, InvalidCompaction),
        ({"to_id": "b1"}, InvalidCompaction),
        ({"leaf": "nobody"}, UnknownMessage),
    ],
)
def test_a_range_that_is_none_is_refused_before_anything_is_asked(agent, ten, cut, error):
    ten.append(said("aside", "b1"), parent="m0")
    ten.set_leaf("m9")

    with pytest.raises(error):
        agent.compact("s", lambda _prompt: pytest.fail("it was asked"), **cut)


def test_another_branch_can_be_summed_up(agent, ten):
    ten.append(said("aside", "b1"), parent="m4")
    ten.set_leaf("m9")

    agent.compact("s", lambda _prompt: "short", leaf="b1", from_id="m1", to_id="b1")

    assert shown(ten) == [f"m{number}" for number in range(10)]
    assert [getattr(item, "summary", item.id) for item in ten.context("b1")] == ["m0", "short"]


# -- figures and retention -------------------------------------------------------------------------


def test_figures_add_up(agent, ten):
    ten.add_usage(input_tokens=3, output_tokens=2, cost=0.25)
    agent.create("empty")
    agent.state.save("s", "value", {"a": 1})

    found = {one.session_id: one.figures for one in agent.stats()}
    (alone,) = agent.stats("s")

    assert alone.figures == found["s"]
    assert (found["s"].messages, found["s"].heads, found["s"].context_messages) == (10, 1, 10)
    assert (found["s"].input_tokens, found["s"].output_tokens, found["s"].cost) == (3, 2, 0.25)
    assert found["s"].state_bytes > 0
    total = sum(found.values(), Stats())
    assert (total.sessions, total.messages) == (2, 10)
    assert total.log_bytes == sum(one.log_bytes for one in found.values())


def test_sessions_that_are_due_go_to_the_trash_and_are_erased_from_there(agent, ten, check_clean):
    rule = Retention(older_than=timedelta(days=30), trash_older_than=timedelta(days=30))
    later = datetime.now(UTC) + timedelta(days=40)
    assert agent.due(rule) == ([], [])

    ((info, why),), erasable = agent.due(rule, later)
    assert (info.id, why, erasable) == ("s", "not written to for 40 days", [])
    assert agent.retire(info)
    assert agent.session_ids() == []

    due, ((gone, _why),) = agent.due(rule, later)
    assert due == []
    agent.erase(gone)
    agent.erase(gone)  # somebody else was faster
    assert agent.trashed() == []
    with pytest.raises(UnknownSession):
        agent.restore("s")
    check_clean()
