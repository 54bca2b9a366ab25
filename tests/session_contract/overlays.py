"""Overlays: summaries that stand in for ranges of messages."""

from __future__ import annotations

import pytest

from session_contract.talk import (
    AsyncTests,
    fill,
    m,
    says,
    shown,
)
from workspace_session import (
    Compaction,
    InvalidCompaction,
    Session,
)


class OverlayContract(AsyncTests):
    async def test_a_summary_stands_in_for_its_range(self, session):
        await fill(session, 4)

        overlay = await session.add_compaction("what was said", "m1", "m2")

        assert isinstance(overlay, Compaction)
        assert (overlay.from_message_id, overlay.to_message_id) == ("m1", "m2")
        assert (await session.get_history())[1] == {
            "id": f"compaction_{overlay.id}",
            "role": "assistant",
            "parts": [{"type": "text", "text": "what was said"}],
            "createdAt": overlay.created_at,
        }

    async def test_hidden_messages_stay_as_they_are(self, session):
        await fill(session, 4)
        before = [await session.get_message(name) for name in m(0, 3)]

        await session.add_compaction("sum", "m0", "m2")

        assert [await session.get_message(name) for name in m(0, 3)] == before

    async def test_overlays_survive_the_object(self, store, session):
        await fill(session, 4)
        overlay = await session.add_compaction("sum", "m1", "m2")

        again = Session(store, session_id="s")

        assert await again.get_compactions() == [overlay]
        assert await shown(again) == ["m0", "S(sum)", "m3"]

    async def test_all_overlays_are_told_in_the_order_of_their_making(self, session):
        await fill(session, 10)
        made = [
            await session.add_compaction("one", "m3", "m5"),
            await session.add_compaction("two", "m1", "m7"),
            await session.add_compaction("three", "m1", "m2"),
        ]

        assert await session.get_compactions() == made
        assert len({overlay.id for overlay in made}) == 3
        assert sorted(overlay.created_at for overlay in made) == [o.created_at for o in made]

    @pytest.mark.parametrize(
        ("from_id", "to_id"),
        [("nobody", "m1"), ("m1", "nobody"), ("m2", "m1"), ("b", "m2"), ("m1", "b"), ("", "")],
    )
    async def test_a_range_that_is_no_stretch_of_a_branch_is_refused(self, session, from_id, to_id):
        await fill(session, 3)
        await session.append_message(says("b"), "m0")

        with pytest.raises(InvalidCompaction):
            await session.add_compaction("sum", from_id, to_id)

        assert await session.get_compactions() == []

    async def test_a_summary_is_no_end_of_a_range(self, session):
        await fill(session, 4)
        overlay = await session.add_compaction("sum", "m0", "m1")

        with pytest.raises(InvalidCompaction):
            await session.add_compaction("more", f"compaction_{overlay.id}", "m2")

    async def test_a_branch_that_is_not_active_can_be_summarised(self, session):
        await fill(session, 3)
        await session.append_message(says("b"), "m0")

        await session.add_compaction("sum", "m1", "m2")

        assert await shown(session, "m2") == ["m0", "S(sum)"]
        assert await shown(session) == ["m0", "b"]

    async def test_a_hidden_range_can_be_summarised_again(self, session):
        await fill(session, 8)
        await session.add_compaction("first", "m1", "m5")

        await session.add_compaction("inner", "m2", "m4")
        assert await shown(session) == ["m0", "S(first)", "m6", "m7"]

        await session.add_compaction("wider", "m0", "m6")
        assert await shown(session) == ["S(wider)", "m7"]

    @pytest.mark.parametrize(
        ("ranges", "wanted"),
        [
            pytest.param(
                [("A", 1, 5), ("B", 3, 8)], ["m0", "S(A)", *m(6, 9)], id="the leftmost start wins"
            ),
            pytest.param(
                [("A", 1, 7), ("B", 1, 3)],
                ["m0", "S(B)", *m(4, 9)],
                id="of the same start the newest wins, even if narrower",
            ),
            pytest.param(
                [("A", 3, 5), ("B", 1, 7)],
                ["m0", "S(B)", "m8", "m9"],
                id="a newer one that starts earlier and covers an older one hides it",
            ),
            pytest.param(
                [("A", 6, 7), ("B", 1, 2), ("C", 3, 4)],
                ["m0", "S(B)", "S(C)", "m5", "S(A)", "m8", "m9"],
                id="disjoint ones all apply",
            ),
            pytest.param(
                [("A", 4, 4)], [*m(0, 3), "S(A)", *m(5, 9)], id="one message may be a range"
            ),
            pytest.param([("A", 0, 9)], ["S(A)"], id="all messages may be a range"),
        ],
    )
    async def test_overlays_are_selected(self, session, ranges, wanted):
        await fill(session, 10)

        for summary, first, last in ranges:
            await session.add_compaction(summary, f"m{first}", f"m{last}")

        assert await shown(session) == wanted

    async def test_branches_with_overlays_of_the_same_start_see_their_own(self, session):
        await fill(session, 4)
        await session.append_message(says("b2"), "m1")
        await session.append_message(says("b3"), "b2")
        await session.add_compaction("ours", "m1", "m2")
        await session.add_compaction("theirs", "m1", "b2")

        assert await shown(session, "m3") == ["m0", "S(ours)", "m3"]
        assert await shown(session, "b3") == ["m0", "S(theirs)", "b3"]
        assert await shown(session, "m1") == ["m0", "m1"]

    async def test_a_leaf_inside_a_range_shows_what_was_said(self, session):
        await fill(session, 5)
        await session.add_compaction("sum", "m1", "m3")

        assert await shown(session, "m2") == ["m0", "m1", "m2"]
        assert await shown(session, "m3") == ["m0", "S(sum)"]

    async def test_the_tip_can_be_moved_inside_a_range(self, session):
        await fill(session, 5)
        await session.add_compaction("sum", "m1", "m3")

        await session.set_leaf("m2")
        assert await shown(session) == ["m0", "m1", "m2"]

        await session.append_message(says("b"))
        assert await shown(session) == ["m0", "m1", "m2", "b"]
        assert await shown(session, "m4") == ["m0", "S(sum)", "m4"]

    async def test_storing_an_overlay_leaves_the_prompt(self, store):
        session = Session(store, session_id="s", context=[{"label": "memory"}])
        await fill(session, 2)
        prompt = await session.freeze_system_prompt()
        await session.replace_context_block("memory", "tea")

        await session.add_compaction("sum", "m0", "m0")

        assert await session.freeze_system_prompt() == prompt
