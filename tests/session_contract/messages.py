"""Messages and the tree they form."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest

from session_contract.talk import (
    AsyncTests,
    Heard,
    children,
    compacting,
    fill,
    says,
    shown,
)
from workspace_session import (
    LATEST,
    AppendResult,
    InvalidMessage,
    Session,
    SessionManager,
    UnknownMessage,
    UnknownParent,
    apply_overlays,
)

INVALID = {
    "no object": ["m0"],
    "no role": {"id": "m0", "parts": []},
    "an empty role": {"id": "m0", "role": "", "parts": []},
    "a role that is no text": {"id": "m0", "role": 7, "parts": []},
    "an empty id": {"id": "", "role": "user", "parts": []},
    "an id that is no text": {"id": 7, "role": "user", "parts": []},
    "an id that is null": {"id": None, "role": "user", "parts": []},
    "the id of a summary": {"id": "compaction_1", "role": "user", "parts": []},
    "no parts": {"id": "m0", "role": "user"},
    "parts that are no list": {"id": "m0", "role": "user", "parts": {}},
    "a set": {"id": "m0", "role": "user", "parts": [], "tags": {"a"}},
    "bytes": {"id": "m0", "role": "user", "parts": [{"type": "file", "data": b"x"}]},
    "a number that is none": {"id": "m0", "role": "user", "parts": [], "score": math.nan},
    "a key that is no text": {"id": "m0", "role": "user", "parts": [], 1: "x"},
}


class MessageContract(AsyncTests):
    # -- messages --

    async def test_what_goes_in_comes_out(self, session):
        message = {
            "id": "m0",
            "role": "a role of my own",
            "parts": [
                {"type": "text", "text": "żółw\n\u2028 😀 \x00", "own": {"a": [1, None, 2.5]}},
                {"type": "tool-x", "toolCallId": "c", "input": {}, "output": False, "state": "s"},
            ],
            "createdAt": "2020-01-01T00:00:00Z",
            "metadata": {"big": 2**70, "empty": "", "zero": 0, "none": None},
        }

        await session.append_message(message)

        assert await session.get_message("m0") == message
        assert await session.get_history() == [message]
        assert await session.get_latest_leaf() == message

    async def test_what_is_done_to_a_message_later_is_not_stored(self, session):
        message = says("m0")
        result = await session.append_message(message)

        message["parts"].clear()
        result.message["parts"].clear()
        (await session.get_history())[0]["parts"].clear()

        assert (await session.get_message("m0"))["parts"] == says("m0")["parts"]

    async def test_a_large_message_is_stored_whole(self, session):
        text = "0123456789é" * 200_000

        await session.append_message(says("m0", text))

        assert (await session.get_message("m0"))["parts"][0]["text"] == text

    async def test_a_message_without_an_id_is_given_one(self, session):
        first = await session.append_message({"role": "user", "parts": []})
        second = await session.append_message({"role": "user", "parts": []})

        assert first.message["id"] != second.message["id"]
        assert await shown(session) == [first.message["id"], second.message["id"]]

    async def test_a_message_without_a_time_gets_that_of_its_appending(self, session):
        before = datetime.now(UTC)
        result = await session.append_message(says("m0"))
        created = result.message["createdAt"]

        assert created.endswith("Z")
        assert len(created) == len("2026-05-15T08:00:00.000000Z")
        assert before - timedelta(seconds=1) < datetime.fromisoformat(created)
        assert datetime.fromisoformat(created) < datetime.now(UTC) + timedelta(seconds=1)
        assert (await session.get_message("m0"))["createdAt"] == created

    async def test_a_datetime_becomes_a_time_in_utc(self, session):
        moment = datetime(2024, 5, 1, 12, 30, tzinfo=timezone(timedelta(hours=2)))

        await session.append_message(says("m0", createdAt=moment))

        assert (await session.get_message("m0"))["createdAt"] == "2024-05-01T10:30:00.000000Z"

    async def test_the_same_id_in_two_sessions_is_two_messages(self, store, session):
        other = Session(store, session_id="t")
        await session.append_message(says("m0", "here"))
        await other.append_message(says("m0", "there"))

        await other.delete_messages(["m0"])

        assert (await session.get_message("m0"))["parts"][0]["text"] == "here"
        assert await other.get_message("m0") is None

    @pytest.mark.parametrize("what", INVALID)
    async def test_an_invalid_message_is_refused_before_anything_is_written(self, store, what):
        session = Session(store, session_id="s")
        heard = Heard(session)

        with pytest.raises(InvalidMessage):
            await session.append_message(INVALID[what])
        with pytest.raises(InvalidMessage):
            await session.update_message(INVALID[what])

        assert heard == []
        assert await SessionManager.create(store).list() == []

    # -- where a message hangs --

    async def test_a_message_hangs_from_the_latest_leaf(self, session):
        result = await session.append_message(says("m0"))
        assert isinstance(result, AppendResult)
        assert result.inserted

        await session.append_message(says("m1"), LATEST)
        await session.append_message(says("m2"))

        assert await shown(session) == ["m0", "m1", "m2"]

    async def test_a_message_under_none_is_a_new_root(self, session):
        await fill(session, 2)

        await session.append_message(says("r"), None)

        assert await shown(session) == ["r"]
        assert await children(session, None) == ["m0", "r"]

    async def test_a_message_under_a_parent_with_children_starts_a_branch(self, session):
        await fill(session, 3)

        await session.append_message(says("b"), "m0")

        assert await children(session, "m0") == ["m1", "b"]
        assert await shown(session) == ["m0", "b"]
        assert await shown(session, "m2") == ["m0", "m1", "m2"]

    @pytest.mark.parametrize("parent", ["nobody", "", "compaction_x"])
    async def test_a_message_under_an_unknown_parent_is_refused(self, session, parent):
        await fill(session, 1)
        heard = Heard(session)

        with pytest.raises(UnknownParent, match=repr(parent)):
            await session.append_message(says("x"), parent)

        assert heard == []
        assert await session.get_message("x") is None
        assert await children(session, None) == ["m0"]

    async def test_an_unknown_parent_leaves_no_session_behind(self, store, session):
        with pytest.raises(UnknownParent):
            await session.append_message(says("x"), "nobody")

        assert await SessionManager.create(store).list() == []

    async def test_a_summary_is_no_parent(self, session):
        await fill(session, 3)
        overlay = await session.add_compaction("sum", "m0", "m1")

        with pytest.raises(UnknownParent):
            await session.append_message(says("x"), f"compaction_{overlay.id}")

    async def test_a_parent_of_another_session_is_unknown(self, store, session):
        await Session(store, session_id="t").append_message(says("theirs"))

        with pytest.raises(UnknownParent):
            await session.append_message(says("x"), "theirs")

    # -- duplicates --

    async def test_a_duplicate_changes_nothing(self, session):
        await fill(session, 3)

        result = await session.append_message(says("m1", "another text"), "m2")

        assert not result.inserted
        assert result.message == await session.get_message("m1")
        assert result.message["parts"][0]["text"] == "hello world"
        assert await shown(session) == ["m0", "m1", "m2"]

    async def test_a_duplicate_is_told_before_its_parent_is_looked_at(self, session):
        await fill(session, 1)

        result = await session.append_message(says("m0"), "nobody")

        assert not result.inserted

    async def test_a_duplicate_of_a_hidden_message_is_told_too(self, session):
        await fill(session, 4)
        await session.add_compaction("sum", "m0", "m2")

        result = await session.append_message(says("m1", "another text"))

        assert not result.inserted
        assert result.message["parts"][0]["text"] == "hello world"

    async def test_a_duplicate_does_not_move_the_tip(self, session):
        await fill(session, 2)
        await session.append_message(says("b"), "m0")

        await session.append_message(says("m1"))

        assert (await session.get_latest_leaf())["id"] == "b"

    async def test_a_duplicate_makes_no_compaction(self, session):
        await fill(session, 3)
        session.on_compaction(compacting("m0", "m1")).compact_after(0)

        await session.append_message(says("m2"))

        assert await session.get_compactions() == []

    async def test_no_summary_of_a_deleted_message_stands_in_for_one_of_the_same_id(self, session):
        await fill(session, 3)
        overlay = await session.add_compaction("sum", "m1", "m2")
        await session.delete_messages(["m2"])
        await session.append_message(says("m2", "anew"), "m1")

        assert await shown(session) == ["m0", "m1", "m2"]
        recent = await session.get_recent_history(10**6)
        assert [message["id"] for message in recent.messages] == ["m0", "m1", "m2"]
        overlays = await session.get_compactions()
        assert overlays == [overlay]
        assert apply_overlays(recent.messages, overlays) == recent.messages

    async def test_an_id_that_was_deleted_is_free_again(self, session):
        await fill(session, 2)
        await session.delete_messages(["m1"])

        result = await session.append_message(says("m1", "anew"))

        assert result.inserted
        assert (await session.get_message("m1"))["parts"][0]["text"] == "anew"

    # -- the latest leaf --

    async def test_appending_under_any_parent_switches_the_branch(self, session):
        await fill(session, 3)
        await session.append_message(says("b"), "m0")

        await session.append_message(says("m3"), "m2")
        assert await shown(session) == ["m0", "m1", "m2", "m3"]

        await session.append_message(says("c"), "b")
        assert await shown(session) == ["m0", "b", "c"]

    async def test_an_inner_message_can_be_made_the_tip(self, store, session):
        await fill(session, 4)

        message = await session.set_leaf("m1")

        assert message == await session.get_message("m1")
        assert await session.get_latest_leaf() == message
        assert await shown(session) == ["m0", "m1"]
        assert await shown(Session(store, session_id="s")) == ["m0", "m1"]

    async def test_the_next_append_hangs_from_where_the_tip_was_moved_to(self, session):
        await fill(session, 4)
        await session.set_leaf("m1")

        await session.append_message(says("b"))

        assert await shown(session) == ["m0", "m1", "b"]
        assert await children(session, "m1") == ["m2", "b"]

    @pytest.mark.parametrize("unknown", ["nobody", "compaction_x"])
    async def test_the_tip_cannot_be_moved_to_what_is_not_there(self, session, unknown):
        await fill(session, 2)

        with pytest.raises(UnknownMessage, match=unknown):
            await session.set_leaf(unknown)

        assert await shown(session) == ["m0", "m1"]

    async def test_a_deleted_tip_falls_back_to_its_ancestor_though_another_branch_is_newer(
        self, session
    ):
        await fill(session, 3)
        await session.append_message(says("b"), "m0")
        await session.set_leaf("m2")

        await session.delete_messages(["m2", "m1"])

        assert (await session.get_latest_leaf())["id"] == "m0"

    async def test_a_deleted_tip_without_ancestors_falls_back_to_the_newest(self, session):
        await session.append_message(says("r1"), None)
        await session.append_message(says("r2"), None)
        await session.append_message(says("r3"), None)
        await session.set_leaf("r1")

        await session.delete_messages(["r1"])

        assert (await session.get_latest_leaf())["id"] == "r3"

    async def test_deleting_another_message_leaves_the_tip(self, session):
        await fill(session, 3)
        await session.set_leaf("m1")

        await session.delete_messages(["m2", "m0"])

        assert await shown(session) == ["m1"]

    async def test_an_empty_session_has_no_tip(self, session):
        await fill(session, 2)

        await session.delete_messages(["m0", "m1"])

        assert await session.get_latest_leaf() is None
        assert await session.get_history() == []
        await session.append_message(says("m2"))
        assert await children(session, None) == ["m2"]
