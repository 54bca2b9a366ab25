"""State stores: snapshots of an agent's modules, by session and key."""

from __future__ import annotations

import copy
import hashlib
import logging
import os
import pickle
import re
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspace_session.errors import (
    InvalidId,
    NamespaceMismatch,
    StateConflict,
    StateCorrupt,
    StateNotSerializable,
    UnsafePath,
)
from workspace_session.files.layout import Layout
from workspace_session.files.state import ABSENT, JsonSession, Versioned, WorkspaceSession

ETAG_OF_N_1 = "abbda3b04c3748d7b6c313556484c3cd1d49d86cb65fc1a0d9a305776031611a"


@pytest.fixture
def store(tmp_path):
    return JsonSession(tmp_path / "states", durability="os")


@pytest.fixture
def workspace(tmp_path):
    return SimpleNamespace(layout=Layout(tmp_path / "ws"), durability="os")


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def everything_below(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


# -- values ----------------------------------------------------------------------------------------


def test_a_state_is_its_file(store):
    etag = store.save("s", "memory", {"n": 1, "c": ["hé"]})

    data = (store.path / "s/memory.json").read_bytes()
    assert data == '{\n  "c": [\n    "hé"\n  ],\n  "n": 1\n}\n'.encode()
    assert etag == hashlib.sha256(data).hexdigest()
    assert store.get("s", "memory") == {"n": 1, "c": ["hé"]}


def test_the_etag_of_the_golden(store):
    assert store.save("s", "k", {"n": 1}) == ETAG_OF_N_1
    assert store.get_versioned("s", "k") == Versioned({"n": 1}, ETAG_OF_N_1, ())


def test_what_is_absent_is_the_default_and_creates_nothing(tmp_path):
    store = JsonSession(tmp_path / "states")

    assert store.get("s", "k") is None
    assert store.get("s", "k", 7) == 7
    assert store.get_versioned("s", "k", 7) == (7, ABSENT, ())
    assert store.get_list("s", "k") == []
    assert store.get_list_versioned("s", "k") == ([], ABSENT, ())
    assert not store.exists("s")
    assert not store.exists("s", "k")
    assert not store.delete("s")
    assert not store.delete("s", "k")
    assert store.list_keys("s") == []
    assert store.list_session_keys() == []
    assert list(tmp_path.iterdir()) == []


def test_absent_is_one_object_wherever_it_travels():
    assert copy.deepcopy(ABSENT) is ABSENT
    assert pickle.loads(pickle.dumps(ABSENT)) is ABSENT
    assert repr(ABSENT) == "ABSENT"


def test_reading_gives_fresh_objects(store):
    store.save("s", "k", {"a": []})
    store.get("s", "k")["a"].append(1)

    assert store.get("s", "k") == {"a": []}


@pytest.mark.parametrize("state", [None, True, 0, 10**30, 1.5, "text", [], [1], {}, ()])
def test_any_json_value_is_a_state(store, state):
    store.save("s", "k", state)

    assert store.get("s", "k", "absent") == (list(state) if isinstance(state, tuple) else state)


def test_a_state_that_is_not_json_writes_nothing(store, tmp_path):
    with pytest.raises(StateNotSerializable, match=r"at \$\.x: set"):
        store.save("s", "k", {"x": {1}})

    assert list(tmp_path.iterdir()) == []


def test_reading_accepts_any_layout(store):
    path = store.path / "s/k.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(b'\xef\xbb\xbf{"b": 1,\r\n\t"a":2}')

    found = store.get_versioned("s", "k")

    assert found == ({"b": 1, "a": 2}, hashlib.sha256(path.read_bytes()).hexdigest(), ())


@pytest.mark.parametrize("data", [b"", b"{", b'{"x": NaN}', b"<<<<<<< ours\n{}\n", b"\xff"])
def test_a_state_that_does_not_parse_is_corrupt_and_kept_when_it_is_saved_over(store, data):
    store.save("s", "k", 1)
    (store.path / "s/k.json").write_bytes(data)

    with pytest.raises(StateCorrupt) as corrupt:
        store.get("s", "k")
    assert corrupt.value.path == "s/k.json"
    store.save("s", "k", 2)

    (aside,) = (store.path / "s").glob("k.json.corrupt-*")
    assert re.fullmatch(r"k\.json\.corrupt-\d{8}T\d{6}Z", aside.name)
    assert aside.read_bytes() == data
    assert store.get("s", "k") == 2
    assert store.list_keys("s") == ["k"]


def test_saving_the_same_state_again_touches_nothing(store):
    store.save("s", "k", {"a": 1})
    before = (store.path / "s/k.json").stat()

    assert store.save("s", "k", {"a": 1}) == store.get_versioned("s", "k").etag

    after = (store.path / "s/k.json").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_old_temporary_files_are_removed_by_the_next_writer(store):
    store.save("s", "k", 1)
    stale = store.path / "s/.k.json.tmp-1-00000000"
    fresh = store.path / "s/.k.json.tmp-1-00000001"
    for path in (stale, fresh):
        path.write_text("half")
    hour_ago = time.time() - 3700
    os.utime(stale, (hour_ago, hour_ago))

    store.save("s", "k", 2)

    assert names_in(store.path / "s") == [fresh.name, "k.json"]


def test_states_are_private(tmp_path):
    store = JsonSession(tmp_path / "states")
    store.save("s", "k", 1)

    assert (tmp_path / "states/s/k.json").stat().st_mode & 0o077 == 0
    assert (tmp_path / "states/s").stat().st_mode & 0o077 == 0


def test_a_durability_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(ValueError, match="durability is 'disk' or 'os', not 'none'"):
        JsonSession(tmp_path, durability="none")


@pytest.mark.parametrize(("durability", "count"), [("disk", True), ("os", False)])
def test_files_are_synced_at_durability_disk_only(tmp_path, monkeypatch, durability, count):
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    store = JsonSession(tmp_path, durability=durability)

    store.save("s", "k", 1)
    store.save_list("s", "l", [1])
    store.save_list("s", "l", [1, 2])
    store.delete("s")

    assert bool(synced) is count


# -- lists -----------------------------------------------------------------------------------------


def test_a_list_has_one_item_a_line_with_sorted_keys(store):
    etag = store.save_list("s", "l", [{"b": 1, "a": "hé"}, 2, None])

    data = (store.path / "s/l.jsonl").read_bytes()
    assert data == '{"a":"hé","b":1}\n2\nnull\n'.encode()
    assert etag == hashlib.sha256(data).hexdigest()
    assert store.get_list("s", "l") == [{"a": "hé", "b": 1}, 2, None]
    assert store.get("s", "l") == store.get_list("s", "l")


def test_an_empty_list_is_an_empty_file(store):
    store.save_list("s", "l", [])

    assert (store.path / "s/l.jsonl").read_bytes() == b""
    assert store.exists("s", "l")
    assert store.get_list_versioned("s", "l").etag == hashlib.sha256(b"").hexdigest()


def test_a_list_that_grew_is_appended_to(store):
    store.save_list("s", "l", [1, 2])
    inode = (store.path / "s/l.jsonl").stat().st_ino

    etag = store.save_list("s", "l", [1, 2, 3])

    assert (store.path / "s/l.jsonl").stat().st_ino == inode
    assert store.get_list_versioned("s", "l") == ([1, 2, 3], etag, ())


@pytest.mark.parametrize(
    "data",
    [
        b"1\n2\n3\n4\n",  # shrunk
        b"1\n9\n",  # edited
        b"1\r\n2\r\n",  # another layout
        b'1\n2\n{"to',  # torn
    ],
)
def test_a_list_that_changed_otherwise_is_written_anew(store, data):
    path = store.path / "s/l.jsonl"
    store.save_list("s", "l", [])
    path.write_bytes(data)
    inode = path.stat().st_ino

    store.save_list("s", "l", [1, 2, 3])

    assert path.read_bytes() == b"1\n2\n3\n"
    assert path.stat().st_ino != inode
    assert names_in(path.parent) == ["l.jsonl"]


def test_a_tail_torn_at_any_byte_is_repaired_by_the_next_save(store):
    items = [{"a": 1}, {"b": "é"}]
    path = store.path / "s/l.jsonl"
    etag = store.save_list("s", "l", items)
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])

        assert store.get_list("s", "l") == items[: whole[: cut + 1].count(b"\n")]
        assert store.save_list("s", "l", items) == etag
        assert path.read_bytes() == whole


