"""Ids as file names, and the places of a workspace."""

from __future__ import annotations

import os
import unicodedata
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from workspace_session.errors import InvalidId, UnsafePath
from workspace_session.files import listings
from workspace_session.files.atomic import make_directories
from workspace_session.files.layout import (
    Layout,
    decode_name,
    encode_id,
    encode_namespace_part,
    temporary_name,
    utc_stamp,
    workspace_above,
)
from workspace_session.files.names import decode_namespace_part, is_temporary

GOLDENS = {
    "sess-001": "sess-001",
    "MyAgent": "MyAgent",
    "..": "%2e%2e",
    "alice@example.com": "alice%40example.com",
    "用户-7": "用户-7",
    "a.": "a%2e",
    "discord:dm:12": "discord%3adm%3a12",
    "s.log": "s%2elog",
    "con": "%63on",
    "a/b": "a%2fb",
    "S.LOG": "S%2eLOG",
    "nul.txt": "%6eul.txt",
    "%2e%2e": "%252e%252e",
    "v1.2": "v1.2",
    "café au lait": "café%20au%20lait",
    # beyond the table
    ".": "%2e",
    "...": "%2e.%2e",
    "../x": "%2e.%2fx",
    ".log": "%2elog",
    "a.log.log": "a.log%2elog",
    "a.logs": "a.logs",
    " ": "%20",
    "\n": "%0a",
    "COM1.log": "%43OM1%2elog",
    "com10": "com10",
    "Lpt0": "%4cpt0",
    "con\n": "con%0a",
    "conx": "conx",
    "agents": "agents",
    "a\\b": "a%5cb",
    "👋": "%f0%9f%91%8b",
}


def put(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


# -- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "name"), GOLDENS.items())
def test_an_id_has_its_one_name_and_the_name_gives_it_back(value, name):
    assert encode_id("session", value) == name
    assert decode_name(name) == value


@pytest.mark.parametrize(
    ("part", "name"),
    {
        "agents": "%61gents",
        "Agents": "%41gents",
        "memory": "%6demory",
        "knowledge": "%6bnowledge",
        "skills": "%73kills",
        "subagents": "%73ubagents",
        "AGENTS.md": "%41GENTS.md",
        "Memory.MD": "%4demory.MD",
        ".workspace": "%2eworkspace",
        "../x": "%2e.%2fx",
        "agents2": "agents2",
        "alice": "alice",
    }.items(),
)
def test_a_part_of_a_namespace_is_never_one_of_our_own_names(part, name):
    assert encode_namespace_part(part) == name
    assert decode_namespace_part(name) == part


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (7, "not a string"),
        (None, "not a string"),
        ([], "not a string"),
        ("", "empty"),
        ("a\0b", "contains NUL"),
        ("a\ud800", "not valid Unicode"),
        ("e\u0301", "not in Unicode normal form C"),
        ("x" * 181, "too long (181 bytes as a file name, at most 180)"),
        ("/" * 61, "too long (183 bytes as a file name, at most 180)"),
        ("é" * 91, "too long (182 bytes as a file name, at most 180)"),
    ],
)
@pytest.mark.parametrize("kind", ["user", "session"])
def test_an_unusable_id_is_refused_with_the_reason(kind, value, reason):
    with pytest.raises(InvalidId) as refused:
        encode_namespace_part(value) if kind == "user" else encode_id(kind, value)

    assert str(refused.value) == f"invalid {kind} id: {reason}"


@pytest.mark.parametrize("value", ["x" * 180, "é" * 90, "/" * 60])
def test_180_bytes_are_not_too_long(value):
    assert decode_name(encode_id("key", value)) == value


ids = st.text(min_size=1, max_size=20) | st.text("aAcCoOnN.lLgG/%2e01", min_size=1, max_size=8)


@given(value=ids)
def test_encoding_is_reversible_and_the_name_is_harmless(value):
    assume("\0" not in value and unicodedata.is_normalized("NFC", value))
    for encode, decode in (
        (lambda text: encode_id("key", text), decode_name),
        (encode_namespace_part, decode_namespace_part),
    ):
        try:
            name = encode(value)
        except InvalidId as refused:
            assume(not refused.reason.startswith("too long"))
            raise

        assert decode(name) == value
        assert not name.startswith((".", "@"))
        assert not name.endswith(".")
        assert not name.lower().endswith(".log")
        assert not set(name) & set('/\\:*?"<>| \0')


