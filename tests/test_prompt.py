"""The system prompt: its text to the character, and that it changes only when asked to."""

from __future__ import annotations

import asyncio

import pytest

from workspace_session.session.context import ContextBlocks
from workspace_session.session.prompt import SystemPrompt, render_prompt
from workspace_session.session.values import ContextBlock

RULE = "══════════════════════════════════════════════"


def run(awaitable):
    return asyncio.run(awaitable)


# -- rendering -------------------------------------------------------------------------------------


def test_the_golden_prompt():
    soul = ContextBlock("soul", "Identity", "You are a helpful assistant.", 7)
    facts = "User likes coffee.\nUser prefers dark roast."
    memory = ContextBlock("memory", "Learned facts", facts, 495, 1100, writable=True)

    assert render_prompt([soul, memory]) == (
        f"{RULE}\nSOUL (Identity) [readonly]\n{RULE}\nYou are a helpful assistant.\n\n"
        f"{RULE}\nMEMORY (Learned facts) [45% — 495/1100 tokens]\n{RULE}\n"
        "User likes coffee.\nUser prefers dark roast."
    )


def header(**fields):
    rendered = render_prompt([ContextBlock("b", **{"content": "x", **fields})])
    return rendered.split("\n")[1]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "B [readonly]"),
        ({"description": ""}, "B [readonly]"),
        ({"writable": True}, "B"),
        ({"is_skill": True}, "B [loadable]"),
        ({"is_skill": True, "writable": True}, "B [loadable]"),
        ({"is_searchable": True, "is_skill": True}, "B [searchable]"),
        ({"max_tokens": 0, "writable": True}, "B"),
        ({"max_tokens": 10, "tokens": 2}, "B [20% — 2/10 tokens] [readonly]"),
        ({"max_tokens": 10, "tokens": 25, "writable": True}, "B [250% — 25/10 tokens]"),
        ({"max_tokens": 1000, "tokens": 5, "writable": True}, "B [1% — 5/1000 tokens]"),
        ({"max_tokens": 1000, "tokens": 25, "writable": True}, "B [3% — 25/1000 tokens]"),
        ({"max_tokens": 1100, "tokens": 4, "writable": True}, "B [0% — 4/1100 tokens]"),
    ],
)
def test_headers(fields, expected):
    assert header(**fields) == expected


def test_only_empty_blocks_that_can_do_nothing_are_skipped():
    blocks = [
        ContextBlock("idle"),
        ContextBlock("memory", writable=True),
        ContextBlock("skills", is_skill=True),
        ContextBlock("index", is_searchable=True),
    ]

    rendered = render_prompt(blocks)

    assert [line for line in rendered.split("\n") if line and line != RULE] == [
        "MEMORY",
        "SKILLS [loadable]",
        "INDEX [searchable]",
    ]


def test_an_empty_writable_block_ends_with_its_rule_and_a_newline():
    assert render_prompt([ContextBlock("m", writable=True)]) == f"{RULE}\nM\n{RULE}\n"


def test_no_blocks_are_an_empty_prompt():
    assert render_prompt([]) == ""


# -- freezing --------------------------------------------------------------------------------------


class Store:
    """A prompt store that says what was done with it."""

    def __init__(self, text=None):
        self.text = text
        self.done = []
        self.fails = False

    async def get(self):
        self.done.append("get")
        found = self.text
        await asyncio.sleep(0)  # long enough for another to write
        return found

    async def set(self, text):
        self.done.append("set")
        if self.fails:
            raise OSError("set failed")
        self.text = text


class Source:
    """A block provider whose text changes."""

    def __init__(self, text):
        self.text = text
        self.reads = 0

    def get(self):
        self.reads += 1
        if self.text is None:
            raise OSError("get failed")
        return self.text


def prompt_of(source, store=None):
    blocks = ContextBlocks(lambda label: None)
    blocks.register("b", provider=source)
    prompt = SystemPrompt(blocks)
    prompt.use_store(store)
    return prompt


def rendered(text):
    return f"{RULE}\nB [readonly]\n{RULE}\n{text}"


def test_a_frozen_prompt_stays_though_its_blocks_change():
    source = Source("one")
    prompt = prompt_of(source)

    first = run(prompt.freeze())
    source.text = "two"

    assert run(prompt.freeze()) == first == prompt.snapshot == rendered("one")


@pytest.mark.parametrize("stored", ["kept", ""])
def test_a_stored_prompt_is_used_as_it_is_without_loading_blocks(stored):
    source, store = Source("one"), Store(stored)

    assert run(prompt_of(source, store).freeze()) == stored
    assert source.reads == 0
    assert store.done == ["get"]


