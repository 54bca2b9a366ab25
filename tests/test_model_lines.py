"""Lines: the same entry always has the same bytes, and nothing on a line is lost."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from logs import entries_of, line, logs, message, wire

from workspace_session.errors import InvalidMessage
from workspace_session.model.entries import (
    Abort,
    Batch,
    Clear,
    Compaction,
    Covers,
    Delete,
    Header,
    Info,
    Label,
    Leaf,
    Message,
    Other,
    Update,
    Usage,
    contents,
)
from workspace_session.model.lines import (
    NotAnEntry,
    compose,
    compose_message,
    compose_other,
    decode,
    message_json,
)

AT = "2026-05-15T08:00:00.000000Z"

texts = st.text(st.characters(codec="utf-8"))
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(texts, values, max_size=4)

ENTRIES = [
    compose(Header, id="s", timestamp=AT, version=1, agent="a", parent_session=None),
    compose(Header, id="s", timestamp=AT, version=1, agent="a", parent_session="old"),
    compose(Update, id="e1", timestamp=AT, target_id="m1", message=b'{"x":1}'),
    compose(Delete, id="e1", timestamp=AT, target_ids=("m1", "m2")),
    compose(Clear, id="e1", timestamp=AT),
    compose(
        Compaction,
        id="e1",
        timestamp=AT,
        from_id="m1",
        to_id="m2",
        from_parent_id=None,
        summary="",
        covers=Covers(2, 30),
    ),
    compose(Leaf, id="e1", timestamp=AT, target_id=None),
    compose(Leaf, id="e1", timestamp=AT, target_id="m1"),
    compose(Label, id="e1", timestamp=AT, target_id="m1", label=None),
    compose(Info, id="e1", timestamp=AT, facts={"name": "x", "tags": ["a"], "summary": None}),
    compose(Usage, id="e1", timestamp=AT, input_tokens=1, output_tokens=2, cost=0.5),
    compose(Abort, id="e1", timestamp=AT, batch_id="b"),
    compose_message(b"{}", id="m1", timestamp=AT, parent_id=None, batch=Batch("b", 3)),
    compose_message(b"{}", id="m1", timestamp=AT, parent_id="m0", author="alice"),
    compose_other("custom", {"customType": "x", "data": [1]}, id="e1", timestamp=AT),
]


# -- there and back -----------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.line.decode())
def test_an_entry_reads_back_as_what_was_written(entry):
    assert decode(entry.line) == entry
    assert decode(entry.line).line == entry.line


def test_lines_are_written_in_one_fixed_way():
    data = message_json({"role": "user", "text": "héllo 你好"})

    entry = compose_message(
        data, id="m1", timestamp=AT, parent_id="m0", author="al", batch=Batch("b", 2)
    )

    assert entry.line.decode() == (
        '{"type":"message","id":"m1","timestamp":"2026-05-15T08:00:00.000000Z",'
        '"batch":{"id":"b","size":2},"parentId":"m0","author":"al",'
        '"message":{"role":"user","text":"héllo 你好"}}'
    )
    assert entry == compose(
        Message, id="m1", timestamp=AT, parent_id="m0", author="al", revision=None,
        batch=Batch("b", 2), message=data,
    )  # fmt: skip


@given(objects, texts.filter(bool), st.none() | texts.filter(bool), st.none() | texts)
def test_a_message_comes_back_as_it_was(content, message_id, parent, author):
    entry = compose_message(
        message_json(content), id=message_id, timestamp=AT, parent_id=parent, author=author
    )

    found = decode(entry.line)

    assert found == entry
    assert found.message == content
    assert (found.id, found.parent_id, found.author) == (message_id, parent, author)
    assert b"\n" not in entry.line


@given(objects, objects, st.randoms(use_true_random=False))
def test_lines_by_other_hands_say_the_same_whatever_their_layout(content, more, rng):
    known = message(1, "m1", "m0", **content) | {"message": content}
    members = list({**more, **known, "extra": {"a": 1, "message": {"no": 1}}}.items())
    rng.shuffle(members)
    odd = json.dumps(dict(members), indent=None, ensure_ascii=rng.random() < 0.5).encode()

    found = decode(odd)

    assert isinstance(found, Message)
    assert (found.id, found.parent_id) == ("m1", "m0")
    assert found.message == content
    assert contents([found]) == [content]
    assert found.line == odd


@given(logs(wild=True))
def test_the_messages_of_many_entries_are_those_of_each(wires):
    found = [entry for entry in entries_of(wires) if isinstance(entry, Message)]

    assert contents(found) == [entry.message for entry in found]


@given(objects, texts.filter(bool))
def test_entries_of_unknown_types_and_unknown_fields_are_kept_whole(fields, kind):
    given_line = line({**fields, **wire(3, f"x-{kind}")})

    found = decode(given_line)

    assert isinstance(found, Other)
    assert found.kind == f"x-{kind}"
    assert found.line == given_line


# -- what is odd, and still an entry ----------------------------------------------------------------------


def test_a_carriage_return_and_a_bom_are_not_part_of_a_line():
    plain = line(message(1, "m1", None))

    for odd in (plain + b"\r", b"\xef\xbb\xbf" + plain, b"\xef\xbb\xbf" + plain + b"\r"):
        assert decode(odd) == decode(plain)
        assert decode(odd).line == plain


@pytest.mark.parametrize(
    ("given_time", "expected"),
    [
        ("2026-05-15T08:00:00Z", "2026-05-15T08:00:00.000000Z"),
        ("2026-05-15T10:00:00+02:00", "2026-05-15T08:00:00.000000Z"),
        ("2026-05-15T08:00:00.5", "2026-05-15T08:00:00.500000Z"),
        ("2026-05-15 08:00:00", "2026-05-15T08:00:00.000000Z"),
        ("2026-05-15", "2026-05-15T00:00:00.000000Z"),
        ("2024-02-29T08:00:00.000000Z", "2024-02-29T08:00:00.000000Z"),
        ("0999-03-29T00:00:00Z", "0999-03-29T00:00:00.000000Z"),
    ],
)
def test_times_in_other_forms_are_understood(given_time, expected):
    found = decode(line({**message(1, "m1", None), "timestamp": given_time}))

    assert found.timestamp == expected


def test_a_lone_surrogate_by_other_hands_is_read_as_a_replacement():
    odd = rb'{"type":"message","id":"m1","timestamp":"2026-05-15T08:00:00.000000Z","message":{"t":"\ud800"}}'

    assert decode(odd).message == {"t": "\ufffd"}


def test_a_message_without_a_parent_is_a_root():
    wires = message(1, "m1", None)
    del wires["parentId"]

    assert decode(line(wires)).parent_id is None


# -- what is no entry ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_line", "reason"),
    [
        (b"", "blank line"),
        (b"  \t", "blank line"),
        (b"<<<<<<< ours", "conflict marker"),
        (b"=======", "conflict marker"),
        (b">>>>>>> theirs", "conflict marker"),
        (b"||||||| base", "conflict marker"),
        (b'{"type":"mess', "not JSON (torn or edited)"),
        (b"\xff\xfe", "not JSON (torn or edited)"),
        (b"\x00" * 20, "not JSON (torn or edited)"),
        (b'{"x":NaN}', "not JSON (torn or edited)"),
        (b"[1]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'"text"', "not a JSON object"),
    ],
)
def test_a_line_that_holds_no_entry_says_why(given_line, reason):
    with pytest.raises(NotAnEntry) as caught:
        decode(given_line)

    assert str(caught.value) == reason


@pytest.mark.parametrize(
    "broken",
    [
        {"id": None}, {"id": ""}, {"id": 5}, {"type": 5}, {"type": None}, {"type": ""},
        {"timestamp": None}, {"timestamp": 5}, {"timestamp": "yesterday"},
        {"timestamp": "2026-02-30T00:00:00.000000Z"}, {"timestamp": "9999-12-31T23:59:59.999999Z"},
        {"parentId": 5}, {"message": None}, {"message": [1]}, {"message": "x"}, {"author": 5},
        {"batch": 5}, {"batch": {}}, {"batch": {"id": "b", "size": "2"}},
        {"type": "update"}, {"type": "delete"}, {"type": "delete", "targetIds": [1]},
        {"type": "leaf", "targetId": 5}, {"type": "label", "targetId": "m", "label": 5},
        {"type": "compaction", "fromId": "a"}, {"type": "usage", "inputTokens": "1"},
        {"type": "usage", "cost": True}, {"type": "abort"}, {"type": "session", "version": "x"},
        {"type": "compaction", "fromId": "a", "toId": "b", "summary": "s", "covers": "x"},
    ],
    ids=str,
)  # fmt: skip
def test_a_field_that_is_not_what_it_should_be_makes_the_line_no_entry(broken):
    wires = {**message(1, "m1", None), **broken}

    with pytest.raises(NotAnEntry):
        decode(line(wires))


@given(st.binary(max_size=60) | values.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_an_entry_or_say_why_they_are_none(data):
    try:
        decode(data)
    except NotAnEntry as error:
        assert str(error)


@given(logs(wild=True), st.data())
def test_an_entry_cut_anywhere_is_none(wires, data):
    whole = line(wires[-1])
    cut = data.draw(st.integers(0, len(whole) - 1))

    with pytest.raises(NotAnEntry):
        decode(whole[:cut])


# -- what is no message ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [2**63, 2**64, -(2**63) - 1, 10**30, 10**400])
def test_whole_numbers_of_any_size_come_back(number):
    data = message_json({"n": number, "text": '","message":'})
    entry = compose_message(data, id="m", timestamp=AT, parent_id=None)

    assert decode(entry.line).message == {"n": number, "text": '","message":'}
    assert contents([entry]) == [entry.message]


def test_what_is_not_json_is_named_with_its_place():
    with pytest.raises(InvalidMessage, match=r"\$\.parts\[1\]\.x"):
        message_json({"parts": [{}, {"x": {1, 2}}]})


def test_nesting_costs_no_stack():
    deep: dict = {}
    for _ in range(400):
        deep = {"x": deep}
    entry = compose_message(message_json(deep), id="m", timestamp=AT, parent_id=None)

    assert decode(entry.line).message == deep
    for _ in range(200_000):
        deep = {"x": deep}
    with pytest.raises(InvalidMessage):
        message_json(deep)
