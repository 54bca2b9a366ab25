"""Many sessions of one agent."""

from __future__ import annotations

import asyncio

import pytest

from session_contract.talk import (
    AsyncTests,
    compacting,
    fill,
    m,
    names,
    says,
    shown,
)
from workspace_session import (
    DuplicateBlock,
    InvalidMessage,
    Session,
    SessionManager,
    SharedPromptStore,
    UnknownParent,
    UnknownSession,
)


class ManagerContract(AsyncTests):
    def test_a_manager_needs_a_store(self):
        with pytest.raises(TypeError):
            SessionManager.create(object())

    # -- records --

    async def test_a_new_session_has_a_record_and_an_id_of_its_own(self, manager):
        first = await manager.create("Trip", parent_session_id="p", model="large", source="cli")
        second = await manager.create("Trip")

        assert first.id != second.id
        assert (first.name, first.parent_session_id, first.model, first.source) == (
            "Trip",
            "p",
            "large",
            "cli",
        )
        assert (first.input_tokens, first.output_tokens, first.estimated_cost) == (0, 0, 0.0)
        assert first.end_reason is None
        assert first.created_at <= first.updated_at
        assert await manager.get(first.id) == first
        assert (second.parent_session_id, second.model, second.source) == (None, None, None)

    async def test_a_session_that_is_not_there_has_no_record(self, manager):
        assert await manager.get("nobody") is None
        assert await manager.list() == []

    async def test_the_list_begins_with_the_one_touched_last(self, manager):
        ids = [(await manager.create(name)).id for name in "abc"]
        await manager.append(ids[1], says("m0"))

        assert [info.id for info in await manager.list()] == [ids[1], ids[2], ids[0]]

    async def test_a_session_is_listed_from_its_first_write(self, store, manager):
        await Session(store, session_id="s").append_message(says("m0"))

        assert [(info.id, info.name) for info in await manager.list()] == [("s", "s")]

    async def test_a_block_is_a_first_write(self, store, manager):
        session = Session(store, session_id="s", context=[{"label": "memory"}])
        await session.replace_context_block("memory", "tea")

        assert [info.id for info in await manager.list()] == ["s"]

    async def test_a_session_can_be_renamed(self, manager):
        info = await manager.create("Trip")

        renamed = await manager.rename(info.id, "Journey")

        assert renamed.name == "Journey"
        assert renamed == await manager.get(info.id)
        assert renamed.updated_at > info.updated_at

    async def test_usage_adds_up(self, manager):
        info = await manager.create("Trip")

        await manager.add_usage(info.id, 10, 5, 0.25)
        await manager.add_usage(info.id, 1, 2)
        total = await manager.add_usage(info.id, 0, 0, cost=0.5)

        assert (total.input_tokens, total.output_tokens, total.estimated_cost) == (11, 7, 0.75)
        assert total == await manager.get(info.id)

    async def test_usage_of_many_at_once_adds_up(self, manager):
        info = await manager.create("Trip")

        await asyncio.gather(*(manager.add_usage(info.id, 1, 2, 0.5) for _ in range(20)))

        total = await manager.get(info.id)
        assert (total.input_tokens, total.output_tokens, total.estimated_cost) == (20, 40, 10.0)

    @pytest.mark.parametrize(
        "ask",
        [
            lambda manager: manager.rename("nobody", "name"),
            lambda manager: manager.add_usage("nobody", 1, 1),
            lambda manager: manager.delete("nobody"),
            lambda manager: manager.get_history("nobody"),
            lambda manager: manager.get_branches("nobody", None),
            lambda manager: manager.get_message_count("nobody"),
            lambda manager: manager.add_compaction("nobody", "sum", "m0", "m0"),
            lambda manager: manager.get_compactions("nobody"),
            lambda manager: manager.clear_messages("nobody"),
            lambda manager: manager.delete_messages("nobody", ["m0"]),
            lambda manager: manager.fork("nobody", "m0", "name"),
            lambda manager: manager.compact_and_split("nobody", "sum"),
        ],
        ids=[
            "rename", "add_usage", "delete", "get_history", "get_branches", "get_message_count",
            "add_compaction", "get_compactions", "clear_messages", "delete_messages", "fork",
            "compact_and_split",
        ],
    )  # fmt: skip
    async def test_an_unknown_session_is_named(self, manager, ask):
        with pytest.raises(UnknownSession, match="'nobody'"):
            await ask(manager)

        assert await manager.list() == []

    @pytest.mark.parametrize(
        "change",
        [
            lambda session: session.append_message(says("new")),
            lambda session: session.update_message(says("m0", "new")),
            lambda session: session.delete_messages(["m1"]),
            lambda session: session.set_leaf("m0"),
            lambda session: session.add_compaction("sum", "m0", "m1"),
            lambda session: session.clear_messages(),
            lambda session: session.replace_context_block("memory", "tea"),
            lambda session: session.append_context_block("memory", "tea"),
        ],
        ids=["append", "update", "delete", "leaf", "overlay", "clear", "replace", "append block"],
    )
    async def test_every_change_touches_the_record(self, store, manager, change):
        session = Session(store, session_id="s", context=[{"label": "memory"}])
        await fill(session, 3)
        others = [(await manager.create(name)).updated_at for name in "ab"]
        before = await manager.get("s")

        await change(session)

        after = await manager.get("s")
        assert after.updated_at > max(before.updated_at, *others)
        assert after.created_at == before.created_at
        assert (await manager.list())[0].id == "s"

    async def test_what_changes_nothing_touches_nothing(self, store, manager):
        session = Session(store, session_id="s", context=[{"label": "memory"}])
        session.with_cached_prompt()
        await fill(session, 3)
        await session.replace_context_block("memory", "tea")
        await manager.rename("s", "Trip")
        before = await manager.get("s")

        await session.get_history()
        await session.get_recent_history(100)
        await session.get_context_blocks()
        await session.freeze_system_prompt()
        await session.refresh_system_prompt()
        await session.tools()
        await session.append_message(says("m0"))
        await session.update_message(says("m0"))
        await session.delete_messages(["nobody"])
        await session.replace_context_block("memory", "tea")
        await manager.rename("s", "Trip")
        await manager.get_session("s")

        assert await manager.get("s") == before

    # -- sessions --

    async def test_a_session_is_one_object(self, manager):
        info = await manager.create("Trip")

        first, second = await asyncio.gather(
            manager.get_session(info.id), manager.get_session(info.id)
        )

        assert first is second is await manager.get_session(info.id)
        assert first.id == info.id

    async def test_getting_an_unknown_session_makes_it(self, manager):
        session = await manager.get_session("s")

        assert session.id == "s"
        assert (await manager.get("s")).name == "s"

    async def test_a_session_that_was_got_can_still_be_built(self, manager):
        session = await manager.get_session("s")

        session.with_context("memory")

        assert (await session.replace_context_block("memory", "tea")).content == "tea"

    async def test_settings_reach_the_sessions_that_come_after(self, manager):
        early = await manager.get_session("early")
        manager.with_context("memory", description="Facts", max_tokens=9).with_cached_prompt()
        manager.on_compaction(compacting("m0", "m0")).compact_after(0)
        late = await manager.get_session("late")

        await early.append_message(says("m0"))
        await late.append_message(says("m0"))

        assert await early.get_context_blocks() == []
        assert await shown(early) == ["m0"]
        assert [block.label for block in await late.get_context_blocks()] == ["memory"]
        assert await shown(late) == ["S(sum)"]

    async def test_the_error_handler_reaches_sessions(self, manager):
        failures = []
        manager.on_compaction(lambda messages: 1 / 0).compact_after(0)
        manager.on_compaction_error(failures.append)

        await manager.append("s", says("m0"))

        assert len(failures) == 1

    async def test_a_counter_reaches_sessions(self, manager):
        manager.on_compaction(compacting("m0", "m0"))
        manager.compact_after(5, token_counter=lambda given: 6)

        await manager.append("s", says("m0"))

        assert names(await manager.get_history("s")) == ["S(sum)"]

    async def test_auto_wired_blocks_are_of_each_session(self, store):
        manager = SessionManager.create(store).with_context("memory")
        first, second = await manager.get_session("s"), await manager.get_session("t")

        await first.replace_context_block("memory", "tea")

        assert (await second.get_context_block("memory")).content == ""

    async def test_a_provider_is_shared_by_all_sessions(self, store):
        kept = {}
        shared = {"get": lambda: kept.get("text"), "set": lambda text: kept.update(text=text)}
        manager = SessionManager.create(store).with_context("memory", provider=shared)

        await (await manager.get_session("s")).replace_context_block("memory", "tea")

        second = await manager.get_session("t")
        assert (await second.get_context_block("memory")).content == "tea"

    async def test_a_function_gives_each_session_its_own_provider(self, store):
        manager = SessionManager.create(store).with_context(
            "memory", provider=lambda session_id: {"get": lambda: f"of {session_id}"}
        )

        blocks = [
            await (await manager.get_session(name)).get_context_block("memory") for name in "st"
        ]

        assert [block.content for block in blocks] == ["of s", "of t"]

    async def test_the_function_may_take_its_time(self, store):
        async def own(session_id):
            await asyncio.sleep(0)
            return {"get": lambda: f"of {session_id}", "set": lambda text: None}

        manager = SessionManager.create(store).with_context("memory", provider=own)
        manager.with_cached_prompt(own)

        first, second = await asyncio.gather(manager.get_session("s"), manager.get_session("s"))

        assert first is second
        assert (await first.get_context_block("memory")).content == "of s"
        assert await first.freeze_system_prompt() == "of s"

    async def test_sessions_cannot_share_a_prompt_store(self, store):
        bare = {"get": lambda: None, "set": lambda text: None}

        with pytest.raises(SharedPromptStore):
            SessionManager.create(store).with_cached_prompt(bare)

    async def test_a_function_gives_each_session_its_own_prompt_store(self, store):
        kept = {}

        def prompts(session_id):
            return {
                "get": lambda: kept.get(session_id),
                "set": lambda t: kept.update({session_id: t}),
            }

        manager = SessionManager.create(store).with_cached_prompt(prompts).with_context("memory")
        for name in "st":
            await (await manager.get_session(name)).freeze_system_prompt()

        assert kept.keys() == {"s", "t"}

    def test_a_label_of_a_manager_can_be_taken_once(self, manager):
        manager.with_context("memory")

        with pytest.raises(DuplicateBlock):
            manager.with_context("memory")
        with pytest.raises(DuplicateBlock):
            manager.with_searchable_history("memory")

    async def test_history_can_be_searched_from_a_last_block(self, store):
        manager = SessionManager.create(store).with_searchable_history("history")
        manager.with_context("memory")
        session = await manager.get_session("s")

        blocks = await session.get_context_blocks()

        assert [block.label for block in blocks] == ["memory", "history"]
        assert blocks[1].description == "Cross-session conversation history"
        assert blocks[1].content == "1 session available for search."
        assert (blocks[1].is_searchable, blocks[1].writable) == (True, False)
        await manager.create("another")
        assert "2 sessions available for search." in await session.refresh_system_prompt()

    # -- messages --

    async def test_appending_gives_the_id_and_makes_the_session(self, manager):
        assert await manager.append("s", says("m0")) == "m0"
        made = await manager.append("s", {"role": "user", "parts": []})
        assert await manager.append("s", says("b"), "m0") == "b"
        assert await manager.append("s", says("m0")) == "m0"

        assert names(await manager.get_branches("s", "m0")) == [made, "b"]
        assert (await manager.get("s")).name == "s"

    @pytest.mark.parametrize(
        "ask",
        [
            lambda manager: manager.append("s", {"role": ""}),
            lambda manager: manager.append("s", says("x"), "nobody"),
            lambda manager: manager.upsert("s", {"role": ""}),
            lambda manager: manager.upsert("s", says("x"), "nobody"),
            lambda manager: manager.append_all("s", [says("x"), {"role": ""}]),
            lambda manager: manager.append_all("s", [says("x")], "nobody"),
        ],
    )
    async def test_a_message_that_is_refused_leaves_no_session_behind(self, manager, ask):
        with pytest.raises((InvalidMessage, UnknownParent)):
            await ask(manager)

        assert await manager.list() == []

    async def test_an_upsert_updates_what_is_there(self, manager):
        await manager.append_all("s", [says("m0"), says("m1"), says("m2")])

        assert await manager.upsert("s", says("m1", "new"), "m2") == "m1"

        history = await manager.get_history("s")
        assert names(history) == ["m0", "m1", "m2"]
        assert history[1]["parts"][0]["text"] == "new"

    async def test_an_upsert_appends_what_is_not(self, manager):
        assert await manager.upsert("s", says("m0")) == "m0"
        assert await manager.upsert("s", says("r"), None) == "r"
        made = await manager.upsert("s", {"role": "user", "parts": []})

        assert names(await manager.get_history("s")) == ["r", made]

    async def test_a_row_of_messages_continues_the_branch(self, manager):
        await manager.append("s", says("m0"))

        assert await manager.append_all("s", [says("m1"), says("m2")]) == "m2"
        assert names(await manager.get_history("s")) == ["m0", "m1", "m2"]

        assert await manager.append_all("s", [says("b1"), says("b2")], "m0") == "b2"
        assert names(await manager.get_history("s")) == ["m0", "b1", "b2"]

        assert await manager.append_all("s", [says("r1"), says("r2")], None) == "r2"
        assert names(await manager.get_history("s")) == ["r1", "r2"]

    async def test_a_duplicate_in_a_row_parents_the_next(self, manager):
        await manager.append_all("s", [says("m0"), says("m1")])
        await manager.append("s", says("b"), "m0")

        assert await manager.append_all("s", [says("m1"), says("m2")]) == "m2"

        assert names(await manager.get_history("s")) == ["m0", "m1", "m2"]

    async def test_a_row_of_nothing_gives_the_parent(self, manager):
        assert await manager.append_all("s", []) is None
        assert await manager.append_all("s", [], None) is None
        assert await manager.append_all("s", [], "m0") == "m0"
        assert await manager.get("s") is not None

    async def test_a_row_with_an_invalid_message_appends_nothing(self, manager):
        await manager.append("s", says("m0"))

        with pytest.raises(InvalidMessage):
            await manager.append_all("s", [says("m1"), {"id": "m2"}])

        assert names(await manager.get_history("s")) == ["m0"]

    async def test_a_manager_does_what_its_sessions_do(self, manager):
        await manager.append_all("s", [says(name) for name in m(0, 4)])
        await manager.append("s", says("b"), "m3")

        overlay = await manager.add_compaction("s", "sum", "m1", "m2")

        assert await manager.get_compactions("s") == [overlay]
        assert names(await manager.get_history("s")) == ["m0", "S(sum)", "m3", "b"]
        assert names(await manager.get_history("s", "m2")) == ["m0", "S(sum)"]
        assert names(await manager.get_branches("s", None)) == ["m0"]
        assert await manager.get_message_count("s") == 5
        assert await manager.delete_messages("s", ["m3", "nobody"]) == ["m3"]
        assert await manager.get_message_count("s") == 4
        await manager.clear_messages("s")
        assert await manager.get_history("s") == []