def test_a_new_prompt_is_stored():
    store = Store()

    assert run(prompt_of(Source("one"), store).freeze()) == rendered("one")
    assert store.text == rendered("one")


def test_an_empty_prompt_is_stored_too():
    store = Store()

    assert run(prompt_of(Source(""), store).freeze()) == ""
    assert store.text == ""


def test_a_store_may_be_a_mapping():
    kept = []
    store = {"get": lambda: kept[-1] if kept else None, "set": kept.append}

    run(prompt_of(Source("one"), store).freeze())

    assert kept == [rendered("one")]


def test_a_store_that_lost_its_text_gets_the_snapshot_again():
    source, store = Source("one"), Store()
    prompt = prompt_of(source, store)
    run(prompt.freeze())
    source.text, store.text = "two", None

    assert run(prompt.freeze()) == store.text == rendered("one")


def test_what_another_process_stored_counts():
    store = Store()
    prompt = prompt_of(Source("one"), store)
    run(prompt.freeze())
    store.text = "of another process"

    assert run(prompt.freeze()) == "of another process"


def test_freezes_that_come_together_give_one_prompt():
    source, store = Source("one"), Store()
    prompt = prompt_of(source, store)

    async def many():
        return await asyncio.gather(*(prompt.freeze() for _ in range(5)))

    assert set(run(many())) == {rendered("one")}
    assert store.done.count("set") == 1


def test_sessions_with_one_store_take_turns_and_have_one_prompt():
    class Slow(Store):
        async def get(self):
            await asyncio.sleep(0)
            return await super().get()

    store = Slow()
    prompts = [prompt_of(Source(text), store) for text in ("one", "two", "three")]

    async def many():
        return await asyncio.gather(*(prompt.freeze() for prompt in prompts))

    assert set(run(many())) == {rendered("one")}


def test_the_first_prompt_in_the_store_is_everybodys():
    class Shared(Store):
        async def set_if_absent(self, text):
            await asyncio.sleep(0)
            if self.text is None:
                self.text = text
            return self.text

    store = Shared()
    prompts = [prompt_of(Source(text), store) for text in ("one", "two", "three")]

    async def many():
        return await asyncio.gather(*(prompt.freeze() for prompt in prompts))

    texts = run(many())

    assert set(texts) == {store.text} == {prompt.snapshot for prompt in prompts}


@pytest.mark.parametrize(
    ("store", "lacks"), [({}, "get"), ({"get": print}, "set"), (object(), "get")]
)
def test_a_store_needs_both_methods(store, lacks):
    with pytest.raises(TypeError, match=f"lacks {lacks}"):
        SystemPrompt(ContextBlocks(lambda label: None)).use_store(store)


# -- refreshing ------------------------------------------------------------------------------------


def test_a_refresh_replaces_snapshot_and_store():
    source, store = Source("one"), Store()
    prompt = prompt_of(source, store)
    run(prompt.freeze())
    source.text = "two"

    assert run(prompt.refresh()) == prompt.snapshot == store.text == rendered("two")
    assert run(prompt.freeze()) == rendered("two")


def test_a_refresh_whose_provider_fails_changes_nothing():
    source, store = Source("one"), Store()
    prompt = prompt_of(source, store)
    run(prompt.freeze())
    source.text = None

    with pytest.raises(OSError, match="get failed"):
        run(prompt.refresh())

    assert prompt.snapshot == store.text == rendered("one")


def test_a_refresh_whose_store_fails_leaves_the_snapshot():
    source, store = Source("one"), Store()
    prompt = prompt_of(source, store)
    run(prompt.freeze())
    source.text, store.fails = "two", True

    with pytest.raises(OSError, match="set failed"):
        run(prompt.refresh())

    assert prompt.snapshot == store.text == rendered("one")


# -- asking ----------------------------------------------------------------------------------------


def test_asking_freezes_and_writes_nothing():
    source, store = Source("one"), Store()
    prompt = prompt_of(source, store)

    assert run(prompt.current()) == rendered("one")
    assert prompt.snapshot is None
    assert store.done == ["get"]


def test_asking_gives_the_snapshot_before_the_store_before_a_new_prompt():
    source, store = Source("one"), Store("")
    prompt = prompt_of(source, store)

    assert run(prompt.current()) == ""
    assert source.reads == 0

    run(prompt.refresh())
    store.text = "of another process"
    assert run(prompt.current()) == rendered("one")
