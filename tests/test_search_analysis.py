"""From texts to tokens, from queries to clauses, from matches to snippets."""

from __future__ import annotations

import sysconfig
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from workspace_session.search import Query, rank, snippet
from workspace_session.search.analysis import located, tokens
from workspace_session.search.query import starts
from workspace_session.search.snippets import matches
from workspace_session.search.stemming import stem

ODD = "aZ é\u0301か\u3099がｶﾞﾟ한\u1112\u1161\u11ab\u1100\u116eß Åﬁ①ू्ह東京，_İΣς\u00ad\u200d\n"
texts = st.text() | st.text(st.sampled_from(ODD), max_size=12)


# -- stems -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stemmed", "words"),
    [
        ("run", "run runs running"),
        ("deploy", "deploy deploys deployed deploying deployment"),
        ("connect", "connect connected connecting connection connections"),
        ("happi", "happy happiness"),
        ("hope", "hope hoped hoping"),
        ("hop", "hop hopped hopping"),
        ("generat", "generate generated generation"),
        ("general", "general generally generalization"),
        ("die", "dying die died dies"),
        ("sky", "sky skies"),
        ("news", "news"),
        ("agre", "agreed agrees agreeing"),
        ("troubl", "trouble troubled troubling"),
    ],
)
def test_forms_of_an_english_word_have_one_stem(stemmed, words):
    assert {stem(word) for word in words.split()} == {stemmed}


def test_stems_are_those_of_another_implementation_on_the_words_of_real_texts():
    from whoosh.lang.porter2 import stem as other

    found = {word for text in real_texts(400) for word in tokens_without_stems(text)}

    assert len(found) > 10_000
    assert [word for word in sorted(found) if stem(word) != other(word)] == []


@given(st.text(st.sampled_from("aeiouybdgstlnmr"), max_size=12))
@example("yyy")
@example("ayy")
def test_stems_are_those_of_another_implementation_on_any_word(word):
    from whoosh.lang.porter2 import stem as other

    assert stem(word) == other(word)


def real_texts(count: int):
    """Files that were installed with this Python: documentation, and code."""
    library = Path(sysconfig.get_paths()["stdlib"])
    for path in islice(sorted(library.glob("*.py")), count):
        yield path.read_text("utf-8", "replace")


def tokens_without_stems(text: str) -> set[str]:
    words = "".join(char if char.isalnum() else " " for char in text.lower()).split()
    return {word for word in words if word.isascii() and word.isalpha()}


# -- tokens ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The quick-brown fox's", "the quick brown fox s"),
        ("baz_qux a.b c@d", "baz qux a b c d"),
        ("naïve café ÉCOLE", "naiv cafe ecol"),
        ("e\u0301cole", "ecol"),
        ("Straße Łódź Ærø", "strass lodz aero"),
        ("ﬁle ＡＢ１２ ① ½", "file ab12 1 1 2"),
        ("Привет Ёлка", "привет елка"),
        ("हिन्दी भाषा", "हिन्दी भाषा"),
        ("co\u00adoperate", "cooper"),
        ("東京都", "東 東京 京 京都 都"),
        ("ｶﾞｷﾞ ガギ か\u3099き\u3099", "ガ ガギ ギ ガ ガギ ギ が がぎ ぎ"),
        ("한국어", "한 한국 국 국어 어"),
        ("\u1112\u1161\u11ab\u1100\u116e\u11a8", "한 한국 국"),
        ("我用Python3写", "我 我用 用 python3 写"),
        ("v2.0 gpt4s", "v2 0 gpt4s"),
        ("\0\ud800 —…", ""),
        ("x" * 500, "x" * 128),
    ],
)
def test_a_text_has_these_tokens(text, found):
    assert " ".join(tokens(text)) == found


@given(texts)
def test_where_tokens_stand_is_known_of_each_of_them(text):
    found = list(located(text))

    assert [token.text for token in found] == list(tokens(text))
    assert all(0 <= token.start < token.end <= len(text) for token in found)
    assert [token.start for token in found] == sorted(token.start for token in found)


@given(texts, texts)
def test_tokens_need_only_what_is_between_two_breaks(left, right):
    assert list(tokens(f"{left}\n{right}")) == [*tokens(left), *tokens(right)]


@given(st.text(st.sampled_from("東京都民用户かなカナ한국어"), min_size=1, max_size=12), st.data())
def test_any_part_of_an_unspaced_run_is_found_in_it(run, data):
    start = data.draw(st.integers(0, len(run) - 1))
    part = run[start : data.draw(st.integers(start + 1, len(run)))]

    assert len(rank(Query.of(part), [run])) == 1


