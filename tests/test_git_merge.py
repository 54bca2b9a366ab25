"""Merging session files by their lines."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from workspace_session import Workspace
from workspace_session.git import merge_files, merge_lines
from workspace_session.model.lines import NotAnEntry, decode


def line(second: int, name: str, **more) -> bytes:
    time = f"2026-05-15T08:00:{second:02}.000000Z"
    entry = {"type": "custom", "id": name, "timestamp": time, "customType": "t", "data": 1, **more}
    return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


HEADER, ONE, TWO, THREE = line(0, "h"), line(1, "a"), line(2, "b"), line(3, "c")


def test_each_line_is_there_once_in_the_order_of_time_and_id():
    assert merge_lines(HEADER + THREE + ONE, HEADER + TWO + ONE) == HEADER + ONE + TWO + THREE


def test_entries_of_one_moment_are_ordered_by_id():
    late, early = line(1, "z"), line(1, "b")

    assert merge_lines(late, early) == early + late


def test_times_are_compared_as_moments():
    elsewhere = line(2, "x").replace(b"08:00:02.000000Z", b"10:00:02+02:00")

    assert merge_lines(THREE + elsewhere, ONE) == ONE + elsewhere + THREE


def test_what_is_not_understood_is_kept_as_it_was_written():
    odd = b'{ "id":"o", "type":"later", "timestamp":"2026-05-15T08:00:01Z", "n":1e400 }\n'

    assert odd in merge_lines(HEADER + odd, HEADER)


def test_lines_that_are_no_entries_stand_behind_the_first_line():
    merged = merge_lines(HEADER + b"{torn\n" + ONE, HEADER + TWO + b"<<<<<<< ours\n[]\n")

    assert merged == HEADER + b"<<<<<<< ours\n" + b"[]\n" + b"{torn\n" + ONE + TWO


def test_one_key_with_two_contents_is_two_lines():
    other = line(1, "a", more="x")

    assert merge_lines(ONE, other) == merge_lines(other, ONE)
    assert merge_lines(ONE, other).count(b"\n") == 2


def test_a_carriage_return_or_a_mark_at_the_beginning_makes_no_other_line():
    assert merge_lines(b"\xef\xbb\xbf" + ONE.replace(b"\n", b"\r\n"), ONE) == ONE


def test_a_line_without_its_newline_gets_one():
    assert merge_lines(HEADER + TWO.rstrip(), HEADER + ONE) == HEADER + ONE + TWO


def test_the_beginning_of_a_line_that_the_other_side_has_whole_is_left_out():
    assert merge_lines(HEADER + ONE[:20], HEADER + ONE) == HEADER + ONE


def test_a_torn_line_that_nobody_has_whole_is_kept():
    assert merge_lines(HEADER + ONE[:30], HEADER + TWO) == HEADER + ONE[:30] + b"\n" + TWO


def test_what_is_empty_adds_nothing():
    assert merge_lines(b"", b"") == b""
    assert merge_lines(b"", HEADER) == HEADER


def test_ours_becomes_the_union(tmp_path):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.write_bytes(HEADER + TWO)
    theirs.write_bytes(HEADER + ONE)

    merge_files(ours, theirs)

    assert ours.read_bytes() == HEADER + ONE + TWO
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["ours", "theirs"]


# -- all of it -------------------------------------------------------------------------------------

entries = st.builds(line, st.integers(0, 5), st.sampled_from("abcd"), n=st.integers(0, 1))
broken = st.sampled_from(
    [b"\n", b"{torn\n", b"[1]\n", b"=======\n", b"\xff\xfe\n", b'{"id":"a"}\n']
)
files = st.lists(entries | broken, max_size=8).map(b"".join)
torn_files = st.builds(lambda data, cut: data[: len(data) - cut], files, st.integers(0, 30))


@given(torn_files, torn_files)
def test_a_merge_b_is_b_merge_a(ours, theirs):
    assert merge_lines(ours, theirs) == merge_lines(theirs, ours)


@given(files, files, files)
def test_the_order_of_merges_does_not_matter(one, two, three):
    assert merge_lines(merge_lines(one, two), three) == merge_lines(one, merge_lines(two, three))


@given(torn_files, torn_files)
def test_merging_again_changes_nothing(ours, theirs):
    merged = merge_lines(ours, theirs)

    assert merge_lines(merged, theirs.rpartition(b"\n")[0] + b"\n") == merged
    assert merge_lines(merged, merged) == merged


@given(files, files)
def test_every_line_of_both_is_there_once(ours, theirs):
    wanted = {one for one in (ours + theirs).split(b"\n") if one.strip()}

    assert sorted(merge_lines(ours, theirs).split(b"\n")[:-1]) == sorted(wanted)


@given(files, files)
def test_entries_are_in_order(ours, theirs):
    keys = []
    for one in merge_lines(ours, theirs).split(b"\n"):
        try:
            keys.append(decode(one).key)
        except NotAnEntry:
            continue

    assert keys == sorted(keys)


def test_two_sessions_that_grew_apart_are_one(tmp_path):
    trees = []
    for name in ("one", "two"):
        workspace = Workspace(tmp_path / name, durability="os")
        trees.append(workspace.agent("a").tree("s"))
        trees[-1].append({"role": "user", "content": name})
    logs = [tree.place.log("s") for tree in trees]

    merge_files(logs[0], logs[1])
    trees[0].rebuild()

    assert sorted(
        entry.message["content"] for entry in trees[0].log() if entry.type == "message"
    ) == ["one", "two"]
    assert len(trees[0].leaves()) == 2
    assert trees[0].verify() == []
