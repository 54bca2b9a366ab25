"""What is passed wrongly: one clear sentence, at once, and nothing has changed."""

from __future__ import annotations

import math

import pytest

from session_contract.talk import AsyncTests, fill, says, shown
from workspace_session import InvalidCompaction, InvalidMessage, Session, SessionManager

SETTINGS = {
    "a threshold is a number": lambda built: built.compact_after("100"),
    "a threshold is a number, not NaN": lambda built: built.compact_after(math.nan),
    "a token_counter is a function": lambda built: built.compact_after(5, token_counter=5),
    "a compaction function is a function": lambda built: built.on_compaction("summarise"),
    "an error handler is a function": lambda built: built.on_compaction_error("print"),
    "a label is a text": lambda built: built.with_context(5),
    "a description is a text": lambda built: built.with_context("memory", description=5),
    "max_tokens is a whole number": lambda built: built.with_context("memory", max_tokens="5"),
    r"has no get\(\)": lambda built: built.with_context("memory", provider=object()),
}
ARGUMENTS = {
    "session_id": ("a session id is a text", 5),
    "on_compaction": ("a compaction function is a function", "summarise"),
    "compact_after": ("a threshold is a number", "100"),
    "token_counter": ("a token_counter is a function", 5),
    "on_compaction_error": ("an error handler is a function", "print"),
}
CALLS = {
    "get_message": ("a message id is a text", [["m0"]]),
    "get_history": ("a leaf_id is a text", [["m0"]]),
    "get_path_length": ("a leaf_id is a text", [5]),
    "get_branches": ("a message id is a text", [["m0"]]),
    "get_recent_history": ("max_content_bytes is a number", ["100"]),
    "search": ("a query is a text", [5]),
    "append_message": ("a parent_id is a text", [says("new"), 5]),
    "delete_messages": ("a message id is a text", [["m0", None]]),
    "set_leaf": ("a message id is a text", [None]),
    "add_compaction": ("a summary is a text", [None, "m0", "m1"]),
    "compact": ("a leaf_id is a text", [5]),
}
MANAGED = {
    "create": ("a name is a text", [5]),
    "rename": ("a name is a text", ["s", None]),
    "get_session": ("a session id is a text", [None]),
    "append": ("a session id is a text", [None, says("new")]),
    "add_usage": ("input_tokens is a whole number", ["s", "many", 0]),
    "fork": ("a name is a text", ["s", "m0", None]),
    "compact_and_split": ("a summary is a text", ["s", None]),
    "search": ("a limit is a number", ["hello", "ten"]),
}


class WrongUseContract(AsyncTests):
    @pytest.mark.parametrize("sentence", SETTINGS)
    def test_a_setting_is_refused_where_it_is_made(self, store, sentence):
        for built in (Session.create(store), SessionManager.create(store)):
            with pytest.raises((TypeError, ValueError), match=sentence):
                SETTINGS[sentence](built)

    @pytest.mark.parametrize("name", ARGUMENTS)
    def test_the_constructor_refuses_what_builders_do(self, store, name):
        sentence, value = ARGUMENTS[name]

        with pytest.raises(TypeError, match=sentence):
            Session(store, **{name: value})

    def test_a_session_has_a_name_and_listeners_are_called(self, store):
        with pytest.raises(TypeError, match="a session id is a text, not int"):
            Session.create(store).for_session(5)
        with pytest.raises(TypeError, match="a listener is a function, not NoneType"):
            Session.create(store).subscribe(None)

    @pytest.mark.parametrize("name", CALLS)
    async def test_a_call_that_is_refused_has_done_nothing(self, store, name):
        session = await fill(Session(store, session_id="s", on_compaction=print), 2)
        sentence, arguments = CALLS[name]

        with pytest.raises(TypeError, match=sentence):
            await getattr(session, name)(*arguments)

        assert await shown(session) == ["m0", "m1"]

    @pytest.mark.parametrize("name", MANAGED)
    async def test_a_manager_that_refuses_has_done_nothing(self, manager, name):
        await manager.append("s", says("m0"))
        before = await manager.list()
        sentence, arguments = MANAGED[name]

        with pytest.raises(TypeError, match=sentence):
            await getattr(manager, name)(*arguments)

        assert await manager.list() == before

    @pytest.mark.parametrize("usage", [(-1, 0), (0, -1), (0, 0, -0.1), (0, 0, math.inf)])
    async def test_usage_is_never_taken_back(self, manager, usage):
        await manager.append("s", says("m0"))

        with pytest.raises(ValueError, match="zero or more"):
            await manager.add_usage("s", *usage)

    @pytest.mark.parametrize("name", ["", "a\0b", "\ud800"])
    async def test_what_can_name_no_file_names_no_session(self, manager, name):
        for ask in (manager.get, manager.get_session, manager.delete):
            with pytest.raises(ValueError, match="invalid session id"):
                await ask(name)

        assert await manager.list() == []

    async def test_an_id_that_is_half_a_character_is_no_duplicate_of_another(self, session):
        for half in "\ud800\ud801":
            with pytest.raises(InvalidMessage, match="not valid Unicode"):
                await session.append_message(says(half))

        assert await shown(session) == []

    async def test_a_blank_summary_stands_in_for_nothing(self, session):
        await fill(session, 2)

        for blank in ("", " \n"):
            with pytest.raises(InvalidCompaction, match="blank"):
                await session.add_compaction(blank, "m0", "m1")

        assert await session.get_compactions() == []