def test_a_torn_last_line_is_left_out_logged_and_named(store, caplog):
    store.save_list("s", "l", [1])
    (store.path / "s/l.jsonl").write_bytes(b'1\n{"secret')

    found = store.get_list_versioned("s", "l")

    assert found.value == [1]
    assert found.etag == hashlib.sha256(b'1\n{"secret').hexdigest()
    assert len(found.problems) == 1
    assert found.problems[0].startswith("s/l.jsonl, line 2 was left out: ")
    assert "secret" not in found.problems[0]
    assert [record.getMessage() for record in caplog.records] == list(found.problems)


def test_a_number_without_the_end_of_its_line_may_have_lost_digits(store):
    store.save_list("s", "l", [1])
    (store.path / "s/l.jsonl").write_bytes(b"1\n12")

    found = store.get_list_versioned("s", "l")

    assert (found.value, len(found.problems)) == ([1], 1)


def test_a_bad_line_before_the_last_is_corrupt_and_named(store):
    store.save_list("s", "l", [1])
    path = store.path / "s/l.jsonl"
    path.write_bytes(b"1\n{oops\n3\n")

    with pytest.raises(StateCorrupt) as corrupt:
        store.get_list("s", "l")
    assert (corrupt.value.path, corrupt.value.line) == ("s/l.jsonl", 2)
    store.save_list("s", "l", [4])

    assert store.get_list("s", "l") == [4]
    (aside,) = path.parent.glob("l.jsonl.corrupt-*")
    assert aside.read_bytes() == b"1\n{oops\n3\n"


