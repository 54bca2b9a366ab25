"""The outline: what a drawing and an export show of a session, and where."""

from __future__ import annotations

from workspace_session.model.outline import outline, rows


def said(text: str) -> dict:
    return {"role": "user", "content": text}


def order(found) -> list[tuple[int, str]]:
    return [(row.depth, row.entry.id) for row in rows(found)]


def test_a_summary_of_another_branch_hides_nothing_that_the_active_one_shows(tree):
    for name in ("one", "two", "side"):
        tree.append({"id": name, **said(name)})
    tree.compact("the side", "one", "side")
    tree.append({"id": "main", **said("main")}, parent="two")

    found = tree.whole(outline)

    (summary,) = tree.compactions()
    assert found.hidden == {"side": summary.id}
    assert found.summaries == {"side": summary}
    assert order(found) == [(0, "one"), (0, "two"), (1, "side"), (0, "main")]


def test_a_summary_that_a_deletion_put_out_of_use_hides_nothing_that_came_again(tree):
    for name in ("one", "two", "three"):
        tree.append({"id": name, **said(name)})
    tree.compact("gone", "one", "two")
    tree.delete(["two"])
    tree.append({"id": "two", **said("another")}, parent="one")

    found = tree.whole(outline)

    assert found.hidden == {}
    assert found.summaries == {}


def test_what_hangs_from_a_range_that_was_lost_stands_behind_its_summary(tree, agent):
    ids = [tree.append({"id": f"m{number}", **said("x" * 3000)}).entry.id for number in range(40)]
    summary = tree.compact("the beginning", ids[0], ids[-1])
    tree.append({"id": "on", **said("and on")})
    tree.trim()
    agent.place.log("s").unlink()

    found = agent.tree("s").whole(outline)

    assert order(found) == [(0, "on")]
    assert found.summaries["on"].id == summary.id
    assert found.parents == {"on": None}
