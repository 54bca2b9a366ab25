"""Any sequence of writes, on logs that are also merged, torn, trashed and restored: the engines agree.

Both keep their index of one workspace, each beside the other's. At every moment both find what a naive
search through the sessions finds, in the same order and with the same scores.
"""

from __future__ import annotations

import logging
import random
import shutil
import tempfile
from math import log
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from workspace_session import Workspace
from workspace_session.files.layout import Layout
from workspace_session.model.messages import text as text_of
from workspace_session.search import Query, Searcher
from workspace_session.search.analysis import tokens
from workspace_session.search.query import starts

WORDS = [
    "alpha",
    "beta",
    "running",
    "runs",
    "deploy",
    "deployment",
    "naïve",
    "用户",
    "喜欢咖啡",
    "ＡＢ",
]
QUERIES = [
    "alpha",
    "run",
    "beta alpha",
    '"alpha beta"',
    "deploys naive",
    "喜欢",
    "户喜",
    '"beta 用户"',
]

sessions = st.sampled_from(["s", "t", "u/v"])
agents = st.sampled_from(["a", "b"])
texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
roles = st.sampled_from(["user", "assistant"])


class Elsewhere(Layout):
    """The same workspace, but its indexes in another place."""

    @property
    def search(self) -> Path:
        return self.hidden / "elsewhere"


class SearchMachine(RuleBasedStateMachine):
    @initialize()
    def open(self) -> None:
        logging.getLogger("workspace_session").setLevel(logging.ERROR)
        self.directory = Path(tempfile.mkdtemp(prefix="search-"))
        self.workspace = Workspace(self.directory, durability="os")
        self.searchers = {
            "whoosh": Searcher(self.workspace.layout, "whoosh"),
            "sqlite": Searcher(Elsewhere(self.directory), "sqlite"),
        }

    def teardown(self) -> None:
        if hasattr(self, "directory"):
            for searcher in self.searchers.values():
                searcher.close()
            self.workspace.close()
            shutil.rmtree(self.directory)

    def tree(self, agent: str, session: str):
        return self.workspace.agent(agent).tree(session)

    # -- writes --

    @rule(agent=agents, session=sessions, texts=st.lists(texts, min_size=1, max_size=4), role=roles)
    def extend(self, agent, session, texts, role):
        messages = [{"role": role, "parts": [{"type": "text", "text": text}]} for text in texts]
        self.tree(agent, session).extend(messages)

    @rule(agent=agents, session=sessions, own=st.sampled_from(["x", "y"]), text=texts)
    def append_under_a_name(self, agent, session, own, text):
        message = {"id": own, "role": "user", "parts": [{"type": "text", "text": text}]}
        self.tree(agent, session).append(message)

    @rule(agent=agents, session=sessions, pick=st.integers(0, 99), text=texts)
    def update(self, agent, session, pick, text):
        tree = self.tree(agent, session)
        if ids := alive(tree):
            message = {"role": "user", "parts": [{"type": "text", "text": text}]}
            tree.update(ids[pick % len(ids)], message)

    @rule(agent=agents, session=sessions, pick=st.integers(0, 99))
    def delete(self, agent, session, pick):
        tree = self.tree(agent, session)
        if ids := alive(tree):
            tree.delete({ids[pick % len(ids)], ids[(pick * 7) % len(ids)]})

    @rule(agent=agents, session=sessions)
    def clear(self, agent, session):
        self.tree(agent, session).clear()

    @rule(agent=agents, session=sessions)
    def compact_and_trim(self, agent, session):
        tree = self.tree(agent, session)
        if path := tree.path():
            tree.compact("alpha beta in short", path[0].id, path[-1].id)
            tree.trim()

    # -- files --

    @rule(agent=agents, session=sessions)
    def trash(self, agent, session):
        if self.tree(agent, session).exists():
            self.workspace.agent(agent).delete(session)

    @rule(agent=agents, session=sessions)
    def restore(self, agent, session):
        handle = self.workspace.agent(agent)
        trashed = {gone.session_id for gone in handle.trashed()}
        if session in trashed and not self.tree(agent, session).exists():
            handle.restore(session)

    @rule(agent=agents, session=sessions, seed=st.integers())
    def merge(self, agent, session, seed):
        """Lines in another order, as a union by other hands leaves them."""
        path = self.workspace.agent(agent).place.log(session)
        if path.exists():
            lines = path.read_bytes().splitlines(keepends=True)
            random.Random(seed).shuffle(lines)
            aside = path.with_name(".aside")
            aside.write_bytes(b"".join(lines))
            aside.replace(path)
            self.tree(agent, session).rebuild()

    @rule(agent=agents, session=sessions)
    def tear(self, agent, session):
        path = self.workspace.agent(agent).place.log(session)
        if path.exists() and path.read_bytes().endswith(b"\n"):
            with path.open("ab") as file:
                file.write(b'{"type":"message","id":"torn')

    # -- indexes --

    @rule(engine=st.sampled_from(["whoosh", "sqlite"]))
    def reindex(self, engine):
        self.searchers[engine].reindex()

    @rule(engine=st.sampled_from(["whoosh", "sqlite"]))
    def reopen(self, engine):
        self.searchers[engine].close()

    @precondition(lambda self: self.workspace.layout.search.exists())
    @rule()
    def throw_away(self):
        shutil.rmtree(self.workspace.layout.search)

    # -- what is found --

    @invariant()
    def both_find_what_a_naive_search_finds(self):
        if not hasattr(self, "searchers"):
            return
        expected = {query: self.naive(query) for query in QUERIES}
        for searcher in self.searchers.values():
            for query in QUERIES:
                hits = searcher.search(query, None)
                assert len(hits) == hits.total
                found = [(h.agent_id, h.session_id, h.message_id, h.content) for h in hits]
                assert found == [one[2:] for one in expected[query]], query
                newest = searcher.search(query, None, newest_first=True)
                assert [h.created_at for h in newest] == sorted(
                    (h.created_at for h in hits), reverse=True
                )
                scores = [hit.score for hit in hits]
                assert scores == pytest.approx([one[0] for one in expected[query]]), query

    def naive(self, text: str):
        query = Query.of(text)
        documents, sizes = [], []
        for agent in self.workspace.agents():
            for session in agent.place.session_ids():
                tree = agent.tree(session)
                for message_id in alive(tree):
                    entry = tree.get(message_id)
                    said = text_of(entry.message)
                    documents.append((entry.timestamp, agent.id, session, message_id, said))
                    sizes.append(len(list(tokens(said))))
                sizes += [len(list(tokens(one.summary))) for one in tree.compactions()]
        return ranked(query, documents, sizes)


