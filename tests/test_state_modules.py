"""Modules whose states are saved and loaded together."""

from __future__ import annotations

import json
import os
import threading
from functools import cached_property
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict, PrivateAttr, model_validator

from workspace_session.errors import (
    InvalidId,
    StateConflict,
    StateCorrupt,
    StateLoadFailed,
    StateNotSerializable,
    UnknownSession,
)
from workspace_session.files.names import temporary_name
from workspace_session.files.state import ABSENT, JsonSession, PydanticModule


class Box:
    """A module that keeps whatever it is given."""

    def __init__(self, state: object = None) -> None:
        self.state = state

    def state_dict(self) -> object:
        return self.state

    def load_state_dict(self, state: object) -> None:
        self.state = state


class Stubborn(Box):
    def load_state_dict(self, state: object) -> None:
        raise KeyError("content")


class Plan(BaseModel):
    title: str = ""
    steps: list[str] = []


@pytest.fixture
def store(tmp_path):
    return JsonSession(tmp_path / "states", durability="os")


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


# -- saving ----------------------------------------------------------------------------------------


def test_each_module_has_its_file_and_its_etag(store):
    etags = store.save_to("s", {"memory": Box({"n": 1}), "plan": Plan(title="x")})

    assert names_in(store.path / "s") == ["memory.json", "plan.json"]
    assert etags == {name: store.get_versioned("s", name).etag for name in ("memory", "plan")}
    assert store.get("s", "plan") == {"title": "x", "steps": []}


def test_modules_that_are_not_named_keep_their_files(store):
    store.save_to("s", {"memory": Box(1), "plan": Box(2)})
    store.save_to("s", {"memory": Box(3)})

    assert (store.get("s", "memory"), store.get("s", "plan")) == (3, 2)


def test_no_modules_are_no_session(store):
    assert store.save_to("s", {}) == {}
    assert not store.exists("s")


def test_what_is_no_module_is_refused_before_anything_is_written(store, tmp_path):
    text = "module 'x' has neither state_dict/load_state_dict nor model_dump/model_validate"

    for call in (store.save_to, store.load_from, store.load_if_exists):
        with pytest.raises(TypeError) as refused:
            call("s", {"memory": Box(1), "x": object()})
        assert str(refused.value) == text

    assert list(tmp_path.iterdir()) == []


def test_a_state_that_is_not_json_is_named_and_nothing_is_written(store):
    store.save_to("s", {"memory": Box(1)})

    with pytest.raises(StateNotSerializable) as refused:
        store.save_to("s", {"memory": Box(2), "plan": Box({"x": {1}})})

    assert refused.value.__notes__ == ["in the state of module 'plan'"]
    assert store.get("s", "memory") == 1


def test_a_module_that_cannot_give_its_state_leaves_everything_as_it_was(store):
    class Broken(Box):
        def state_dict(self) -> object:
            raise RuntimeError("broken")

    store.save_to("s", {"memory": Box(1)})

    with pytest.raises(RuntimeError, match="broken"):
        store.save_to("s", {"memory": Box(2), "plan": Broken()})

    assert store.get("s", "memory") == 1


def test_every_etag_is_checked_before_the_first_file_is_written(store):
    etags = store.save_to("s", {"memory": Box(1), "plan": Box(1)})
    theirs = store.save("s", "plan", 9)

    with pytest.raises(StateConflict) as conflict:
        store.save_to("s", {"memory": Box(2), "plan": Box(2)}, if_match=etags)

    assert (conflict.value.key, conflict.value.actual) == ("plan", theirs)
    assert (store.get("s", "memory"), store.get("s", "plan")) == (1, 9)
    assert names_in(store.path / "s") == ["memory.json", "plan.json"]


def test_an_etag_may_be_that_of_a_module_that_is_not_saved(store):
    store.save("s", "plan", 1)

    with pytest.raises(StateConflict):
        store.save_to("s", {"memory": Box(2)}, if_match={"plan": ABSENT, "memory": None})

    assert store.list_keys("s") == ["plan"]


