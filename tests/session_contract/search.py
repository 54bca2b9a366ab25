"""Searching what was said, in one session and in all of them."""

from __future__ import annotations

import asyncio

import pytest

from session_contract.talk import AsyncTests, fill, m, says
from workspace_session import Session, SessionDeleted, SessionManager


async def found(searcher, query, *limit):
    """The ids of the messages that are found, whatever their order."""
    return sorted(hit.message_id for hit in await searcher.search(query, *limit))


class SearchContract(AsyncTests):
    async def test_all_words_have_to_occur_in_any_order(self, session):
        await session.append_message(says("m0", "the deploy is on friday"))
        await session.append_message(says("m1", "friday is fish day"))
        await session.append_message(says("m2", "deploy everything"))

        assert await found(session, "friday deploy") == ["m0"]
        assert await found(session, "friday") == ["m0", "m1"]
        assert await found(session, "friday monday") == []

    async def test_a_quoted_part_has_to_occur_as_it_stands(self, session):
        await session.append_message(says("m0", "the red car stops"))
        await session.append_message(says("m1", "the car is red"))
        await session.append_message(says("m2", "a red and fast car"))

        assert await found(session, '"red car"') == ["m0"]
        assert await found(session, '"red car" stops') == ["m0"]
        assert await found(session, '"the" "red car" goes') == []
        assert await found(session, "red car") == ["m0", "m1", "m2"]
        assert await found(session, 'red "car') == ["m0", "m1", "m2"]

    @pytest.mark.parametrize(
        "query",
        [
            "alpha OR beta",
            "alpha NOT beta",
            "role:user",
            "NEAR(alpha beta)",
            "alph*",
            "alpha AND beta",
        ],
    )
    async def test_there_is_no_other_syntax(self, session, query):
        await session.append_message(says("m0", "alpha"))
        await session.append_message(says("m1", query))

        assert await found(session, query) == ["m1"]

    @pytest.mark.parametrize(
        "query",
        ["", "   ", '"', '""', "!?", "()", "*", "\x00", "'; DROP TABLE", "a" * 5000, "\ud800"],
    )
    async def test_no_query_raises(self, session, query):
        await fill(session, 1)

        assert await session.search(query) == []

    @pytest.mark.parametrize("limit", [0, -1])
    async def test_a_limit_of_nothing_finds_nothing(self, session, manager, limit):
        await fill(session, 1)

        assert await session.search("hello", limit) == []
        assert await manager.search("hello", limit) == []

    async def test_no_more_are_found_than_were_asked_for(self, session):
        await fill(session, 30)

        assert len(await session.search("hello")) == 20
        assert len(await session.search("hello", 3)) == 3
        assert len(await session.search("hello", 100)) == 30

    @pytest.mark.parametrize(
        ("said", "query"),
        [
            *(("they run", word) for word in ("run", "runs", "running", "RUN")),
            *(("a deployment", word) for word in ("deploy", "deployed", "deployment")),
            ("naïve café", "naive cafe"),
            ("naive cafe", "naïve café"),
            ("baz_qux", "qux"),
            ("The end", "the"),
            ("plan B", "b"),
            ("mail me@example.org", "example"),
            ("don't", "don"),
            ("用户喜欢咖啡", "喜欢"),
            ("用户喜欢咖啡", "咖"),
            ("用户喜欢咖啡", "用户喜欢咖啡"),
            ("用python写", "写"),
            ("用python写", "python"),
            ("コーヒーが好き", "が好"),
            ("커피를 좋아", "커피"),
        ],
    )
    async def test_words_are_found_in_their_forms(self, session, said, query):
        await session.append_message(says("m0", said))
        await session.append_message(says("m1", "something else"))

        assert await found(session, query) == ["m0"]

    async def test_scripts_without_spaces_are_not_found_out_of_order(self, session):
        await session.append_message(says("m0", "用户喜欢咖啡"))

        assert await found(session, "欢喜") == []

    # -- what is searched --

    async def test_what_is_said_is_searched_and_nothing_else(self, session):
        parts = [
            {"type": "text", "text": "first"},
            {"type": "reasoning", "text": "thinking"},
            {"type": "tool-x", "toolCallId": "c", "input": {"q": "given"}, "output": "gotten"},
            {"type": "text", "text": "second"},
        ]
        await session.append_message({"id": "m0", "role": "rolename", "parts": parts})

        (hit,) = await session.search("first second")
        assert hit.content == "first\nsecond"
        for word in ("thinking", "given", "gotten", "rolename"):
            assert await found(session, word) == []

    async def test_other_branches_and_what_is_hidden_are_searched(self, session):
        await fill(session, 4)
        await session.append_message(says("b", "elsewhere"), "m0")
        await session.set_leaf("m3")
        await session.add_compaction("a summary says", "m0", "m2")

        assert await found(session, "hello") == m(0, 3)
        assert await found(session, "elsewhere") == ["b"]
        assert await found(session, "summary") == []

    async def test_what_was_taken_away_is_not_found(self, session):
        await session.append_message(says("m0", "alpha"))
        await session.append_message(says("m1", "alpha"))
        await session.append_message(says("m2", "alpha"))
        await session.delete_messages(["m0"])
        await session.update_message(says("m1", "beta"))

        assert await found(session, "alpha") == ["m2"]
        assert await found(session, "beta") == ["m1"]
        await session.clear_messages()
        assert await found(session, "alpha") == []
        await session.append_message(says("m0", "alpha"))
        assert await found(session, "alpha") == ["m0"]

    async def test_a_search_sees_every_write_before_it(self, store, session):
        other = Session(store, session_id="s")
        for number in range(5):
            await other.append_message(says(f"m{number}", f"word{number}"))
            assert await found(session, f"word{number}") == [f"m{number}"]

    # -- hits --

    async def test_a_hit_tells_where_it_is_from(self, session):
        stored = (await session.append_message(says("m0", "alpha beta", "assistant"))).message

        (hit,) = await session.search("beta")

        assert (hit.session_id, hit.message_id, hit.role) == ("s", "m0", "assistant")
        assert (hit.content, hit.snippet) == ("alpha beta", "alpha **beta**")
        assert hit.created_at == stored["createdAt"]
        assert hit.score > 0

    async def test_a_hit_tells_the_time_of_creation_in_one_form(self, session):
        await session.append_message(says("m0", "alpha", createdAt="2020-01-01T02:00:00+02:00"))
        await session.update_message(says("m0", "beta"))

        (hit,) = await session.search("beta")

        assert hit.created_at == "2020-01-01T00:00:00.000000Z"

    async def test_a_snippet_is_the_part_that_matches_on_one_line(self, session):
        await session.append_message(says("m0", "filler words\n" * 200 + "needle" + "\nmore" * 200))

        (hit,) = await session.search("needle")

        assert "**needle**" in hit.snippet
        assert hit.snippet.startswith("…")
        assert hit.snippet.endswith("…")
        assert "\n" not in hit.snippet
        assert len(hit.snippet) < 250

    async def test_the_best_come_first_and_of_equals_the_newest(self, session):
        await session.append_message(says("weak", "needle " + "hay " * 300))
        await session.append_message(says("old", "needle and thread"))
        await session.append_message(says("new", "needle and thread"))

        hits = await session.search("needle")

        assert [hit.message_id for hit in hits] == ["new", "old", "weak"]
        assert sorted((hit.score for hit in hits), reverse=True) == [hit.score for hit in hits]

    # -- all sessions --

    async def test_a_session_finds_its_own_and_a_manager_all(self, store, session, manager):
        await session.append_message(says("m0", "alpha here"))
        await Session(store, session_id="t").append_message(says("m0", "alpha there"))

        assert [hit.content for hit in await session.search("alpha")] == ["alpha here"]
        hits = await manager.search("alpha")
        assert sorted((hit.session_id, hit.content) for hit in hits) == [
            ("s", "alpha here"),
            ("t", "alpha there"),
        ]
        assert len({(hit.agent_id, hit.user_id) for hit in hits}) == 1

    async def test_a_deleted_session_is_not_found(self, store, session, manager):
        await session.append_message(says("m0", "alpha"))
        await Session(store, session_id="t").append_message(says("m0", "alpha"))
        assert len(await manager.search("alpha")) == 2

        await manager.delete("s")

        assert [hit.session_id for hit in await manager.search("alpha")] == ["t"]
        with pytest.raises(SessionDeleted):
            await session.search("alpha")

    async def test_a_fork_is_found_too(self, session, manager):
        await session.append_message(says("m0", "alpha"))
        child = await manager.fork("s", "m0", "Fork")

        hits = await manager.search("alpha")

        assert sorted(hit.session_id for hit in hits) == sorted(["s", child.id])

    async def test_the_tool_shows_who_said_what_where(self, session, manager):
        tool = (await manager.tools())["session_search"]
        assert await tool.execute(query="alpha") == "No results found."

        await session.append_message(says("m0", "alpha one"))
        await session.append_message(says("m1", "alpha two", "assistant"))

        items = (await tool.execute(query="alpha")).split("\n---\n")
        assert sorted(items) == [
            "[assistant] alpha two\n(session s)",
            "[user] alpha one\n(session s)",
        ]

    async def test_the_tool_shows_the_best_ten(self, session, manager):
        await fill(session, 15)
        tool = (await manager.tools())["session_search"]

        assert (await tool.execute(query="hello")).count("(session s)") == 10

    async def test_the_tool_shows_of_a_long_text_what_is_around_the_match(self, session, manager):
        await session.append_message(says("m0", "hay " * 2000 + "needle" + " hay" * 2000))
        tool = (await manager.tools())["session_search"]

        text = (await tool.execute(query="needle")).split("\n")[0].removeprefix("[user] ")

        assert "needle" in text
        assert text.startswith("…")
        assert text.endswith("…")
        assert len(text) == 2002

    async def test_a_session_searches_all_sessions_from_its_history_block(self, store):
        manager = SessionManager.create(store).with_searchable_history("history")
        await manager.append("s", says("m0", "alpha"))
        search = (await (await manager.get_session("t")).tools())["search_context"]

        assert await search.execute(label="history", query="alpha") == "[user] alpha\n(session s)"
        assert await search.execute(label="history", query="omega") == "No results found."

    async def test_searches_and_writes_at_the_same_time_get_on(self, store, session):
        async def write(number):
            await session.append_message(says(f"m{number}", f"alpha word{number}"))
            assert await found(session, f"word{number}") == [f"m{number}"]

        await asyncio.gather(*(write(number) for number in range(10)))

        assert await found(session, "alpha") == sorted(m(0, 9))
