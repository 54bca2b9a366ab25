"""Catching up with logs, whatever their lines say and however they came to be: one meaning.

The index of these tests is a dictionary. What it holds after any way of catching up is what `Tree` makes
of the lines that are whole.
"""

from __future__ import annotations

import json
import os
import random
from contextlib import contextmanager, nullcontext
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from logs import chain, header, line, logs, message, wire

from workspace_session.files.jsonl import parse_lines
from workspace_session.files.layout import Layout
from workspace_session.model import messages
from workspace_session.model.batches import settle
from workspace_session.model.entries import Message, message_of
from workspace_session.model.tree import Tree
from workspace_session.search.analysis import tokens
from workspace_session.search.catch_up import catch_up
from workspace_session.search.engine import Log

LOG = Log("a", "s")


class DictionaryEngine:
    """An index in memory; it counts the documents it was given."""

    is_quick = False

    def __init__(self, room: int = 1 << 20) -> None:
        self.room = room
        self.documents: dict[Log, dict[str, object]] = {}
        self.given = 0
        self._marks = {}

    def marks(self):
        return dict(self._marks)

    def known(self, log, ids):
        there = self.documents.get(log, {})
        return {one: there[one].created_at for one in ids if one in there}

    def write(self, changes):
        assert len({change.log for change in changes}) == len(changes), (
            "a log is read twice at once"
        )
        for change in changes:
            there = self.documents.setdefault(change.log, {})
            if change.afresh:
                there.clear()
            for one in change.removed:
                there.pop(one, None)
            for document in change.added:
                assert document.id not in there
                there[document.id] = document
                self.given += 1
            if change.mark is None:
                assert not there
                del self._marks[change.log], self.documents[change.log]
            else:
                self._marks[change.log] = change.mark