def test_two_modules_that_differ_only_in_case_are_refused(store):
    with pytest.raises(InvalidId, match='differs only in case from "Memory"'):
        store.save_to("s", {"Memory": Box(1), "memory": Box(2)})

    assert not store.exists("s")


def test_a_module_takes_the_place_of_a_list_together_with_the_others(store):
    store.save_list("s", "memory", [1])

    store.save_to("s", {"memory": Box({}), "plan": Box({})})

    assert names_in(store.path / "s") == ["memory.json", "plan.json"]


def test_a_corrupt_file_among_them_is_set_aside(store):
    store.save_to("s", {"memory": Box(1), "plan": Box(1)})
    (store.path / "s/plan.json").write_text("{")

    store.save_to("s", {"memory": Box(2), "plan": Box(2)})

    assert store.list_keys("s") == ["memory", "plan"]
    (aside,) = (store.path / "s").glob("plan.json.corrupt-*")
    assert aside.read_text() == "{"


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_a_disk_that_fills_up_on_the_way_leaves_everything_as_it_was(store, monkeypatch, failing):
    store.save_to("s", {"memory": Box(1), "plan": Box(1)})
    write, count = os.write, []

    def fill(descriptor: int, data: bytes) -> int:
        count.append(data)
        if len(count) == failing:  # the two states, then the note
            raise OSError(28, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", fill)

    with pytest.raises(OSError, match="No space"):
        store.save_to("s", {"memory": Box(2), "plan": Box(2)})

    assert names_in(store.path / "s") == ["memory.json", "plan.json"]
    assert (store.get("s", "memory"), store.get("s", "plan")) == (1, 1)


@pytest.mark.parametrize("failing", range(1, 7))
def test_a_sync_that_fails_leaves_the_old_or_the_new_and_never_both(tmp_path, monkeypatch, failing):
    store = JsonSession(tmp_path / "states")
    store.save_to("s", {"memory": Box(1), "plan": Box(1)})
    fsync, count = os.fsync, []

    def fail(descriptor: int) -> None:
        count.append(descriptor)
        if len(count) == failing:
            raise OSError(5, "Input/output error")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fail)

    # Two states, their directory, the note, its directory; once the note is there for good the
    # change is made, and the sixth fails after the renames.
    with pytest.raises(OSError, match="Input/output"):
        store.save_to("s", {"memory": Box(2), "plan": Box(2)})

    expected = 2 if failing == 6 else 1
    assert (store.get("s", "memory"), store.get("s", "plan")) == (expected, expected)
    assert names_in(store.path / "s") == ["memory.json", "plan.json"]


def test_no_lock_is_held_while_a_module_works(store):
    class Slow(Box):
        """While it works, another thread gets to save in the same session."""

        def state_dict(self) -> object:
            self.let_another_save("taken")
            return super().state_dict()

        def load_state_dict(self, state: object) -> None:
            self.let_another_save("loaded")
            super().load_state_dict(state)

        def let_another_save(self, key: str) -> None:
            thread = threading.Thread(target=store.save, args=("s", key, 1))
            thread.start()
            thread.join(timeout=5)
            assert not thread.is_alive()

    store.save_to("s", {"memory": Slow(1)})
    store.load_from("s", {"memory": Slow()})

    assert store.list_keys("s") == ["loaded", "memory", "taken"]


# -- loading ---------------------------------------------------------------------------------------


def test_what_was_saved_is_loaded_with_its_etag(store):
    etags = store.save_to("s", {"memory": Box({"n": (1, 2)}), "plan": Plan(steps=["a"])})
    memory, plan = Box(), Plan()

    assert store.load_from("s", {"memory": memory, "plan": plan}) == etags

    assert memory.state == {"n": [1, 2]}
    assert plan == Plan(steps=["a"])


def test_loading_what_does_not_exist_is_told_in_two_ways(store):
    memory = Box("untouched")

    with pytest.raises(UnknownSession, match="there is no session 's'"):
        store.load_from("s", {"memory": memory})
    assert store.load_if_exists("s", {"memory": memory}) is False

    assert memory.state == "untouched"


