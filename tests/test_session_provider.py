"""Sessions on providers that an application wrote, and the check for those who write one."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import datetime

import pytest
from providers import REQUIRED, AsyncProvider, FullProvider, PlainProvider, size
from session_contract import SessionStoreContract
from session_contract.events import EventContract
from session_contract.flights import FlightContract
from session_contract.reading import ReadingContract
from session_contract.talk import (
    Heard,
    children,
    compacting,
    fill,
    loads,
    m,
    names,
    on_a_loop,
    says,
    shown,
    until,
)

from workspace_session import (
    LATEST,
    AgentSessionProvider,
    AppendResult,
    Compaction,
    CompactResult,
    InvalidCompaction,
    InvalidMessage,
    MemoryStore,
    MissingProvider,
    NotSupported,
    RuleBroken,
    SearchHit,
    SearchNotSupported,
    Session,
    UnknownParent,
    check_provider,
)

OPTIONAL = (
    "set_leaf", "get_row_stats", "get_recent_history", "iter_messages", "is_deleted",
    "search_messages",
)  # fmt: skip


class WithoutShortcuts:
    """A provider of a store with nothing but what every provider may have."""

    def __init__(self, provider):
        self.session_id = provider.session_id
        self.tree = provider.tree  # which the store's blocks go by
        self.makes_ids = provider.makes_ids
        for name in (*REQUIRED, *OPTIONAL):
            setattr(self, name, getattr(provider, name))


class SlowStore(MemoryStore):
    def provider(self, session_id):
        return WithoutShortcuts(super().provider(session_id))


class TestStoreWithoutShortcuts(SessionStoreContract):
    """What `Session` does itself when a provider does not do it faster."""

    @pytest.fixture
    def store(self):
        return SlowStore()


class TestProvider(ReadingContract, EventContract, FlightContract):
    @pytest.fixture
    def store(self):
        return FullProvider()


class Recorded:
    """A provider that says what was asked of it, and fails when it is told to."""

    def __init__(self):
        self.inner = FullProvider()
        self.asked = []
        self.failing = None

    def __getattr__(self, name):
        found = getattr(self.inner, name)
        if name not in REQUIRED:
            return found

        def recorded(*args):
            self.asked.append(name)
            if self.failing == name:
                raise OSError(f"{name} failed")
            return found(*args)

        return recorded


# -- building --------------------------------------------------------------------------------------


def test_a_session_is_called_what_its_provider_is_called():
    nameless = FullProvider()
    nameless.session_id = None

    assert Session.create(FullProvider()).id == "full"
    assert Session.create(nameless).id == ""
    assert Session.create(PlainProvider()).id == ""
    assert Session(FullProvider(), session_id="s").id == "s"


@pytest.mark.parametrize("kind", [PlainProvider, AsyncProvider, FullProvider])
@on_a_loop
async def test_methods_may_be_sync_or_async(kind):
    session = Session(kind(), on_compaction=compacting("m0", "m1"), compact_after=40)
    heard = Heard(session)

    await fill(session, 6)
    await session.update_message(says("m5", "new"))
    await session.delete_messages(["m4"])
    await session.append_message(says("b"), "m3")

    assert await shown(session) == ["S(sum)", "m2", "m3", "b"]
    assert await children(session, "m3") == ["m5", "b"]
    assert await session.get_path_length() == 5
    assert [data["parent_id"] for data in heard.of("append")] == [None, *m(0, 4), "m3"]
    await session.clear_messages()
    assert await session.get_latest_leaf() is None


@on_a_loop
async def test_nothing_is_wired_for_a_provider():
    session = Session.create(PlainProvider()).with_context("memory").with_cached_prompt()

    block = await session.get_context_block("memory")

    assert (block.content, block.writable) == ("", False)
    assert await session.freeze_system_prompt() == ""
    text = 'add_context("more") requires an explicit provider when Session uses a SessionProvider'
    with pytest.raises(MissingProvider) as refused:
        await session.add_context("more")
    assert str(refused.value) == text
    assert (await session.add_context("own", provider={"get": lambda: "x"})).content == "x"


@on_a_loop
async def test_a_provider_does_not_broadcast():
    provider, sent = PlainProvider(), []
    provider.broadcast = sent.append

    await Session(provider).append_message(says("m0"))

    assert sent == []


@on_a_loop
async def test_an_append_asks_no_more_than_it_needs():
    provider = Recorded()
    session = Session(provider, context=[{"label": "soul", "provider": {"get": lambda: "kind"}}])
    assert provider.asked == []

    await session.append_message(says("m0"))
    await session.append_message(says("m1"), "m0")

    assert provider.asked == ["append_message"] * 2


@on_a_loop
async def test_skills_that_cannot_be_restored_are_only_logged(caplog):
    provider = Recorded()
    session = Session(provider).with_context(
        "skills", provider={"get": lambda: "", "load": lambda key: "text"}
    )

    provider.failing = "get_history"

    assert await session.get_loaded_skill_keys() == set()
    assert "get_history failed" in caplog.text


@on_a_loop
async def test_reading_that_fails_after_a_write_does_not_fail_the_write(caplog):
    provider = Recorded()
    session = Session(provider).with_context(
        "skills", provider={"get": lambda: "", "load": lambda key: "text"}
    )
    await fill(session, 2)
    heard = Heard(session)

    provider.failing = "get_history"
    await session.append_message(says("m2"))
    await session.append_message(says("b"), "m0")
    await session.delete_messages(["m1"])

    assert list(provider.inner.messages) == ["m0", "m2", "b"]
    assert [data["parent_id"] for data in heard.of("append")] == [LATEST, "m0"]
    assert heard.of("delete") == [{"message_ids": ["m1"]}]
    assert "get_history failed" in caplog.text


# -- what Session does itself ----------------------------------------------------------------------


def test_a_class_is_no_provider():
    with pytest.raises(TypeError, match="PlainProvider is a class"):
        Session.create(PlainProvider)


class Overladen(PlainProvider):
    """With names of its own that mean something to our own providers."""

    identity = "of the user, not of the session"

    def get_context(self, topic):
        raise AssertionError("not what was meant")

    get_context_tokens = get_mentions = compact_range = is_deleted = get_context


@on_a_loop
async def test_further_names_of_a_provider_are_its_own():
    session = Session(Overladen(), on_compaction=compacting("m0", "m1"), compact_after=20)

    await fill(session, 4)
    await session.add_compaction("two", "m2", "m2")

    assert await shown(session) == ["S(sum)", "S(two)", "m3"]
    assert not await session.get_context_blocks()


@on_a_loop
async def test_times_of_a_driver_are_told_as_texts():
    provider = FullProvider()
    session = await fill(Session(provider), 2)
    moment = datetime(2024, 5, 1, 12, 30)
    for message in provider.messages.values():
        message["createdAt"] = moment

    provider.compactions.append(Compaction("o", "sum", "m1", "m1", moment))

    told = "2024-05-01T12:30:00.000000Z"
    hit = SearchHit("s", None, None, "m0", "user", "hello", "hello", 1.0, moment)
    assert hit.created_at == told
    history = await session.get_history()
    assert names(history) == ["m0", "S(sum)"]
    others = [await session.get_message("m0"), await session.get_latest_leaf()]
    others += await session.get_branches("m0")
    assert [message["createdAt"] for message in [*history, *others]] == [told] * 5


@on_a_loop
async def test_the_latest_leaf_is_the_last_that_can_be_read():
    provider = FullProvider()
    session = await fill(Session(provider), 3)

    provider.messages["m2"] = {"id": "m2"}
    assert (await session.get_latest_leaf())["id"] == "m1"

    provider.messages["m0"] = provider.messages["m1"] = {}
    assert await session.get_latest_leaf() is None


@on_a_loop
async def test_a_provider_is_given_nothing_but_messages():
    provider = PlainProvider()
    session = Session(provider)

    with pytest.raises(InvalidMessage):
        await session.append_message({"id": "m0", "role": "user"})
    result = await session.append_message({"role": "user", "parts": []})

    assert list(provider.messages) == [result.message["id"]]


@pytest.mark.parametrize("ends", [("m1", "m0"), ("nobody", "m1"), ("m0", "nobody"), ("b", "m1")])
@on_a_loop
async def test_a_provider_is_given_nothing_but_ranges(ends):
    provider = PlainProvider()
    session = await fill(Session(provider), 2)
    await session.append_message(says("b"), "m0")

    with pytest.raises(InvalidCompaction):
        await session.add_compaction("sum", *ends)

    assert provider.compactions == []


@on_a_loop
async def test_stored_messages_that_are_none_are_skipped():
    provider = FullProvider()
    session = await fill(Session(provider), 4)
    provider.messages["m1"] = {"id": "m1", "createdAt": "", "role": "user"}
    await session.add_compaction("unreadable end", "m0", "m1")

    assert await shown(session) == ["m0", "m2", "m3"]
    assert await session.get_message("m1") is None
    assert await session.get_branches("m0") == []
    assert await session.get_path_length() == 4
    assert names((await session.get_recent_history(10**6)).messages) == ["m0", "m2", "m3"]


@on_a_loop
async def test_what_a_provider_raises_comes_through():
    provider = Recorded()
    session = await fill(Session(provider), 2)
    heard = Heard(session)

    for name, use in {
        "append_message": lambda: session.append_message(says("m2")),
        "update_message": lambda: session.update_message(says("m0", "new")),
        "delete_messages": lambda: session.delete_messages(["m0"]),
        "clear_messages": session.clear_messages,
        "get_history": session.get_history,
        "get_latest_leaf": session.get_latest_leaf,
        "add_compaction": lambda: session.add_compaction("sum", "m0", "m0"),
    }.items():
        provider.failing = name
        with pytest.raises(OSError, match=f"{name} failed"):
            await use()

    assert heard == []


# -- what is optional ------------------------------------------------------------------------------


@on_a_loop
async def test_without_set_leaf_the_tip_cannot_be_moved():
    session = await fill(Session(PlainProvider()), 2)

    with pytest.raises(NotSupported, match="Session provider does not support set_leaf"):
        await session.set_leaf("m0")


@on_a_loop
async def test_without_row_stats_there_are_none():
    session = await fill(Session(PlainProvider()), 2)

    assert await session.get_history_row_stats() is None


@on_a_loop
async def test_without_a_recent_end_all_is_given_and_that_is_said_once(caplog):
    provider = PlainProvider()
    session = await fill(Session(provider), 3)
    await session.add_compaction("sum", "m0", "m1")

    for _ in range(2):
        recent = await session.get_recent_history(10)

        assert names(recent.messages) == ["S(sum)", "m2"]
        assert not recent.truncated
        assert recent.total_content_bytes == sum(map(size, provider.messages.values()))
    assert len(caplog.records) == 1


@on_a_loop
async def test_without_search_there_is_none():
    with pytest.raises(SearchNotSupported) as refused:
        await Session(PlainProvider()).search("words")

    assert str(refused.value) == "Session provider does not support search"
    assert isinstance(refused.value, NotSupported)


@on_a_loop
async def test_a_provider_may_search():
    provider = PlainProvider()
    provider.search_messages = lambda query, limit: [query, limit]

    assert await Session(provider).search("words") == ["words", 20]
    assert await Session(provider).search("words", 3) == ["words", 3]


class SyncIteration(FullProvider):
    def iter_messages(self):
        return iter(list(self.messages.values()))


class Listing(FullProvider):
    async def iter_messages(self):
        return list(self.messages.values())


@pytest.mark.parametrize(
    ("kind", "unloaded"),
    [
        (PlainProvider, ["m1"]),
        (FullProvider, ["m0", "m1"]),
        (SyncIteration, ["m0", "m1"]),
        (Listing, ["m0", "m1"]),
    ],
)
@on_a_loop
async def test_skills_are_unloaded_where_a_provider_lets_them_be_found(kind, unloaded):
    provider = kind()
    session = Session(provider)
    await session.append_message(loads("m0", "a", "text of a"))
    await session.append_message(loads("m1", "a", "text of a"), None)
    skills = {"get": lambda: "- a", "load": lambda key: "text of a"}
    await session.add_context("skills", provider=skills)

    assert await session.unload_skill("skills", "a")

    assert unloaded == [
        one["id"]
        for one in provider.messages.values()
        if one["parts"][0]["output"] == "[skill unloaded: a]"
    ]


class Changing(FullProvider):
    """Messages are changed by others while they are told."""

    async def iter_messages(self):
        for message in [self.get_message(one) for one in self.messages]:
            self.messages[message["id"]]["noted"] = "meanwhile"
            yield message


@on_a_loop
async def test_unloading_keeps_what_others_have_changed_meanwhile():
    skills = {"get": lambda: "- a", "load": lambda key: "text of a"}
    session = Session(Changing()).with_context("skills", provider=skills)
    await (await session.tools())["load_context"].execute(label="skills", key="a")
    await session.append_message(loads("m0", "a", "text of a"))

    assert await session.unload_skill("skills", "a")

    stored = await session.get_message("m0")
    assert stored["noted"] == "meanwhile"
    assert stored["parts"][0]["output"] == "[skill unloaded: a]"


# -- compacting ------------------------------------------------------------------------------------


@on_a_loop
async def test_a_store_that_fails_fails_the_compaction():
    provider, failures = Recorded(), []
    session = await fill(Session(provider, on_compaction_error=failures.append), 3)
    session.on_compaction(compacting("m0", "m1"))
    heard = Heard(session)

    provider.failing = "add_compaction"
    with pytest.raises(OSError, match="add_compaction failed") as failure:
        await session.compact()

    assert failures == [failure.value]
    assert heard.statuses() == ["compacting", "error", "idle"]
    assert provider.inner.compactions == []


@on_a_loop
async def test_a_store_that_fails_does_not_fail_the_append():
    provider, failures = Recorded(), []
    session = Session(provider, on_compaction=compacting("m0", "m0"), compact_after=0)
    session.on_compaction_error(failures.append)
    heard = Heard(session)

    provider.failing = "add_compaction"
    result = await session.append_message(says("m0"))

    assert result.inserted
    assert len(failures) == 1
    assert heard.statuses() == ["idle", "compacting", "error", "idle"]


@on_a_loop
async def test_those_who_share_a_compaction_share_its_failure_and_others_do_not():
    provider, go_on = Recorded(), asyncio.Event()
    session = await fill(Session(provider), 3)

    async def slowly(messages):
        provider.failing = "add_compaction" if len(messages) == 3 else None
        await go_on.wait()
        return CompactResult("sum", messages[0]["id"], messages[-1]["id"])

    session.on_compaction(slowly)
    tasks = [asyncio.create_task(session.compact(leaf)) for leaf in ("m2", "m2", "m1")]
    await until(lambda: provider.failing)
    go_on.set()
    first, shared, other = await asyncio.gather(*tasks, return_exceptions=True)

    assert isinstance(first, OSError)
    assert shared is first
    assert other == CompactResult("sum", "m0", "m1")


@on_a_loop
async def test_a_lock_that_another_process_holds_turns_a_compaction_away(caplog):
    class Locked(FullProvider):
        def lock(self):
            return self

        async def __aenter__(self):
            return False

        async def __aexit__(self, *error):
            pass

    calls = []
    session = Session(Locked(), on_compaction=calls.append, compact_after=0)
    heard = Heard(session)

    await session.append_message(says("m0"))
    assert await session.compact() is None

    assert calls == []
    assert heard.statuses() == ["idle"]
    assert "nothing was compacted" not in caplog.text


class Unlockable(FullProvider):
    @asynccontextmanager
    async def lock(self):
        raise OSError("no lock to be had")
        yield


class Clinging(FullProvider):
    @asynccontextmanager
    async def lock(self):
        yield
        raise OSError("not let go")


@on_a_loop
async def test_a_lock_that_cannot_be_had_is_a_failure(caplog):
    failures = []
    session = Session(Unlockable(), on_compaction=compacting("m0", "m0"), compact_after=0)
    session.on_compaction_error(failures.append)
    heard = Heard(session)

    await session.append_message(says("m0"))
    with pytest.raises(OSError, match="no lock to be had"):
        await session.compact()

    assert list(map(str, failures)) == ["no lock to be had"] * 2
    assert heard.kinds() == ["append", "idle", "error", "error"]
    assert await shown(session) == ["m0"]


@on_a_loop
async def test_a_lock_that_is_not_let_go_undoes_nothing(caplog):
    session = await fill(Session(Clinging(), on_compaction=compacting("m0", "m0")), 2)

    assert (await session.compact()).to_message_id == "m0"

    assert await shown(session) == ["S(sum)", "m1"]
    assert "not let go" in caplog.text


@on_a_loop
async def test_a_lock_is_held_while_the_function_runs_and_let_go():
    provider, seen = FullProvider(), []
    session = await fill(Session(provider), 2)

    await session.on_compaction(lambda messages: seen.append(provider.locked.locked())).compact()

    assert seen == [True]
    assert not provider.locked.locked()


@on_a_loop
async def test_without_a_lock_what_changed_meanwhile_is_still_seen():
    session = await fill(Session(AsyncProvider()), 4)

    async def slowly(messages):
        await session.delete_messages(["m1"])
        return CompactResult("sum", "m0", "m2")

    assert await session.on_compaction(slowly).compact() is None


# -- the check -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [PlainProvider, AsyncProvider, FullProvider, SyncIteration])
@on_a_loop
async def test_a_good_provider_passes(kind):
    await check_provider(kind)


@on_a_loop
async def test_our_own_providers_pass(agent):
    numbers = iter(range(1000))
    store = MemoryStore()

    await check_provider(lambda: AgentSessionProvider(agent, f"s{next(numbers)}"))
    await check_provider(lambda: store.provider(f"s{next(numbers)}"))


@on_a_loop
async def test_providers_may_take_their_time_to_be_made():
    async def make():
        return PlainProvider()

    await check_provider(make)


class Forgetful(PlainProvider):
    get_compactions = None


class Timeless(PlainProvider):
    def append_message(self, message, parent_id=LATEST):
        result = super().append_message(message, parent_id)
        self.messages[message["id"]] = dict(message)
        return AppendResult(dict(message), result.inserted)


class Rooted(PlainProvider):
    def append_message(self, message, parent_id=LATEST):
        return super().append_message(message, LATEST if parent_id is None else parent_id)


class Trusting(PlainProvider):
    def append_message(self, message, parent_id=LATEST):
        if isinstance(parent_id, str) and parent_id not in self.messages:
            parent_id = LATEST
        return super().append_message(message, parent_id)


class WrongError(PlainProvider):
    def append_message(self, message, parent_id=LATEST):
        try:
            return super().append_message(message, parent_id)
        except UnknownParent as error:
            raise KeyError(parent_id) from error


class Overwriting(PlainProvider):
    def append_message(self, message, parent_id=LATEST):
        if message["id"] in self.messages:
            self.update_message(message)
        return super().append_message(message, parent_id)


class ParentFirst(PlainProvider):
    def append_message(self, message, parent_id=LATEST):
        if isinstance(parent_id, str) and parent_id not in self.messages:
            raise UnknownParent("s", parent_id)
        return super().append_message(message, parent_id)


class Racing(PlainProvider):
    async def append_message(self, message, parent_id=LATEST):
        parent_id = self.tip if parent_id is LATEST else parent_id
        await asyncio.sleep(0)
        return super().append_message(message, parent_id)


class Recursive(PlainProvider):
    def path(self, leaf_id=None):
        at = self.tip if leaf_id is None else leaf_id
        if at not in self.messages:
            return []
        above = self.parents[at]
        return [*([] if above is None else self.path(above)), at]


class NewestTip(PlainProvider):
    def get_latest_leaf(self):
        return self.get_message(next(reversed(self.messages), None))

    def get_history(self, leaf_id=None):
        self.tip = next(reversed(self.messages), None)
        return super().get_history(leaf_id)


class Overlaid(PlainProvider):
    def get_history(self, leaf_id=None):
        hidden = {overlay.from_message_id for overlay in self.compactions}
        return [one for one in super().get_history(leaf_id) if one["id"] not in hidden]


class LeafOrTip(PlainProvider):
    def path(self, leaf_id=None):
        return super().path(leaf_id if leaf_id in self.messages else None)


class Descendants(PlainProvider):
    def get_branches(self, message_id):
        below = super().get_branches(message_id)
        for child in list(below):
            below += super().get_branches(child["id"])
        return below


class Sorted(PlainProvider):
    def get_branches(self, message_id):
        return sorted(super().get_branches(message_id), key=lambda message: message["id"])


class Upserting(PlainProvider):
    def update_message(self, message):
        return super().update_message(message) or self.append_message(message).message


class Moving(PlainProvider):
    def update_message(self, message):
        self.tip = message["id"]
        return super().update_message(message)


class Redating(PlainProvider):
    def update_message(self, message):
        super().update_message(message)
        self.messages[message["id"]]["createdAt"] = self.now()
        return self.get_message(message["id"])


class Echoing(PlainProvider):
    def delete_messages(self, message_ids):
        super().delete_messages(message_ids)
        return message_ids


class Cascading(PlainProvider):
    def delete_messages(self, message_ids):
        below = [one for one in self.messages if self.parents[one] in message_ids]
        super().delete_messages(below)
        return super().delete_messages(message_ids)


class NewestAfterDelete(PlainProvider):
    def delete_messages(self, message_ids):
        tip, gone = self.tip, super().delete_messages(message_ids)
        self.tip = next(reversed(self.messages), None) if tip in gone else tip
        return gone


class KeepsOverlays(PlainProvider):
    def clear_messages(self):
        kept = self.compactions
        super().clear_messages()
        self.compactions = kept


class Replacing(PlainProvider):
    def add_compaction(self, summary, from_id, to_id):
        self.compactions = [one for one in self.compactions if one.from_message_id != from_id]
        return super().add_compaction(summary, from_id, to_id)


class DropsOverlays(PlainProvider):
    def delete_messages(self, message_ids):
        self.compactions = []
        return super().delete_messages(message_ids)


class Shared(PlainProvider):
    everything = PlainProvider()

    def __init__(self):
        self.__dict__ = self.everything.__dict__


class ForgetsLeaf(FullProvider):
    def set_leaf(self, message_id):
        return self.get_message(message_id)


class CountsCharacters(FullProvider):
    def get_row_stats(self):
        rows = super().get_row_stats()
        return [type(row)(row.id, row.role, row.bytes - (row.id == "m2")) for row in rows]


class NeverTruncates(FullProvider):
    def get_recent_history(self, max_content_bytes, min_recent_messages):
        return super().get_recent_history(10**9, min_recent_messages)


class OneBranch(FullProvider):
    async def iter_messages(self):
        for message in self.get_history():
            yield message


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        (Forgetful, "all required methods: it lacks get_compactions"),
        (Timeless, "a message without a time"),
        (Rooted, "the parent None makes a new root"),
        (Trusting, "an unknown parent raises UnknownParent"),
        (WrongError, "an unknown parent raises UnknownParent .*KeyError"),
        (Overwriting, "a duplicate id changes nothing"),
        (ParentFirst, "a duplicate id changes nothing"),
        (Racing, "finding the latest leaf and writing are one step"),
        (Recursive, "paths have no depth limit"),
        (NewestTip, "a deleted tip falls back"),
        (Overlaid, "get_history gives the raw path"),
        (LeafOrTip, "nothing for an unknown one"),
        (Descendants, "direct children"),
        (Sorted, "in the order of appending"),
        (Upserting, "an update of an unknown message"),
        (Moving, "an update replaces role and content"),
        (Redating, "time of creation stay"),
        (Echoing, "delete_messages gives the ids removed"),
        (Cascading, "nearest surviving ancestor"),
        (NewestAfterDelete, "a deleted tip falls back"),
        (KeepsOverlays, "a clear removes messages, overlays and tip"),
        (Replacing, "superseded ones too"),
        (DropsOverlays, "outlive the messages"),
        (Shared, "a session has nothing in common with others"),
        (ForgetsLeaf, "set_leaf makes any message the tip"),
        (CountsCharacters, "get_row_stats tells"),
        (NeverTruncates, "get_recent_history gives the longest raw end"),
        (OneBranch, "iter_messages gives the messages of all branches"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
@on_a_loop
async def test_a_broken_provider_is_told_which_rule_it_breaks(kind, rule):
    with pytest.raises(RuleBroken, match=rule) as broken:
        await check_provider(kind)

    assert isinstance(broken.value, AssertionError)
    assert str(broken.value) == f"{broken.value.rule}: {broken.value.detail}"