class Logs:
    """A namespace with one agent, its log files written by hand, and an index of them."""

    def __init__(self, root, room: int = 1 << 20) -> None:
        self.layout = Layout(root)
        self.place = self.layout.agent("a")
        self.place.sessions.mkdir(parents=True, exist_ok=True)
        self.path = self.place.log("s")
        self.engine = DictionaryEngine(room)

    def append(self, data: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(data)

    def replace(self, data: bytes) -> None:
        aside = self.path.with_name(".aside")
        aside.write_bytes(data)
        aside.replace(self.path)

    def catch_up(self) -> dict[str, tuple[str, str]]:
        catch_up(self.engine, self.layout, (), nullcontext)
        return held(self.engine.documents.get(LOG, {}).values())


def held(documents) -> dict[str, tuple[str, str]]:
    return {one.id: (one.text, one.more, one.created_at) for one in documents}


def meaning(data: bytes) -> dict[str, tuple[str, str]]:
    """What should be found in the lines of a log."""
    tree = Tree.of(settle(parse_lines(data).entries).counted)
    ids = {entry.id for entry in tree.entries if isinstance(entry, Message)}
    nodes = [node for node in map(tree.get, ids) if node is not None]
    found = {
        node.id: (" ".join(tokens(messages.text(node.message))), "", created(node))
        for node in nodes
    }
    for overlay in tree.compactions():
        summary = " ".join(tokens(overlay.summary))
        found[overlay.message["id"]] = ("", summary, overlay.timestamp)
    return found


def created(node: Message) -> str:
    return message_of(node.line).get("createdAt", node.timestamp)


def joined(wires) -> bytes:
    return b"".join(line(one) + b"\n" for one in wires)


@st.composite
def batched(draw, wild: bool, interleaved: bool = False):
    """A log in which some neighbours were written together, some of them not to the end."""
    wires = draw(logs(wild=wild))
    at = 1
    while at < len(wires):
        length = draw(st.integers(1, 4))
        # Batches of two clones stand between each other when their logs were merged.
        step = draw(st.sampled_from([1, 2])) if interleaved else 1
        members = [one for one in wires[at : at + step * length : step] if "batch" not in one]
        if draw(st.booleans()) and len(members) > 1:
            missing = draw(st.sampled_from([0, 0, 0, 1]))
            for one in members:
                one["batch"] = {"id": f"b{at}", "size": len(members) + missing}
            if missing and draw(st.booleans()) and at + length < len(wires):
                number = len(members) + at
                wires[number] = {**wire(number, "abort"), "batchId": f"b{at}"}
        at += length
    return wires


@given(
    wires=batched(wild=True),
    cuts=st.lists(st.floats(0, 1), max_size=5),
    room=st.integers(1, 1500),
)
def test_a_log_that_grows_at_any_byte_is_read_on(tmp_path_factory, wires, cuts, room):
    place = Logs(tmp_path_factory.mktemp("logs"), room)
    data = joined(wires)
    at = 0

    for cut in [*sorted(int(cut * len(data)) for cut in cuts), len(data)]:
        place.append(data[at:cut])
        at = cut
        assert place.catch_up() == meaning(data[:cut])


@given(wires=batched(wild=True, interleaved=True), room=st.integers(1, 1500))
def test_a_merged_log_in_order_is_taken_in_in_pieces(tmp_path_factory, wires, room):
    place = Logs(tmp_path_factory.mktemp("logs"), room)
    place.append(joined(wires))

    assert place.catch_up() == meaning(joined(wires))


@given(wires=batched(wild=True), seed=st.integers(), room=st.integers(1, 1500), cut=st.floats(0, 1))
def test_a_log_that_is_merged_is_read_anew(tmp_path_factory, wires, seed, room, cut):
    place = Logs(tmp_path_factory.mktemp("logs"), room)
    first = wires[: int(cut * len(wires)) + 1]
    place.append(joined(first))
    assert place.catch_up() == meaning(joined(first))

    random.Random(seed).shuffle(wires)
    place.replace(joined(wires))

    assert place.catch_up() == meaning(joined(wires))


@given(wires=logs(wild=True), late=st.integers(0, 30))
def test_lines_that_are_not_newer_make_a_log_to_be_read_anew(tmp_path_factory, wires, late):
    place = Logs(tmp_path_factory.mktemp("logs"))
    late_one = wires.pop(late % len(wires))
    place.append(joined(wires))
    place.catch_up()

    place.append(joined([late_one]))

    assert place.catch_up() == meaning(joined([*wires, late_one]))


# -- one thing at a time ---------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path):
    return Logs(tmp_path)


def test_only_new_bytes_are_taken_in(place):
    wires = chain(50)
    place.append(joined(wires[:40]))
    place.catch_up()
    assert place.engine.given == 39

    place.append(joined(wires[40:]))
    place.catch_up()

    assert place.engine.given == 50


def test_a_log_that_did_not_change_is_not_read(place, monkeypatch):
    place.append(joined(chain(5)))
    place.catch_up()
    os.chmod(place.path, 0)
    monkeypatch.setattr("workspace_session.search.stretches.read_bytes", None)

    assert len(place.catch_up()) == 5


def test_a_batch_that_is_being_written_is_held_back(place):
    wires = chain(4)
    for one in wires[3:]:
        one["batch"] = {"id": "b", "size": 2}
    place.append(joined(wires[:4]))
    assert place.catch_up().keys() == {"m0", "m1"}

    place.append(joined(wires[4:]))

    assert place.catch_up().keys() == {"m0", "m1", "m2", "m3"}


def test_a_batch_that_was_given_up_never_counts(place):
    wires = chain(4)
    wires[3]["batch"] = {"id": "b", "size": 2}
    place.append(joined(wires[:4]))
    place.catch_up()

    place.append(joined([{**wire(4, "abort"), "batchId": "b"}, message(5, "m9", "m1")]))

    assert place.catch_up().keys() == {"m0", "m1", "m9"}


def test_a_log_that_is_read_anew_in_pieces_comes_to_an_end(tmp_path):
    place = Logs(tmp_path, room=600)  # less than the log has, more than one entry
    wires = chain(12)
    place.append(joined(wires[:6]))
    place.catch_up()

    # What was given up may be behind the mark: such a log is read from its beginning.
    place.append(joined([{**wire(6, "abort"), "batchId": "b"}, *wires[6:]]))

    assert place.catch_up() == meaning(place.path.read_bytes())


def test_a_log_with_the_same_inode_and_other_lines_is_read_anew(place):
    place.append(joined(chain(5)))
    place.catch_up()

    other = [header(), *(message(number, f"n{number}", None) for number in range(1, 9))]
    place.path.write_bytes(joined(other))  # in place: the inode stays

    assert place.catch_up().keys() == {f"n{number}" for number in range(1, 9)}


def test_a_log_that_was_edited_to_the_same_length_is_read_anew(place):
    place.append(joined(chain(3)))
    place.catch_up()

    data = place.path.read_bytes()
    place.path.write_bytes(data.replace(b"says m0", b"told m0"))
    os.utime(place.path, ns=(0, 1))  # however quick that was

    assert place.catch_up()["m0"][0] == "told m0"


def test_a_log_that_shrank_is_read_anew(place):
    place.append(joined(chain(5)))
    place.catch_up()

    place.path.write_bytes(joined(chain(2)))

    assert place.catch_up().keys() == {"m0", "m1"}


def test_a_log_that_is_gone_leaves_nothing(place):
    place.append(joined(chain(2)))
    place.catch_up()

    place.path.unlink()

    assert place.catch_up() == {}
    assert place.engine.marks() == {}


def test_a_session_whose_log_was_lost_is_read_from_its_working_set(place):
    place.place.tree("s").write_bytes(joined(chain(2)))
    assert place.catch_up().keys() == {"m0", "m1"}

    place.append(joined(chain(3)))

    assert place.catch_up().keys() == {"m0", "m1", "m2"}


def test_lines_by_other_hands_are_found_where_they_are(place):
    strange = b"\xef\xbb\xbf" + line(header()) + b"\r\n\r\n<<<<<<< ours\n"
    spaced = json.dumps(message(1, "m0", None), indent=None).encode() + b"\r\n"
    place.append(strange + spaced + b'{"type":"mess\n')
    place.catch_up()

    document = place.engine.documents[LOG]["m0"]
    data = place.path.read_bytes()[document.start : document.start + document.length]

    assert json.loads(data)["id"] == "m0"


def test_symbolic_links_are_not_followed(place, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "x.log.jsonl"
    outside.write_bytes(joined(chain(2)))
    place.path.symlink_to(outside)
    assert place.catch_up() == {}

    place.path.unlink()
    place.place.sessions.rmdir()
    place.place.sessions.symlink_to(outside.parent)

    catch_up(place.engine, place.layout, (), nullcontext)
    assert place.engine.documents == {}


def test_what_is_no_file_and_what_is_not_ours_is_passed_over(place):
    place.append(joined(chain(1)))
    place.place.log("directory").mkdir()
    (place.place.sessions / "not%ours.log.jsonl").write_bytes(joined(chain(1)))
    (place.place.sessions / ".s.log.jsonl.tmp-1-abcdef12").write_bytes(joined(chain(1)))
    (place.place.sessions / "sessions.json").write_bytes(b"{}")

    place.catch_up()

    assert list(place.engine.documents) == [LOG]


def test_a_log_that_may_not_be_read_keeps_nobody_from_the_others(place, monkeypatch, caplog):
    place.append(joined(chain(1)))
    other = place.place.log("other")
    other.write_bytes(joined(chain(1)))
    from workspace_session.search import stretches

    def read_bytes(path, start=0):
        if path == place.path:
            raise PermissionError(13, "Permission denied")
        return stretches_read(path, start)

    stretches_read = stretches.read_bytes
    monkeypatch.setattr(stretches, "read_bytes", read_bytes)

    place.catch_up()

    assert list(place.engine.documents) == [Log("a", "other")]
    assert "'s' of agent 'a' is not searched" in caplog.text


def test_a_long_log_is_taken_in_in_pieces_and_batches_stay_whole(place):
    wires = chain(20)
    place.engine.room = 3 * len(line(wires[1]) + b"\n")
    for one in wires[2:12]:
        one["batch"] = {"id": "b", "size": 10}
    place.append(joined(wires))
    written = []
    write = place.engine.write
    place.engine.write = lambda changes: (written.append(len(changes[0].added)), write(changes))

    assert len(place.catch_up()) == 20
    assert written == [11, 2, 2, 2, 2, 1]  # of longer lines, two


def test_another_process_may_take_in_some_of_the_pieces(place):
    place.engine.room = 500
    place.append(joined(chain(10)))

    turns = count(1)

    @contextmanager
    def after_somebody_else():
        if next(turns) == 2:
            catch_up(place.engine, place.layout, (), nullcontext)
        yield

    catch_up(place.engine, place.layout, (), after_somebody_else)

    assert len(place.catch_up()) == 10
    assert place.engine.given == 10
