"""How sessions end, and which come out of others: deleting, forking, splitting."""

from __future__ import annotations

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
    Session,
    SessionDeleted,
    SessionManager,
    UnknownMessage,
    UnknownSession,
)


class DescentContract(AsyncTests):
    async def test_a_deleted_session_is_gone(self, manager):
        child = await manager.create("child", parent_session_id="s")
        await manager.append("s", says("m0"))

        await manager.delete("s")

        assert await manager.get("s") is None
        assert [info.id for info in await manager.list()] == [child.id]
        assert (await manager.get(child.id)).parent_session_id == "s"
        with pytest.raises(UnknownSession):
            await manager.get_history("s")

    @pytest.mark.parametrize("again", [False, True])
    async def test_handles_of_a_deleted_session_say_so(self, store, manager, again):
        cached = await manager.get_session("s")
        handle = Session(store, session_id="s", context=[{"label": "memory"}])
        await cached.append_message(says("m0"))
        await handle.append_message(says("m1"))

        await SessionManager.create(store).delete("s")
        if again:
            await Session(store, session_id="s").append_message(says("new"))

        for session in (cached, handle):
            for use in (
                lambda session: session.get_history(),
                lambda session: session.get_message("m0"),
                lambda session: session.get_latest_leaf(),
                lambda session: session.append_message(says("m2")),
                lambda session: session.update_message(says("m0", "new")),
                lambda session: session.clear_messages(),
            ):
                with pytest.raises(SessionDeleted, match="'s'"):
                    await use(session)
        assert ([info.id for info in await manager.list()] == ["s"]) is again

    @pytest.mark.parametrize("again", [False, True])
    async def test_what_a_handle_knows_of_a_deleted_session_is_not_told(
        self, store, manager, again
    ):
        skills = {"get": lambda: "- a", "load": lambda key: "text"}
        blocks = [{"label": "memory"}, {"label": "skills", "provider": skills}]
        session = Session(store, session_id="s", context=blocks)
        await session.append_message(says("m0"))
        await session.freeze_system_prompt()
        await session.tools()

        await manager.delete("s")
        if again:
            await manager.append("s", says("secret"))

        for use in (
            lambda: session.get_context_block("memory"),
            lambda: session.get_context_blocks(),
            lambda: session.freeze_system_prompt(),
            lambda: session.tools(),
            lambda: session.get_loaded_skill_keys(),
            lambda: session.unload_skill("skills", "a"),
            lambda: session.search("hello"),
            lambda: session.add_context("notes"),
        ):
            with pytest.raises(SessionDeleted, match="'s'"):
                await use()

    async def test_blocks_of_a_deleted_session_say_so(self, store, manager):
        blocks = [{"label": "memory"}, {"label": "unread"}]
        session = Session(store, session_id="s", context=blocks)
        await session.append_message(says("m0"))
        await session.replace_context_block("memory", "tea")

        await manager.delete("s")

        for label in ("memory", "unread"):
            with pytest.raises(SessionDeleted):
                await session.replace_context_block(label, "cake")
        with pytest.raises(SessionDeleted):
            await session.refresh_system_prompt()
        assert await manager.list() == []
        again = Session(store, session_id="s", context=blocks)
        assert [block.content for block in await again.get_context_blocks()] == ["", ""]

    async def test_a_session_made_again_is_empty(self, store):
        manager = SessionManager.create(store).with_context("memory").with_cached_prompt()
        old = await manager.get_session("s")
        await fill(old, 3)
        await old.replace_context_block("memory", "tea")
        await old.freeze_system_prompt()

        await manager.delete("s")
        new = await manager.get_session("s")

        assert new is not old
        assert await new.get_history() == []
        assert (await new.get_context_block("memory")).content == ""
        assert "tea" not in await new.freeze_system_prompt()
        await new.append_message(says("m0"))
        assert await shown(new) == ["m0"]

    async def test_a_manager_lets_go_of_what_others_deleted(self, store, manager):
        old = await manager.get_session("s")
        await old.append_message(says("m0"))

        await SessionManager.create(store).delete("s")

        with pytest.raises(UnknownSession):
            await manager.get_history("s")
        await manager.append("s", says("new"))
        assert names(await manager.get_history("s")) == ["new"]
        assert await manager.get_session("s") is not old

    # -- forking --

    async def forked(self, manager, at="m3"):
        await manager.append_all("s", [says(name) for name in m(0, 5)])
        await manager.append("s", says("b"), "m1")
        session = await manager.get_session("s")
        await session.set_leaf("m5")
        return session, await manager.fork("s", at, "Fork")

    async def test_a_fork_is_the_path_to_a_message(self, manager):
        session, child = await self.forked(manager)

        copy = await manager.get_session(child.id)

        assert await copy.get_history() == await session.get_history("m3")
        assert await shown(copy) == m(0, 3)
        assert await copy.get_message("b") is None
        assert await copy.get_message("m4") is None
        assert await children(copy, "m1") == ["m2"]

    async def test_a_fork_has_a_record_of_its_own(self, manager):
        info = await manager.create("Trip", model="large", source="cli")
        await manager.append(info.id, says("m0"))
        await manager.add_usage(info.id, 5, 5, 1.0)
        before = await manager.get(info.id)

        child = await manager.fork(info.id, "m0", "Fork")

        assert child == await manager.get(child.id)
        assert (child.name, child.parent_session_id) == ("Fork", info.id)
        assert (child.model, child.source) == ("large", "cli")
        assert (child.input_tokens, child.estimated_cost, child.end_reason) == (0, 0.0, None)
        assert await manager.get(info.id) == before

    async def test_a_fork_and_its_source_go_their_own_ways(self, manager):
        session, child = await self.forked(manager)

        await manager.append(child.id, says("c"))
        await session.update_message(says("m0", "new"))
        await session.delete_messages(["m1"])

        copy = await manager.get_session(child.id)
        assert await shown(copy) == [*m(0, 3), "c"]
        assert (await copy.get_message("m0"))["parts"][0]["text"] == "hello world"
        assert await session.get_message("c") is None

    async def test_a_fork_takes_the_overlays_of_its_path_along(self, manager):
        await manager.append_all("s", [says(name) for name in m(0, 7)])
        inside = [
            await manager.add_compaction("s", "narrow", "m1", "m2"),
            await manager.add_compaction("s", "wide", "m1", "m4"),
        ]
        await manager.add_compaction("s", "beyond", "m5", "m7")

        child = await manager.fork("s", "m6", "Fork")

        assert await manager.get_compactions(child.id) == inside
        wanted = await manager.get_history("s", "m6")
        assert await manager.get_history(child.id) == wanted
        assert names(wanted) == ["m0", "S(wide)", "m5", "m6"]
        assert await manager.get_message_count(child.id) == 7

    async def test_a_fork_inside_a_hidden_range_shows_what_was_said(self, manager):
        await manager.append_all("s", [says(name) for name in m(0, 5)])
        await manager.add_compaction("s", "sum", "m0", "m4")

        child = await manager.fork("s", "m2", "Fork")

        assert names(await manager.get_history(child.id)) == m(0, 2)

    async def test_a_fork_shows_updates_deletions_and_times_as_the_source_does(self, manager):
        dates = ["2020-01-01T00:00:00Z", None]
        await manager.append_all(
            "s", [says(f"m{n}", **({"createdAt": d} if d else {})) for n, d in enumerate(dates * 3)]
        )
        session = await manager.get_session("s")
        await session.update_message(says("m0", "new"))
        await session.update_message(says("m1", "new"))
        await session.update_message(says("m2", "new", createdAt="2030-01-01T00:00:00Z"))
        await session.delete_messages(["m3"])

        child = await manager.fork("s", "m5", "Fork")

        assert await manager.get_history(child.id) == await manager.get_history("s")

    async def test_a_fork_leaves_blocks_and_prompt_behind(self, store):
        manager = SessionManager.create(store).with_context("memory").with_cached_prompt()
        session = await manager.get_session("s")
        await session.append_message(says("m0"))
        await session.replace_context_block("memory", "tea")
        await session.freeze_system_prompt()

        copy = await manager.get_session((await manager.fork("s", "m0", "Fork")).id)

        assert (await copy.get_context_block("memory")).content == ""
        assert "tea" not in await copy.freeze_system_prompt()

    async def test_a_fork_runs_no_compaction(self, store):
        calls = []
        await SessionManager.create(store).append_all("s", [says("m0"), says("m1")])
        manager = SessionManager.create(store).on_compaction(calls.append).compact_after(0)

        await manager.fork("s", "m1", "Fork")

        assert calls == []

    @pytest.mark.parametrize("at", ["nobody", "compaction_x"])
    async def test_a_fork_at_an_unknown_message_makes_no_child(self, manager, at):
        await manager.append("s", says("m0"))

        with pytest.raises(UnknownMessage, match=at):
            await manager.fork("s", at, "Fork")

        assert [info.id for info in await manager.list()] == ["s"]

    async def test_a_fork_can_be_forked(self, manager):
        _, child = await self.forked(manager)

        grandchild = await manager.fork(child.id, "m1", "Again")

        assert grandchild.parent_session_id == child.id
        assert names(await manager.get_history(grandchild.id)) == ["m0", "m1"]

    # -- splitting --

    async def test_a_split_continues_in_a_new_session(self, manager):
        info = await manager.create("Trip", model="large", source="cli")
        await manager.append_all(info.id, [says("m0"), says("m1")])

        child = await manager.compact_and_split(info.id, "It was nice.")

        assert child == await manager.get(child.id)
        assert (child.name, child.parent_session_id) == ("Trip", info.id)
        assert (child.model, child.source, child.end_reason) == ("large", "cli", None)
        (message,) = await manager.get_history(child.id)
        assert message["role"] == "assistant"
        text = "[Context from previous session]\n\nIt was nice."
        assert message["parts"] == [{"type": "text", "text": text}]

    async def test_a_split_session_stays_and_says_why_it_ended(self, manager):
        await manager.append_all("s", [says("m0"), says("m1")])

        child = await manager.compact_and_split("s", "sum", "Part two")

        assert child.name == "Part two"
        assert (await manager.get("s")).end_reason == "compaction"
        await manager.append("s", says("m2"))
        assert names(await manager.get_history("s")) == m(0, 2)

    async def test_a_manager_has_one_tool(self, manager, store):
        assert list(await manager.tools()) == ["session_search"]
        assert "session_search" not in await Session(store).tools()
