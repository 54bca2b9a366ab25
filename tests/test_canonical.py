"""The one byte form of a JSON value."""

from __future__ import annotations

import datetime
import enum
import json
import math
import re
import struct
import uuid
from collections import OrderedDict, namedtuple
from dataclasses import dataclass

import orjson
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from workspace_session.errors import StateNotSerializable
from workspace_session.model.canonical import (
    compact,
    compact_plain,
    compact_sorted,
    document,
    parse,
)

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(10**400), max_value=10**400)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)
texts_with_surrogates = st.text(
    st.characters(exclude_categories=()) | st.sampled_from("\ud83d\ude00")
)


def nested(levels: int) -> list:
    value: list = []
    for _ in range(levels - 1):
        value = [value]
    return value


# -- writing ---------------------------------------------------------------------------------------


def test_a_document_is_sorted_indented_and_ends_in_a_newline():
    assert document({"n": 1, "c": ["hé"]}) == '{\n  "c": [\n    "hé"\n  ],\n  "n": 1\n}\n'.encode()


def test_an_entry_keeps_the_order_of_its_keys_and_has_no_spaces():
    assert (
        compact({"b": [1, None, True], "a": {"é": 1.5}})
        == '{"b":[1,null,true],"a":{"é":1.5}}'.encode()
    )


def test_an_item_has_its_keys_sorted_by_code_point_at_every_level():
    item = {"b": {"\U0001f600": 1, "\uffee": 2, "Z": 3, "a": 4}, "a": 0}

    assert compact_sorted(item) == '{"a":0,"b":{"Z":3,"a":4,"\uffee":2,"\U0001f600":1}}'.encode()


def test_tuples_are_written_as_lists():
    assert compact({"pair": (1, (2,))}) == b'{"pair":[1,[2]]}'


def test_subclasses_are_written_as_their_base():
    class Text(str):
        def __str__(self):
            return "something else"

    class Level(enum.IntEnum):
        HIGH = 3

    class Mood(str, enum.Enum):  # noqa: UP042 (its `str()` is not its text)
        GOOD = "good"

    class Ratio(float):
        def __repr__(self):
            return "something else"

    class Items(list):
        def __iter__(self):
            raise AssertionError("the base iterates")

    point = namedtuple("point", "x y")(1, 2)
    value = {Text("k"): Text("v"), "l": Level.HIGH, "m": Mood.GOOD, "r": Ratio(0.5), "p": point}

    assert compact(value) == b'{"k":"v","l":3,"m":"good","r":0.5,"p":[1,2]}'
    assert compact([Items([1, Ratio(2)])]) == b"[[1,2.0]]"
    assert compact(OrderedDict(a=(1,))) == b'{"a":[1]}'


def test_true_and_one_and_one_point_zero_are_kept_apart():
    assert compact([True, 1, 1.0]) == b"[true,1,1.0]"


def test_a_lone_surrogate_becomes_the_replacement_character_and_a_pair_is_joined():
    assert compact(["a\ud800b", "\ud83d\ude00", "\ude00\ud83d"]) == (
        '["a\ufffdb","\U0001f600","\ufffd\ufffd"]'.encode()
    )


def test_the_careful_writer_gives_the_bytes_that_orjson_would():
    plain = {"b": [1, 1e16, 1e-7, -0.0, '\x00\n\x7f\u2028"\\', {}, [], {"z": None, "a": [False]}]}
    forced = {**plain, "b": (*plain["b"],)}

    assert compact(forced) == orjson.dumps(plain)
    assert compact_sorted(forced) == orjson.dumps(plain, option=orjson.OPT_SORT_KEYS)
    assert (
        document(forced)
        == orjson.dumps(plain, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2) + b"\n"
    )


def test_500_levels_are_written_and_read():
    deep = nested(500)

    assert parse(compact(deep)) == deep
    assert parse(document(deep)) == deep


@given(st.lists(values))
def test_what_many_plain_values_are_written_as_is_what_each_is_written_as(many):
    found = compact_plain(many)

    assert found is None or found == [compact(value) for value in many]


@given(
    st.lists(values),
    st.one_of(
        st.sampled_from([math.nan, -math.nan, math.inf, -math.inf]),
        st.integers(1, 2**52 - 1).map(lambda bits: of_bits(0x7FF << 52 | bits)),
        st.integers(1, 2**52 - 1).map(lambda bits: of_bits(0xFFF << 52 | bits)),
    ),
    st.sampled_from([lambda odd: odd, lambda odd: [odd], lambda odd: {"a": {"b": [1.5, odd]}}]),
    st.integers(min_value=0),
)
def test_no_float_that_json_has_not_is_taken_for_a_null(many, odd, around, at):
    many.insert(at % (len(many) + 1), around(odd))

    assert compact_plain(many) is None


def of_bits(bits: int) -> float:
    (found,) = struct.unpack("<d", struct.pack("<Q", bits))
    return found


def test_most_messages_need_no_second_look():
    plain = [{"text": "x" * length, "n": -length, "at": length / 7} for length in range(600)]

    assert compact_plain(plain) == [compact(value) for value in plain]