def test_a_list_may_have_a_byte_order_mark_and_carriage_returns_and_empty_lines(store):
    store.save_list("s", "l", [1])
    (store.path / "s/l.jsonl").write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n\r\n{"b": 2}\r\n')

    assert store.get_list_versioned("s", "l")[::2] == ([{"a": 1}, {"b": 2}], ())


def test_an_item_that_is_not_json_is_named_by_its_place(store):
    with pytest.raises(StateNotSerializable, match=re.escape("at $[1].x: float nan")):
        store.save_list("s", "l", [1, {"x": float("nan")}])
    with pytest.raises(StateNotSerializable, match="str instead of a list"):
        store.save_list("s", "l", "abc")

    assert not store.exists("s")


def test_an_append_that_fails_is_undone(store, monkeypatch):
    store.save_list("s", "l", [1])
    write = os.write
    written: list[int] = []

    def fill(descriptor: int, data: bytes) -> int:
        if written:
            raise OSError(28, "No space left on device")
        written.append(write(descriptor, data[:1]))
        return 1

    monkeypatch.setattr(os, "write", fill)

    with pytest.raises(OSError, match="No space"):
        store.save_list("s", "l", [1, 22])

    assert (store.path / "s/l.jsonl").read_bytes() == b"1\n"


items = st.lists(st.dictionaries(st.sampled_from("ab"), st.integers(0, 2), max_size=2), max_size=4)


@given(versions=st.lists(items, min_size=1, max_size=5))
def test_whatever_was_there_before_a_list_is_what_was_saved_last(tmp_path_factory, versions):
    store = JsonSession(tmp_path_factory.mktemp("states"), durability="os")
    for version in versions:
        etag = store.save_list("s", "l", version)

        assert store.get_list_versioned("s", "l") == (version, etag, ())


# -- kinds -----------------------------------------------------------------------------------------


def test_a_key_has_one_kind_at_a_time(store):
    store.save("s", "k", {"a": 1})
    store.save_list("s", "k", [1])
    assert names_in(store.path / "s") == ["k.jsonl"]

    store.save("s", "k", {"a": 2})

    assert names_in(store.path / "s") == ["k.json"]
    assert store.get("s", "k") == {"a": 2}
    assert store.list_keys("s") == ["k"]


def test_a_kind_changes_even_if_the_bytes_do_not(store):
    etag = store.save("s", "k", 1)

    assert store.save_list("s", "k", [1]) == etag

    assert names_in(store.path / "s") == ["k.jsonl"]
    assert store.get("s", "k") == [1]


