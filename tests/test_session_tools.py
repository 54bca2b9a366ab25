"""The tools of a session: schemas, texts, and that an executor answers whatever happens."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from workspace_session.session.context import ContextBlocks
from workspace_session.session.skills import LoadedSkills
from workspace_session.session.tools import Tool, history_search_tool, session_tools


def run(awaitable):
    return asyncio.run(awaitable)


class Text:
    def __init__(self, text=""):
        self.text = text

    def get(self):
        return self.text

    def set(self, content):
        self.text = content


class Skills:
    def __init__(self, **documents):
        self.documents = documents
        self.descriptions = {}

    def get(self):
        return "\n".join(self.documents)

    async def load(self, key):
        if key == "broken":
            raise OSError("disk on fire")
        return self.documents.get(key)

    def set(self, key, content, description=None):
        self.documents[key] = content
        self.descriptions[key] = description


class Index:
    def __init__(self, **entries):
        self.entries = entries

    def get(self):
        return None

    def search(self, query):
        return self.entries.get(query)

    def set(self, key, content):
        self.entries[key] = content


def fails(*arguments):
    raise RuntimeError


class Fixture:
    """Blocks, loaded skills, and an `unload` that says what it was asked."""

    def __init__(self, **providers):
        self.blocks = ContextBlocks(lambda label: None)
        for label, provider in providers.items():
            self.blocks.register(label, provider=provider)
        self.skills = LoadedSkills()
        self.unloaded = []

    async def unload(self, label, key):
        self.unloaded.append((label, key))
        return self.skills.is_loaded(label, key)

    def tools(self):
        return run(session_tools(self.blocks, self.skills, self.unload))

    def use(self, tool, /, **arguments):
        return run(self.tools()[tool].execute(**arguments))


# -- which there are -------------------------------------------------------------------------------

READ_ONLY = {"get": lambda: "x"}
SKILL = {"get": lambda: "x", "load": lambda key: None}
SEARCH = {"get": lambda: "x", "search": lambda query: None}


@pytest.mark.parametrize(
    ("providers", "names"),
    [
        ({}, []),
        ({"soul": READ_ONLY}, []),
        ({"memory": Text()}, ["set_context"]),
        ({"skills": SKILL}, ["load_context", "unload_context"]),
        ({"skills": Skills()}, ["set_context", "load_context", "unload_context"]),
        ({"past": SEARCH}, ["search_context"]),
        ({"index": Index()}, ["set_context", "search_context"]),
    ],
)
def test_the_blocks_say_which_tools_there_are(providers, names):
    assert list(Fixture(**providers).tools()) == names


def test_schemas_name_the_labels_that_fit_and_allow_nothing_else():
    tools = Fixture(soul=READ_ONLY, memory=Text(), docs=SKILL, skills=Skills(), past=SEARCH).tools()

    labels = {
        name: tool.input_schema["properties"]["label"]["enum"] for name, tool in tools.items()
    }
    assert labels == {
        "set_context": ["memory", "skills"],
        "load_context": ["docs", "skills"],
        "unload_context": ["docs", "skills"],
        "search_context": ["past"],
    }
    required = {name: tool.input_schema["required"] for name, tool in tools.items()}
    assert required == {
        "set_context": ["label", "content"],
        "load_context": ["label", "key"],
        "unload_context": ["label", "key"],
        "search_context": ["label", "query"],
    }
    assert all(tool.input_schema["additionalProperties"] is False for tool in tools.values())
    assert all(tool.input_schema["type"] == "object" for tool in tools.values())


def test_metadata_is_offered_only_with_a_keyed_writable_block():
    plain = Fixture(memory=Text(), docs=SKILL).tools()["set_context"]
    keyed = Fixture(memory=Text(), skills=Skills()).tools()["set_context"]

    assert list(plain.input_schema["properties"]) == ["label", "content", "action"]
    assert plain.input_schema["properties"]["action"]["enum"] == ["replace", "append"]
    assert "metadata" not in plain.description
    metadata = keyed.input_schema["properties"]["metadata"]
    assert list(metadata["properties"]) == ["title", "description"]
    assert metadata["additionalProperties"] is False
    assert "metadata: { title, description }" in keyed.description


def test_the_description_of_writing_lists_what_can_be_written():
    fixture = Fixture(soul=READ_ONLY, memory=Text(), skills=Skills(), index=Index())
    fixture.blocks.register("facts", description="Learned facts", provider=Text())

    description = fixture.tools()["set_context"].description

    assert "durable" in description
    assert description.split("\n")[-4:] == [
        '- "memory" (writable): no description',
        '- "skills" (skill collection, keyed entries): no description',
        '- "index" (searchable, keyed entries): no description',
        '- "facts" (writable): Learned facts',
    ]
    assert "soul" not in description


def test_the_description_of_unloading_lists_what_is_loaded():
    fixture = Fixture(skills=SKILL)
    assert fixture.tools()["unload_context"].description.endswith("none")

    fixture.skills.mark("skills", "b")
    fixture.skills.mark("skills", "a")
    assert fixture.tools()["unload_context"].description.endswith("skills:a, skills:b")


def test_the_description_of_searching_gives_no_example_label():
    description = Fixture(past=SEARCH).tools()["search_context"].description

    assert "Only the labels listed" in description
    assert "past" not in description


def test_init_does_not_run_again_with_every_look_at_the_tools():
    labels = []
    fixture = Fixture(memory={**READ_ONLY, "init": labels.append})

    fixture.tools()
    fixture.tools()

    assert labels == ["memory"]


# -- set_context -----------------------------------------------------------------------------------


def test_a_write_says_how_much_there_is():
    fixture = Fixture(memory=Text())

    answer = fixture.use("set_context", label="memory", content="hello world")

    assert answer == "Written to memory. Usage: 3 tokens"


@pytest.mark.parametrize(
    ("limit", "usage"), [(1000, "0% (3/1000 tokens)"), (200, "2% (3/200 tokens)")]
)
def test_a_write_to_a_block_with_a_limit_says_how_full_it_is(limit, usage):
    fixture = Fixture()
    fixture.blocks.register("memory", max_tokens=limit, provider=Text())

    answer = fixture.use("set_context", label="memory", content="hello world")

    assert answer == f"Written to memory. Usage: {usage}"


def test_a_limit_of_nothing_has_no_percentage():
    fixture = Fixture()
    fixture.blocks.register("memory", max_tokens=0, provider=Text())

    assert fixture.use("set_context", label="memory", content="") == (
        "Written to memory. Usage: 0 tokens"
    )


@pytest.mark.parametrize(
    ("action", "text"),
    [("append", "old\nnew"), ("replace", "new"), ("Append", "new"), (None, "new"), (5, "new")],
)
def test_every_action_but_append_replaces(action, text):
    provider = Text("old")

    Fixture(memory=provider).use("set_context", label="memory", content="new", action=action)

    assert provider.text == text


def test_an_entry_is_told_its_key():
    skills, index = Skills(), Index()
    fixture = Fixture(skills=skills, index=index)

    titled = fixture.use(
        "set_context", label="skills", content="Arr", metadata={"title": "Pirate style"}
    )
    untitled = fixture.use("set_context", label="index", content="no key", action="append")

    assert titled == 'Indexed "pirate-style" in skills.'
    assert untitled == 'Indexed "no-key-1nprufp" in index.'
    assert skills.documents == {"pirate-style": "Arr"}
    assert skills.descriptions == {"pirate-style": "Pirate style"}
    assert index.entries == {"no-key-1nprufp": "no key"}


def test_metadata_of_a_plain_block_is_ignored():
    fixture = Fixture(memory=Text(), skills=Skills())

    answer = fixture.use("set_context", label="memory", content="a", metadata={"title": "x"})

    assert answer == "Written to memory. Usage: 2 tokens"


@pytest.mark.parametrize(
    ("label", "answer"),
    [
        ("nope", 'Error: block "nope" not found'),
        ("soul", 'Error: Block "soul" is readonly'),
        ("docs", 'Error: Block "docs" does not support writes'),
        ("small", 'Error: Block "small" exceeds max_tokens: 3 > 1'),
    ],
)
def test_a_write_that_is_refused_says_why(label, answer):
    fixture = Fixture(soul=READ_ONLY, docs=SKILL)
    fixture.blocks.register("small", max_tokens=1, provider=Text())

    assert fixture.use("set_context", label=label, content="hello world") == answer


# -- load_context, unload_context ------------------------------------------------------------------


@pytest.mark.parametrize("document", ["# Text\n", ""])
def test_a_document_is_loaded_as_it_is(document):
    fixture = Fixture(skills=Skills(a=document))

    assert fixture.use("load_context", label="skills", key="a") == document
    assert fixture.skills.keys == {"skills:a"}


@pytest.mark.parametrize(
    ("label", "key", "answer"),
    [
        ("skills", "b", "Not found: b"),
        ("skills", "broken", "Error: disk on fire"),
        ("memory", "a", 'Error: "memory" is not a skill block. Skill blocks: skills, docs'),
        ("nope", "a", 'Error: "nope" is not a skill block. Skill blocks: skills, docs'),
    ],
)
def test_a_load_that_fails_marks_nothing(label, key, answer):
    fixture = Fixture(skills=Skills(a="x"), memory=Text(), docs=SKILL)

    assert fixture.use("load_context", label=label, key=key) == answer
    assert fixture.skills.keys == set()


def test_an_unload_is_done_by_the_session():
    fixture = Fixture(skills=Skills(a="x"))
    fixture.skills.mark("skills", "a")

    done = fixture.use("unload_context", label="skills", key="a")
    refused = fixture.use("unload_context", label="skills", key="b")

    assert done == 'Unloaded "a" from skills. Context reclaimed.'
    assert refused == 'Skill "b" is not currently loaded in "skills".'
    assert fixture.unloaded == [("skills", "a"), ("skills", "b")]


def test_an_unload_from_another_block_does_nothing():
    fixture = Fixture(skills=SKILL)

    answer = fixture.use("unload_context", label="memory", key="a")

    assert answer == 'Error: "memory" is not a skill block. Skill blocks: skills'
    assert fixture.unloaded == []


def test_a_label_is_checked_when_the_tool_runs():
    fixture = Fixture(skills=Skills(a="x"), docs=SKILL)
    tool = fixture.tools()["load_context"]
    fixture.blocks.remove("skills")

    answer = run(tool.execute(label="skills", key="a"))

    assert answer == 'Error: "skills" is not a skill block. Skill blocks: docs'


# -- search_context --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "answer"),
    [("q", "[q]\nfound"), ("empty", "No results found."), ("x", "No results found.")],
)
def test_a_search_gives_what_the_provider_found(query, answer):
    fixture = Fixture(index=Index(q="[q]\nfound", empty=""))

    assert fixture.use("search_context", label="index", query=query) == answer


def test_only_search_blocks_are_searched():
    fixture = Fixture(memory=Text(), index=Index(), past=SEARCH)

    assert fixture.use("search_context", label="memory", query="q") == (
        'Error: "memory" is not searchable. Searchable blocks: index, past'
    )


# -- arguments and exceptions ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ({}, 'Error: argument "label" is missing'),
        ({"label": "memory"}, 'Error: argument "content" is missing'),
        ({"label": 5, "content": "x"}, 'Error: argument "label" must be a string'),
        ({"label": "memory", "content": None}, 'Error: argument "content" must be a string'),
        ({"label": "memory", "content": "x", "self": 1}, 'Error: unknown argument "self"'),
        (
            {"label": "skills", "content": "x", "metadata": "t"},
            'Error: argument "metadata" must be an object',
        ),
        (
            {"label": "skills", "content": "x", "metadata": {"title": 5}},
            'Error: argument "metadata.title" must be a string',
        ),
    ],
)
def test_bad_arguments_are_answered(arguments, answer):
    memory, skills = Text("old"), Skills()

    assert Fixture(memory=memory, skills=skills).use("set_context", **arguments) == answer
    assert (memory.text, skills.documents) == ("old", {})


def test_an_exception_without_a_text_is_named():
    fixture = Fixture(past={"get": lambda: "x", "search": fails})

    assert fixture.use("search_context", label="past", query="q") == "Error: RuntimeError"


def test_a_cancellation_is_not_an_answer():
    async def never(**arguments):
        await asyncio.sleep(60)

    async def scenario():
        tool = Tool("t", "d", {"properties": {}, "required": []}, never)
        task = asyncio.create_task(tool.execute())
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        run(scenario())


def test_a_tool_is_described_to_both_apis():
    tool = Fixture(past=SEARCH).tools()["search_context"]
    about = {"name": tool.name, "description": tool.description}

    assert tool.openai() == {
        "type": "function",
        "function": {**about, "parameters": tool.input_schema},
    }
    assert tool.anthropic() == {**about, "input_schema": tool.input_schema}


def test_changing_a_description_leaves_the_tool_as_it_is():
    tool = Fixture(past=SEARCH).tools()["search_context"]

    tool.anthropic()["input_schema"]["properties"].clear()

    assert "label" in tool.input_schema["properties"]


# -- session_search --------------------------------------------------------------------------------


@dataclass
class Hit:
    content: str
    role: str = "user"
    session_id: str = "s"


def searched(query, *contents):
    async def search(asked):
        assert asked == query
        return [Hit(content) for content in contents]

    return run(history_search_tool(search).execute(query=query))


def test_hits_are_shown_one_below_the_other():
    assert searched("q", "one", "two") == "[user] one\n(session s)\n---\n[user] two\n(session s)"


def test_no_hits_are_said():
    assert searched("q") == "No results found."


def test_ten_hits_are_enough():
    assert searched("q", *map(str, range(20))).count("(session s)") == 10


def test_the_tool_takes_a_query_alone():
    tool = history_search_tool(None)

    assert tool.name == "session_search"
    assert tool.input_schema["required"] == list(tool.input_schema["properties"]) == ["query"]
    assert run(tool.execute()) == 'Error: argument "query" is missing'


def shown(query, content):
    return searched(query, content).removeprefix("[user] ").removesuffix("\n(session s)")


def test_a_text_of_two_thousand_characters_is_shown_whole():
    assert shown("x", "x" * 2000) == "x" * 2000


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("needle", "needle"),
        ("absent NEEDLE", "Needle"),
        ("deployment", "deployed"),
        ("cafe", "café"),
        ("咖啡", "喜欢咖啡"),
        ('"a needle"', "needle"),
        ("run", "run"),
    ],
)
def test_a_long_text_is_cut_to_a_window_around_its_first_match(query, word):
    text = "prune " * 1000 + word + " other" * 1000

    window = shown(query, text)

    assert word in window
    assert (window[0], window[-1], len(window)) == ("…", "…", 2002)


@pytest.mark.parametrize("query", ["first", "nowhere", "...", ""])
def test_a_match_at_the_start_or_nowhere_shows_the_start(query):
    text = "first " + "x " * 2000

    assert shown(query, text) == text[:2000] + "…"


def test_a_match_at_the_end_shows_the_end():
    text = "x " * 2000 + "last"

    assert shown("last", text) == "…" + text[-2000:]
