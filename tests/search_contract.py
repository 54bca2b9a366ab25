"""What search promises, whichever engine keeps the index. Subclass it and give an `engine` fixture."""

from __future__ import annotations

import pytest

from workspace_session import SearchHit, Workspace

STRANGE = [
    *('"', '""', '"a', 'a"b"c"', '"a ' * 500, "OR", "NOT", "a AND", "NEAR(a", "NEAR(a b)", "a*"),
    *("*", "(", ")", "^a", "-a", "+a", "~", "a~2", "a^2", "?", "a?", "[a TO b]", "{text} : a", "{"),
    *("text:x", "'", "\\", "%", ";", "; DROP TABLE words; --", "💥", "ﬁ", "＊", "  ", "a" * 10_000),
    *("\0", "\x1f", "\u0301", "\u3099", "\ud800"),
]


def said(text, role="user", **rest):
    return {"role": role, "parts": [{"type": "text", "text": text}], **rest}


def contents(hits):
    return [hit.content for hit in hits]


class SearchContract:
    """Read-your-writes over logs, one analysis, one syntax, one order."""

    @pytest.fixture
    def engine(self):
        raise NotImplementedError

    @pytest.fixture
    def workspace(self, tmp_path, engine):
        with Workspace(tmp_path / "workspace", durability="os", search=engine) as opened:
            yield opened

    @pytest.fixture
    def agent(self, workspace):
        return workspace.agent("a")

    @pytest.fixture
    def tree(self, agent):
        return agent.tree("s")

    # -- what is found -----------------------------------------------------------------------------

    def test_words_count_in_any_order(self, tree):
        tree.extend([said("we deploy on friday"), said("friday is fine"), said("we deploy daily")])

        assert contents(tree.search("friday deploy")) == ["we deploy on friday"]

    def test_a_quoted_part_counts_as_it_stands(self, tree):
        tree.extend([said("the quick brown fox"), said("a brown, quick fox")])

        assert contents(tree.search('"quick brown"')) == ["the quick brown fox"]
        assert len(tree.search("quick brown")) == 2

    def test_a_phrase_reaches_across_punctuation(self, tree):
        tree.append(said("Quick, brown!"))

        assert len(tree.search('"quick brown"')) == 1

    def test_a_phrase_with_a_repeated_word_needs_it_twice(self, tree):
        tree.extend([said("bye bye birdie"), said("bye birdie bye")])

        assert contents(tree.search('"bye bye"')) == ["bye bye birdie"]

    @pytest.mark.parametrize(
        ("query", "text"),
        [
            ("runs", "running"),
            ("running", "run"),
            ("deployment", "deployed"),
            ("deploy", "deployment"),
            ("naive cafe", "naïve café"),
            ("naïve", "NAIVE"),
            ("qux", "baz_qux"),
            ("the", "The"),
            ("t", "don't"),
            ("b c", "a.b-c@d"),
            ("strasse", "Straße"),
            ("lodz", "Łódź"),
            ("abc", "ＡＢＣ"),
            ("2", "version 2"),
        ],
    )
    def test_forms_of_a_word_find_one_another(self, tree, query, text):
        tree.append(said(text))

        assert contents(tree.search(query)) == [text]

    @pytest.mark.parametrize(
        ("text", "queries"),
        [
            (
                "用户喜欢在早上喝咖啡",
                ["用", "咖啡", "喜欢", "早上喝", "用户喜欢在早上喝咖啡", "欢在早"],
            ),
            ("東京都に住んでいます", ["東京", "京都", "都に", "住んで", "ます", "に"]),
            ("カタカナとﾊﾝｶｸ", ["カタ", "タカナ", "ハンカク", "とハ"]),
            ("한국어 문서를 찾습니다", ["한국", "국어", "문서", "서를", "찾습니다", "다"]),
            ("我用Python写代码", ["python", "写代", "用 python", "代码"]),
        ],
    )
    def test_any_part_of_an_unspaced_run_finds_it(self, tree, text, queries):
        tree.extend([said("something else"), said(text), said("ほか 他 기타")])

        for query in queries:
            assert contents(tree.search(query)) == [text], query

    def test_an_unspaced_run_is_not_found_across_a_break(self, tree):
        tree.append(said("東京。都民"))

        assert tree.search("京都") == []
        assert len(tree.search("京 都")) == 1
        assert len(tree.search('"東京 都民"')) == 1

    @pytest.mark.parametrize("query", STRANGE)
    def test_no_text_is_an_error(self, tree, query):
        tree.append(said("a b"))

        assert isinstance(tree.search(query), list)

    def test_operators_are_words(self, tree):
        tree.extend([said("trick or treat"), said("trick and treat")])

        assert contents(tree.search("trick OR treat")) == ["trick or treat"]

    def test_a_long_query_is_answered(self, tree):
        words = " ".join(f"word{number}" for number in range(3000))
        tree.extend([said(words), said("word1 word2")])

        assert contents(tree.search(words)) == [words]
        assert contents(tree.search(f'"{words}"')) == [words]

    @pytest.mark.parametrize("query", ["", "   ", "...", '"-"'])
    def test_nothing_searchable_finds_nothing(self, tree, query):
        tree.append(said("a . b"))

        assert tree.search(query) == []

    @pytest.mark.parametrize("limit", [0, -1])
    def test_no_limit_below_one_finds_anything(self, tree, limit):
        tree.append(said("word"))

        assert tree.search("word", limit) == []

    def test_a_limit_cuts_and_the_total_does_not(self, tree):
        tree.extend([said(f"word {number}") for number in range(30)])

        assert len(tree.search("word")) == 20
        assert len(tree.search("word", 5)) == 5
        assert tree.search("word", 5).total == 30
        assert len(tree.search("word", None)) == 30

    # -- hits --------------------------------------------------------------------------------------

    def test_a_hit_says_where_it_is_and_what_it_says(self, workspace):
        tree = workspace.agent("researcher", user="bob").tree("trip")
        entry = tree.append(said("Let us go to  Rome\non Friday", "assistant")).entry

        (hit,) = tree.search("rome friday")

        assert hit == SearchHit(
            session_id="trip",
            agent_id="researcher",
            user_id="bob",
            message_id=entry.id,
            role="assistant",
            content="Let us go to  Rome\non Friday",
            snippet="Let us go to **Rome** on **Friday**",
            score=hit.score,
            created_at=entry.timestamp,
        )
        assert hit.score > 0

    def test_texts_are_joined_and_tools_left_out(self, tree):
        parts = [
            {"type": "text", "text": "looking"},
            {
                "type": "tool-find",
                "toolCallId": "c",
                "input": {"q": "needle"},
                "output": "haystack",
            },
            {"type": "text", "text": "found"},
        ]
        tree.append({"role": "assistant", "parts": parts})

        assert contents(tree.search("looking found")) == ["looking\nfound"]
        assert tree.search("needle") == []
        assert tree.search("haystack") == []

    def test_everything_looks_through_tools_and_summaries_too(self, tree):
        tool = {"type": "tool-find", "toolCallId": "c", "input": {"q": "needle"}, "output": "hay"}
        first = tree.append({"role": "assistant", "parts": [tool], "id": "m1"}).entry.id
        tree.append(said("a needle was said", id="m2"))
        overlay = tree.compact("a summary with a needle", first, first)

        found = tree.search("needle", everything=True)

        assert {hit.message_id for hit in found} == {"m1", "m2", overlay.message["id"]}
        assert [hit.message_id for hit in tree.search("needle")] == ["m2"]
        assert [hit.content for hit in tree.search("hay", everything=True)] == [
            'find {"q":"needle"}\nhay'
        ]

    def test_everything_may_find_one_word_in_a_text_and_one_in_a_tool(self, tree):
        tool = {"type": "tool-find", "toolCallId": "c", "output": "haystack"}
        tree.append({"role": "assistant", "parts": [{"type": "text", "text": "look"}, tool]})

        assert len(tree.search("look haystack", everything=True)) == 1

    def test_the_time_of_a_hit_is_the_messages_own(self, tree):
        tree.append(said("old news", createdAt="2020-01-02T03:04:05Z"))

        assert tree.search("news")[0].created_at == "2020-01-02T03:04:05.000000Z"

    def test_dialects_are_understood(self, tree):
        tree.append(
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "responses api"}],
            }
        )
        tree.append({"role": "user", "content": "chat completions api"})

        assert len(tree.search("api")) == 2

    # -- order -------------------------------------------------------------------------------------

    def test_the_rarer_word_weighs_more(self, tree):
        tree.extend([said("common filler text") for _ in range(20)])
        tree.extend([said("common common rare"), said("common rare rare")])

        assert contents(tree.search("common rare"))[0] == "common rare rare"

    def test_a_shorter_message_with_the_word_comes_first(self, tree):
        tree.extend([said("filler") for _ in range(10)])
        tree.extend([said("budget " + "and much else " * 30), said("budget approved")])

        assert contents(tree.search("budget"))[0] == "budget approved"

    def test_more_of_the_word_comes_first(self, tree):
        tree.extend([said("filler") for _ in range(10)])
        tree.extend(
            [said("budget of one two three four"), said("budget budget one two three four")]
        )

        assert contents(tree.search("budget"))[0].startswith("budget budget")

    def test_of_equals_the_newest_comes_first(self, agent):
        ids = [agent.tree(f"s{number}").append(said("same words")).entry.id for number in (2, 1, 3)]

        assert [hit.message_id for hit in agent.search("same")] == ids[::-1]

    def test_newest_first_orders_by_time(self, agent):
        agent.tree("s").extend([said("word word word"), said("filler"), said("a word")])

        assert contents(agent.search("word", newest_first=True)) == ["a word", "word word word"]

    def test_of_equally_new_ones_session_and_id_decide(self, agent):
        same = "2026-01-01T00:00:00Z"
        for session in ("t", "s"):
            for own in ("c", "a", "b"):
                agent.tree(session).append(said(f"word {own}", id=own, createdAt=same))

        found = agent.search("word", 5, newest_first=True)

        assert [(hit.session_id, hit.message_id) for hit in found] == [
            *(("s", "a"), ("s", "b"), ("s", "c"), ("t", "a"), ("t", "b"))
        ]
        assert found.total == 6
        assert {hit.score for hit in found} == {0.0}

    # -- filters -----------------------------------------------------------------------------------

    def test_filters_narrow_a_search_down(self, workspace):
        for agent in ("a", "b"):
            for session in ("s", "t"):
                tree = workspace.agent(agent).tree(session)
                tree.append(said("word", "user", createdAt=f"2026-01-0{len(session)}T00:00:00Z"))
                tree.append(said("word", "assistant", createdAt="2026-02-01T00:00:00Z"))

        assert len(workspace.search("word")) == 8
        assert len(workspace.search("word", agent="a")) == 4
        assert len(workspace.search("word", session="s")) == 4
        assert len(workspace.search("word", agent="b", session="t")) == 2
        assert len(workspace.search("word", role="assistant")) == 4
        assert len(workspace.search("word", role="tool")) == 0
        assert len(workspace.search("word", agent="nobody")) == 0
        assert len(workspace.agent("a").search("word", session="t", role="user")) == 1
        assert len(workspace.agent("a").tree("t").search("word", role="user")) == 1

    def test_since_counts_and_until_does_not(self, tree):
        for day in (1, 2, 3):
            tree.append(said(f"word {day}", createdAt=f"2026-01-0{day}T00:00:00Z"))

        assert len(tree.search("word", since="2026-01-02")) == 2
        assert contents(tree.search("word", until="2026-01-02T00:00:00+00:00")) == ["word 1"]
        assert contents(tree.search("word", since="2026-01-02", until="2026-01-03")) == ["word 2"]

    def test_what_is_no_time_and_no_filter_is_refused(self, tree):
        with pytest.raises(ValueError, match="not a time"):
            tree.search("word", since="yesterday")
        with pytest.raises(TypeError, match="rol"):
            tree.search("word", rol="user")

    # -- changes -----------------------------------------------------------------------------------

    def test_an_update_replaces_the_text_and_keeps_the_time(self, tree):
        entry = tree.append(said("before")).entry
        assert len(tree.search("before")) == 1

        tree.update(entry.id, said("after", "assistant"))

        assert tree.search("before") == []
        (hit,) = tree.search("after")
        assert (hit.message_id, hit.role, hit.created_at) == (
            entry.id,
            "assistant",
            entry.timestamp,
        )

    def test_an_update_before_the_first_search_counts_too(self, tree):
        entry = tree.append(said("before", createdAt="2020-01-01T00:00:00Z")).entry
        tree.update(entry.id, said("between"))
        tree.update(entry.id, said("after"))

        assert tree.search("before") == tree.search("between") == []
        assert tree.search("after")[0].created_at == "2020-01-01T00:00:00.000000Z"

    def test_words_that_an_update_brings_to_a_silent_message_are_found(self, tree):
        entry = tree.append({"role": "user", "parts": []}).entry
        assert tree.search("words") == []

        tree.update(entry.id, said("words"))

        assert len(tree.search("words")) == 1

    def test_deleted_messages_are_not_found(self, tree):
        first, second = (tree.append(said(f"word {name}")).entry.id for name in "ab")
        assert len(tree.search("word")) == 2

        tree.delete([first])

        assert [hit.message_id for hit in tree.search("word")] == [second]

    def test_a_clear_hides_everything_before_it(self, tree):
        tree.append(said("word one"))
        assert len(tree.search("word")) == 1
        tree.append(said("word two"))
        tree.clear()
        tree.append(said("word three"))

        assert contents(tree.search("word")) == ["word three"]

    def test_an_id_may_be_used_again_after_a_delete_and_after_a_clear(self, tree):
        tree.append(said("first", id="m"))
        assert len(tree.search("first")) == 1
        tree.delete(["m"])
        tree.append(said("second", id="m"))
        assert len(tree.search("second")) == 1
        tree.clear()
        tree.append(said("third", id="m"))

        assert tree.search("first") == tree.search("second") == []
        assert [hit.message_id for hit in tree.search("third")] == ["m"]

    def test_all_branches_and_compacted_messages_are_covered(self, tree):
        root = tree.append(said("root word")).entry.id
        tree.append(said("left word"))
        tree.append(said("right word"), parent=root)
        tree.compact("all in all", root, root)
        tree.trim()

        assert len(tree.search("word")) == 3
        assert tree.search("all in all") == []

    def test_a_search_sees_every_append(self, tree):
        for number in range(30):
            tree.append(said(f"common word{number}"))

            assert len(tree.search(f"word{number}")) == 1
            assert len(tree.search("common", None)) == number + 1

    def test_another_handles_writes_are_seen(self, workspace, tree):
        tree.append(said("mine"))
        assert len(tree.search("mine")) == 1

        with Workspace(workspace.root, durability="os") as other:
            other.agent("a").tree("s").append(said("theirs"))
            assert len(other.agent("a").search("mine")) == 1

            assert len(tree.search("theirs")) == 1

    # -- sessions and namespaces -------------------------------------------------------------------

    def test_a_deleted_session_is_not_found_and_a_restored_one_is(self, agent, tree):
        tree.append(said("word"))
        agent.tree("other").append(said("word"))
        assert len(agent.search("word")) == 2

        agent.delete("s")
        assert [hit.session_id for hit in agent.search("word")] == ["other"]
        agent.restore("s")
        assert len(agent.search("word")) == 2

    def test_a_session_that_is_restored_before_the_next_search_is_found(self, agent, tree):
        tree.append(said("word"))
        assert len(agent.search("word")) == 1

        agent.delete("s")
        agent.restore("s")

        assert len(agent.search("word")) == 1

    def test_a_session_that_is_made_anew_has_only_its_own_messages(self, agent, tree):
        tree.append(said("old word"))
        assert len(agent.search("word")) == 1

        agent.delete("s")
        agent.tree("s").append(said("new word"))

        assert contents(agent.search("word")) == ["new word"]

    def test_no_user_sees_anothers_text(self, workspace):
        for user in (None, "bob", "eve"):
            workspace.agent("a", user=user).tree("s").append(said(f"secret of {user}"))

        assert contents(workspace.search("secret")) == ["secret of None"]
        assert contents(workspace.search("secret", user="bob")) == ["secret of bob"]
        assert contents(workspace.agent("a", user="eve").search("secret")) == ["secret of eve"]
        assert contents(workspace.agent("a").tree("s").search("secret")) == ["secret of None"]

    def test_ids_of_any_kind_are_found(self, workspace):
        for session in ("x.log", "..", "a/b", "Ü", "con", "-", "s p"):
            workspace.agent("agent/1").tree(session).append(said("word", id=f"id of {session}"))

        found = workspace.search("word", None)

        assert {hit.session_id for hit in found} == {"x.log", "..", "a/b", "Ü", "con", "-", "s p"}
        assert {hit.agent_id for hit in found} == {"agent/1"}
        assert [hit.message_id for hit in workspace.search("word", session="a/b")] == ["id of a/b"]

    def test_an_empty_workspace_has_no_hits_and_makes_no_index(self, workspace):
        assert workspace.search("word") == []
        assert workspace.agent("a").tree("s").search("word") == []
        assert not workspace.layout.search.exists()