@given(name=ids)
def test_a_name_is_ours_only_if_it_is_what_its_id_encodes_to(name):
    value = decode_name(name)

    assert value is None or encode_id("key", value) == name


@pytest.mark.parametrize(
    "name", ["a b", "%2E", "%61", "con", ".hidden", "a.", "%zz", "%ff", "x.log", "", "a\udcff"]
)
def test_names_that_nothing_encodes_to_are_not_ours(name):
    assert decode_name(name) is None


def test_a_temporary_name_is_hidden_new_and_carries_the_process():
    name = temporary_name("memory.json")

    assert name.startswith(f".memory.json.tmp-{os.getpid()}-")
    assert is_temporary(name)
    assert temporary_name("memory.json") != name
    assert not is_temporary("memory.json")


def test_a_stamp_is_in_utc_whatever_the_zone():
    moment = datetime(2026, 5, 15, 10, 0, 3, tzinfo=timezone(timedelta(hours=2)))

    assert utc_stamp(moment) == "20260515T080003Z"
    assert abs(datetime.strptime(utc_stamp(), "%Y%m%dT%H%M%S%z") - datetime.now(UTC)) < timedelta(
        seconds=5
    )


# -- places ----------------------------------------------------------------------------------------


def test_the_places_of_an_agent(tmp_path):
    layout = Layout(tmp_path)
    place = layout.agent("bob")

    assert layout.hidden == tmp_path / ".workspace"
    assert [layout.trash, layout.cache, layout.search, layout.locks] == [
        tmp_path / ".workspace" / name for name in ("trash", "cache", "search", "locks")
    ]
    assert place.directory == tmp_path / "agents/bob"
    assert place.files == tmp_path / "agents/bob/files"
    assert place.index == tmp_path / "agents/bob/sessions/sessions.json"
    assert place.tree("s.log") == tmp_path / "agents/bob/sessions/s%2elog.jsonl"
    assert place.log("s") == tmp_path / "agents/bob/sessions/s.log.jsonl"
    assert place.state("a/b") == tmp_path / "agents/bob/context/a%2fb"
    assert list(tmp_path.iterdir()) == []


def test_locks_mirror_what_they_guard(tmp_path):
    place = Layout(tmp_path).agent("bob", ("agents",))
    locks = tmp_path / ".workspace/locks/%61gents/agents/bob"

    assert place.directory == tmp_path / "%61gents/agents/bob"
    assert place.session_lock("v1.2") == locks / "sessions/v1.2.lock"
    assert place.state_lock("v1.2") == locks / "context/v1.2.lock"
    assert place.index_lock == locks / "sessions/.index.lock"


def test_a_user_and_an_agent_of_the_same_name_do_not_meet(tmp_path):
    layout = Layout(tmp_path)
    places = {
        layout.agent("x").directory,
        layout.agent("x", ("x",)).directory,
        layout.agent("x", ("agents",)).directory,
        layout.agent("x", ("agents", "x")).directory,
        layout.agent("agents", ("x",)).directory,
    }

    assert len(places) == 5


def test_two_spellings_of_a_root_are_one_place(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path / "real")

    assert Layout(tmp_path / "alias") == Layout(tmp_path / "real/../real")


def test_texts_name_paths_below_the_root(tmp_path):
    layout = Layout(tmp_path)

    assert layout.shown(layout.agent("a", ("u",)).log("s")) == "u/agents/a/sessions/s.log.jsonl"
    assert layout.shown(tmp_path) == "."


def test_the_trash_of_one_deletion_is_a_place_of_its_own(tmp_path):
    layout = Layout(tmp_path)
    now = datetime(2026, 5, 15, 8, 0, 3, tzinfo=UTC)
    bins = {layout.new_trash(now) for _ in range(20)}

    assert len(bins) == 20
    bin_ = bins.pop()
    assert bin_.name.startswith("20260515T080003Z-")
    assert layout.mirrored(bin_, layout.agent("a").state("s")) == bin_ / "agents/a/context/s"


def test_the_nearest_workspace_above_is_found(tmp_path):
    (tmp_path / ".workspace").mkdir()
    (tmp_path / "a/b/.workspace").mkdir(parents=True)

    assert workspace_above(tmp_path / "a/b/c") == tmp_path / "a/b"
    assert workspace_above(tmp_path / "a") == tmp_path


