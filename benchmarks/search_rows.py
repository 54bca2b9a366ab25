"""The rows about search: how long an index takes to build, and a search right after an append.

Both are taken on real text, in sessions of a thousand messages. The peer of the builds is Whoosh as its
own documentation has people use it; it is given the texts at hand, while ours have to read the logs.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

from benchmarks import real_text
from benchmarks.rows import Sides, row
from benchmarks.stage import AGENT, Stage
from benchmarks.timing import Side, once, per_call
from workspace_session import SearchHits, Workspace
from workspace_session.files.layout import Layout
from workspace_session.search import EngineName, Searcher

_SESSION_LENGTH = 1_000
_BUDGET_SECONDS = 0.025
_BUILDS = 3  # rounds: each takes the better part of a minute


@row(
    "search-build",
    "search index build, Whoosh engine, {long} messages",
    "plain Whoosh, its stemming analyzer",
    at_least=1.5,
    rounds=_BUILDS,
)
def search_build(stage: Stage) -> Sides:
    texts = real_text.texts(stage.scale.long)
    return Sides(_reindex(stage, "whoosh"), _plain_whoosh(stage.root / "plain-whoosh", texts))


@row(
    "search-build-sqlite",
    "search index build, SQLite engine, {long} messages",
    "our Whoosh engine",
    at_least=10,
    rounds=_BUILDS,
)
def search_build_sqlite(stage: Stage) -> Sides:
    return Sides(_reindex(stage, "sqlite"), _reindex(stage, "whoosh"))


@row("search", "search right after an append, {long} messages, Whoosh", "a budget of 25 ms")
def search(stage: Stage) -> Sides:
    return Sides(_search_after_append(stage, "whoosh"), lambda: _BUDGET_SECONDS)


@row("search-sqlite", "search right after an append, {long} messages, SQLite", "a budget of 25 ms")
def search_sqlite(stage: Stage) -> Sides:
    return Sides(_search_after_append(stage, "sqlite"), lambda: _BUDGET_SECONDS)


# -- ours ------------------------------------------------------------------------------------------


def _library(stage: Stage) -> Path:
    """The root of a workspace of real text."""
    root = stage.root / "library"
    if not root.exists():
        agent = Workspace(root, durability="os").agent(AGENT)
        texts = iter(real_text.texts(stage.scale.long))
        number = 0
        while batch := list(islice(texts, _SESSION_LENGTH)):
            agent.tree(f"session-{number:05}").extend(map(_message, batch))
            number += 1
    return root


def _message(text: str) -> dict[str, object]:
    return {"role": "user", "parts": [{"type": "text", "text": text}]}


def _reindex(stage: Stage, engine: EngineName) -> Side:
    searcher = Searcher(Layout(_library(stage)), engine)
    return lambda: once(searcher.reindex)


def _search_after_append(stage: Stage, engine: EngineName) -> Side:
    workspace = Workspace(_library(stage), durability="os", search=engine)
    agent = workspace.agent(AGENT)
    assert agent.search("import", 1).total > 0
    queries = _queries(real_text.texts(stage.scale.long))
    tree = agent.tree("session-00000")

    def appended() -> Iterator[str]:
        for number, query in enumerate(islice(queries, stage.scale.calls)):
            tree.append(_message(f"{query} right now"))
            yield f"{query} right" if number % 2 else query

    return lambda: per_call(lambda query: _must_find(agent.search(query)), appended())


def _must_find(hits: SearchHits) -> SearchHits:
    assert hits
    return hits


def _queries(texts: list[str]) -> Iterator[str]:
    """Two words of some message, every third time as it has them: common words and rare ones."""
    rng = Random(7)
    while True:
        words = "".join(char if char.isalnum() else " " for char in rng.choice(texts)).split()
        if len(words) > 1:
            at = rng.randrange(len(words) - 1)
            quote = '"' if rng.randrange(3) == 0 else ""
            yield f"{quote}{words[at]} {words[at + 1]}{quote}"


# -- the peer --------------------------------------------------------------------------------------


def _plain_whoosh(directory: Path, texts: list[str]) -> Side:
    from whoosh.analysis import StemmingAnalyzer
    from whoosh.fields import ID, TEXT, Schema
    from whoosh.index import create_in

    schema = Schema(
        id=ID(stored=True, unique=True),
        session=ID(stored=True),
        content=TEXT(analyzer=StemmingAnalyzer(), stored=True),
    )

    def build() -> None:
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        writer = create_in(directory, schema).writer()
        for number, text in enumerate(texts):
            session = f"session-{number // _SESSION_LENGTH:05}"
            writer.add_document(id=str(number), session=session, content=text)
        writer.commit()

    return lambda: once(build)
