"""Context blocks: what providers make of them, and that a failure loses nothing."""

from __future__ import annotations

import asyncio
import threading

import pytest

from workspace_session.errors import BlockError, DuplicateBlock
from workspace_session.session.context import ContextBlocks
from workspace_session.session.keys import entry_key
from workspace_session.session.task_lock import TaskLock
from workspace_session.session.values import ContextBlock


def run(awaitable):
    return asyncio.run(awaitable)


def nothing(label):
    return None


def blocks_with(**providers):
    blocks = ContextBlocks(nothing)
    for label, provider in providers.items():
        blocks.register(label, provider=provider)
    return blocks


class Text:
    """A writable provider that says what was done with it."""

    def __init__(self, text=None):
        self.text = text
        self.done = []
        self.fails = None

    def _do(self, what):
        self.done.append(what)
        if self.fails == what:
            raise OSError(f"{what} failed")

    def get(self):
        self._do("get")
        return self.text

    def set(self, content):
        self._do("set")
        self.text = content


class AsyncText(Text):
    async def get(self):
        await asyncio.sleep(0)
        return super().get()

    async def set(self, content):
        await asyncio.sleep(0)
        super().set(content)


class Keyed(Text):
    """Entries by key; the listing is their keys."""

    def __init__(self, **entries):
        super().__init__()
        self.entries = entries

    def get(self):
        self._do("get")
        return "\n".join(sorted(self.entries)) or None

    def set(self, key, content, *description):
        self._do("set")
        self.entries[key] = (content, *description)


class Skills(Keyed):
    def load(self, key):
        self._do("load")
        return self.entries.get(key)


class Search(Keyed):
    def search(self, query):
        return self.entries.get(query)


# -- keys ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "content", "key"),
    [
        (None, "no key", "no-key-1nprufp"),
        ("Pirate style", "Arr", "pirate-style"),
        ("用户", "x", "entry-1in002o"),
        (None, "用户喜欢咖啡", "entry-2mzjev"),
        (None, "Just content, no desc", "just-content-no-desc-cgko96"),
        ("Foo!", "x", "foo"),
        ("Foo?", "x", "foo"),
        (None, "", "entry-ztntfp"),
        ("  ", "", "entry-ztntfp"),
        ("", "no key", "no-key-1nprufp"),
        ("a" * 59 + " bc", "x", "a" * 59),
    ],
)
def test_the_golden_keys(title, content, key):
    assert entry_key(title, content) == key


# -- registering -----------------------------------------------------------------------------------


def test_registering_reads_nothing_and_keeps_the_order():
    provider = Text("x")
    blocks = blocks_with(b=provider, a=None)

    assert blocks.labels() == ["b", "a"]
    assert provider.done == []


def test_a_label_is_taken_once():
    blocks = blocks_with(memory=None)

    with pytest.raises(DuplicateBlock, match='Block "memory" already exists'):
        blocks.register("memory")


@pytest.mark.parametrize("provider", [{}, {"set": print}, {"get": "text"}, object(), lambda: "x"])
def test_a_provider_has_a_get(provider):
    with pytest.raises(TypeError, match="has no get"):
        blocks_with(memory=provider)


def test_labels_and_limits_have_their_types():
    with pytest.raises(TypeError, match="a label is a text"):
        ContextBlocks(nothing).register(5)
    with pytest.raises(TypeError, match="max_tokens is a whole number"):
        ContextBlocks(nothing).register("a", max_tokens="5")


def test_a_removed_block_is_gone_and_its_label_free():
    provider = Text("kept")
    blocks = blocks_with(memory=provider)

    assert blocks.remove("memory") is True
    assert blocks.remove("memory") is False
    assert not blocks.is_registered("memory")
    assert run(blocks.block("memory")) is None
    blocks.register("memory", provider=provider)
    assert run(blocks.block("memory")).content == "kept"


def test_skills_are_known_without_asking_for_default_providers():
    def refuse(label):
        raise AssertionError("wired too early")

    blocks = ContextBlocks(refuse)
    blocks.register("memory")
    assert blocks.has_skills() is False

    blocks.register("skills", provider=Skills())
    assert blocks.has_skills() is True


