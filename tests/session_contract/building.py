"""Building a session, and what it is built with."""

from __future__ import annotations

import asyncio

import pytest

from session_contract.talk import (
    AsyncTests,
    Heard,
    compacting,
    fill,
    says,
    shown,
)
from workspace_session import (
    DuplicateBlock,
    Session,
    SessionInUse,
    SessionManager,
)


class BuildingContract(AsyncTests):
    def test_a_session_without_a_name_is_called_default(self, store):
        assert Session.create(store).id == "default"
        assert Session.create(store).for_session("chat-1").id == "chat-1"
        assert Session(store, session_id="chat-2").id == "chat-2"

    async def test_creating_a_session_stores_nothing(self, store):
        Session.create(store).for_session("s").with_context("memory").with_cached_prompt()

        assert await SessionManager.create(store).list() == []

    async def test_reading_a_session_stores_nothing(self, store):
        session = Session(store, session_id="s", context=[{"label": "memory"}])

        assert await session.get_history() == []
        assert await session.get_latest_leaf() is None
        assert (await session.get_context_block("memory")).content == ""
        assert await SessionManager.create(store).list() == []

    def test_what_is_neither_store_nor_provider_is_refused_by_name(self):
        class Half:
            def get_message(self, message_id): ...

        with pytest.raises(TypeError, match=r"append_message.*get_compactions"):
            Session.create(Half())
        with pytest.raises(TypeError) as refused:
            Session(Half())
        assert "get_message" not in str(refused.value)

    def test_a_label_can_be_taken_once(self, store):
        session = Session.create(store).with_context("memory")

        with pytest.raises(DuplicateBlock, match="memory"):
            session.with_context("memory")
        with pytest.raises(DuplicateBlock):
            Session(store, context=[{"label": "memory"}, {"label": "memory"}])

    async def test_after_first_use_what_was_settled_stays(self, store):
        session = Session(store, session_id="s")
        await session.get_history()

        for build in (
            lambda: session.for_session("t"),
            lambda: session.with_context("memory"),
            session.with_cached_prompt,
        ):
            with pytest.raises(SessionInUse, match="'s'"):
                build()

    async def test_after_first_use_compaction_can_still_be_set(self, store):
        session = await fill(Session(store, session_id="s"), 3)
        failures = []

        session.on_compaction(compacting("m0", "m1")).compact_after(0)
        session.on_compaction_error(failures.append)
        await session.append_message(says("m3"))

        assert await shown(session) == ["S(sum)", "m2", "m3"]
        assert failures == []

    async def test_the_order_of_builders_does_not_matter(self, store):
        late = Session.create(store).with_context("memory").with_cached_prompt().for_session("s")
        await late.replace_context_block("memory", "tea")
        await late.freeze_system_prompt()

        early = Session.create(store).for_session("s").with_cached_prompt().with_context("memory")

        assert (await early.get_context_block("memory")).content == "tea"
        assert "tea" in await early.freeze_system_prompt()

    async def test_the_constructor_does_what_the_builders_do(self, store):
        given = {"get": lambda: "You are kind."}
        built = Session.create(store).for_session("s").with_context("soul", provider=given)
        made = Session(store, session_id="s", context=[{"label": "soul", "provider": given}])

        built.with_context("memory", description="Facts", max_tokens=50)
        made.with_context("memory", description="Facts", max_tokens=50)

        assert await built.get_context_blocks() == await made.get_context_blocks()
        assert await built.freeze_system_prompt() == await made.freeze_system_prompt()

    async def test_the_constructor_takes_all_that_compaction_needs(self, store):
        counted, failures = [], []
        session = Session(
            store,
            session_id="s",
            on_compaction=lambda messages: 1 / 0,
            compact_after=5,
            token_counter=lambda given: counted.append(given) or 6,
            on_compaction_error=failures.append,
        )

        await session.append_message(says("m0"))

        assert counted
        assert [type(error) for error in failures] == [ZeroDivisionError]

    async def test_a_threshold_without_a_counter_leaves_the_counter_in_place(self, store):
        session = Session(store, session_id="s").on_compaction(lambda messages: None)
        heard = Heard(session)

        session.compact_after(100, token_counter=lambda given: 7).compact_after(200)
        await session.append_message(says("m0"))

        assert heard.of("status") == [
            {"phase": "idle", "token_estimate": 7, "token_threshold": 200},
        ]

    async def test_a_block_without_a_provider_is_kept_by_the_store(self, store):
        session = Session(store, session_id="s", context=[{"label": "memory"}])
        block = await session.replace_context_block("memory", "likes tea")
        assert (block.writable, block.content) == (True, "likes tea")

        again = Session(store, session_id="s", context=[{"label": "memory"}])

        assert (await again.get_context_block("memory")).content == "likes tea"

    async def test_every_session_has_its_own_blocks(self, store):
        for name in ("s", "t"):
            session = Session(store, session_id=name, context=[{"label": "memory"}])
            await session.replace_context_block("memory", f"of {name}")

        session = Session(store, session_id="s", context=[{"label": "memory"}])
        assert (await session.get_context_block("memory")).content == "of s"

    async def test_labels_that_look_alike_are_different_blocks(self, store):
        labels = ["a b", "a%20b", "a/b", "a.b", "..", "ä", "block.a", "system", "con"]
        session = Session(store, session_id="s", context=[{"label": one} for one in labels])
        for label in labels:
            await session.replace_context_block(label, f"this is {label}")

        again = Session(store, session_id="s", context=[{"label": one} for one in labels])

        assert [block.content for block in await again.get_context_blocks()] == [
            f"this is {label}" for label in labels
        ]

    async def test_two_sessions_appending_to_a_block_both_get_in(self, store):
        sessions = [Session(store, session_id="s", context=[{"label": "memory"}]) for _ in range(2)]
        for session in sessions:
            await session.get_context_blocks()

        await asyncio.gather(
            *(sessions[n % 2].append_context_block("memory", f"fact {n}") for n in range(10))
        )

        again = Session(store, session_id="s", context=[{"label": "memory"}])
        content = (await again.get_context_block("memory")).content
        assert sorted(content.split("\n")) == sorted(f"fact {n}" for n in range(10))

    def test_a_prompt_store_needs_get_and_set(self, store):
        with pytest.raises(TypeError, match="set"):
            Session.create(store).with_cached_prompt({"get": lambda: None})
        with pytest.raises(TypeError, match="get"):
            Session(store, prompt_store={"set": lambda text: None})