@dataclass
class Record:
    x: int = 1


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        ({"content": [1, 2, {"a b": math.nan}]}, '$.content[2]["a b"]', "float nan"),
        ([math.inf, 1], "$[0]", "float inf"),
        ({"x": -math.inf}, "$.x", "float -inf"),
        ({"when": datetime.datetime(2026, 5, 15, tzinfo=datetime.UTC)}, "$.when", "datetime"),
        ({"id": uuid.UUID(int=1)}, "$.id", "UUID"),
        ([enum.Enum("Colour", "RED").RED], "$[0]", "Colour"),
        ([{1, 2}], "$[0]", "set"),
        (b"bytes", "$", "bytes"),
        (Record(), "$", "Record"),
        ([orjson.Fragment(b"{")], "$[0]", "Fragment"),
        ({"a": {1: 2}}, "$.a", "key of type int"),
        ({"a": {None: 2}}, "$.a", "key of type NoneType"),
        (
            [dict(zip("\ud800\ufffd", (1, 2), strict=True))],
            "$[0]",
            "two keys that are the same text",
        ),
        ({"clé": {"": [object]}}, '$.clé[""][0]', "type"),
        ([10**5000], "$[0]", "int of too many digits"),
        (nested(501), "$" + "[0]" * 500, "more than 500 levels"),
    ],
)
def test_what_is_not_json_is_refused_with_its_path(value, path, reason):
    with pytest.raises(StateNotSerializable) as refused:
        compact(value)

    assert (refused.value.path, refused.value.reason) == (path, reason)
    assert str(refused.value) == f"state is not JSON at {path}: {reason}"


def test_a_cycle_is_refused_and_a_value_that_occurs_twice_is_not():
    shared = (1,)
    loop: dict = {"a": [shared, shared]}
    assert compact(loop) == b'{"a":[[1],[1]]}'

    loop["a"].append(loop)

    with pytest.raises(StateNotSerializable, match=r"at \$\.a\[2\]: cycle"):
        compact(loop)


# -- reading ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [compact, compact_sorted, document])
@given(value=values)
def test_what_goes_in_comes_out(write, value):
    assert parse(write(value)) == value


@given(value=values)
def test_the_same_value_gives_the_same_bytes_whatever_way_it_takes(value):
    assert compact(parse(compact(value))) == compact(value)
    assert compact((value,)) == b"[" + compact(value) + b"]"


@given(
    value=st.lists(texts_with_surrogates) | st.dictionaries(texts_with_surrogates, st.integers())
)
def test_surrogates_never_reach_the_bytes(value):
    names = list(value) if isinstance(value, dict) else []
    assume(len({_joined(name) for name in names}) == len(names))

    assert parse(compact(value)) == (
        {_joined(name): number for name, number in value.items()}
        if isinstance(value, dict)
        else [_joined(text) for text in value]
    )


def _joined(text: str) -> str:
    """Told independently: a pair is one character, what is left over is U+FFFD."""
    pair = re.compile("[\ud800-\udbff][\udc00-\udfff]")
    joined = pair.sub(lambda found: json.loads(json.dumps(found[0])), text)
    return re.sub("[\ud800-\udfff]", "\ufffd", joined)


@pytest.mark.parametrize(
    "number", [2**63, -(2**63) - 1, 2**64 - 1, 2**64, 10**18, 10**19, -(10**25), 10**400]
)
def test_whole_numbers_come_back_exact_wherever_they_stand(number):
    digits = str(number)
    value = [number, {"n": number, "text": f'{digits} "{digits}\\'}, digits]

    assert parse(compact(value)) == value
    assert parse(document(value)) == value
    assert parse(digits.encode()) == number
    assert parse(f" {digits}\n".encode()) == number


def test_a_float_with_many_digits_stays_a_float():
    assert parse(b"[1.2345678901234567890123, 12345678901234567890e3]") == [
        1.2345678901234567,
        1.234567890123456789e22,
    ]


def test_a_byte_order_mark_and_carriage_returns_are_fine():
    assert parse(b'\xef\xbb\xbf{\r\n"a": 1\r\n}\r\n') == {"a": 1}


def test_an_escaped_lone_surrogate_of_another_writer_is_replaced():
    text = json.dumps(["\ud800", "\ud83d\ude00", "\\ud800", "x\udc00\ud83d"])

    assert parse(text.encode()) == ["\ufffd", "\U0001f600", "\\ud800", "x\ufffd\ufffd"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" \n",
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b"1e999",
        b"[1,]",
        b'{"a":1',
        b'"\xff"',
        b'"\\ud8"',
        b"01234567890123456789012",
        b"{12345678901234567890: 1}",
        b'"open 12345678901234567890',
        b'["a" 12345678901234567890]',
        b"9" * 5000,
        b"[" * 100_000,
        b"[" * 2000 + b"12345678901234567890" + b"]" * 2000,
    ],
)
def test_what_is_not_json_is_refused_with_a_short_reason(data):
    with pytest.raises(ValueError) as refused:
        parse(data)

    assert 0 < len(str(refused.value)) < 200
    assert refused.value.__cause__ is None


def test_an_error_does_not_carry_the_text():
    with pytest.raises(ValueError) as refused:
        parse(b'{"secret": ')

    assert not hasattr(refused.value, "doc")
    assert refused.value.__context__ is None
