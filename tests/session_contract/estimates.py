"""The token estimate of a session."""

from __future__ import annotations

import math

import pytest

from session_contract.talk import (
    AsyncTests,
    Heard,
    compacting,
    fill,
    names,
    says,
    shown,
)
from workspace_session import (
    Session,
    TokenCountInput,
    estimate_message_tokens,
    estimate_tokens,
)


class EstimateContract(AsyncTests):
    @pytest.fixture
    def kind(self, store):
        soul = {"label": "soul", "provider": {"get": lambda: "You are kind."}}
        return Session(store, session_id="s", context=[soul, {"label": "memory"}])

    async def test_the_estimate_is_that_of_history_and_prompt(self, kind):
        heard = Heard(kind)
        await fill(kind, 6)
        await kind.add_compaction("sum", "m1", "m3")

        await kind.append_message(says("m6", "a few more words"))

        prompt = await kind.freeze_system_prompt()
        history = await kind.get_history()
        assert "KIND" not in prompt
        assert heard.of("status")[-1]["token_estimate"] == (
            estimate_message_tokens(history) + estimate_tokens(prompt)
        )

    @pytest.mark.parametrize(
        "change",
        [
            lambda session: session.update_message(says("m2", "many more words than before")),
            lambda session: session.delete_messages(["m2", "m3"]),
            lambda session: session.set_leaf("m1"),
            lambda session: session.append_message(says("b"), "m1"),
            lambda session: session.append_message(says("r"), None),
            lambda session: session.clear_messages(),
        ],
        ids=["update", "delete", "leaf", "branch", "root", "clear"],
    )
    async def test_the_estimate_follows_every_change(self, store, change):
        session = Session(store, session_id="s")
        heard = Heard(session)
        await fill(session, 5)

        await change(session)

        history = await session.get_history()
        assert heard.of("status")[-1]["token_estimate"] == estimate_message_tokens(history)

    async def test_the_estimate_follows_a_message_that_is_said_anew(self, store):
        session = Session(store, session_id="s")
        heard = Heard(session)
        await fill(session, 2)
        await session.delete_messages(["m1"])

        await session.append_message(says("m1", "other words " * 20))

        history = await session.get_history()
        assert heard.of("status")[-1]["token_estimate"] == estimate_message_tokens(history)

    async def test_the_estimate_follows_what_others_do(self, store):
        session, other = Session(store, session_id="s"), Session(store, session_id="s")
        heard = Heard(session)
        await fill(session, 4)
        await other.append_message(says("m4", "from elsewhere " * 9))
        await other.add_compaction("sum", "m0", "m2")

        await session.append_message(says("m5"))

        history = await session.get_history()
        assert heard.of("status")[-1]["token_estimate"] == estimate_message_tokens(history)

    async def test_the_estimate_follows_a_branch_that_takes_up_a_summary(self, session):
        heard = Heard(session)
        await fill(session, 4)
        await session.add_compaction("sum", "m0", "m2")
        await session.set_leaf("m1")

        await session.append_message(says("b"), "m2")

        assert await shown(session) == ["S(sum)", "b"]
        history = await session.get_history()
        assert heard.of("status")[-1]["token_estimate"] == estimate_message_tokens(history)

    async def test_a_counter_is_given_messages_prompt_and_blocks(self, kind):
        given = []
        kind.compact_after(10**6, token_counter=lambda one: given.append(one) or 1)
        kind.on_compaction(lambda messages: None)
        await fill(kind, 2)

        assert isinstance(given[-1], TokenCountInput)
        assert names(given[-1].messages) == ["m0", "m1"]
        assert given[-1].system_prompt == await kind.freeze_system_prompt()
        assert [block.content for block in given[-1].context_blocks] == ["You are kind.", ""]

    async def test_a_counter_is_given_blocks_even_if_the_prompt_was_stored(self, store):
        given = []
        session = Session(
            store,
            session_id="s",
            context=[{"label": "soul", "provider": {"get": lambda: "You are kind."}}],
            prompt_store={"get": lambda: "stored", "set": lambda text: None},
            token_counter=lambda one: given.append(one) or 1,
        )
        Heard(session)
        await session.append_message(says("m0"))

        assert given[-1].system_prompt == "stored"
        assert [block.content for block in given[-1].context_blocks] == ["You are kind."]

    @pytest.mark.parametrize(
        ("answer", "estimate"),
        [(7, 7), (6.1, 7), (0, 0), (-3, 0), (math.nan, 0), (math.inf, 0), (-math.inf, 0)],
    )
    async def test_what_is_no_number_of_tokens_counts_as_none(self, store, answer, estimate):
        async def counter(given):
            return answer

        session = Session(store, session_id="s", token_counter=counter)
        heard = Heard(session)
        await session.append_message(says("m0"))

        assert heard.of("status")[0]["token_estimate"] == estimate

    async def test_estimating_freezes_nothing(self, store):
        session = Session(store, session_id="s", context=[{"label": "memory"}])
        session.with_cached_prompt()
        Heard(session)
        await session.append_message(says("m0"))

        await session.replace_context_block("memory", "tea")

        assert "tea" in await session.freeze_system_prompt()

    async def test_the_frozen_prompt_is_the_one_that_counts(self, kind):
        heard = Heard(kind)
        prompt = await kind.freeze_system_prompt()
        await kind.replace_context_block("memory", "a long text " * 50)

        await kind.append_message(says("m0"))

        wanted = estimate_message_tokens([says("m0")]) + estimate_tokens(prompt)
        assert heard.of("status")[-1]["token_estimate"] == wanted

    async def test_nothing_is_estimated_when_nobody_asks(self, store):
        counted = []
        session = Session(store, session_id="s", token_counter=counted.append)

        await session.append_message(says("m0"))
        session.compact_after(5)  # without a function
        await session.append_message(says("m1"))

        assert counted == []

    async def test_an_estimate_that_fails_is_reported_and_counts_as_none(self, store):
        failures = []
        session = Session(
            store,
            session_id="s",
            token_counter=lambda given: 1 / 0,
            compact_after=0,
            on_compaction=compacting("m0", "m0"),
            on_compaction_error=failures.append,
        )
        heard = Heard(session)

        result = await session.append_message(says("m0"))

        assert result.inserted
        assert [type(error) for error in failures] == [ZeroDivisionError]
        assert heard.kinds() == ["append", "error", "idle"]
        assert heard.of("status")[0]["token_estimate"] == 0
        assert await session.get_compactions() == []
