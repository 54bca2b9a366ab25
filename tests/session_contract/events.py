"""What listeners are told."""

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
    Session,
    estimate_message_tokens,
)


class EventContract(AsyncTests):
    async def test_listeners_hear_of_an_append_in_order(self, session):
        heard, order = Heard(session), []
        session.subscribe(lambda event: order.append(("first", event.type)))

        async def second(event):
            await asyncio.sleep(0)
            order.append(("second", event.type))

        session.subscribe(second)
        await session.append_message(says("m0"))

        assert order == [
            ("first", "append"), ("second", "append"), ("first", "status"), ("second", "status"),
        ]  # fmt: skip
        assert {event.session_id for event in heard} == {"s"}

    async def test_an_append_tells_message_and_parent(self, session):
        heard = Heard(session)
        results = [
            await session.append_message(says("m0")),
            await session.append_message(says("m1")),
            await session.append_message(says("b"), "m0"),
            await session.append_message(says("r"), None),
            await session.append_message(says("m1", "other")),
        ]

        assert heard.of("append") == [
            {"message": result.message, "parent_id": parent, "inserted": inserted}
            for result, parent, inserted in zip(
                results,
                [None, "m0", "m0", None, "m0"],
                [True, True, True, True, False],
                strict=True,
            )
        ]

    async def test_a_duplicate_tells_what_it_hangs_from_now(self, session):
        await fill(session, 3)
        await session.delete_messages(["m1"])
        heard = Heard(session)

        await session.append_message(says("m2"))

        assert heard.of("append")[0]["parent_id"] == "m0"

    async def test_every_change_tells_what_it_did(self, session):
        await fill(session, 4)
        heard = Heard(session)

        updated = await session.update_message(says("m0", "new"))
        await session.set_leaf("m2")
        overlay = await session.add_compaction("sum", "m0", "m1")
        await session.delete_messages(["m3", "nobody"])
        session.on_compaction(compacting("m2", "m2"))
        result = await session.compact()
        await session.clear_messages()

        assert heard.of("update") == [{"message": updated}]
        assert heard.of("leaf") == [{"message_id": "m2"}]
        assert heard.of("compaction") == [{"compaction": overlay}]
        assert heard.of("delete") == [{"message_ids": ["m3"]}]
        assert heard.of("compact") == [{"result": result}]
        assert heard.of("clear") == [{}]
        assert heard.kinds() == [
            "update", "idle", "leaf", "idle", "compaction", "delete", "idle",
            "compacting", "compact", "idle compacted", "clear", "idle",
        ]  # fmt: skip

    async def test_a_duplicate_is_followed_by_a_status(self, session):
        await fill(session, 1)
        heard = Heard(session)

        await session.append_message(says("m0"))

        assert heard.kinds() == ["append", "idle"]

    async def test_a_status_tells_estimate_and_threshold(self, session):
        heard = Heard(session)
        await session.append_message(says("m0"))
        session.compact_after(50)
        await session.append_message(says("m1"))

        assert heard.of("status") == [
            {"phase": "idle", "token_estimate": 7, "token_threshold": None},
            {"phase": "idle", "token_estimate": 14, "token_threshold": 50},
        ]

    async def test_an_append_that_compacts_tells_all_of_it(self, session):
        await fill(session, 3)
        session.on_compaction(compacting("m0", "m2")).compact_after(20)
        heard = Heard(session)

        await session.append_message(says("m3"))

        assert heard.kinds() == [
            "append", "idle", "compacting", "compact", "idle compacted",
        ]  # fmt: skip
        before, during, after = heard.of("status")
        assert before["token_estimate"] == during["token_estimate"] == 28
        assert after == {
            "phase": "idle",
            "token_estimate": estimate_message_tokens(await session.get_history()),
            "token_threshold": 20,
            "compacted": {"tokens_before": 28},
        }

    @pytest.mark.parametrize(
        ("function", "wanted"),
        [
            (lambda messages: None, ["idle", "compacting", "idle"]),
            (lambda messages: 1 / 0, ["idle", "compacting", "error", "idle"]),
        ],
        ids=["nothing to compact", "function raised"],
    )
    async def test_an_append_that_does_not_compact_ends_idle(self, session, function, wanted):
        session.on_compaction(function).compact_after(0)
        heard = Heard(session)

        await session.append_message(says("m0"))

        assert heard.statuses() == wanted

    async def test_a_listener_may_use_the_session(self, session):
        seen = []

        async def answer(event):
            if event.type == "append" and event.data["message"]["role"] == "user":
                await session.append_message(says("reply", role="assistant"))
                seen.append(await shown(session))

        session.subscribe(answer)
        await asyncio.wait_for(session.append_message(says("m0")), 10)

        assert seen == [["m0", "reply"]]

    async def test_a_listener_that_raises_harms_nobody(self, session, caplog):
        session.subscribe(lambda event: 1 / 0)
        heard = Heard(session)

        result = await session.append_message(says("m0"))

        assert result.inserted
        assert heard.kinds() == ["append", "idle"]
        assert "ZeroDivisionError" in caplog.text

    async def test_a_listener_that_is_cancelled_cancels(self, session):
        def cancel(event):
            raise asyncio.CancelledError

        session.subscribe(cancel)

        with pytest.raises(asyncio.CancelledError):
            await session.append_message(says("m0"))
        assert await shown(session) == ["m0"]

    async def test_a_listener_can_be_stopped(self, session):
        heard, twice = Heard(session), []
        stops = [session.subscribe(twice.append), session.subscribe(twice.append)]

        heard.stop()
        heard.stop()
        stops[0]()
        await session.append_message(says("m0"))

        assert heard == []
        assert len(twice) == 2

    async def test_a_listener_that_is_stopped_hears_no_more_not_even_of_what_is_being_told(
        self, session
    ):
        session.subscribe(lambda event: heard.stop())
        heard = Heard(session)

        await session.append_message(says("m0"))

        assert heard == []

    async def test_events_are_of_this_object_alone(self, store, session):
        heard = Heard(session)

        await Session(store, session_id="s").append_message(says("m0"))

        assert heard == []
