"""Compaction: by hand, by itself, and several at once."""

from __future__ import annotations

import asyncio
import logging

import pytest

from session_contract.talk import (
    AsyncTests,
    Broken,
    Heard,
    compacting,
    fill,
    m,
    names,
    says,
    shown,
)
from workspace_session import (
    CompactContext,
    CompactResult,
    NoCompactionFunction,
    Session,
    create_compact_function,
)


class CompactionContract(AsyncTests):
    async def test_without_a_function_there_is_no_compacting(self, session):
        with pytest.raises(NoCompactionFunction) as refused:
            await session.compact()

        wanted = "No compaction function registered. Call on_compaction() first."
        assert str(refused.value) == wanted

    async def test_a_compaction_stores_the_function_s_summary(self, session):
        await fill(session, 6)
        session.on_compaction(compacting("m1", "m3"))

        result = await session.compact()

        assert result == CompactResult("sum", "m1", "m3")
        assert await shown(session) == ["m0", "S(sum)", "m4", "m5"]

    @pytest.mark.parametrize("kind", ["sync", "async", "mapping"])
    async def test_functions_come_in_all_kinds(self, session, kind):
        await fill(session, 3)
        fields = {"summary": "sum", "from_message_id": "m0", "to_message_id": "m1"}

        async def later(messages):
            return CompactResult(**fields)

        kinds = {
            "sync": lambda messages: CompactResult(**fields),
            "async": later,
            "mapping": lambda messages: fields,
        }
        session.on_compaction(kinds[kind])

        assert await session.compact() == CompactResult(**fields)

    async def test_a_function_of_two_is_given_the_counter(self, session):
        given = []
        await fill(session, 2)
        session.compact_after(10**6, token_counter=lambda one: 1)

        session.on_compaction(lambda messages, context: given.append((messages, context)))
        await session.compact()

        (messages, context), counter = given[0], session._counter
        assert names(messages) == ["m0", "m1"]
        assert context == CompactContext(counter)

    async def test_a_function_is_shown_the_history_with_summaries(self, session):
        seen = []
        await fill(session, 5)
        await session.add_compaction("old", "m0", "m2")
        session.on_compaction(lambda messages: seen.append(names(messages)))

        await session.compact()
        await session.compact("m1")

        assert seen == [["S(old)", "m3", "m4"], ["m0", "m1"]]

    async def test_nothing_is_asked_of_an_empty_session(self, session):
        session.on_compaction(lambda messages: 1 / 0)
        heard = Heard(session)

        assert await session.compact() is None

        assert heard.kinds() == ["compacting", "idle"]

    async def test_nothing_is_asked_about_an_unknown_leaf(self, session):
        await fill(session, 2)
        session.on_compaction(lambda messages: 1 / 0)

        assert await session.compact("nobody") is None

    @pytest.mark.parametrize(
        "answer",
        [
            None,
            CompactResult("", "m0", "m1"),
            CompactResult(" \n", "m0", "m1"),
            CompactResult("sum", "m2", "m1"),
            CompactResult("sum", "nobody", "m1"),
            CompactResult("sum", "m0", "nobody"),
            CompactResult("sum", "m0", "b"),
        ],
        ids=["nothing", "empty", "blank", "backwards", "from nowhere", "to nowhere", "elsewhere"],
    )
    async def test_an_answer_of_no_use_stores_nothing(self, session, answer):
        await fill(session, 3)
        await session.append_message(says("b"), "m0")
        await session.set_leaf("m2")
        session.on_compaction(lambda messages: answer)
        heard = Heard(session)

        assert await session.compact() is None

        assert await session.get_compactions() == []
        assert heard.kinds() == ["compacting", "idle"]

    async def test_a_compaction_does_not_end_in_a_summary(self, session):
        await fill(session, 4)
        overlay = await session.add_compaction("old", "m2", "m3")
        session.on_compaction(compacting("m0", f"compaction_{overlay.id}"))

        assert await session.compact() is None

    # -- the effective start --

    async def test_a_summary_just_before_the_range_is_taken_in(self, session):
        await fill(session, 10)
        await session.add_compaction("old", "m1", "m5")
        session.on_compaction(compacting("m6", "m8"))

        assert await session.compact() == CompactResult("sum", "m1", "m8")
        assert await shown(session) == ["m0", "S(sum)", "m9"]

    async def test_a_summary_further_off_stays(self, session):
        await fill(session, 10)
        await session.add_compaction("one", "m1", "m2")
        await session.add_compaction("two", "m5", "m6")
        session.on_compaction(compacting("m7", "m8"))

        assert await session.compact() == CompactResult("sum", "m5", "m8")
        assert await shown(session) == ["m0", "S(one)", "m3", "m4", "S(sum)", "m9"]

    async def test_a_run_of_summaries_is_taken_in_whole(self, session):
        await fill(session, 8)
        await session.add_compaction("one", "m1", "m2")
        await session.add_compaction("two", "m3", "m4")
        session.on_compaction(compacting("m5", "m6"))

        assert await session.compact() == CompactResult("sum", "m1", "m6")
        assert await shown(session) == ["m0", "S(sum)", "m7"]

    async def test_a_range_may_start_with_a_summary(self, session):
        await fill(session, 6)
        overlay = await session.add_compaction("old", "m1", "m2")
        session.on_compaction(compacting(f"compaction_{overlay.id}", "m4"))

        assert await session.compact() == CompactResult("sum", "m1", "m4")
        assert await shown(session) == ["m0", "S(sum)", "m5"]

    async def test_overlays_of_other_branches_do_not_count(self, session):
        await fill(session, 6)
        await session.append_message(says("b"), "m1")
        await session.add_compaction("theirs", "m0", "b")
        await session.set_leaf("m5")
        session.on_compaction(compacting("m2", "m3"))

        assert await session.compact() == CompactResult("sum", "m2", "m3")

    async def test_compacting_again_and_again_keeps_one_summary(self, session):
        session.on_compaction(
            create_compact_function(
                summarize=lambda prompt: "sum", protect_head=1, tail_token_budget=0
            )
        )
        for start in range(0, 30, 6):
            await fill(session, 6, start)
            assert await session.compact() is not None

        assert await shown(session) == ["m0", "S(sum)", "m28", "m29"]
        assert await session.get_path_length() == 30

    # -- what happens meanwhile --

    async def test_messages_appended_meanwhile_are_not_hidden(self, store, session):
        await fill(session, 4)

        async def slowly(messages):
            await Session(store, session_id="s").append_message(says("m4"))
            await session.append_message(says("m5"))
            return CompactResult("sum", "m0", "m3")

        session.on_compaction(slowly)
        await session.compact()

        assert await shown(session) == ["S(sum)", "m4", "m5"]

    async def test_a_branch_begun_meanwhile_is_not_hidden(self, session):
        await fill(session, 4)

        async def slowly(messages):
            await session.append_message(says("b"), "m1")
            return CompactResult("sum", "m0", "m2")

        session.on_compaction(slowly)
        await session.compact()

        assert await shown(session) == ["m0", "m1", "b"]
        assert await shown(session, "m3") == ["S(sum)", "m3"]

    @pytest.mark.parametrize(
        "meanwhile",
        [
            lambda session: session.delete_messages(["m2"]),
            lambda session: session.delete_messages(["m3"]),
            lambda session: session.delete_messages(["m1"]),
            lambda session: session.add_compaction("theirs", "m1", "m2"),
            lambda session: session.clear_messages(),
        ],
        ids=["inner deleted", "end deleted", "start deleted", "overlay", "clear"],
    )
    async def test_a_range_that_changed_meanwhile_is_not_summarised(self, session, meanwhile):
        await fill(session, 6)

        async def slowly(messages):
            await meanwhile(session)
            return CompactResult("sum", "m1", "m3")

        session.on_compaction(slowly)

        assert await session.compact() is None
        assert "sum" not in [one.summary for one in await session.get_compactions()]

    async def test_an_absorbed_summary_that_changed_meanwhile_stops_it(self, session):
        await fill(session, 8)
        await session.add_compaction("old", "m1", "m3")

        async def slowly(messages):
            await session.add_compaction("newer", "m1", "m2")
            return CompactResult("sum", "m4", "m5")

        session.on_compaction(slowly)

        assert await session.compact() is None
        assert await shown(session) == ["m0", "S(newer)", *m(3, 7)]

    @pytest.mark.parametrize(
        "meanwhile",
        [
            lambda session: session.delete_messages(["m5"]),
            lambda session: session.delete_messages(["m0"]),
            lambda session: session.add_compaction("tail", "m4", "m5"),
            lambda session: session.update_message(says("m2", "edited")),
        ],
        ids=["after it", "before it", "overlay after it", "update"],
    )
    async def test_what_happens_outside_the_range_does_not_stop_it(self, session, meanwhile):
        await fill(session, 6)

        async def slowly(messages):
            await meanwhile(session)
            return CompactResult("sum", "m1", "m3")

        session.on_compaction(slowly)

        assert await session.compact() == CompactResult("sum", "m1", "m3")

    async def test_what_happens_inside_the_function_waits_for_nothing(self, session):
        """The session's lock is not held while the function runs."""
        await fill(session, 3)

        async def busy(messages):
            await session.append_message(says("m3"))
            await session.update_message(says("m3", "new"))
            await session.set_leaf("m2")
            await session.set_leaf("m3")
            await session.delete_messages(["m3"])

        session.on_compaction(busy)
        await asyncio.wait_for(session.compact(), 10)

        assert await shown(session) == m(0, 2)

    # -- failures --

    async def test_a_function_that_raises_compacts_nothing(self, session, caplog):
        await fill(session, 2)
        session.on_compaction(lambda messages: 1 / 0)
        heard = Heard(session)

        assert await session.compact() is None

        assert heard.statuses() == ["compacting", "error", "idle"]
        assert heard.of("error") == [{"error": "division by zero"}]
        assert "division by zero" in caplog.text
        assert await session.get_compactions() == []

    @pytest.mark.parametrize(
        "answer", ["a text", {"summary": "no ends"}, CompactResult(7, "m0", "m1")]
    )
    async def test_a_function_that_answers_wrongly_has_failed(self, session, answer):
        await fill(session, 2)
        failures = []
        session.on_compaction(lambda messages: answer).on_compaction_error(failures.append)

        assert await session.compact() is None
        assert len(failures) == 1

    async def test_the_handler_is_called_once_instead_of_the_log(self, session, caplog):
        await fill(session, 2)
        failures = []

        async def handler(error):
            failures.append(error)

        session.on_compaction(lambda messages: 1 / 0).on_compaction_error(handler)
        await session.compact()

        assert [type(error) for error in failures] == [ZeroDivisionError]
        assert caplog.text == ""

    async def test_a_handler_that_raises_is_only_a_warning(self, session, caplog):
        await fill(session, 2)
        session.on_compaction(lambda messages: 1 / 0)
        session.on_compaction_error(lambda error: {}["missing"])
        heard = Heard(session)

        assert await session.compact() is None

        assert heard.statuses() == ["compacting", "error", "idle"]
        assert [record.levelno for record in caplog.records] == [logging.WARNING]

    async def test_a_refresh_that_fails_does_not_undo_a_compaction(self, store):
        broken = Broken("the prompt")
        session = Session(store, session_id="s", context=[{"label": "soul", "provider": broken}])
        await fill(session, 3)
        prompt, failures = await session.freeze_system_prompt(), []
        session.on_compaction(compacting("m0", "m1")).on_compaction_error(failures.append)
        heard = Heard(session)

        broken.is_broken = True
        assert await session.compact() == CompactResult("sum", "m0", "m1")

        assert await shown(session) == ["S(sum)", "m2"]
        assert await session.freeze_system_prompt() == prompt
        assert [str(error) for error in failures] == ["soul is broken"]
        assert heard.statuses() == ["compacting", "error", "idle compacted"]

    async def test_a_compaction_refreshes_the_prompt(self, store):
        session = Session(store, session_id="s", context=[{"label": "memory"}])
        session.with_cached_prompt().on_compaction(compacting("m0", "m1"))
        await fill(session, 3)
        await session.freeze_system_prompt()
        await session.replace_context_block("memory", "tea")

        await session.compact()

        assert "tea" in await session.freeze_system_prompt()

    # -- by itself --

    async def test_an_append_above_the_threshold_compacts(self, session):
        session.on_compaction(compacting("m0", "m1")).compact_after(20)
        await fill(session, 2)  # 14 tokens
        assert await session.get_compactions() == []

        await session.append_message(says("m2"))  # 21

        assert await shown(session) == ["S(sum)", "m2"]

    async def test_the_threshold_itself_is_not_above_it(self, session):
        session.on_compaction(compacting("m0", "m0")).compact_after(14)

        await fill(session, 2)

        assert await session.get_compactions() == []

    async def test_a_threshold_of_nothing_counts(self, session):
        session.on_compaction(compacting("m0", "m0")).compact_after(0)

        await session.append_message(says("m0"))

        assert await shown(session) == ["S(sum)"]

    async def test_a_failure_never_fails_the_append(self, session):
        session.on_compaction(lambda messages: 1 / 0).compact_after(0)

        result = await session.append_message(says("m0"))

        assert result.inserted
        assert await shown(session) == ["m0"]

    @pytest.mark.parametrize("counter", [None, lambda given: 9])
    async def test_being_unable_to_compact_is_said_once(self, session, caplog, counter):
        session.on_compaction(lambda messages: None).compact_after(0, token_counter=counter)

        await fill(session, 3)
        assert caplog.text.count("nothing was compacted") == 1
        assert ("no token counter" in caplog.text) is (counter is None)

        session.on_compaction(compacting("m0", "m1"))
        await fill(session, 1, 3)
        session.on_compaction(lambda messages: None)
        await fill(session, 2, 4)
        assert caplog.text.count("nothing was compacted") == 2

    async def test_a_failure_is_not_said_twice(self, session, caplog):
        session.on_compaction(lambda messages: 1 / 0).compact_after(0)

        await session.append_message(says("m0"))

        assert "nothing was compacted" not in caplog.text