def test_a_module_without_stored_state_is_left_alone(store):
    store.save_to("s", {"memory": Box(1)})
    plan = Box("untouched")

    etags = store.load_from("s", {"memory": Box(), "plan": plan})

    assert etags["plan"] is ABSENT
    assert plan.state == "untouched"


def test_a_session_exists_even_if_no_module_is_asked_for(store):
    store.save("s", "k", 1)

    assert store.load_if_exists("s", {}) is True
    assert store.load_from("s", {}) == {}


def test_initial_states_are_for_modules_without_stored_state(store):
    store.save_to("s", {"memory": Box(1)})
    memory, plan = Box(), Box()

    assert store.load_if_exists(
        "s", {"memory": memory, "plan": plan}, initial={"memory": 0, "plan": 0, "other": 0}
    )

    assert (memory.state, plan.state) == (1, 0)


def test_an_absent_session_gives_copies_of_the_initial_states(store):
    initial = {"memory": {"items": []}}
    memory = Box("of an earlier session")

    assert store.load_if_exists("s", {"memory": memory}, initial=initial) is False
    memory.state["items"].append("new")

    assert initial == {"memory": {"items": []}}


def test_what_was_loaded_is_returned_in_objects_of_its_own(store):
    store.save_to("s", {"memory": Box({"items": []})})
    memory = Box()

    found = store.load_versioned("s", {"memory": memory, "plan": Box()})
    memory.state["items"].append("new")

    assert found["memory"] == store.get_versioned("s", "memory")
    assert found["plan"] == (None, ABSENT, ())


def test_all_files_are_parsed_before_the_first_module_is_touched(store):
    store.save_to("s", {"memory": Box(1), "plan": Box(1)})
    (store.path / "s/plan.json").write_text("{")
    memory = Box("untouched")

    with pytest.raises(StateCorrupt, match=r"s/plan\.json"):
        store.load_from("s", {"memory": memory, "plan": Box()})

    assert memory.state == "untouched"


def test_a_module_that_refuses_its_state_is_named(store):
    store.save_to("s", {"memory": Box(1)})

    with pytest.raises(StateLoadFailed) as failed:
        store.load_from("s", {"memory": Stubborn()})

    assert str(failed.value) == "module 'memory' could not load its stored state"
    assert isinstance(failed.value.__cause__, KeyError)


# -- models ----------------------------------------------------------------------------------------


def test_a_model_is_loaded_in_place(store):
    class Child(BaseModel):
        n: int = 0

    class Parent(BaseModel):
        model_config = ConfigDict(validate_assignment=True, extra="allow")
        low: int = 0
        high: int = 1
        child: Child = Child()
        _connection: object = PrivateAttr(default=None)

        @model_validator(mode="after")
        def ordered(self) -> Parent:
            assert self.low < self.high
            return self

        @cached_property
        def span(self) -> int:
            return self.high - self.low

    store.save_to("s", {"p": Parent(low=10, high=20, child=Child(n=5), more="extra")})
    parent = Parent()
    parent._connection = connection = object()
    assert parent.span == 1

    store.load_from("s", {"p": parent})

    assert (parent.low, parent.high, parent.child, parent.more) == (10, 20, Child(n=5), "extra")
    assert parent.span == 10
    assert parent._connection is connection
    assert parent.model_fields_set == {"low", "high", "child", "more"}


def test_a_model_that_refuses_its_state_stays_as_it_was(store):
    store.save("s", "plan", {"steps": 7})
    plan = Plan(title="mine")

    with pytest.raises(StateLoadFailed):
        store.load_from("s", {"plan": plan})

    assert plan == Plan(title="mine")


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)
    n: int = 0


def test_a_frozen_model_goes_in_wrapped(store):
    module = PydanticModule(Frozen(n=1))
    store.save_to("s", {"f": module})
    store.save("s", "f", {"n": 2})
    old = module.value

    store.load_from("s", {"f": module})

    assert (old, module.value) == (Frozen(n=1), Frozen(n=2))