@given(
    st.text(st.sampled_from("東京都x，"), max_size=8),
    st.text(st.sampled_from("東京都"), min_size=1),
)
def test_what_is_no_part_of_an_unspaced_run_is_not_found(text, part):
    assert bool(rank(Query.of(part), [text])) == (part in text)


# -- queries ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("deploy friday", ["deploy", "friday"]),
        ('"quick brown" fox', ["quick brown", "fox"]),
        ('fox "quick', ["fox", "quick"]),
        ('a "b c" d "e', ["a", "b c", "d", "e"]),
        ('""" a', ["a"]),
        ("run runs running", ["run"]),
        ('"run" run', ["run"]),
        ("foo_bar", ["foo", "bar"]),
        ('"foo_bar"', ["foo bar"]),
        ("東", ["東"]),
        ("東京", ["東京"]),
        ("東京都", ["東京 京 京都"]),
        ('"東京 tower"', ["東京 京 tower"]),
        ('"tower 東京"', ["tower 東 東京"]),
        ("OR AND NOT", ["or", "and", "not"]),
        ("", []),
        ('"..."', []),
    ],
)
def test_a_query_has_these_clauses(text, clauses):
    assert [" ".join(clause) for clause in Query.of(text).clauses] == clauses
    assert bool(Query.of(text)) == bool(clauses)


def test_a_clause_begins_where_its_tokens_follow_each_other():
    places = {"a": [0, 3, 5], "b": [1, 6, 9]}

    assert starts(("a", "b"), places) == [0, 5]
    assert starts(("a",), places) == [0, 3, 5]
    assert starts(("b", "c"), places) == []


# -- ranking ---------------------------------------------------------------------------------------


def test_texts_at_hand_are_ranked_without_an_index():
    given = ["no", "deploying to production, at last, and slowly", "deploy", "we deploy daily"]

    assert [one.number for one in rank(Query.of("deployment"), given)] == [2, 3, 1]
    assert rank(Query.of(""), given) == rank(Query.of("x"), []) == []


def test_of_equal_texts_the_last_comes_first():
    assert [one.number for one in rank(Query.of("a"), ["a", "b", "a"])] == [2, 0]


# -- snippets --------------------------------------------------------------------------------------

FILLER = "Lorem ipsum dolor sit amet, consectetur adipiscing elit. " * 8


def test_a_short_text_is_shown_whole_and_on_one_line():
    assert snippet("one\n\n  two\tthree", Query.of("two")) == "one **two** three"


def test_a_long_text_is_cut_between_words_around_its_matches():
    shown = snippet(
        f"{FILLER}We deployed the service on Friday. {FILLER}", Query.of("deploy friday")
    )

    assert "We **deployed** the service on **Friday**. Lorem" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert 150 <= len(shown.replace("**", "")) <= 162
    assert not shown.removeprefix("…").startswith(" ")


def test_the_part_with_the_most_different_matches_is_shown():
    text = f"deploy deploy deploy {FILLER} deploy on friday {FILLER} friday friday"

    assert "**deploy** on **friday**" in snippet(text, Query.of("friday deploy"))


def test_the_first_match_is_shown_on_request():
    text = f"{FILLER} deploy {FILLER} deploy on friday"

    shown = snippet(text, Query.of("friday deploy"), first=True, mark="", width=40)

    assert "deploy" in shown
    assert "friday" not in shown
    assert len(shown) <= 42


def test_a_phrase_is_marked_as_a_whole_and_only_where_it_stands():
    text = "brown fox, quick fox, quick brown fox"

    assert snippet(text, Query.of('"quick brown"')) == "brown fox, quick fox, **quick brown** fox"


def test_matches_that_touch_are_marked_together():
    assert snippet("用户喜欢咖啡", Query.of("用户 喜欢")) == "**用户喜欢**咖啡"


def test_accents_and_width_stay_as_they_are():
    assert snippet("un café ﬁn", Query.of("cafe fin")) == "un **café** **ﬁn**"
    assert snippet("e\u0301te\u0301!", Query.of("ete")) == "**e\u0301te\u0301**!"


def test_a_text_without_a_match_shows_its_beginning():
    assert snippet(FILLER, Query.of("nothing")).startswith("Lorem ipsum")


@given(texts, st.lists(st.sampled_from(["a", "é", "か", "東京", '"a z"', "한"]), max_size=3))
def test_a_snippet_is_a_line_of_the_text_with_marks_in_it(text, words):
    query = Query.of(" ".join(words))

    shown = snippet(text, query, width=20, mark="¦")

    assert "\n" not in shown
    plain = shown.replace("¦", "").removeprefix("…").removesuffix("…")
    assert plain in " ".join(text.split()).replace("¦", "")
    assert all(text[match.start : match.end] for match in matches(text, query))
