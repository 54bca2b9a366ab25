"""Updating, deleting and clearing messages."""

from __future__ import annotations

import math

import pytest

from session_contract.talk import (
    AsyncTests,
    Broken,
    Heard,
    children,
    fill,
    says,
    shown,
)
from workspace_session import (
    Session,
    SessionManager,
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


class ChangeContract(AsyncTests):
    async def test_an_update_replaces_content_and_keeps_the_place(self, session):
        await fill(session, 3)
        created = (await session.get_message("m1"))["createdAt"]

        updated = await session.update_message(says("m1", "new", role="assistant", extra=1))

        wanted = says("m1", "new", role="assistant", extra=1, createdAt=created)
        assert updated == await session.get_message("m1") == wanted
        assert await shown(session) == ["m0", "m1", "m2"]
        assert (await session.get_latest_leaf())["id"] == "m2"

    @pytest.mark.parametrize("own", [None, "2020-01-01T00:00:00Z"])
    @pytest.mark.parametrize("new", [None, "2030-01-01T00:00:00Z"])
    async def test_no_update_changes_the_time_of_creation(self, session, own, new):
        first = says("m0") if own is None else says("m0", createdAt=own)
        created = (await session.append_message(first)).message["createdAt"]

        second = says("m0", "new") if new is None else says("m0", "new", createdAt=new)
        updated = await session.update_message(second)

        assert updated["createdAt"] == created
        assert (await session.get_message("m0"))["createdAt"] == created

    async def test_the_newest_update_wins(self, store, session):
        await fill(session, 1)

        await session.update_message(says("m0", "one"))
        await Session(store, session_id="s").update_message(says("m0", "two"))

        assert (await session.get_message("m0"))["parts"][0]["text"] == "two"

    async def test_a_hidden_message_can_be_updated(self, session):
        await fill(session, 4)
        await session.add_compaction("sum", "m0", "m2")

        await session.update_message(says("m1", "new"))

        assert (await session.get_message("m1"))["parts"][0]["text"] == "new"
        assert await shown(session) == ["S(sum)", "m3"]

    async def test_an_update_of_nothing_does_nothing(self, store, session):
        heard = Heard(session)

        assert await session.update_message(says("nobody")) is None
        assert await session.update_message({"role": "user", "parts": []}) is None

        assert heard == []
        assert await SessionManager.create(store).list() == []

    async def test_an_update_to_the_same_does_nothing(self, store, session):
        await fill(session, 1)
        before = await SessionManager.create(store).get("s")
        heard = Heard(session)

        stored = await session.get_message("m0")
        assert await session.update_message(says("m0")) == stored
        assert await session.update_message(stored) == stored

        assert heard == []
        assert await SessionManager.create(store).get("s") == before

    async def test_an_update_from_false_to_zero_is_a_change(self, session):
        message = says("m0")
        message["parts"] = [{"type": "tool-count", "toolCallId": "c", "output": False}]
        await session.append_message(message)
        message["parts"][0]["output"] = 0

        await session.update_message(message)

        assert (await session.get_message("m0"))["parts"][0]["output"] is not False

    # -- deleting --

    async def test_children_of_a_deleted_message_move_to_its_parent(self, session):
        await fill(session, 3)

        assert await session.delete_messages(["m1"]) == ["m1"]

        assert await shown(session) == ["m0", "m2"]
        assert await children(session, "m0") == ["m2"]
        assert await session.get_message("m1") is None

    async def test_children_of_a_deleted_root_become_roots(self, session):
        await fill(session, 2)
        await session.append_message(says("b"), "m0")

        await session.delete_messages(["m0"])

        assert await children(session, None) == ["m1", "b"]
        assert await shown(session) == ["b"]

    async def test_children_that_move_keep_the_order_of_appending(self, session):
        await session.append_message(says("root"))
        await session.append_message(says("gone"), "root")
        await session.append_message(says("c1"), "gone")
        await session.append_message(says("c2"), "root")
        await session.append_message(says("c3"), "gone")

        await session.delete_messages(["gone"])

        assert await children(session, "root") == ["c1", "c2", "c3"]

    async def test_a_whole_stretch_can_be_deleted_at_once(self, session):
        await fill(session, 6)

        removed = await session.delete_messages(["m4", "m2", "m3"])

        assert sorted(removed) == ["m2", "m3", "m4"]
        assert await shown(session) == ["m0", "m1", "m5"]

    async def test_unknown_ids_are_ignored(self, session):
        await fill(session, 2)
        heard = Heard(session)

        assert await session.delete_messages(["nobody", "compaction_x"]) == []
        assert await session.delete_messages([]) == []
        assert heard == []

        assert await session.delete_messages(["nobody", "m1", "m1"]) == ["m1"]

    async def test_one_id_is_not_a_list_of_ids(self, session):
        await fill(session, 2)

        with pytest.raises(TypeError):
            await session.delete_messages("m1")

        assert await shown(session) == ["m0", "m1"]

    async def test_deleting_keeps_overlays_but_not_those_without_an_end(self, session):
        await fill(session, 6)
        await session.add_compaction("whole", "m0", "m2")
        await session.add_compaction("broken", "m3", "m4")

        await session.delete_messages(["m1", "m4"])

        assert await shown(session) == ["S(whole)", "m3", "m5"]
        assert [one.summary for one in await session.get_compactions()] == ["whole", "broken"]

    # -- clearing --

    async def test_a_clear_removes_messages_overlays_and_tip(self, store, session):
        await fill(session, 4)
        await session.add_compaction("sum", "m0", "m1")
        await session.set_leaf("m2")

        await session.clear_messages()

        for one in (session, Session(store, session_id="s")):
            assert await one.get_history() == []
            assert await one.get_latest_leaf() is None
            assert await one.get_compactions() == []
            assert await one.get_message("m0") is None
            assert await one.get_branches(None) == []

    async def test_a_cleared_session_begins_again(self, session):
        await fill(session, 2)
        await session.clear_messages()

        result = await session.append_message(says("m0", "anew"))

        assert result.inserted
        assert await shown(session) == ["m0"]
        assert await children(session, None) == ["m0"]

    async def test_a_clear_leaves_blocks_and_other_sessions(self, store):
        session = Session(store, session_id="s", context=[{"label": "memory"}])
        other = await fill(Session(store, session_id="t"), 1)
        await fill(session, 1)
        await session.replace_context_block("memory", "tea")

        await session.clear_messages()

        assert (await session.get_context_block("memory")).content == "tea"
        assert await shown(other) == ["m0"]

    async def test_a_clear_refreshes_the_prompt(self, store):
        session = Session(store, session_id="s", context=[{"label": "memory"}])
        await session.freeze_system_prompt()
        await session.replace_context_block("memory", "tea")

        await session.clear_messages()

        assert "tea" in await session.freeze_system_prompt()

    async def test_a_refresh_that_fails_does_not_undo_a_clear(self, store, caplog):
        broken = Broken("the prompt")
        session = Session(store, session_id="s", context=[{"label": "soul", "provider": broken}])
        await fill(session, 1)
        prompt = await session.freeze_system_prompt()
        heard, failures = Heard(session), []
        session.on_compaction_error(failures.append)

        broken.is_broken = True
        await session.clear_messages()

        assert await session.get_history() == []
        assert await session.freeze_system_prompt() == prompt
        assert heard.of("error") == [{"error": "soul is broken"}]
        assert "soul is broken" in caplog.text
        assert failures == []  # nothing was compacted
