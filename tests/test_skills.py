"""Loaded skills: what the messages say is loaded, and how a text is taken out of them."""

from __future__ import annotations

from copy import deepcopy

import pytest

from workspace_session.session.skills import LoadedSkills


def part(output, label="skills", key="a", tool="load_context", **more):
    given = {"label": label, "key": key}
    return {"type": f"tool-{tool}", "toolCallId": "c", "input": given, "output": output, **more}


def message(*parts, role="assistant"):
    return {"id": "m", "role": role, "parts": list(parts)}


def restored(*messages, but=()):
    skills = LoadedSkills()
    skills.restore(messages, but=but)
    return skills.keys


def unload(key="a", label="skills"):
    return part(f'Unloaded "{key}" from {label}. Context reclaimed.', label, key, "unload_context")


# -- the set ---------------------------------------------------------------------------------------


def test_marks_are_label_and_key():
    skills = LoadedSkills()
    skills.mark("skills", "a")
    skills.mark("skills", "a")
    skills.mark("docs", "b")

    assert skills.keys == {"skills:a", "docs:b"}
    skills.discard("docs", "b")
    skills.discard("docs", "unknown")
    assert skills.keys == {"skills:a"}
    assert skills.is_loaded("skills", "a")


def test_a_dropped_label_takes_only_its_own_marks_along():
    skills = LoadedSkills()
    skills.mark("a", "b:c")
    skills.mark("a:b", "c")

    skills.drop_label("a")

    assert skills.keys == {"a:b:c"}
    assert skills.is_loaded("a:b", "c")


def test_clearing_forgets_everything():
    skills = LoadedSkills()
    skills.mark("skills", "a")

    skills.clear()

    assert skills.keys == set()


# -- restoring -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "output", ["text", "", "Not found: b", "not found: a", False, {"type": "text", "value": "x"}]
)
def test_a_load_with_a_result_is_loaded(output):
    assert restored(message(part(output))) == {"skills:a"}


@pytest.mark.parametrize("output", ["Not found: a", "Error: no such block", "[skill unloaded: a]"])
def test_a_load_that_failed_or_was_undone_is_not(output):
    assert restored(message(part(output))) == set()


def test_a_failed_load_does_not_undo_an_earlier_one():
    assert restored(message(part("text")), message(part("Error: busy"))) == {"skills:a"}


def test_an_unload_removes_and_a_later_load_adds_again():
    loaded, again = message(part("text")), message(part("text"))

    assert restored(loaded, message(unload())) == set()
    assert restored(loaded, message(unload()), again) == {"skills:a"}
    assert restored(loaded, message(part("[skill unloaded: a]"))) == set()


def test_an_unload_that_failed_removes_nothing():
    refused = part('Skill "a" is not currently loaded in "skills".', tool="unload_context")

    assert restored(message(part("text")), message(refused)) == {"skills:a"}


@pytest.mark.parametrize(
    "more",
    [
        {"state": "output-available"},
        {"state": None},
        {"type": "dynamic-tool", "toolName": "load_context"},
        {"type": "tool-call", "toolName": "load_context"},
    ],
)
def test_parts_that_count(more):
    assert restored(message(part("text", **more))) == {"skills:a"}


@pytest.mark.parametrize(
    "more",
    [
        {"state": "input-available"},
        {"state": "output-error"},
        {"type": "text"},
        {"type": "tool-call"},
        {"toolName": "other"},
        {"input": {"label": "skills"}},
        {"input": {"key": "a"}},
        {"input": {"label": "skills", "key": 5}},
        {"input": None},
        {"input": "text"},
    ],
)
def test_parts_that_do_not(more):
    assert restored(message(part("text", **more))) == set()


def test_a_part_without_an_output_does_not_count():
    pending = part("text")
    del pending["output"]

    assert restored(message({**pending, "result": "text"}, None, "text")) == set()


def test_only_assistant_messages_count():
    assert restored(message(part("text"), role="user")) == set()


def test_a_restore_starts_anew_and_reads_a_stream():
    skills = LoadedSkills()
    skills.mark("skills", "old")

    skills.restore(one for one in [message(part("text"))])

    assert skills.keys == {"skills:a"}


def test_blocks_that_are_gone_can_be_left_out():
    loaded = message(part("text"), part("text", label="gone"))

    assert restored(loaded, but={"gone"}) == {"skills:a"}


def test_a_restore_that_fails_keeps_the_set():
    skills = LoadedSkills()
    skills.mark("skills", "a")

    def broken():
        yield message(part("text", key="b"))
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        skills.restore(broken())

    assert skills.keys == {"skills:a"}


# -- unloading -------------------------------------------------------------------------------------


def test_every_result_of_a_load_is_replaced_and_the_rest_stays():
    text = {"type": "text", "text": "hi"}
    other = part("other", key="b")
    before = message(part("one", extra=1), text, other, part("Not found: a"))
    kept = deepcopy(before)

    after = LoadedSkills().unloaded(before, "skills", "a")

    mark = "[skill unloaded: a]"
    assert after == message(part(mark, extra=1), text, other, part(mark))
    assert before == kept


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [part("text", key="b")],
        [part("text", label="docs")],
        [part("text", tool="other")],
        [part("text", state="input-available")],
        [part("[skill unloaded: a]")],
        [{"type": "text", "text": "hi"}, None],
    ],
)
def test_a_message_without_the_text_is_left_alone(parts):
    assert LoadedSkills().unloaded(message(*parts), "skills", "a") is None


def test_what_was_unloaded_is_not_restored():
    changed = LoadedSkills().unloaded(message(part("text")), "skills", "a")

    assert restored(changed) == set()