def test_a_frozen_model_that_is_not_wrapped_is_not_changed(store):
    store.save("s", "f", {"n": 2})
    model = Frozen(n=1)

    with pytest.raises(StateLoadFailed) as failed:
        store.load_from("s", {"f": model})

    assert "PydanticModule(model)" in str(failed.value.__cause__)
    assert model.n == 1


# -- a change that was begun -----------------------------------------------------------------------


@pytest.fixture
def begun(store):
    """A change of three files that a crash interrupted after the first rename."""
    store.save_to("s", {"a": Box("old"), "b": Box("old"), "c": Box("old")})
    directory = store.path / "s"
    files = {f"{key}.json": temporary_name(f"{key}.json") for key in "abc"}
    (directory / "a.json").write_text('"new"\n')
    for name in ("b.json", "c.json"):
        (directory / files[name]).write_text('"new"\n')
    (directory / ".commit.json").write_text(json.dumps({"files": files}))
    return directory


@pytest.mark.parametrize(
    "operation",
    [
        lambda store: store.get("s", "b"),
        lambda store: store.get_list("s", "absent"),
        lambda store: store.exists("s"),
        lambda store: store.exists("s", "b"),
        lambda store: store.list_keys("s"),
        lambda store: store.list_session_keys(),
        lambda store: store.save("s", "d", 1),
        lambda store: store.save_list("s", "d", [1]),
        lambda store: store.save_to("s", {"d": Box(1)}),
        lambda store: store.load_from("s", {"a": Box(), "b": Box()}),
        lambda store: store.load_if_exists("s", {"b": Box()}),
        lambda store: store.delete("s", "d"),
    ],
)
def test_any_operation_first_completes_it(store, begun, operation):
    operation(store)

    assert {key: (begun / f"{key}.json").read_text() for key in "abc"} == dict.fromkeys(
        "abc", '"new"\n'
    )
    assert [name for name in names_in(begun) if name.startswith(".")] == []


def test_a_first_save_that_was_begun_is_a_session(store):
    directory = store.path / "s"
    directory.mkdir(parents=True)
    temporary = temporary_name("a.json")
    (directory / temporary).write_text("1\n")
    (directory / ".commit.json").write_text(json.dumps({"files": {"a.json": temporary}}))

    assert store.list_session_keys() == ["s"]
    assert store.get("s", "a") == 1


def test_a_begun_change_of_kind_is_completed(store):
    store.save("s", "k", 1)
    directory = store.path / "s"
    temporary = temporary_name("k.jsonl")
    (directory / temporary).write_text("2\n")
    (directory / ".commit.json").write_text(
        json.dumps({"files": {"k.jsonl": temporary}, "remove": ["k.json"]})
    )

    assert store.get("s", "k") == [2]
    assert names_in(directory) == ["k.jsonl"]


def test_a_note_that_does_not_parse_is_set_aside(store, caplog):
    store.save("s", "k", 1)
    (store.path / "s/.commit.json").write_text("{")

    assert store.get("s", "k") == 1

    assert [name[:21] for name in names_in(store.path / "s")] == [".commit.json.corrupt-", "k.json"]
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    "note",
    [
        [],
        {"files": []},
        {"files": {"../../victim": ".victim.tmp-1-00000000"}},
        {"files": {"k.json": "../../victim"}},
        {"files": {"k.json": "./../../.victim.tmp-1-00000000"}},
        {"files": {"k.json": 7}},
        {"files": {}, "remove": ["../../victim", "readme.txt", 7]},
        {"files": {}, "remove": {"k.json": 1}},
    ],
)
def test_a_note_moves_nothing_but_state_files_of_its_directory(store, tmp_path, note):
    store.save("s", "k", 1)
    victims = [tmp_path / "victim", tmp_path / ".victim.tmp-1-00000000"]
    for victim in (*victims, store.path / "s/readme.txt"):
        victim.write_text("mine")
    (store.path / "s/.commit.json").write_text(json.dumps(note))

    assert store.get("s", "k") == 1

    assert [victim.read_text() for victim in victims] == ["mine", "mine"]
    assert names_in(store.path / "s") == ["k.json", "readme.txt"]
