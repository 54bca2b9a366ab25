"""Any use of a session, on files, in memory and on a plain provider: one meaning, told alike.

What a call gives or raises, the events it sends, the estimates in them, and everything that can be read
afterwards are the same on all three, also for objects that were made anew.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from providers import FullProvider
from session_contract.talk import loads, names, says

from workspace_session import (
    LATEST,
    AppendResult,
    Compaction,
    CompactResult,
    MemoryStore,
    Session,
    SessionError,
    Workspace,
)

MOMENT = "2026-05-01T10:00:00.000000Z"
SKILLS = {"get": lambda: "- a", "load": lambda key: f"text of {key}"}

places = st.floats(0, 1, exclude_max=True)  # where among so many, as a part of them
parents = st.one_of(st.just(LATEST), st.none(), places)
texts = st.sampled_from(["", "hi", "héllo 你好", "word " * 30])


class StoresMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.loop = asyncio.Runner()
        self.directory = tempfile.mkdtemp(prefix="stores-")
        self.agent = Workspace(self.directory, durability="os").agent("a")
        self.sources = [self.agent, MemoryStore(), FullProvider()]
        self.count = 0
        self.open()

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            try:
                assert self.agent.workspace.verify() == []
            finally:
                self.loop.close()
                shutil.rmtree(self.directory)

    @rule()
    def open(self) -> None:
        self.sessions = [
            Session(source, session_id="s", context=[{"label": "skills", "provider": SKILLS}])
            for source in self.sources
        ]
        self.heard = [[] for _ in self.sessions]
        for session, heard in zip(self.sessions, self.heard, strict=True):
            session.subscribe(lambda event, heard=heard: heard.append((event.type, event.data)))

    # -- changes --

    def fresh(self) -> str:
        self.count += 1
        return f"m{self.count}"

    def there(self, place) -> str:
        """A message that is there; before the first, one that is not."""
        known = list(self.sources[2].messages)
        return known[int(place * len(known))] if known else "nobody"

    def parent(self, place):
        return self.there(place) if isinstance(place, float) else place

    @rule(parent=parents, text=texts, role=st.sampled_from(["user", "assistant"]))
    def append(self, parent, text, role) -> None:
        message = says(self.fresh(), text, role, createdAt=MOMENT)
        self.same(lambda session, under: session.append_message(message, under), parent)

    @rule(parent=parents, key=st.sampled_from("ab"))
    def load(self, parent, key) -> None:
        message = loads(self.fresh(), key, f"text of {key}") | {"createdAt": MOMENT}
        self.same(lambda session, under: session.append_message(message, under), parent)

    @rule(parent=parents, place=places)
    def append_again(self, parent, place) -> None:
        message = says(self.there(place), "again", createdAt=MOMENT)
        self.same(lambda session, under: session.append_message(message, under), parent)

    @rule(place=places, text=texts)
    def update(self, place, text) -> None:
        message = says(self.there(place), text)
        self.same(lambda session: session.update_message(message))

    @rule(some=st.lists(places, max_size=3))
    def delete(self, some) -> None:
        ids = [*map(self.there, some), "nobody"]
        self.same(lambda session: session.delete_messages(ids))

    @rule(place=places)
    def move(self, place) -> None:
        target = self.there(place)
        self.same(lambda session: session.set_leaf(target))

    @rule(first=places, last=places)
    def store_overlay(self, first, last) -> None:
        ends = self.there(first), self.there(last)
        self.same(lambda session: session.add_compaction("stored", *ends))

    @rule(first=places, last=places, leaf=st.none() | places)
    def compact(self, first, last, leaf) -> None:
        def function(shown):
            ends = (shown[int(place * len(shown))]["id"] for place in (first, last))
            return CompactResult("made", *ends)

        leaf = self.parent(leaf)
        self.same(lambda session: session.on_compaction(function).compact(leaf))

    @rule(key=st.sampled_from("ab"))
    def unload(self, key) -> None:
        self.same(lambda session: session.unload_skill("skills", key))

    @precondition(lambda self: self.count > 15)
    @rule()
    def clear(self) -> None:
        self.same(lambda session: session.clear_messages())

    # -- what is the same --

    def same(self, use, *parent) -> None:
        under = tuple(map(self.parent, parent))
        outcomes = [self.outcome(use, session, *under) for session in self.sessions]

        assert outcomes[0] == outcomes[1] == outcomes[2]
        told = [[(kind, plain(data)) for kind, data in heard] for heard in self.heard]
        assert told[0] == told[1] == told[2]

    def outcome(self, use, *arguments):
        try:
            return plain(self.loop.run(use(*arguments)))
        except SessionError as error:
            return type(error)

    @invariant()
    def all_show_the_same(self) -> None:
        if hasattr(self, "loop"):
            self.same(reading, 0.4)


async def reading(session, inner):
    """All that can be read, of the active branch and of another message."""
    found = [await session.get_branches(None), await session.get_compactions()]
    for leaf in (None, inner):
        history = await session.get_history(leaf)
        found += [names(history), history, await session.get_path_length(leaf)]
    found += [await session.get_message(inner), await session.get_branches(inner)]
    found += [await session.get_latest_leaf(), sorted(await session.get_loaded_skill_keys())]
    found += [await session.get_history_row_stats(), await session.get_recent_history(300, 2)]
    return found


def plain(found):
    """What was told, without what a store makes up: ids and times of overlays."""
    match found:
        case Compaction():
            return (found.summary, found.from_message_id, found.to_message_id)
        case AppendResult():
            return (found.message, found.inserted)
        case dict() if str(found.get("id")).startswith("compaction_"):
            return found["parts"]
        case dict():
            return {key: plain(value) for key, value in found.items()}
        case list():
            return [plain(one) for one in found]
        case _ if hasattr(found, "messages"):
            return (plain(found.messages), found.truncated, found.total_content_bytes)
    return found


TestStores = StoresMachine.TestCase