def test_of_two_files_of_one_key_the_value_counts_and_the_next_save_leaves_one(store):
    store.save("s", "k", {"a": 1})
    (store.path / "s/k.jsonl").write_text("1\n")  # as a merge may bring it
    assert store.get("s", "k") == {"a": 1}

    store.save("s", "k", {"a": 1})

    assert names_in(store.path / "s") == ["k.json"]


def test_a_corrupt_list_is_kept_when_a_value_takes_its_place(store):
    store.save_list("s", "k", [1])
    (store.path / "s/k.jsonl").write_bytes(b"{\n1\n")

    store.save("s", "k", 1)

    assert [name[:15] for name in names_in(store.path / "s")] == ["k.json", "k.jsonl.corrupt"]


def test_a_value_that_is_a_list_can_be_read_as_one_and_another_cannot(store):
    store.save("s", "list", [1, 2])
    store.save("s", "object", {})

    assert store.get_list("s", "list") == [1, 2]
    with pytest.raises(StateCorrupt, match=r"s/object\.json is corrupt: not a list"):
        store.get_list("s", "object")


# -- ids -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a/b", "..", "s.log", "con", "用户-7", " ", "%2e", ".commit"])
def test_odd_ids_are_ordinary(store, name):
    store.save(name, name, 1)

    assert store.get(name, name) == 1
    assert store.list_session_keys() == [name]
    assert store.list_keys(name) == [name]
    assert everything_below(store.path.parent)[0] == "states"


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.save("", "k", 1),
        lambda store: store.save("s", "", 1),
        lambda store: store.get("", "k"),
        lambda store: store.get("s", ""),
        lambda store: store.exists(""),
        lambda store: store.delete("s", ""),
        lambda store: store.list_keys(""),
        lambda store: store.save_to("", {}),
    ],
)
def test_an_unusable_id_is_refused_before_anything_happens(tmp_path, call):
    with pytest.raises(InvalidId, match="empty"):
        call(JsonSession(tmp_path))

    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_listings_are_sorted_and_only_of_what_is_ours(store):
    for session_key in ["b", "a/x", "Z"]:
        store.save(session_key, "k", 1)
        store.save_list(session_key, "j", [])
    (store.path / "not ours").mkdir()
    (store.path / "empty").mkdir()
    (store.path / "b/readme.txt").write_text("")

    assert store.list_session_keys() == ["Z", "a/x", "b"]
    assert store.list_keys("b") == ["j", "k"]


def test_a_session_or_key_that_differs_only_in_case_is_refused(store):
    store.save("Sess", "Key", 1)

    with pytest.raises(InvalidId) as session:
        store.save("sess", "k", 1)
    with pytest.raises(InvalidId) as key:
        store.save_list("Sess", "KEY", [])

    assert str(session.value) == 'invalid session id: differs only in case from "Sess"'
    assert str(key.value) == 'invalid key id: differs only in case from "Key"'
    assert store.list_session_keys() == ["Sess"]
    assert store.list_keys("Sess") == ["Key"]


# -- deleting --------------------------------------------------------------------------------------


def test_a_deleted_session_is_in_the_trash(store):
    store.save("s", "a", 1)
    store.save_list("s", "b", [2])
    store.save("t", "a", 3)

    assert store.delete("s")

    assert not store.delete("s")
    assert not store.exists("s")
    assert store.list_session_keys() == ["t"]
    (bin_,) = (store.path / ".workspace/trash").iterdir()
    assert re.fullmatch(r"\d{8}T\d{6}Z-[0-9a-f]{8}", bin_.name)
    assert everything_below(bin_) == ["s", "s/a.json", "s/b.jsonl"]


def test_a_deleted_key_is_gone_whatever_its_kind(store):
    store.save("s", "a", 1)
    store.save_list("s", "b", [2])
    store.save("s", "c", 3)

    assert store.delete("s", "a")
    assert store.delete("s", "b")

    assert not store.delete("s", "a")
    assert names_in(store.path / "s") == ["c.json"]


