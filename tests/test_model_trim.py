"""A trimmed working set shows what the whole log shows, now and after whatever comes later."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from logs import (
    ALL_IDS,
    Writer,
    answers,
    chain,
    compaction,
    entries_of,
    logs,
    message,
    shown,
    wire,
)

from workspace_session.model.info import member
from workspace_session.model.lines import decode
from workspace_session.model.tree import NeedsLog, Tree
from workspace_session.model.trim import plan

ALWAYS = {"tip", "context", "len", "labels", "facts", "spent", "newest", "created", "first text"}


def trimmed(tree: Tree) -> Tree:
    """The tree of what trimming would leave in the file, read back from its lines."""
    if tree.orphans():  # then nothing is trimmed: a parent that comes yet would move it
        return Tree.of(tree.entries)
    found = plan(tree)
    kept = [decode(entry.line) for entry in found.kept]
    return Tree.of(kept, decode(found.trim.line))


def assert_same(partial: Tree, full: Tree) -> None:
    expected, given_answers = answers(full, ALL_IDS), answers(partial, ALL_IDS)
    assert given_answers == {question: expected[question] for question in given_answers}
    assert given_answers.keys() >= ALWAYS
    assert member(partial, 0) == member(full, 0)


@given(logs())
def test_a_trimmed_tree_answers_as_the_full_one_or_leaves_it_to_the_log(wires):
    full = Tree.of(entries_of(wires))

    partial = trimmed(full)

    assert_same(partial, full)


@given(logs(wild=True))
def test_so_it_does_when_the_log_holds_entries_that_point_nowhere(wires):
    full = Tree.of(entries_of(wires))

    partial = trimmed(full)

    assert_same(partial, full)


@given(logs())
def test_every_head_reads_the_same_without_the_log(wires):
    full = Tree.of(entries_of(wires))

    partial = trimmed(full)

    for head in full.heads():
        assert shown(partial.context(head)) == shown(full.context(head))


@given(st.data(), st.booleans())
def test_later_entries_mean_the_same_to_a_trimmed_tree(data, wild):
    draw = data.draw
    writer = Writer(draw, wild=wild, repeats=False)
    for _ in range(draw(st.integers(1, 15))):
        writer.step()
    partial = trimmed(writer.tree)
    for _ in range(draw(st.integers(1, 5))):
        writer.step()
        try:
            partial.add(entries_of(writer.wires[-1:]))
        except NeedsLog:
            partial = trimmed(writer.tree)
        assert_same(partial, writer.tree)


@given(st.data())
def test_trimming_what_was_trimmed_before_loses_nothing(data):
    writer = Writer(data.draw, wild=False)
    partial = trimmed(writer.tree)
    for _ in range(data.draw(st.integers(1, 20))):
        writer.step()
        try:
            partial.add(entries_of(writer.wires[-1:]))
            partial = trimmed(partial)
        except NeedsLog:
            partial = trimmed(writer.tree)
        assert_same(partial, writer.tree)


def test_what_a_summary_hides_on_every_branch_is_left_out():
    full = Tree.of(entries_of([*chain(6), compaction(20, "m1", "m4", "m0")]))

    found = plan(full)

    assert [entry.id for entry in found.kept] == ["s", "m0", "m5", "e20"]
    assert found.trim.hidden == 4


def test_what_a_branch_still_shows_is_kept():
    wires = [*chain(6), message(10, "x", "m2"), compaction(20, "m1", "m4", "m0")]

    found = plan(Tree.of(entries_of(wires)))

    assert [entry.id for entry in found.kept] == ["s", "m0", "m1", "m2", "m5", "x", "e20"]


def test_a_superseded_summary_is_left_out_and_the_newest_is_kept():
    wires = [*chain(6), compaction(20, "m1", "m3", "m0"), compaction(21, "m1", "m4", "m0")]

    found = plan(Tree.of(entries_of(wires)))

    assert [entry.id for entry in found.kept] == ["s", "m0", "m5", "e21"]


def followed(wires: list[dict], *later: dict) -> tuple[Tree, Tree]:
    """The full tree and one that was trimmed, both after later entries came."""
    full = Tree.of(entries_of(wires))
    partial = trimmed(full)
    for one in later:
        full.add(entries_of([one]))
        try:
            partial.add(entries_of([one]))
        except NeedsLog:
            partial = trimmed(full)
    return full, partial


def test_a_narrower_newer_summary_shows_messages_again_that_were_trimmed():
    full, partial = followed(
        [*chain(6), compaction(20, "m1", "m4", "m0")], compaction(21, "m1", "m2", "m0")
    )

    assert shown(partial.context(partial.tip)) == ["m0", "S21", "m3", "m4", "m5"]
    assert_same(partial, full)


def test_so_it_does_where_two_branches_have_summaries_with_the_same_start():
    branches = [*chain(1), message(2, "m1", "m0"), message(3, "m2", "m0")]
    summaries = [compaction(4, "m0", "m0"), compaction(5, "m0", "m1")]

    full, partial = followed([*branches, *summaries], compaction(6, "m0", "m0"))

    assert shown(partial.context("m1")) == ["S6", "m1"]
    assert_same(partial, full)


def test_a_message_inside_a_range_is_no_leaf_because_its_children_were_trimmed():
    wires = [*chain(6), compaction(20, "m1", "m4", "m0"), wire(21, "leaf", targetId="m2")]
    full, partial = followed(wires)

    assert_same(partial, full)


def test_an_id_that_is_used_again_after_a_clear_hangs_where_its_new_line_says():
    moved = [*chain(2), wire(5, "delete", targetIds=["m0"])]

    full, partial = followed(moved, wire(6, "clear"), message(7, "x", None), message(8, "m1", "x"))

    assert shown(partial.path("m1")) == ["x", "m1"]
    assert_same(partial, full)


def test_an_update_may_make_a_message_the_first_that_a_user_said():
    silent = message(1, "m0", None, role="user", parts=[])
    said = message(2, "m1", "m0")
    text = {"role": "user", "parts": [{"type": "text", "text": "now first"}]}

    full, partial = followed(
        [silent, said, message(3, "m2", "m0"), compaction(4, "m1", "m1", "m0")],
        wire(5, "update", targetId="m0", message=text),
    )

    assert partial.first_user_text() == "now first"
    assert_same(partial, full)


def test_a_label_on_a_message_that_was_deleted_has_no_effect():
    wires = [*chain(3), wire(5, "delete", targetIds=["m1"]), compaction(6, "m0", "m2")]

    full, partial = followed(wires, wire(7, "label", targetId="m1", label="late"))

    assert partial.labels() == {}
    assert_same(partial, full)


def test_two_tools_that_know_nothing_of_each_other_are_kept_whole():
    other = wire(9, "hologram", colour="blue", nested={"a": [1, {"b": None}]})
    custom = wire(10, "custom", customType="x", data=[1])
    full = Tree.of(entries_of([*chain(3), other, custom, compaction(20, "m0", "m2")]))

    found = plan(full)

    assert [entry.id for entry in found.kept] == ["s", "e9", "e10", "e20"]