def ranked(query: Query, documents, sizes):
    counts = []
    for *_, said in documents:
        places: dict[str, list[int]] = {}
        for place, token in enumerate(tokens(said)):
            places.setdefault(token, []).append(place)
        counts.append([len(starts(clause, places)) for clause in query.clauses])
    average = sum(sizes) / len(sizes) if sizes else 1
    found = []
    for document, own in zip(documents, counts, strict=True):
        if all(own):
            score = 0.0
            for number, count in enumerate(own):
                meeting = sum(1 for other in counts if other[number])
                weight = max(log((len(sizes) - meeting + 0.5) / (meeting + 0.5)), 1e-6)
                length = len(list(tokens(document[-1])))
                score += weight * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / average))
            found.append((score, *document))
    found.sort(key=lambda one: (round(one[0], 12), one[1]), reverse=True)
    return found


def alive(tree) -> list[str]:
    return [entry.id for entry in map_messages(tree)]


def map_messages(tree):
    seen = {}
    pending = list(tree.children(None))
    while pending:
        node = pending.pop()
        seen[node.id] = node
        pending += tree.children(node.id)
    return sorted(seen.values(), key=lambda node: node.key)


TestSearchMachine = SearchMachine.TestCase
TestSearchMachine.settings = settings(
    max_examples=12, stateful_step_count=25, parent=settings.get_profile("quick")
)