def test_a_session_can_be_made_again_after_it_was_deleted(store):
    store.save("s", "a", 1)
    store.delete("s")

    store.save("S", "a", 2)

    assert store.get("S", "a") == 2


# -- etags -----------------------------------------------------------------------------------------


def test_a_save_that_matches_is_made_and_one_that_does_not_writes_nothing(store):
    first = store.save("s", "k", {"n": 1}, if_match=ABSENT)
    second = store.save("s", "k", {"n": 2}, if_match=first)

    with pytest.raises(StateConflict) as conflict:
        store.save("s", "k", {"n": 3}, if_match=first)

    assert vars(conflict.value) == {
        "session_key": "s",
        "key": "k",
        "expected": first,
        "actual": second,
    }
    assert store.get("s", "k") == {"n": 2}


def test_create_only_finds_what_is_there_and_match_finds_what_is_not(store):
    etag = store.save_list("s", "k", [1])

    with pytest.raises(StateConflict):
        store.save("s", "k", 1, if_match=ABSENT)
    with pytest.raises(StateConflict) as conflict:
        store.save_list("s", "other", [1], if_match=etag)

    assert conflict.value.actual is ABSENT
    assert names_in(store.path / "s") == ["k.jsonl"]


def test_an_etag_is_of_the_bytes_and_not_of_the_value(store):
    store.save("s", "k", {"n": 1})
    (store.path / "s/k.json").write_bytes(b'{"n":1}')
    etag = store.get_versioned("s", "k").etag

    assert etag != ETAG_OF_N_1
    assert store.save("s", "k", {"n": 1}, if_match=etag) == ETAG_OF_N_1


# -- places ----------------------------------------------------------------------------------------


def test_the_states_of_an_agent_are_at_its_place(workspace):
    WorkspaceSession(workspace, "bob").save("s", "memory", 1)
    WorkspaceSession(workspace, "bob", "agents").save("s", "memory", 2)

    root = workspace.layout.root
    assert (root / "agents/bob/context/s/memory.json").read_text() == "1\n"
    assert (root / "%61gents/agents/bob/context/s/memory.json").read_text() == "2\n"
    assert (root / ".workspace/locks/%61gents/agents/bob/context/s.lock").exists()


def test_constructing_and_scoping_create_nothing(tmp_path, workspace):
    WorkspaceSession(workspace, "a", "u").scoped(("u",))
    JsonSession(tmp_path / "x").scoped(("u", "v"))

    assert list(tmp_path.iterdir()) == []


def test_a_scoped_json_session_is_below_its_path_and_apart(store):
    scoped = store.scoped(("a/b", "agents"))
    scoped.save("s", "k", 1)
    store.save("s", "k", 2)
    store.scoped(("a/b",)).save("s", "k", 3)

    assert (store.path / "@a%2fb/@%61gents/s/k.json").read_text() == "1\n"
    assert (scoped.get("s", "k"), store.get("s", "k")) == (1, 2)
    assert scoped.list_session_keys() == store.list_session_keys() == ["s"]
    assert not (store.path / "@a%2fb/.workspace").exists()


def test_a_scoped_workspace_session_moves_its_user(workspace):
    store = WorkspaceSession(workspace, "bob")
    store.scoped(("u", "v")).save("s", "k", 1)

    assert (workspace.layout.root / "u/v/agents/bob/context/s/k.json").exists()
    assert WorkspaceSession(workspace, "bob", "u").scoped(("u",)).namespace == ("u",)


@pytest.mark.parametrize("make", ["json", "workspace"])
def test_a_store_serves_one_namespace(workspace, tmp_path, make):
    store = JsonSession(tmp_path) if make == "json" else WorkspaceSession(workspace, "a")
    scoped = store.scoped(("u",))

    assert scoped.scoped(["u"]) is scoped
    for other in [(), ("v",), ("u", "v")]:
        with pytest.raises(NamespaceMismatch):
            scoped.scoped(other)
    with pytest.raises(NamespaceMismatch) as mismatch:
        store.scoped(()).scoped(("u",))
    assert str(mismatch.value) == "the store belongs to namespace (), not to ('u',)"


