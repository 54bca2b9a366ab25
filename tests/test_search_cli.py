"""The commands `search` and `reindex`."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from search_contract import said
from terminal import Terminal

from workspace_session import Workspace
from workspace_session.cli import main


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.delenv("WORKSPACE_SESSION_ROOT", raising=False)
    with Workspace(tmp_path / "ws", durability="os") as opened:
        monkeypatch.chdir(opened.root)
        yield opened


@pytest.fixture
def trip(workspace):
    tree = workspace.agent("planner").tree("trip")
    tree.append(said("Where shall we go?", id="m1", createdAt="2026-05-15T08:00:00Z"))
    tree.append(said("Let us go to Rome", "assistant", id="m2", createdAt="2026-05-15T08:00:01Z"))
    tree.append(said("Fine", id="m3", createdAt="2026-05-15T08:00:02Z"))
    return tree


def run(*args):
    result = CliRunner().invoke(main, args)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def test_a_match_is_shown_with_its_session_its_id_and_a_marked_snippet(trip):
    assert run("search", "rome") == (
        0,
        "trip  planner  2026-05-15 08:00:01  m2\n  assistant: Let us go to **Rome**\n",
        "",
    )


def test_context_shows_the_messages_around(trip):
    _code, printed, _talk = run("search", "rome", "--context", "1")

    assert printed.splitlines()[1:] == [
        "  user: Where shall we go?",
        "  assistant: Let us go to **Rome**",
        "  user: Fine",
    ]


def test_context_of_a_match_on_another_branch_follows_that_branch(trip):
    trip.append(said("Or Paris", id="p1"), parent="m1")
    trip.append(said("Or Berlin", id="b1"), parent="m1")
    trip.append(said("By train", id="b2"))
    trip.set_leaf("p1")

    _code, printed, _talk = run("search", "berlin", "--context", "2")

    assert [line.split(": ")[1] for line in printed.splitlines()[1:]] == [
        "Where shall we go?",
        "Or **Berlin**",
        "By train",
    ]


def test_json_has_the_whole_text_and_the_messages_around(trip):
    _code, printed, _talk = run("search", "rome", "--json", "--context", "1")

    (found,) = json.loads(printed)
    assert found["messageId"] == "m2"
    assert found["content"] == "Let us go to Rome"
    assert found["createdAt"] == "2026-05-15T08:00:01.000000Z"
    assert [message["id"] for message in found["before"] + found["after"]] == ["m1", "m3"]


def test_words_need_no_quotes_and_phrases_need_two(trip):
    assert "m2" in run("search", "rome", "go")[1]
    assert "m2" in run("search", '"go to rome"')[1]
    assert run("search", '"rome go"')[1] == ""


def test_nothing_found_is_said_aside_and_is_no_failure(trip):
    assert run("search", "nowhere") == (0, "", "nothing found\n")
    assert run("search", "nowhere", "--json") == (0, "[]\n", "")


def test_a_limit_is_told_of(workspace):
    workspace.agent("a").tree("s").extend([said(f"word {number}") for number in range(12)])

    code, printed, talk = run("search", "word", "--limit", "2")

    assert (code, len(printed.splitlines())) == (0, 4)
    assert talk == "showing the best 2 of 12 matches\n"


def test_options_narrow_it_down(workspace, trip):
    workspace.agent("planner", user="bob").tree("b").append(said("Rome for Bob"))
    workspace.agent("writer").tree("w").append(said("Rome for a writer"))

    def sessions(*options):
        return sorted(
            hit["sessionId"] for hit in json.loads(run("search", "rome", "--json", *options)[1])
        )

    assert sessions() == ["b", "trip", "w"]
    assert sessions("--user", "bob") == ["b"]
    assert sessions("--agent", "planner") == ["b", "trip"]
    assert sessions("--agent", "writer") == ["w"]
    assert sessions("--session", "tr") == ["trip"]
    assert sessions("--role", "assistant") == ["trip"]
    assert sessions("--until", "2026-05-16") == ["trip"]
    assert sessions("--since", "2026-05-16") == ["b", "w"]


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["search"], 2, "Missing argument 'QUERY...'"),
        (["search", "x", "--since", "yesterday"], 2, "'yesterday' is not a time"),
        (["search", "x", "--limit", "0"], 2, "0 is not in the range x>=1"),
        (["search", "x", "--session", "nope"], 1, "there is no session 'nope'"),
        (["search", "x", "--agent", "nobody"], 1, "there is no agent 'nobody'"),
        (["reindex", "--engine", "lucene"], 2, "'lucene' is not one of"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(trip, arguments, code, sentence):
    got, printed, talk = run(*arguments)

    assert (got, printed) == (code, "")
    assert sentence in talk
    assert talk.count("\n") == 1


def test_stored_text_cannot_take_over_the_terminal(workspace):
    workspace.agent("a").tree("s").append(said("word \x1b[2J \u202e", id="\x1b[31m"))

    for options in ((), ("--json",), ("--context", "1")):
        assert "\x1b" not in run("search", "word", *options)[1]


def test_reindex_says_what_it_has_done(workspace, trip):
    assert run("reindex") == (0, "", "indexed 1 session of 1 agent\n")
    assert "m2" in run("search", "rome")[1]


def test_reindex_changes_the_engine_for_good(workspace, trip):
    assert run("reindex", "--engine", "sqlite")[0] == 0

    with Workspace(workspace.root) as later:
        assert later.searcher._engine == "sqlite"
        assert len(later.search("rome")) == 1


def test_on_a_terminal_matches_are_bold_and_nothing_is_marked(trip, tmp_path):
    terminal = Terminal(tmp_path / "terminal")

    shown = terminal.watch(f"workspace-session -C {trip.place.layout.root} search rome")

    assert "\x1b[1;33mRome\x1b[0m" in shown
    assert "**" not in shown


def test_on_a_terminal_reindex_draws_a_bar(trip, tmp_path):
    terminal = Terminal(tmp_path / "terminal")

    shown = terminal.watch(f"workspace-session -C {trip.place.layout.root} reindex")

    assert "indexing" in shown
    assert "100%" in shown
    assert "indexed 1 session of 1 agent" in shown