# -- listings --------------------------------------------------------------------------------------


def test_namespaces_are_found_at_any_depth(tmp_path):
    layout = Layout(tmp_path)
    for namespace in [(), ("agents",), ("org", "team", "../x"), ("org",), (".workspace",)]:
        make_directories(layout.agent("a", namespace).sessions, sync=False)
    (tmp_path / "knowledge/agents").mkdir(parents=True)
    (tmp_path / ".git/agents").mkdir(parents=True)
    (tmp_path / "not ours/agents").mkdir(parents=True)
    (tmp_path / "org2").mkdir()
    put(tmp_path / "file/agents")

    assert layout.namespaces() == [
        (),
        (".workspace",),
        ("agents",),
        ("org",),
        ("org", "team", "../x"),
    ]


def test_a_link_makes_no_second_namespace_and_no_endless_one(tmp_path):
    layout = Layout(tmp_path)
    make_directories(layout.agent("a", ("u",)).sessions, sync=False)
    (tmp_path / "u/loop").symlink_to(tmp_path)
    (tmp_path / "alias").symlink_to(tmp_path / "u")

    assert layout.namespaces() == [("u",)]


def test_agents_are_listed_by_their_ids(tmp_path):
    layout = Layout(tmp_path)
    for agent_id in ["b", "a/b", "Z", "用户"]:
        make_directories(layout.agent(agent_id).sessions, sync=False)
    (tmp_path / "agents/.hidden").mkdir()
    (tmp_path / "agents/not ours").mkdir()
    put(tmp_path / "agents/file")

    assert layout.agent_ids() == ["Z", "a/b", "b", "用户"]
    assert layout.agent_ids(("nobody",)) == []


def test_sessions_are_those_with_a_tree_or_a_log(tmp_path):
    place = Layout(tmp_path).agent("a")
    for path in [
        place.tree("b"),
        place.log("b"),
        place.tree("s.log"),
        place.log("a/c"),
        place.index,
    ]:
        put(path)
    put(place.sessions / ".x.jsonl.tmp-1-00000000")
    put(place.sessions / "not ours.jsonl")
    put(place.sessions / "x.log.log.jsonl")

    assert place.session_ids() == ["a/c", "b", "s.log"]
    assert Layout(tmp_path).agent("nobody").session_ids() == []


def test_state_sessions_are_those_with_a_state_file(tmp_path):
    place = Layout(tmp_path).agent("a")
    put(place.state("one") / "memory.json")
    put(place.state("two") / "plan.jsonl")
    put(place.state("begun") / ".commit.json")
    put(place.state("empty") / ".memory.json.tmp-1-00000000")
    put(place.state("other") / "notes.txt")
    put(place.context / "file.json")

    assert place.state_session_ids() == ["begun", "one", "two"]


def test_what_is_not_ours_is_named_and_leftovers_are_not(tmp_path):
    place = Layout(tmp_path).agent("a")
    foreign = [
        put(place.sessions / "not ours.jsonl"),
        put(place.sessions / "notes.txt"),
        put(place.context / "file.json"),
        put(place.context / "no no" / "x.json").parent,
        put(place.state("s") / "con.json"),
        put(place.state("s") / "readme"),
    ]
    for path in [
        place.tree("s"),
        place.log("s"),
        place.index,
        place.state("s") / "memory.json",
        place.state("s") / "memory.json.corrupt-20260515T080003Z-2",
        place.sessions / "sessions.json.corrupt-20260515T080003Z",
        place.sessions / ".anything",
        place.context / "@user" / "s" / "memory.json",
    ]:
        put(path)

    assert place.foreign_names() == sorted(foreign)


# -- case ------------------------------------------------------------------------------------------


def test_a_twin_is_a_session_of_either_track_that_differs_only_in_case(tmp_path):
    place = Layout(tmp_path).agent("a")
    put(place.log("Abc"))
    put(place.tree("S.Log"))
    put(place.state("Straße") / "memory.json")

    assert place.case_twin("abc") == "Abc"
    assert place.case_twin("s.log") == "S.Log"
    assert place.case_twin("STRASSE") == "Straße"
    assert place.case_twin("Abc") is None
    assert place.case_twin("other") is None


