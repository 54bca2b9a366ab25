"""What a set of entries means, whatever order they came in."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st
from logs import ALL_IDS, answers, chain, compaction, entries_of, header, logs, message, shown, wire
from naive import NaiveSession

from workspace_session.model.tree import Tree


def tree_of(wires: list[dict]) -> Tree:
    return Tree.of(entries_of(wires))


# -- order -----------------------------------------------------------------------------------------


@given(logs() | logs(wild=True), st.randoms(use_true_random=False))
def test_the_order_of_lines_does_not_matter(wires, rng):
    shuffled = list(wires)
    rng.shuffle(shuffled)

    assert answers(tree_of(shuffled), ALL_IDS) == answers(tree_of(wires), ALL_IDS)


@given(logs() | logs(wild=True), st.randoms(use_true_random=False), st.integers(1, 6))
def test_nor_does_it_whether_they_come_at_once_or_in_pieces(wires, rng, size):
    shuffled = entries_of(wires)
    rng.shuffle(shuffled)
    tree = Tree()

    for start in range(0, len(shuffled), size):
        tree.add(shuffled[start : start + size])
        answers(tree, ALL_IDS)  # which changes nothing, whatever is remembered of it

    assert answers(tree, ALL_IDS) == answers(tree_of(wires), ALL_IDS)


@given(logs(wild=True))
def test_lines_that_are_there_twice_count_once(wires):
    doubled = tree_of([*wires, *wires])

    assert answers(doubled, ALL_IDS) == answers(tree_of(wires), ALL_IDS)
    assert len(doubled.entries) == len(wires)


@given(logs(wild=True))
def test_whatever_a_log_holds_every_message_hangs_from_a_root(wires):
    tree = tree_of(wires)

    paths = [[node.id for node in tree.path(one)] for one in ALL_IDS if one in tree]

    assert all(len(path) == len(set(path)) for path in paths)
    assert len(paths) == len(tree)
    assert {one for leaf in tree.leaves() for one in shown(tree.path(leaf))} == {
        path[-1] for path in paths
    }


# -- against the naive session -----------------------------------------------------------------------


@given(logs())
def test_the_tree_shows_what_the_naive_session_shows(wires):
    tree, naive = tree_of(wires), replayed(wires)

    assert tree.tip == naive.tip
    assert shown(tree.context(tree.tip)) == naive_context(naive, naive.tip)
    assert tree.leaves() == naive.leaves()
    assert tree.labels() == naive.labels
    assert tree.facts() == naive.facts
    assert list(tree.spent) == naive.usage
    for one in naive.parents:
        assert shown(tree.path(one)) == naive.path(one)
        assert shown(tree.context(one)) == naive_context(naive, one)
        assert shown(tree.children(one)) == naive.children(one)


def naive_context(naive: NaiveSession, leaf: str | None) -> list[str]:
    return [item.removeprefix("summary:") for item in naive.context(leaf)]


def replayed(wires: list[dict]) -> NaiveSession:
    naive = NaiveSession()
    for one in wires:
        match one["type"]:
            case "message":
                naive.append(one["id"], one["message"], one["parentId"])
            case "update":
                naive.update(one["targetId"], one["message"])
            case "purge":
                naive.purge(one["targetId"])
            case "delete":
                naive.delete(one["targetIds"])
            case "clear":
                naive.clear()
            case "leaf":
                naive.set_leaf(one["targetId"])
            case "compaction":
                naive.compact(one["summary"], one["fromId"], one["toId"])
            case "label":
                naive.label(one["targetId"], one["label"])
            case "info":
                facts = {name: one[name] for name in ("name", "summary", "model") if name in one}
                naive.annotate(facts)
            case "usage":
                naive.add_usage(one["inputTokens"], one["outputTokens"], one["cost"])
    return naive


# -- what is not as it should be ---------------------------------------------------------------------


def test_a_message_whose_parent_is_nowhere_is_a_root_and_an_orphan():
    tree = tree_of([header(), message(1, "m1", "lost")])

    assert shown(tree.children(None)) == ["m1"]
    assert shown(tree.orphans()) == ["m1"]


def test_an_orphan_finds_its_parent_when_that_comes():
    tree = tree_of([header(), message(2, "m1", "m0")])

    tree.add(entries_of([message(1, "m0", None)]))

    assert shown(tree.path("m1")) == ["m0", "m1"]
    assert tree.orphans() == []


def test_a_path_that_was_read_before_its_beginning_came_is_read_anew():
    late, *rest = entries_of(
        [message(5, "m0", None), message(1, "m1", "m0"), message(2, "m2", "m1")]
    )
    tree = Tree.of(rest)
    assert shown(tree.path("m2")) == ["m1", "m2"]

    tree.add([late])

    assert shown(tree.path("m2")) == ["m0", "m1", "m2"]


def test_what_a_path_was_given_as_is_the_callers_own():
    tree = tree_of(chain(3))
    tree.path("m2").clear()

    assert shown(tree.path("m2")) == ["m0", "m1", "m2"]


def test_a_cycle_is_cut_at_its_newest_edge():
    tree = tree_of(
        [header(), message(1, "m1", "m3"), message(2, "m2", "m1"), message(3, "m3", "m2")]
    )

    assert shown(tree.path("m2")) == ["m3", "m1", "m2"]
    assert tree.cycles == {"m3"}


def test_a_message_that_names_itself_as_its_parent_is_a_root():
    tree = tree_of([header(), message(1, "m1", "m1")])

    assert shown(tree.path("m1")) == ["m1"]
    assert tree.cycles == {"m1"}


def test_of_two_messages_with_one_id_the_older_stays():
    first = message(1, "m1", None, text="first")
    second = message(2, "m1", None, text="second")

    tree = tree_of([header(), second, first])

    assert tree.get("m1").message == {"text": "first"}
    assert len(tree) == 1


def test_a_message_may_have_the_id_of_its_session_or_of_another_entry():
    wires = [header(session_id="s"), message(1, "s", None), wire(2, "info", name="x")]

    tree = tree_of([*wires, message(3, "e2", "s")])

    assert shown(tree.path("e2")) == ["s", "e2"]
    assert tree.facts() == {"name": "x"}


def test_entries_that_speak_of_nothing_change_nothing_and_are_named():
    strange = [
        wire(5, "update", targetId="x", message={}),
        wire(6, "delete", targetIds=["x"]),
        wire(7, "leaf", targetId="x"),
        wire(8, "label", targetId="x", label="y"),
        compaction(9, "x", "m1"),
    ]

    tree = tree_of([*chain(3), *strange])

    assert shown(tree.context(tree.tip)) == ["m0", "m1", "m2"]
    assert [entry.id for entry in tree.dangling_targets] == ["e5", "e6", "e7", "e8", "e9"]


def test_speaking_of_a_message_that_was_deleted_is_nothing_strange():
    wires = [
        *chain(3),
        wire(5, "delete", targetIds=["m1"]),
        wire(6, "label", targetId="m1", label="x"),
    ]

    tree = tree_of([*wires, message(7, "m3", "m1"), wire(8, "leaf", targetId="m1")])

    assert tree.dangling_targets == []
    assert tree.orphans() == []
    assert shown(tree.path("m3")) == ["m0", "m3"]
    assert tree.tip == "m0"


def test_a_message_under_one_that_was_cleared_is_a_root():
    tree = tree_of([*chain(3), wire(5, "clear"), message(6, "x", "m1")])

    assert shown(tree.path("x")) == ["x"]
    assert tree.orphans() == []


def test_another_message_of_a_deleted_id_is_not_hidden_by_the_summary_of_the_first():
    wires = [*chain(2), compaction(5, "m1", "m1", "m0"), wire(6, "delete", targetIds=["m1"])]

    tree = tree_of([*wires, message(7, "m1", "m0")])

    assert shown(tree.context(tree.tip)) == ["m0", "m1"]


# -- size ------------------------------------------------------------------------------------------


def test_a_chain_of_a_hundred_thousand_is_ordinary():
    length = 100_000
    wires = chain(100)
    template = entries_of(wires)[-1]
    tree = Tree.of(entries_of(wires)[:1])
    chained = [
        type(template)(
            id=f"m{n}",
            timestamp=f"2026-05-15T08:00:00.{n:06d}Z",
            line=template.line,
            parent_id=f"m{n - 1}" if n else None,
        )
        for n in range(length)
    ]
    random.Random(1).shuffle(chained)

    tree.add(chained)
    tree.add(entries_of([wire(1, "delete", targetIds=[f"m{n}" for n in range(1, length - 1)])]))

    assert shown(tree.path(tree.tip)) == ["m0", f"m{length - 1}"]