# -- kinds -----------------------------------------------------------------------------------------


def get():
    return "text"


def use(*arguments):
    return None


@pytest.mark.parametrize(
    ("provider", "flags"),
    [
        ({"get": get}, (False, False, False)),
        ({"get": get, "set": use}, (True, False, False)),
        ({"get": get, "load": use}, (False, True, False)),
        ({"get": get, "load": use, "set": use}, (True, True, False)),
        ({"get": get, "search": use}, (False, False, True)),
        ({"get": get, "search": use, "set": use}, (True, False, True)),
        ({"get": get, "load": use, "search": use}, (False, True, True)),
        ({"get": get, "set": "not callable"}, (False, False, False)),
        (Skills(), (True, True, False)),
        (None, (False, False, False)),
    ],
)
def test_the_methods_of_a_provider_say_what_a_block_can_do(provider, flags):
    block = run(blocks_with(b=provider).block("b"))

    assert (block.writable, block.is_skill, block.is_searchable) == flags


def test_a_block_says_all_about_itself():
    blocks = ContextBlocks(nothing)
    blocks.register(
        "soul", description="Who", max_tokens=9, provider={"get": lambda: "hello world"}
    )

    assert run(blocks.blocks()) == [ContextBlock("soul", "Who", "hello world", 3, 9)]


def test_a_block_without_a_provider_is_wired_when_it_is_needed():
    wired = []

    def wire(label):
        wired.append(label)
        return Text(f"of {label}")

    blocks = ContextBlocks(wire)
    blocks.register("memory")
    assert wired == []

    assert run(blocks.block("memory")).content == "of memory"
    run(blocks.replace("memory", "new"))
    assert wired == ["memory"]


def test_without_any_provider_a_block_is_empty_and_read_only():
    blocks = blocks_with(memory=None)

    assert run(blocks.block("memory")) == ContextBlock("memory")
    with pytest.raises(BlockError, match='Block "memory" is readonly'):
        run(blocks.replace("memory", "x"))


# -- loading ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [Text, AsyncText])
def test_none_means_empty(make):
    assert run(blocks_with(b=make()).block("b")).content == ""


def test_a_block_is_read_once_by_tasks_that_ask_at_once():
    provider = AsyncText("x")
    blocks = blocks_with(b=provider)

    async def many():
        return await asyncio.gather(*(blocks.block("b") for _ in range(5)), blocks.blocks())

    run(many())

    assert provider.done == ["get"]