def test_a_namespace_that_cannot_be_is_refused_at_once(workspace, tmp_path):
    for store in (JsonSession(tmp_path), WorkspaceSession(workspace, "a")):
        with pytest.raises(InvalidId, match="invalid user id: empty"):
            store.scoped(("",))


def test_two_stores_over_one_directory_exclude_each_other(workspace):
    ours = WorkspaceSession(workspace, "bob")
    ours.save("s", "k", 1)
    theirs = JsonSession(workspace.layout.root / "agents/bob/context", durability="os")
    order: list[str] = []

    def save() -> None:
        theirs.save("s", "k", 2)
        order.append("theirs")

    with ours.locked("s"):
        thread = threading.Thread(target=save)
        thread.start()
        time.sleep(0.02)
        order.append("ours")
    thread.join()

    assert order == ["ours", "theirs"]
    assert ours.get("s", "k") == 2
    assert not (theirs.path / ".workspace").exists()


def test_locks_of_a_json_session_alone_are_below_its_path(store):
    store.save("s", "k", 1)

    assert everything_below(store.path / ".workspace") == ["locks", "locks/s.lock"]


def test_a_workspace_that_is_made_above_meanwhile_has_the_locks(store, tmp_path):
    (tmp_path / ".workspace").mkdir()

    store.save("s", "k", 1)

    assert (tmp_path / ".workspace/locks/states/s.lock").exists()
    assert not (store.path / ".workspace").exists()


def test_a_new_session_of_a_workspace_is_no_twin_of_a_transcript(workspace):
    place = workspace.layout.agent("bob")
    place.sessions.mkdir(parents=True)
    place.log("Sess").write_text("")

    with pytest.raises(InvalidId, match='differs only in case from "Sess"'):
        WorkspaceSession(workspace, "bob").save("sess", "k", 1)

    assert not place.context.exists()


def test_values_are_read_without_waiting_for_a_writer(store):
    store.save("s", "k", 1)
    done = threading.Event()

    def hold() -> None:
        with store.locked("s"):
            held.set()
            done.wait()

    held = threading.Event()
    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        assert store.get("s", "k") == 1
    finally:
        done.set()
        thread.join()


def test_a_locked_session_is_one_change_to_all_others(store):
    def add_one() -> None:
        for _ in range(25):
            with store.locked("s"):
                store.save("s", "n", store.get("s", "n", 0) + 1)

    threads = [threading.Thread(target=add_one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert store.get("s", "n") == 100


# -- symbolic links --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "link", ["agents/bob/context/s/k.json", "agents/bob/context/s", "agents/bob"]
)
def test_a_link_out_of_the_root_is_refused_by_every_operation(workspace, tmp_path, link):
    store = WorkspaceSession(workspace, "bob")
    store.save("s", "k", 1)
    inside = workspace.layout.root / link
    inside.rename(tmp_path / "outside")
    inside.symlink_to(tmp_path / "outside")

    for operation in [
        lambda: store.get("s", "k"),
        lambda: store.save("s", "k", 2),
        lambda: store.save_list("s", "k", [2]),
        lambda: store.delete("s", "k"),
    ]:
        with pytest.raises(UnsafePath):
            operation()

    outside = [tmp_path / "outside", *(tmp_path / "outside").rglob("k.json")][-1]
    assert outside.read_text() == "1\n"


@pytest.mark.parametrize("link", ["agents/bob/context/s", "agents/bob/context", "agents"])
def test_a_directory_that_is_a_link_out_of_the_root_is_not_listed(workspace, tmp_path, link):
    store = WorkspaceSession(workspace, "bob")
    store.save("s", "k", 1)
    inside = workspace.layout.root / link
    inside.rename(tmp_path / "outside")
    inside.symlink_to(tmp_path / "outside")

    for operation in (store.list_keys, store.exists, store.delete):
        with pytest.raises(UnsafePath):
            operation("s")
    if link != "agents/bob/context/s":
        with pytest.raises(UnsafePath):
            store.list_session_keys()


def test_nothing_is_logged_when_nothing_is_wrong(store, caplog):
    caplog.set_level(logging.DEBUG, logger="workspace_session")
    store.save("s", "k", 1)
    store.save_list("s", "l", [1])
    store.delete("s")

    assert caplog.records == []
