"""Reading: histories, branches, sizes, the recent end."""

from __future__ import annotations

import json

import pytest

from session_contract.talk import (
    AsyncTests,
    children,
    fill,
    m,
    names,
    says,
    shown,
)
from workspace_session import (
    RecentHistory,
    RowStat,
)


def size(message):
    return len(json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode())


def dated(number, text="hello world"):
    return says(f"m{number}", text, createdAt=f"2026-01-01T00:00:{number:02d}.000000Z")


class ReadingContract(AsyncTests):
    @pytest.mark.parametrize("unknown", ["nobody", "", "compaction_x"])
    async def test_a_message_that_is_not_there_is_none(self, session, unknown):
        await fill(session, 1)

        assert await session.get_message(unknown) is None

    async def test_a_summary_cannot_be_fetched(self, session):
        await fill(session, 2)
        overlay = await session.add_compaction("sum", "m0", "m0")

        assert await session.get_message(f"compaction_{overlay.id}") is None

    @pytest.mark.parametrize("latest", [None, ""])
    async def test_none_and_the_empty_text_mean_the_latest_leaf(self, session, latest):
        await fill(session, 3)

        assert await shown(session, latest) == ["m0", "m1", "m2"]
        assert await session.get_path_length(latest) == 3

    async def test_an_unknown_leaf_has_no_history(self, session):
        await fill(session, 3)

        assert await session.get_history("nobody") == []
        assert await session.get_path_length("nobody") == 0

    async def test_any_message_may_be_the_leaf(self, session):
        await fill(session, 4)

        assert await shown(session, "m1") == ["m0", "m1"]
        assert await session.get_path_length("m1") == 2

    async def test_history_is_told_without_mending_tool_calls(self, session):
        call = {"type": "tool-x", "toolCallId": "c", "input": {}}
        await session.append_message({"id": "m0", "role": "assistant", "parts": [call]})
        await session.append_message(says("m1"))

        assert await shown(session) == ["m0", "m1"]
        mended = await session.get_history(sanitize_tools=True)
        assert names(mended) == ["m0", "stub-c", "m1"]
        assert await shown(session) == ["m0", "m1"]

    async def test_branches_are_direct_children_in_the_order_of_appending(self, session):
        await fill(session, 1)
        for name in ("b", "a", "c"):
            await session.append_message(says(name), "m0")
        await session.append_message(says("below"), "b")

        assert await children(session, "m0") == ["b", "a", "c"]
        assert await children(session, "c") == []
        assert await session.get_branches("nobody") == []

    async def test_branches_of_none_are_the_roots(self, session):
        assert await session.get_branches(None) == []
        await fill(session, 2)
        await session.append_message(says("r"), None)

        assert await children(session, None) == ["m0", "r"]

    async def test_branches_are_told_behind_a_summary(self, session):
        await fill(session, 5)
        await session.add_compaction("sum", "m0", "m3")

        assert await children(session, "m1") == ["m2"]
        assert await children(session, None) == ["m0"]

    async def test_a_path_is_as_long_as_it_was_said(self, session):
        await fill(session, 5)
        await session.add_compaction("sum", "m0", "m3")

        assert await session.get_path_length() == 5

    async def test_row_stats_tell_role_and_size_of_the_raw_path(self, session):
        messages = [dated(0, "用户"), dated(1), dated(2)]
        for message in messages:
            await session.append_message(message)
        await session.append_message(says("b", createdAt="2026-01-01T00:00:09.000000Z"), "m1")
        await session.set_leaf("m2")
        await session.add_compaction("sum", "m0", "m1")

        assert await session.get_history_row_stats() == [
            RowStat(message["id"], "user", size(message)) for message in messages
        ]

    async def test_an_empty_session_has_no_rows(self, session):
        assert await session.get_history_row_stats() == []

    # -- the recent end --

    async def recent(self, session, budget, *more):
        found = await session.get_recent_history(budget, *more)
        assert isinstance(found, RecentHistory)
        return names(found.messages), found.truncated, found.total_content_bytes

    async def test_the_recent_end_is_the_longest_that_fits(self, session):
        for number in range(4):
            await session.append_message(dated(number))
        one = size(dated(0))

        assert await self.recent(session, 4 * one) == (m(0, 3), False, 4 * one)
        assert await self.recent(session, 4 * one - 1) == (m(1, 3), True, 4 * one)
        assert await self.recent(session, 2 * one) == (m(2, 3), True, 4 * one)

    @pytest.mark.parametrize("budget", [0, 1, -5])
    async def test_the_leaf_is_always_in_the_recent_end(self, session, budget):
        await fill(session, 3)

        assert (await self.recent(session, budget))[:2] == (["m2"], True)

    @pytest.mark.parametrize(
        ("least", "wanted"), [(2, 2), (2.9, 2), (0, 1), (-3, 1), (0.5, 1), (99, 3)]
    )
    async def test_so_many_are_in_it_whatever_they_weigh(self, session, least, wanted):
        await fill(session, 3)

        assert (await self.recent(session, 0, least))[0] == m(3 - wanted, 2)

    async def test_the_recent_end_of_nothing_is_nothing(self, session):
        assert await self.recent(session, 100) == ([], False, 0)

    async def test_overlays_apply_inside_the_recent_end_only(self, session):
        await fill(session, 6)
        await session.add_compaction("early", "m0", "m3")
        await session.add_compaction("late", "m4", "m4")

        assert (await self.recent(session, 0, 4))[0] == ["m2", "m3", "S(late)", "m5"]
        assert (await self.recent(session, 10**6))[0] == ["S(early)", "S(late)", "m5"]

    async def test_the_recent_end_is_that_of_the_active_branch(self, session):
        await fill(session, 3)
        await session.append_message(says("b"), "m0")

        assert (await self.recent(session, 10**6))[0] == ["m0", "b"]