def test_a_twin_that_is_gone_is_none(tmp_path):
    place = Layout(tmp_path).agent("a")
    put(place.log("Abc"))
    assert place.case_twin("abc") == "Abc"

    place.log("Abc").unlink()

    assert place.case_twin("abc") is None


def test_a_twin_is_found_among_the_sessions_just_asked_about_once_they_exist(tmp_path):
    place = Layout(tmp_path).agent("a")
    assert place.case_twin("Abc") is None
    assert place.case_twin("abc") is None  # `Abc` was asked about, and never made

    put(place.log("Abc"))

    assert place.case_twin("aBC") == "Abc"


def test_many_new_sessions_do_not_read_the_directory_each(tmp_path, monkeypatch):
    place = Layout(tmp_path).agent("a")
    readings = []
    listdir = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: readings.append(path) or listdir(path))
    monkeypatch.setattr(listings, "_PAYS_FOR", 1_000_000)

    for number in range(20):
        assert place.case_twin(f"new-{number}") is None
        put(place.log(f"new-{number}"))

    assert readings.count(place.sessions) == 1
    assert place.case_twin("NEW-7") == "new-7"


@pytest.mark.parametrize(
    ("agent_id", "namespace", "session_id", "text"),
    [
        ("bob", ("al",), "S", 'invalid session id: differs only in case from "s"'),
        ("Bob", ("al",), "s", 'invalid agent id: differs only in case from "bob"'),
        ("x", ("Al",), "s", 'invalid user id: differs only in case from "al"'),
    ],
)
def test_nothing_new_may_differ_only_in_case(tmp_path, agent_id, namespace, session_id, text):
    layout = Layout(tmp_path)
    put(layout.agent("bob", ("al",)).log("s"))
    layout.agent("bob", ("al",)).refuse_twins("s")

    with pytest.raises(InvalidId) as refused:
        layout.agent(agent_id, namespace).refuse_twins(session_id)

    assert str(refused.value) == text


# -- symbolic links --------------------------------------------------------------------------------


@pytest.fixture
def outside(tmp_path):
    directory = tmp_path / "outside"
    directory.mkdir()
    (directory / "file").write_text("secret")
    return directory


@pytest.fixture
def layout(tmp_path, outside):
    (tmp_path / "root").mkdir()
    return Layout(tmp_path / "root")


def test_ordinary_paths_pass_whether_they_exist_or_not(layout):
    path = layout.agent("a").log("s")
    layout.check(path)

    put(path)

    layout.check(path)
    layout.check(path)
    layout.check(layout.root)


def test_a_file_that_is_a_link_out_is_refused(layout, outside):
    path = layout.agent("a").log("s")
    put(path)
    layout.check(path)
    path.unlink()
    path.symlink_to(outside / "file")

    with pytest.raises(UnsafePath) as refused:
        layout.check(path)

    assert str(refused.value) == "agents/a/sessions/s.log.jsonl leads out of the workspace"


def test_a_link_to_what_does_not_exist_is_refused_too(layout, outside):
    path = put(layout.agent("a").log("s"))
    path.unlink()
    path.symlink_to(outside / "new")

    with pytest.raises(UnsafePath):
        layout.check(path)


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_directory_that_becomes_a_link_out_is_noticed(layout, outside, depth):
    path = put(layout.agent("a").log("s"))
    layout.check(path)
    directory = path.parents[depth]
    directory.rename(outside / "moved")

    directory.symlink_to(outside / "moved")

    with pytest.raises(UnsafePath):
        layout.check(path)


def test_a_way_out_that_leads_back_in_is_refused(layout, outside):
    path = put(layout.agent("a").log("s"))
    (outside / path.name).symlink_to(path)
    (layout.root / "link").symlink_to(outside)

    with pytest.raises(UnsafePath):
        layout.check(layout.root / "link" / path.name)


def test_a_link_inside_the_root_is_fine(layout):
    path = put(layout.agent("a").log("s"))
    (layout.root / "agents/b").symlink_to(layout.root / "agents/a")
    layout.agent("a").log("t").symlink_to(path)

    layout.check(layout.agent("b").log("s"))
    layout.check(layout.agent("a").log("t"))


def test_a_root_whose_name_only_begins_alike_is_outside(layout, tmp_path):
    (tmp_path / "root-2").mkdir()
    (layout.root / "link").symlink_to(tmp_path / "root-2")

    with pytest.raises(UnsafePath):
        layout.check(layout.root / "link" / "file")
