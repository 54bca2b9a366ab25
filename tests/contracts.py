"""What every conversation store promises, as tests to inherit.

Subclass a contract and give the fixture it asks for. Nothing in here knows of files: a contract holds
for a session on disk, in memory, trimmed after every write, or read by a new handle at every call.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from workspace_session import (
    LATEST,
    InvalidCompaction,
    InvalidMessage,
    UnknownMessage,
    UnknownParent,
)
from workspace_session.model.entries import Compaction

_PADDING = "x" * 400  # so that leaving a message out is worth while


def said(text: str, message_id: str | None = None, role: str = "user") -> dict[str, Any]:
    """A message; its text is what `shown` shows of it."""
    named = {} if message_id is None else {"id": message_id}
    part = {"type": "text", "text": text}
    return {**named, "role": role, "parts": [part], "padding": _PADDING}


def shown(items: Any) -> list[str]:
    """Ids of messages, texts of summaries."""
    return [item.summary if isinstance(item, Compaction) else item.id for item in items]


def grow(tree: Any, count: int, prefix: str = "m") -> None:
    """m0, m1, … each under the one before."""
    for number in range(count):
        tree.append(said(f"text {number}", f"{prefix}{number}"))


def state_of(tree: Any) -> dict[str, Any]:
    """Everything that can be seen of a session, to tell that nothing has changed."""
    return {
        "log": [entry.line for entry in tree.log()],
        "leaf": tree.leaf,
        "context": shown(tree.context()),
        "leaves": tree.leaves(),
        "labels": tree.labels(),
        "facts": tree.facts(),
    }


NOT_AS_IT_SHOULD_BE: dict[str, Callable[[Any], Any]] = {
    "an author that is no text": lambda tree: tree.append(said("x"), author=5),
    "a label that is no text": lambda tree: tree.label("m0", 5),
    "fewer than no tokens": lambda tree: tree.add_usage(input_tokens=-1),
    "a part of a token": lambda tree: tree.add_usage(input_tokens=1.5),
    "true tokens": lambda tree: tree.add_usage(output_tokens=True),
    "more tokens than a number holds": lambda tree: tree.add_usage(input_tokens=10**30),
    "a cost that is not a number": lambda tree: tree.add_usage(cost=math.nan),
    "an infinite cost": lambda tree: tree.add_usage(cost=math.inf),
    "a negative cost": lambda tree: tree.add_usage(cost=-1),
    "a cost in words": lambda tree: tree.add_usage(cost="1"),
    "a fact that is not JSON": lambda tree: tree.annotate(mood=math.nan),
    "a fact that is not one": lambda tree: tree.annotate(timestamp="x"),
    "tags that are no list": lambda tree: tree.annotate(tags=5),
    "tags that are a text": lambda tree: tree.annotate(tags="abc"),
    "tags that are no texts": lambda tree: tree.annotate(tags=[1, 2]),
    "a summary that is no text": lambda tree: tree.compact(5, "m0", "m1"),
    "a blank summary": lambda tree: tree.compact(" \n", "m0", "m1"),
    "an update that is no message": lambda tree: tree.update("m0", "text"),
    "an update of another id": lambda tree: tree.update("m0", {"id": "other"}),
    "an update that is not JSON": lambda tree: tree.update("m0", {"x": math.nan}),
    "one id where a list should be": lambda tree: tree.delete("m0"),
    "custom data that is not JSON": lambda tree: tree.add_custom("mine", {1, 2}),
}


class TreeContract:
    """What every session promises. Give a `tree` fixture: an empty `SessionTree`."""

    # -- an empty session --

    def test_an_empty_session_shows_nothing(self, tree):
        assert len(tree) == 0
        assert tree.leaf is None
        assert tree.context() == tree.path() == tree.tail(5) == tree.children(None) == []
        assert tree.leaves() == tree.compactions() == []
        assert tree.labels() == tree.facts() == {}
        assert list(tree.log()) == []
        assert tree.header() is None

    # -- where messages hang --

    def test_a_message_hangs_from_the_one_before(self, tree):
        grow(tree, 3)

        assert shown(tree.path()) == ["m0", "m1", "m2"]
        assert [entry.parent_id for entry in tree.path()] == [None, "m0", "m1"]
        assert tree.leaf == "m2"

    def test_a_message_is_kept_as_it_is(self, tree):
        message = {
            "id": "m0",
            "role": "user",
            "parts": [{"type": "text", "text": 'héllo 你好 \u2028 "q" \\ \t', "state": None}],
            "createdAt": "yesterday",
            "deep": {
                "list": [1, 2.5, True, False, None, {"": []}],
                "big": 2**63 - 1,
                "small": 1e-300,
            },
        }

        result = tree.append(message)

        assert result.inserted
        assert result.entry.message == tree.get("m0").message == message
        assert list(tree.get("m0").message) == list(message)

    def test_what_a_reader_does_to_a_message_changes_nothing(self, tree):
        given = said("one", "m0")
        tree.append(given)
        given["parts"].append("changed")

        tree.get("m0").message["parts"].clear()
        tree.context()[0].message.clear()

        assert tree.get("m0").message == said("one", "m0")

    def test_a_message_without_an_id_gets_a_new_one_that_sorts_by_time(self, tree):
        results = [tree.append(said("same")) for _ in range(5)]

        ids = [result.entry.id for result in results]
        assert ids == sorted(set(ids))
        assert "id" not in tree.get(ids[0]).message

    def test_an_id_can_be_refused_to_a_message_that_brings_one(self, tree):
        first = tree.append(said("one", "m0"), own_id=False)
        second = tree.append(said("two", "m0"), own_id=False)

        assert first.inserted
        assert second.inserted
        assert "m0" not in {first.entry.id, second.entry.id}

    def test_a_message_under_none_is_a_new_root(self, tree):
        grow(tree, 2)

        tree.append(said("other", "x"), None)

        assert shown(tree.children(None)) == ["m0", "x"]
        assert shown(tree.path()) == ["x"]

    def test_a_message_under_a_parent_with_children_starts_a_branch(self, tree):
        grow(tree, 3)

        tree.append(said("branch", "x"), "m0")
        tree.append(said("on", "y"), LATEST)

        assert shown(tree.children("m0")) == ["m1", "x"]
        assert shown(tree.path()) == ["m0", "x", "y"]
        assert tree.leaves() == ["m2", "y"]
        assert shown(tree.path("m2")) == ["m0", "m1", "m2"]

    def test_an_unknown_parent_is_refused_and_nothing_is_written(self, tree):
        grow(tree, 2)
        before = state_of(tree)

        for parent in ("nowhere", "", "compaction_m0", 5):
            with pytest.raises(UnknownParent):
                tree.append(said("lost"), parent)
            with pytest.raises(UnknownParent):
                tree.extend([said("lost"), said("too")], parent)

        assert state_of(tree) == before

    def test_a_duplicate_is_not_stored_again_and_the_first_stays(self, tree):
        grow(tree, 3)
        before = state_of(tree)

        result = tree.append(said("other text", "m1"), None)

        assert not result.inserted
        assert result.entry.message == said("text 1", "m1")
        assert result.entry.parent_id == "m0"
        assert state_of(tree) == before

    def test_a_duplicate_is_recognised_before_its_parent_is_looked_at(self, tree):
        grow(tree, 2)

        assert not tree.append(said("again", "m0"), "nowhere").inserted

    def test_the_same_id_in_a_summary_of_the_session_is_still_a_duplicate(self, tree):
        grow(tree, 5)
        tree.compact("summary", "m0", "m3")
        before = state_of(tree)

        assert [tree.append(said("again", f"m{n}")).inserted for n in range(5)] == [False] * 5
        assert state_of(tree) == before

    # -- several at once --

    def test_extend_hangs_each_from_the_one_before(self, tree):
        grow(tree, 1)

        results = tree.extend([said("a", "a"), said("b", "b"), said("c")])

        assert shown(tree.path())[:3] == ["m0", "a", "b"]
        assert [result.inserted for result in results] == [True] * 3
        assert tree.leaf == results[-1].entry.id

    def test_extend_skips_duplicates_and_hangs_the_next_from_them(self, tree):
        grow(tree, 3)

        results = tree.extend(
            [said("again", "m0"), said("x", "x"), said("twice", "x"), said("y", "y")]
        )

        assert [result.inserted for result in results] == [False, True, False, True]
        assert shown(tree.path()) == ["m0", "x", "y"]

    def test_extending_by_nothing_or_by_duplicates_writes_nothing(self, tree):
        grow(tree, 2)
        before = state_of(tree)

        assert tree.extend([]) == []
        assert not any(
            result.inserted for result in tree.extend([said("x", "m0"), said("y", "m1")])
        )

        assert state_of(tree) == before

    def test_when_one_message_is_bad_none_is_stored(self, tree):
        grow(tree, 1)
        before = state_of(tree)

        with pytest.raises(InvalidMessage):
            tree.extend([said("good", "a"), {"bad": math.nan}])

        assert state_of(tree) == before

    # -- input that is refused --

    @pytest.mark.parametrize(
        "message",
        [
            None, 5, "text", ["list"], b"bytes", {"id": ""}, {"id": 5}, {"id": None}, {"id": "\ud800"},
            {"x": math.nan}, {"x": math.inf}, {"x": {1, 2}}, {"x": b"y"}, {1: "x"}, {"x": object()},
        ],
    )  # fmt: skip
    def test_what_is_no_message_is_refused_and_nothing_is_written(self, tree, message):
        grow(tree, 1)
        before = state_of(tree)

        with pytest.raises(InvalidMessage):
            tree.append(message)
        with pytest.raises(InvalidMessage):
            tree.extend([said("good"), message])

        assert state_of(tree) == before

    def test_a_message_that_holds_itself_is_refused(self, tree):
        message = said("one")
        message["parts"].append(message)

        with pytest.raises(InvalidMessage):
            tree.append(message)

        assert len(tree) == 0

    @pytest.mark.parametrize("attempt", NOT_AS_IT_SHOULD_BE, ids=NOT_AS_IT_SHOULD_BE)
    def test_arguments_that_are_not_what_they_should_be_are_refused(self, tree, attempt):
        grow(tree, 2)
        before = state_of(tree)

        with pytest.raises((TypeError, ValueError)):
            NOT_AS_IT_SHOULD_BE[attempt](tree)

        assert state_of(tree) == before

    def test_texts_with_lone_surrogates_are_the_same_for_every_handle(self, tree):
        tree.append({**said("half \ud83d"), "id": "m0"}, author="\ud800")
        tree.label("m0", "half \ud83d")
        tree.annotate(name="half \ud83d")
        tree.compact("half \ud83d", "m0", "m0")

        assert tree.labels() == {"m0": "half \ufffd"}
        assert tree.facts() == {"name": "half \ufffd"}
        assert [overlay.summary for overlay in tree.compactions()] == ["half \ufffd"]
        assert tree.get("m0").author == "\ufffd"
        assert tree.get("m0").message["parts"][0]["text"] == "half \ufffd"

    # -- the tip --

    def test_the_tip_moves_to_any_message_and_stays_there(self, tree):
        grow(tree, 4)

        tree.set_leaf("m1")

        assert tree.leaf == "m1"
        assert shown(tree.context()) == ["m0", "m1"]
        tree.append(said("x", "x"))
        assert shown(tree.path()) == ["m0", "m1", "x"]

    def test_the_tip_moves_to_before_the_first_message(self, tree):
        grow(tree, 2)

        tree.set_leaf(None)

        assert tree.leaf is None
        assert tree.context() == tree.tail(3) == []
        assert tree.leaves() == ["m1"]
        tree.append(said("x", "x"))
        assert shown(tree.children(None)) == ["m0", "x"]

    def test_the_tip_does_not_move_to_what_is_not_there(self, tree):
        grow(tree, 2)
        before = state_of(tree)

        with pytest.raises(UnknownMessage):
            tree.set_leaf("nowhere")

        assert state_of(tree) == before

    def test_moving_the_tip_to_where_it_is_writes_nothing(self, tree):
        grow(tree, 2)
        before = state_of(tree)

        tree.set_leaf("m1")

        assert state_of(tree) == before

    # -- update --

    def test_an_update_replaces_content_and_leaves_the_place(self, tree):
        grow(tree, 3)

        result = tree.update("m1", said("new", "m1", role="assistant"))

        assert result.inserted
        assert tree.get("m1").message == said("new", "m1", role="assistant")
        assert shown(tree.path()) == ["m0", "m1", "m2"]
        assert tree.leaf == "m2"

    def test_the_newest_update_wins(self, tree):
        grow(tree, 2)

        tree.update("m1", said("second", "m1"))
        tree.update("m1", said("third", "m1"))

        assert tree.context()[-1].message == said("third", "m1")
        assert tree.tail(1)[0].message == said("third", "m1")

    def test_an_equal_update_writes_nothing(self, tree):
        grow(tree, 2)
        tree.update("m1", {"id": "m1", "a": 1, "b": 2})
        before = state_of(tree)

        result = tree.update("m1", {"b": 2, "a": 1, "id": "m1"})

        assert not result.inserted
        assert state_of(tree) == before

    def test_equal_to_python_is_not_equal_to_json(self, tree):
        tree.append({"id": "m0", "value": 1})

        assert tree.update("m0", {"id": "m0", "value": True}).inserted
        assert tree.get("m0").message["value"] is True

    def test_an_update_of_what_is_not_there_is_refused(self, tree):
        grow(tree, 1)
        before = state_of(tree)

        with pytest.raises(UnknownMessage):
            tree.update("nowhere", said("x"))

        assert state_of(tree) == before

    # -- delete --

    def test_the_children_of_a_deleted_message_move_to_its_parent(self, tree):
        grow(tree, 3)

        assert tree.delete(["m1"]) == ["m1"]

        assert shown(tree.path()) == ["m0", "m2"]
        assert len(tree) == 2
        with pytest.raises(UnknownMessage):
            tree.get("m1")

    def test_they_keep_the_order_of_appending(self, tree):
        grow(tree, 2)
        for name in ("a", "b", "c"):
            tree.append(said(name, name), "m1")
        tree.append(said("d", "d"), "m0")

        tree.delete(["m1"])

        assert shown(tree.children("m0")) == ["a", "b", "c", "d"]

    def test_a_chain_of_deleted_messages_is_stepped_over(self, tree):
        grow(tree, 6)

        assert tree.delete(["m3", "m1", "m2"]) == ["m3", "m1", "m2"]

        assert shown(tree.path()) == ["m0", "m4", "m5"]
        assert shown(tree.children("m0")) == ["m4"]

    def test_the_children_of_a_deleted_root_are_roots(self, tree):
        grow(tree, 2)
        tree.append(said("x", "x"), "m0")

        tree.delete(["m0"])

        assert shown(tree.children(None)) == ["m1", "x"]

    def test_unknown_ids_are_ignored_and_repeated_ones_count_once(self, tree):
        grow(tree, 2)
        before = state_of(tree)

        assert tree.delete(["nowhere"]) == []
        assert tree.delete([]) == []
        assert state_of(tree) == before
        assert tree.delete(["nowhere", "m1", "m1"]) == ["m1"]

    def test_a_deleted_tip_falls_back_to_its_nearest_ancestor_even_if_another_branch_is_newer(
        self, tree
    ):
        grow(tree, 3)
        tree.append(said("x", "x"), "m0")
        tree.set_leaf("m2")

        tree.delete(["m1", "m2"])

        assert tree.leaf == "m0"

    def test_a_deleted_tip_without_ancestors_falls_back_to_the_newest_message(self, tree):
        grow(tree, 2)
        tree.append(said("x", "x"), None)
        tree.append(said("y", "y"), None)
        tree.set_leaf("m0")

        tree.delete(["m0"])

        assert tree.leaf == "y"

    def test_deleting_everything_leaves_no_tip(self, tree):
        grow(tree, 2)

        tree.delete(["m0", "m1"])

        assert tree.leaf is None
        assert tree.leaves() == []
        assert len(tree) == 0

    def test_a_deleted_id_may_be_used_again(self, tree):
        grow(tree, 3)
        tree.label("m1", "old")
        tree.delete(["m1"])

        result = tree.append(said("new", "m1"))

        assert result.inserted
        assert shown(tree.path()) == ["m0", "m2", "m1"]
        assert tree.get("m1").message == said("new", "m1")
        assert tree.labels() == {}

    def test_a_deleted_message_is_no_parent(self, tree):
        grow(tree, 2)
        tree.delete(["m1"])

        with pytest.raises(UnknownParent):
            tree.append(said("x"), "m1")

    # -- clear --

    def test_a_clear_hides_everything_but_what_is_known_of_the_session(self, tree):
        grow(tree, 4)
        tree.compact("summary", "m0", "m1")
        tree.label("m2", "good")
        tree.annotate(name="Trip")
        tree.add_usage(input_tokens=3)

        assert tree.clear() is True

        assert len(tree) == 0
        assert tree.leaf is None
        assert tree.context() == tree.compactions() == tree.leaves() == tree.children(None) == []
        assert tree.labels() == {}
        assert tree.facts() == {"name": "Trip"}
        assert tree.info().input_tokens == 3

    def test_the_log_keeps_what_was_cleared(self, tree):
        grow(tree, 2)
        before = [entry.id for entry in tree.log()]

        tree.clear()

        assert [entry.id for entry in tree.log()][:-1] == before

    def test_clearing_an_empty_session_writes_nothing(self, tree):
        assert tree.clear() is False
        assert list(tree.log()) == []

    def test_ids_may_be_used_again_after_a_clear(self, tree):
        grow(tree, 3)
        tree.clear()

        result = tree.append(said("new", "m1"))

        assert result.inserted
        assert result.entry.parent_id is None
        assert shown(tree.path()) == ["m1"]
        assert not tree.append(said("twice", "m1")).inserted

    def test_what_was_cleared_is_not_there(self, tree):
        grow(tree, 2)
        tree.clear()

        with pytest.raises(UnknownMessage):
            tree.get("m0")
        with pytest.raises(UnknownParent):
            tree.append(said("x"), "m0")
        with pytest.raises(UnknownMessage):
            tree.set_leaf("m0")
        assert tree.delete(["m0"]) == []
        assert tree.children("m0") == []

    # -- summaries --

    def test_a_summary_stands_in_for_its_range(self, tree):
        grow(tree, 6)

        overlay = tree.compact("short", "m1", "m3")

        assert shown(tree.context()) == ["m0", "short", "m4", "m5"]
        assert shown(tree.path()) == ["m0", "m1", "m2", "m3", "m4", "m5"]
        assert overlay.covers.messages == 3
        assert (overlay.from_id, overlay.to_id, overlay.from_parent_id) == ("m1", "m3", "m0")

    def test_a_summary_reads_as_a_message_of_the_assistant(self, tree):
        grow(tree, 3)

        overlay = tree.compact("short", "m0", "m1")

        assert tree.context()[0].message == {
            "id": f"compaction_{overlay.id}",
            "role": "assistant",
            "parts": [{"type": "text", "text": "short"}],
            "createdAt": overlay.timestamp,
        }

    def test_the_last_of_the_context_is_what_tail_gives(self, tree):
        grow(tree, 8)
        tree.compact("short", "m2", "m5")

        for count in range(1, 8):
            assert shown(tree.tail(count)) == shown(tree.context())[-count:]
        assert tree.tail(0) == tree.tail(-1) == []

    def test_the_leftmost_start_wins_then_the_newest(self, tree):
        grow(tree, 10)
        tree.compact("A", "m1", "m5")
        tree.compact("B", "m3", "m8")

        assert shown(tree.context()) == ["m0", "A", "m6", "m7", "m8", "m9"]

    def test_with_the_same_start_the_newest_wins_even_if_it_is_narrower(self, tree):
        grow(tree, 10)
        tree.compact("wide", "m1", "m7")
        tree.compact("narrow", "m1", "m3")

        assert shown(tree.context()) == ["m0", "narrow", "m4", "m5", "m6", "m7", "m8", "m9"]

    def test_a_newer_summary_that_starts_earlier_hides_an_older_one(self, tree):
        grow(tree, 10)
        tree.compact("inner", "m3", "m5")
        tree.compact("outer", "m1", "m7")

        assert shown(tree.context()) == ["m0", "outer", "m8", "m9"]
        assert shown(tree.compactions()) == ["inner", "outer"]

    def test_summaries_apart_from_each_other_all_apply(self, tree):
        grow(tree, 10)
        tree.compact("late", "m6", "m7")
        tree.compact("early", "m1", "m2")
        tree.compact("one", "m4", "m4")

        assert shown(tree.context()) == [
            "m0", "early", "m3", "one", "m5", "late", "m8", "m9",
        ]  # fmt: skip

    def test_a_summary_that_ends_on_another_branch_does_not_apply(self, tree):
        grow(tree, 5)
        tree.append(said("x", "x"), "m2")
        tree.compact("main", "m1", "m4")

        assert shown(tree.context("m4")) == ["m0", "main"]
        assert shown(tree.context("x")) == ["m0", "m1", "m2", "x"]

    def test_branches_may_own_summaries_with_the_same_start(self, tree):
        grow(tree, 5)
        tree.append(said("x", "x"), "m2")
        tree.append(said("y", "y"), "x")
        tree.compact("main", "m1", "m3")
        tree.compact("side", "m1", "x")
        tree.compact("main again", "m1", "m4")

        assert shown(tree.context("m4")) == ["m0", "main again"]
        assert shown(tree.context("y")) == ["m0", "side", "y"]

    def test_reading_inside_a_range_shows_what_was_said(self, tree):
        grow(tree, 8)
        tree.compact("short", "m1", "m6")

        assert shown(tree.context("m3")) == ["m0", "m1", "m2", "m3"]
        tree.set_leaf("m4")
        assert shown(tree.context()) == ["m0", "m1", "m2", "m3", "m4"]
        tree.set_leaf("m7")
        assert shown(tree.context()) == ["m0", "short", "m7"]

    def test_a_deleted_end_puts_a_summary_out_of_use(self, tree):
        grow(tree, 8)
        tree.compact("older", "m1", "m3")
        tree.compact("newer", "m1", "m6")

        tree.delete(["m6"])

        assert shown(tree.context()) == ["m0", "older", "m4", "m5", "m7"]
        assert shown(tree.compactions()) == ["older", "newer"]
        tree.delete(["m1"])
        assert shown(tree.context()) == ["m0", "m2", "m3", "m4", "m5", "m7"]

    def test_a_deleted_message_within_a_range_changes_nothing_that_is_shown(self, tree):
        grow(tree, 8)
        tree.compact("short", "m1", "m6")

        tree.delete(["m3"])

        assert shown(tree.context()) == ["m0", "short", "m7"]
        assert len(tree) == 7

    def test_a_summary_may_cover_another(self, tree):
        grow(tree, 10)
        tree.compact("first", "m0", "m4")

        overlay = tree.compact("second", "m0", "m7")

        assert shown(tree.context()) == ["second", "m8", "m9"]
        assert overlay.covers.messages == 8

    def test_a_branch_may_start_inside_a_range(self, tree):
        grow(tree, 8)
        tree.compact("short", "m1", "m6")

        tree.append(said("x", "x"), "m3")

        assert shown(tree.context()) == ["m0", "m1", "m2", "m3", "x"]
        assert shown(tree.children("m3")) == ["m4", "x"]
        assert tree.leaves() == ["m7", "x"]
        assert shown(tree.context("m7")) == ["m0", "short", "m7"]

    @pytest.mark.parametrize(
        ("from_id", "to_id"),
        [("m2", "m1"), ("x", "m2"), ("m1", "x"), ("nowhere", "m1"), ("m1", "nowhere"), ("", "m1")],
    )
    def test_what_is_no_range_is_refused(self, tree, from_id, to_id):
        grow(tree, 3)
        tree.append(said("x", "x"), "m0")
        before = state_of(tree)

        with pytest.raises(InvalidCompaction):
            tree.compact("short", from_id, to_id)

        assert state_of(tree) == before

    def test_a_summary_is_no_message(self, tree):
        grow(tree, 3)
        overlay = tree.compact("short", "m0", "m1")
        shown_id = f"compaction_{overlay.id}"

        with pytest.raises(UnknownMessage):
            tree.get(shown_id)
        with pytest.raises(UnknownParent):
            tree.append(said("x"), shown_id)
        with pytest.raises(UnknownMessage):
            tree.context(shown_id)

    # -- taking back --

    def test_a_pop_gives_the_newest_message_and_moves_the_tip_before_it(self, tree):
        grow(tree, 3)

        assert tree.pop().id == "m2"

        assert shown(tree.context()) == ["m0", "m1"]
        assert shown(tree.children("m1")) == ["m2"]  # it is a branch now
        assert tree.append(said("x", "x")).entry.parent_id == "m1"

    def test_an_empty_session_has_nothing_to_pop(self, tree):
        assert tree.pop() is None
        grow(tree, 1)

        assert [tree.pop().id, tree.pop(), tree.leaf] == ["m0", None, None]

    def test_popping_a_summary_takes_back_its_whole_range(self, tree):
        grow(tree, 4)
        tree.compact("short", "m1", "m3")

        assert tree.pop().summary == "short"

        assert (tree.leaf, shown(tree.context())) == ("m0", ["m0"])

    def test_popping_what_follows_a_summary_leaves_the_summary(self, tree):
        grow(tree, 5)
        tree.compact("short", "m1", "m3")

        assert tree.pop().id == "m4"

        assert shown(tree.context()) == ["m0", "short"]

    def test_the_last_messages_are_replaced_on_a_new_branch(self, tree):
        grow(tree, 4)

        placed = tree.replace_tail(tree.tail(2), [said("x", "own"), said("y")])

        assert [result.entry.parent_id for result in placed] == ["m1", placed[0].entry.id]
        assert "own" not in shown(tree.context())  # ids are fresh
        assert shown(tree.context()) == ["m0", "m1", *(result.entry.id for result in placed)]
        assert shown(tree.path("m3")) == ["m0", "m1", "m2", "m3"]

    def test_everything_may_be_replaced_also_by_nothing(self, tree):
        grow(tree, 2)

        placed = tree.replace_tail(tree.context(), [said("x")])
        assert shown(tree.context()) == [placed[0].entry.id]

        assert tree.replace_tail(tree.context(), []) == []
        assert tree.leaf is None

    def test_a_whole_that_is_none_any_more_is_not_replaced(self, tree):
        assert tree.replace_tail([], [said("x")], all_of_it=True) is not None
        before = len(list(tree.log()))

        assert tree.replace_tail([], [said("y")], all_of_it=True) is None
        tree.append(said("z"))
        assert tree.replace_tail(tree.tail(1), [said("y")], all_of_it=True) is None

        assert len(list(tree.log())) == before + 1

    @pytest.mark.parametrize("some", [[], [said("x")], [said("x"), said("y")]])
    @pytest.mark.parametrize("kept", [0, 1])
    def test_what_stands_before_is_deleted_with_the_same_write(self, tree, some, kept):
        grow(tree, 5)

        placed = tree.replace_tail(tree.tail(2), some, without=["m0", "m1", "m2", "?"][kept:])

        expected = ["m0"][:kept] + [result.entry.id for result in placed]
        assert shown(tree.context()) == expected
        assert tree.leaf == (expected[-1] if expected else None)
        assert shown(tree.path("m4")) == [*["m0"][:kept], "m3", "m4"]
        tree.append(said("next", "next"))
        assert shown(tree.context()) == [*expected, "next"]
        assert tree.replace_tail([], [], without=["next"]) == []
        assert shown(tree.context()) == expected

    def test_what_has_changed_meanwhile_is_not_replaced(self, tree):
        grow(tree, 3)
        seen = tree.tail(2)
        changes = [
            lambda: tree.append(said("x", "x")),
            lambda: tree.set_leaf("m1"),
            lambda: tree.set_leaf("m2") or tree.update("m2", {"role": "user", "content": "new"}),
            lambda: tree.compact("short", "m1", "m2"),
        ]

        for change in changes:
            change()
            before = len(list(tree.log()))
            assert tree.replace_tail(seen, [said("y")], without=["m0"]) is None
            assert len(list(tree.log())) == before

    def test_a_summary_at_the_end_is_replaced_with_all_it_covers(self, tree):
        grow(tree, 4)
        tree.compact("short", "m1", "m2")

        (placed,) = tree.replace_tail(tree.tail(2), [said("x")])

        assert placed.entry.parent_id == "m0"
        assert shown(tree.context("m3")) == ["m0", "short", "m3"]

    def test_pops_are_undone_one_by_one(self, tree):
        grow(tree, 3)
        tree.pop()
        tree.pop()

        for expected in (["m0", "m1"], ["m0", "m1", "m2"]):
            assert tree.undo() is True
            assert shown(tree.context()) == expected
        assert tree.undo() is False

    def test_a_switch_is_undone_and_a_pop_after_it_is_no_undoing(self, tree):
        grow(tree, 3)
        tree.set_leaf("m1")
        tree.set_leaf("m2")
        tree.pop()

        tips = []
        while tree.undo():
            tips.append(tree.leaf)
        assert tips == ["m2", "m1", "m2"]

    def test_nothing_is_undone_after_something_was_appended(self, tree):
        grow(tree, 2)
        tree.pop()
        tree.append(said("x", "x"))

        assert tree.undo() is False
        assert shown(tree.context()) == ["m0", "x"]

    def test_a_clear_is_undone_with_branches_summaries_and_labels(self, tree):
        grow(tree, 5)
        tree.append(said("side", "side"), parent="m0")
        tree.compact("short", "m1", "m3")
        tree.label("m4", "good")
        tree.update("m4", {"role": "user", "content": "new"})
        tree.set_leaf("m4")
        before = (shown(tree.context()), tree.leaves(), tree.labels(), len(tree), tree.leaf)
        tree.clear()

        assert tree.undo() is True

        after = (shown(tree.context()), tree.leaves(), tree.labels(), len(tree), tree.leaf)
        assert after == before
        assert tree.get("m4").message["content"] == "new"
        assert shown(tree.path("side")) == ["m0", "side"]
        assert tree.undo() is False

    def test_a_pop_and_then_a_clear_are_undone_in_turn(self, tree):
        grow(tree, 2)
        tree.pop()
        tree.clear()

        assert tree.undo() is True
        assert shown(tree.context()) == ["m0"]
        assert tree.leaves() == ["m1"]  # the popped one is back as the branch it was

    def test_an_empty_session_has_nothing_to_undo(self, tree):
        assert tree.undo() is False

    # -- bookmarks, facts, sums --

    def test_a_label_is_set_replaced_and_taken_away(self, tree):
        grow(tree, 3)

        tree.label("m0", "good")
        tree.label("m1", "bad")
        tree.label("m0", "better")
        assert tree.labels() == {"m0": "better", "m1": "bad"}

        tree.label("m1", None)
        assert tree.labels() == {"m0": "better"}

    def test_the_same_label_again_writes_nothing(self, tree):
        grow(tree, 1)
        tree.label("m0", "good")
        before = state_of(tree)

        tree.label("m0", "good")

        assert state_of(tree) == before

    def test_a_label_needs_a_message(self, tree):
        grow(tree, 1)
        before = state_of(tree)

        with pytest.raises(UnknownMessage):
            tree.label("nowhere", "good")

        assert state_of(tree) == before

    def test_a_message_that_a_summary_hides_may_have_a_label(self, tree):
        grow(tree, 5)
        tree.label("m1", "before")
        tree.compact("short", "m0", "m3")

        tree.label("m2", "after")

        assert tree.labels() == {"m1": "before", "m2": "after"}

    def test_the_newest_value_of_a_fact_wins_and_none_clears_it(self, tree):
        tree.annotate(name="one", model="m", tags=["b", "a", "b"])

        assert tree.annotate(name="two", model=None) is True

        assert tree.facts() == {"name": "two", "tags": ["a", "b"]}

    def test_facts_that_do_not_change_write_nothing(self, tree):
        tree.annotate(name="one", tags=["a"])
        before = state_of(tree)

        assert tree.annotate(name="one", tags=["a", "a"], model=None) is False

        assert state_of(tree) == before

    def test_usage_is_summed(self, tree):
        tree.add_usage(input_tokens=5, output_tokens=2, cost=0.25)
        tree.add_usage(input_tokens=1, cost=1)
        tree.add_usage()

        info = tree.info()
        assert (info.input_tokens, info.output_tokens, info.estimated_cost) == (6, 2, 1.25)

    def test_what_extensions_store_never_reaches_the_model(self, tree):
        grow(tree, 2)

        entry = tree.add_custom("mine", {"x": [1]})

        assert shown(tree.context()) == ["m0", "m1"]
        assert entry.id in [one.id for one in tree.log()]

    # -- the session as a whole --

    def test_what_lists_show_of_a_session(self, tree):
        tree.append(said("  hello\n\nthere ", "m0"))
        tree.append(said("hi", "m1", role="assistant"))
        tree.label("m1", "good")
        tree.annotate(model="gpt", end_reason="done", tags=["b", "a"])

        info = tree.info()

        assert (info.id, info.name, info.summary) == (tree.id, tree.id, "hello there")
        assert (info.message_count, info.model, info.end_reason) == (2, "gpt", "done")
        assert (info.tags, dict(info.labels)) == (("a", "b"), {"m1": "good"})
        log = [entry.timestamp for entry in tree.log()]
        assert (info.created_at, info.updated_at) == (log[0], log[-1])

    def test_the_first_text_of_a_user_stays_the_summary_when_it_is_compacted(self, tree):
        grow(tree, 6)

        tree.compact("short", "m0", "m4")

        assert tree.info().summary == "text 0"

    def test_entries_are_in_the_order_of_their_times(self, tree):
        grow(tree, 3)
        tree.label("m0", "x")
        tree.extend([said("a"), said("b")])
        tree.delete(["m1"])

        log = list(tree.log())

        assert [entry.timestamp for entry in log] == sorted({entry.timestamp for entry in log})
        assert log[0].type == "session"

    def test_the_header_comes_first_and_once(self, tree):
        assert tree.start(parent_session="old") is True
        grow(tree, 2)
        assert tree.start() is False

        assert [entry.type for entry in tree.log()] == ["session", "message", "message"]
        assert tree.header().parent_session == "old"
        assert tree.info().parent_session_id == "old"

    def test_unknown_messages_are_named(self, tree):
        grow(tree, 1)

        for ask in (tree.get, tree.path, tree.context):
            with pytest.raises(UnknownMessage, match="nowhere"):
                ask("nowhere")
        assert tree.children("nowhere") == []

    def test_an_author_stands_beside_the_message(self, tree):
        tree.append(said("one", "m0"), author="alice")
        tree.append(said("two", "m1"))

        assert [entry.author for entry in tree.path()] == ["alice", None]