def test_a_block_is_read_once_by_loops_in_several_threads():
    provider = AsyncText("x")
    blocks = blocks_with(b=provider)
    threads = [threading.Thread(target=lambda: run(blocks.block("b"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert provider.done == ["get"]


def test_init_comes_before_the_first_read_and_before_every_reload():
    done = []
    provider = {"init": lambda label: done.append(label), "get": lambda: done.append("get")}
    blocks = blocks_with(notes=provider)

    run(blocks.block("notes"))
    run(blocks.blocks())
    run(blocks.reload())

    assert done == ["notes", "get", "notes", "get"]


def test_init_comes_before_a_write_or_a_search_that_is_first():
    done = []

    def note(*what):
        done.append(what)

    keyed = {"init": note, "get": note, "search": note, "set": note}
    first, second = blocks_with(notes=keyed), blocks_with(notes=keyed)

    run(first.search("notes", "q"))
    run(second.set_search_entry("notes", "k", "text"))

    assert done == [("notes",), ("q",), ("notes",), ("k", "text"), ()]


def test_a_provider_that_fails_to_load_is_asked_again_and_harms_no_other():
    good, bad = Text("good"), Text("bad")
    bad.fails = "get"
    blocks = blocks_with(good=good, bad=bad)

    with pytest.raises(OSError, match="get failed"):
        run(blocks.blocks())
    bad.fails = None

    assert [block.content for block in run(blocks.blocks())] == ["good", "bad"]
    assert good.done == ["get"]


def test_what_is_not_text_is_refused():
    with pytest.raises(TypeError, match='block "b" holds text, not int'):
        run(blocks_with(b={"get": lambda: 5}).block("b"))


def test_a_reload_reads_everything_anew():
    first, second = Text("1"), Text("2")
    blocks = blocks_with(a=first, b=second)
    run(blocks.blocks())
    first.text, second.text = "one", "two"

    assert [block.content for block in run(blocks.reload())] == ["one", "two"]
    assert run(blocks.block("a")).content == "one"


def test_a_reload_that_fails_changes_no_block():
    first, second = Text("1"), Text("2")
    blocks = blocks_with(a=first, b=second)
    run(blocks.blocks())
    first.text, second.fails = "one", "get"

    with pytest.raises(OSError, match="get failed"):
        run(blocks.reload())

    assert [block.content for block in run(blocks.blocks())] == ["1", "2"]


def test_a_reload_does_not_undo_a_write_that_was_made_meanwhile():
    async def scenario():
        reading, go_on = asyncio.Event(), asyncio.Event()

        async def slow():
            reading.set()
            await go_on.wait()
            return "slow"

        blocks = blocks_with(a=Text("old"), b={"get": slow})
        reload = asyncio.create_task(blocks.reload())
        await reading.wait()
        await blocks.replace("a", "new")
        go_on.set()
        return await reload

    assert [block.content for block in run(scenario())] == ["new", "slow"]


def test_a_provider_may_use_the_other_blocks_of_its_session():
    blocks = blocks_with(name=Text("Ada"))

    async def greet():
        return f"Hello {(await blocks.block('name')).content}"

    blocks.register("greeting", provider={"get": greet})

    assert run(blocks.reload())[1].content == "Hello Ada"


# -- writing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [Text, AsyncText])
def test_replacing_writes_first_and_then_changes_memory(make):
    provider = make("old")
    blocks = blocks_with(b=provider)

    block = run(blocks.replace("b", "hello world"))

    assert (block.content, block.tokens) == ("hello world", 3)
    assert provider.text == "hello world"
    assert run(blocks.block("b")) == block


def test_a_write_that_fails_changes_nothing():
    provider = Text("old")
    blocks = blocks_with(b=provider)
    before = run(blocks.block("b"))
    provider.fails = "set"

    for write in (blocks.replace, blocks.append):
        with pytest.raises(OSError, match="set failed"):
            run(write("b", "new"))

    assert run(blocks.block("b")) == before


@pytest.mark.parametrize(
    ("old", "new", "whole"),
    [
        (None, "b", "b"),
        ("", "b", "b"),
        ("a", "b", "a\nb"),
        ("a", "\nb", "a\nb"),
        ("a\n", "b", "a\n\nb"),
        ("a", "", "a\n"),
    ],
)
def test_an_append_begins_on_a_new_line(old, new, whole):
    assert run(blocks_with(b=Text(old)).append("b", new)).content == whole


def test_an_append_adds_to_what_the_provider_has_now():
    provider = Text("a")
    blocks = blocks_with(b=provider)
    run(blocks.block("b"))
    provider.text = "changed elsewhere"

    assert run(blocks.append("b", "x")).content == "changed elsewhere\nx"


def test_appends_that_come_together_all_survive():
    provider = AsyncText()
    blocks = blocks_with(b=provider)

    async def many():
        await asyncio.gather(*(blocks.append("b", str(number)) for number in range(10)))

    run(many())

    assert sorted(provider.text.split("\n")) == [str(number) for number in range(10)]


class Updating(Text):
    def update(self, change):
        self._do("update")
        self.text = change(self.text or "")
        return self.text

    def set_if_absent(self, text):
        raise AssertionError("nothing here is set at first only")


def test_a_provider_that_can_update_does_so_under_its_own_lock():
    provider = Updating("a")

    assert run(blocks_with(b=provider).append("b", "x")).content == "a\nx"
    assert provider.done == ["update"]


def test_an_update_of_another_meaning_is_left_alone():
    class Remembering(Text):
        def update(self, **fields):
            raise AssertionError("not what was meant")

    assert run(blocks_with(b=Remembering("a")).append("b", "x")).content == "a\nx"


def test_an_update_that_would_be_too_long_is_refused_inside_it():
    provider = Updating("x" * 40)
    blocks = ContextBlocks(nothing)
    blocks.register("b", max_tokens=10, provider=provider)

    with pytest.raises(BlockError, match='Block "b" exceeds max_tokens: 11 > 10'):
        run(blocks.append("b", "y"))

    assert provider.text == "x" * 40


READ_ONLY_SKILL = {"get": get, "load": use}


@pytest.mark.parametrize("name", ["replace", "append"])
@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("nope", 'Block "nope" not found'),
        ("soul", 'Block "soul" is readonly'),
        ("docs", 'Block "docs" is readonly'),
        (
            "skills",
            'Block "skills" is a keyed provider. Use set_skill() or set_search_entry() instead.',
        ),
        (
            "index",
            'Block "index" is a keyed provider. Use set_skill() or set_search_entry() instead.',
        ),
    ],
)
def test_a_block_that_cannot_be_written_says_why(name, label, text):
    blocks = blocks_with(soul={"get": get}, docs=READ_ONLY_SKILL, skills=Skills(), index=Search())

    with pytest.raises(BlockError) as caught:
        run(getattr(blocks, name)(label, "x" * 9999))

    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("limit", "content", "error"),
    [
        (3, "hello world", None),
        (2, "hello world", 'Block "b" exceeds max_tokens: 3 > 2'),
        (0, "", None),
        (0, "a", 'Block "b" exceeds max_tokens: 2 > 0'),
    ],
)
def test_a_limit_may_be_reached_but_not_exceeded(limit, content, error):
    provider = Text()
    blocks = ContextBlocks(nothing)
    blocks.register("b", max_tokens=limit, provider=provider)

    for write in (blocks.replace, blocks.append):
        provider.text = None
        if error is None:
            assert run(write("b", content)).content == content
        else:
            with pytest.raises(BlockError) as caught:
                run(write("b", content))
            assert str(caught.value) == error
            assert provider.text is None


@pytest.mark.parametrize("name", ["replace", "append"])
def test_only_text_can_be_written(name):
    provider = Text("old")

    with pytest.raises(TypeError, match="holds text, not bytes"):
        run(getattr(blocks_with(b=provider), name)("b", b"new"))

    assert provider.done == []


# -- keyed blocks ----------------------------------------------------------------------------------


def test_a_skill_is_written_and_the_listing_read_again():
    provider = Skills(a="A")
    blocks = blocks_with(skills=provider)
    run(blocks.block("skills"))

    block = run(blocks.set_skill("skills", "b", "B", "about b"))

    assert block.content == "a\nb"
    assert provider.entries["b"] == ("B", "about b")


def test_a_skill_without_a_description_is_written_without_one():
    provider = Skills()

    run(blocks_with(skills=provider).set_skill("skills", "b", "B"))

    assert provider.entries["b"] == ("B",)


def test_a_search_entry_is_written_and_the_summary_read_again():
    provider = Search()

    block = run(blocks_with(index=provider).set_search_entry("index", "k", "text"))

    assert block.content == "k"
    assert provider.entries["k"] == ("text",)


@pytest.mark.parametrize(
    ("name", "label", "text"),
    [
        ("set_skill", "soul", 'Block "soul" is not a skill provider'),
        ("set_skill", "nope", 'Block "nope" is not a skill provider'),
        ("set_skill", "index", 'Block "index" is not a skill provider'),
        ("set_search_entry", "soul", 'Block "soul" is not a search provider'),
        ("set_search_entry", "skills", 'Block "skills" is not a search provider'),
        ("set_skill", "docs", 'Block "docs" does not support writes'),
        ("set_search_entry", "past", 'Block "past" does not support writes'),
        ("set_skill", "skills", 'Block "skills" exceeds max_tokens: 3 > 2'),
        ("set_search_entry", "index", 'Block "index" exceeds max_tokens: 3 > 2'),
    ],
)
def test_an_entry_that_cannot_be_written_says_why(name, label, text):
    blocks = ContextBlocks(nothing)
    providers = {
        "soul": Text(),
        "docs": READ_ONLY_SKILL,
        "past": {"get": get, "search": use},
        "skills": Skills(),
        "index": Search(),
    }
    for known, provider in providers.items():
        blocks.register(known, max_tokens=2, provider=provider)

    with pytest.raises(BlockError) as caught:
        run(getattr(blocks, name)(label, "key", "hello world"))

    assert str(caught.value) == text
    assert providers["skills"].done == providers["index"].done == []


def test_an_entry_that_was_written_stands_though_the_listing_fails(caplog):
    provider = Skills(a="A")
    blocks = blocks_with(skills=provider)
    before = run(blocks.block("skills"))
    provider.fails = "get"

    assert run(blocks.set_skill("skills", "b", "B")) == before

    assert "b" in provider.entries
    assert "could not be read again" in caplog.text


def test_an_entry_whose_write_fails_leaves_the_listing():
    provider = Skills(a="A")
    blocks = blocks_with(skills=provider)
    provider.fails = "set"

    with pytest.raises(OSError, match="set failed"):
        run(blocks.set_skill("skills", "b", "B"))

    assert run(blocks.block("skills")).content == "a"


def test_entries_are_loaded_and_searched():
    async def load(key):
        return {"a": "A", "empty": ""}.get(key)

    blocks = blocks_with(skills={"get": get, "load": load}, index=Search(q="found"))

    assert run(blocks.load_entry("skills", "a")) == "A"
    assert run(blocks.load_entry("skills", "empty")) == ""
    assert run(blocks.load_entry("skills", "b")) is None
    assert run(blocks.search("index", "q")) == "found"
    assert run(blocks.search("index", "x")) is None


@pytest.mark.parametrize(
    ("title", "description", "stored"),
    [
        ("Pirate style", None, ("Arr", "Pirate style")),
        ("Pirate style", "How to talk", ("Arr", "How to talk")),
        (None, None, ("Arr",)),
        (" ", None, ("Arr",)),
    ],
)
def test_a_skill_is_described_by_its_description_or_its_title(title, description, stored):
    provider = Skills()
    blocks = blocks_with(skills=provider)

    key = run(blocks.write_entry("skills", "Arr", title=title, description=description))

    assert provider.entries == {key: stored}


def test_a_search_entry_has_no_description():
    provider = Search()

    key = run(blocks_with(index=provider).write_entry("index", "x", title="T", description="d"))

    assert provider.entries == {key: ("x",)}


def test_a_provider_that_loads_and_searches_is_written_as_a_skill():
    class Both(Skills, Search):
        pass

    provider = Both()

    run(blocks_with(both=provider).write_entry("both", "x", title="T"))

    assert provider.entries == {"t": ("x", "T")}


# -- the lock --------------------------------------------------------------------------------------


def test_a_lock_serves_the_tasks_of_several_loops_one_at_a_time():
    lock, inside, most = TaskLock(), 0, 0

    async def work():
        nonlocal inside, most
        async with lock:
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.001)
            inside -= 1

    async def many():
        await asyncio.gather(*(work() for _ in range(5)))

    threads = [threading.Thread(target=lambda: run(many())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run(many())

    assert (inside, most) == (0, 1)


def test_a_waiter_that_is_cancelled_passes_its_turn_on():
    async def scenario():
        lock, served = TaskLock(), []

        async def work(name):
            async with lock:
                served.append(name)

        async with lock:
            tasks = [asyncio.create_task(work(name)) for name in "abc"]
            await asyncio.sleep(0)
            tasks[0].cancel()
        # The turn of the first is over before it knows that it has one.
        await asyncio.gather(*tasks, return_exceptions=True)
        return served

    assert run(scenario()) == ["b", "c"]


def test_a_turn_that_comes_together_with_a_cancellation_is_passed_on():
    async def scenario():
        lock, served = TaskLock(), []

        async def work(name):
            async with lock:
                served.append(name)

        async with lock:
            tasks = [asyncio.create_task(work(name)) for name in "ab"]
            await asyncio.sleep(0)
        tasks[0].cancel()  # it has been given the turn and has not run yet
        await asyncio.gather(*tasks, return_exceptions=True)
        return served

    assert run(scenario()) == ["b"]
