"""Overlays against the most obvious reading of their rules, for any tree and any overlays."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st
from providers import PlainProvider
from session_contract.talk import names, says

from workspace_session import (
    Compaction,
    CompactResult,
    InvalidCompaction,
    MemoryStore,
    Session,
    Workspace,
    apply_overlays,
    is_compaction_message,
)

IDS = [f"m{number}" for number in range(8)]
ids = st.sampled_from(IDS)


def overlay(number, from_id, to_id):
    return Compaction(f"o{number}", f"o{number}", from_id, to_id, f"2026-01-01T00:00:0{number}Z")


@st.composite
def overlays(draw):
    ranges = draw(st.lists(st.tuples(ids, ids), max_size=6))
    return [overlay(number, *ends) for number, ends in enumerate(ranges)]


paths = st.lists(ids, unique=True).map(lambda path: [says(one) for one in path])


def naive(path, compactions):
    """The names of what is shown: the rules, word by word."""
    at = [message["id"] for message in path]
    found, i = [], 0
    while i < len(at):
        candidates = [
            one
            for one in compactions
            if one.from_message_id == at[i]
            and one.to_message_id in at
            and at.index(one.to_message_id) >= i
        ]
        if candidates:
            found.append(f"S({candidates[-1].summary})")
            i = at.index(candidates[-1].to_message_id) + 1
        else:
            found.append(at[i])
            i += 1
    return found


@given(paths, overlays())
def test_overlays_are_selected_as_the_rules_say(path, compactions):
    assert names(apply_overlays(path, compactions)) == naive(path, compactions)


@given(paths, overlays())
def test_applying_overlays_twice_is_applying_them_once(path, compactions):
    once = apply_overlays(path, compactions)

    assert apply_overlays(once, compactions) == once


@given(paths, overlays())
def test_applying_overlays_changes_nothing_that_was_given(path, compactions):
    before = [dict(message) for message in path], list(compactions)

    apply_overlays(path, compactions)

    assert (path, compactions) == before


@given(paths, overlays())
def test_every_message_is_shown_or_hidden_behind_one_summary(path, compactions):
    at = [message["id"] for message in path]
    told = []
    for message in apply_overlays(path, compactions):
        if is_compaction_message(message):
            one = next(one for one in compactions if one.message == message)
            told += at[at.index(one.from_message_id) : at.index(one.to_message_id) + 1]
        else:
            told.append(message["id"])

    assert told == at


@given(paths, overlays(), st.sets(ids))
def test_unreadable_messages_are_as_if_they_were_not_there(path, compactions, broken):
    whole = [one for one in path if one["id"] not in broken]
    torn = [{"id": one["id"]} if one["id"] in broken else one for one in path]

    assert apply_overlays(torn, compactions) == apply_overlays(whole, compactions)


# -- through sessions ------------------------------------------------------------------------------

steps = st.one_of(
    st.tuples(st.just("append"), ids, st.none() | ids),
    st.tuples(st.just("overlay"), ids, ids),
    st.tuples(st.just("compact"), ids, ids),
    st.tuples(st.just("delete"), ids, ids),
)


async def play(session, played):
    """Do what was drawn, as far as it is accepted; gives what was not. No id is used twice."""
    refused, gone = [], set()
    for number, (what, one, two) in enumerate(played):
        if what == "append":
            if one not in gone and (two is None or await session.get_message(two)):
                await session.append_message(says(one), two)
        elif what == "delete":
            gone.update(await session.delete_messages([one]))
        elif what == "overlay":
            try:
                await session.add_compaction(f"o{number}", one, two)
            except InvalidCompaction:
                refused.append(number)
        elif what == "compact":
            session.on_compaction(lambda _, n=number, a=one, b=two: CompactResult(f"c{n}", a, b))
            if await session.compact() is None:
                refused.append(number)
    return refused


async def view(session):
    """All that can be seen of a session, from every leaf."""
    return {leaf: names(await session.get_history(leaf)) for leaf in (None, *IDS)}, [
        (one.summary, one.from_id, one.to_id) for one in await session.get_compactions()
    ]


@given(st.lists(steps, max_size=25))
def test_stores_and_providers_show_the_same(played):
    async def everywhere():
        kinds = [Session(MemoryStore()), Session(PlainProvider())]
        refused = [await play(session, played) for session in kinds]
        views = [await view(session) for session in kinds]
        assert refused[0] == refused[1]
        assert views[0] == views[1]

    asyncio.run(everywhere())


@given(st.lists(steps, max_size=25))
def test_files_show_the_same_as_memory(tmp_path_factory, played):
    async def both():
        agent = Workspace(tmp_path_factory.mktemp("workspace"), durability="os").agent("a")
        kinds = [Session(MemoryStore()), Session(agent)]
        refused = [await play(session, played) for session in kinds]
        views = [await view(session) for session in (*kinds, Session(agent))]
        assert refused[0] == refused[1]
        assert views[0] == views[1] == views[2]

    asyncio.run(both())


@given(st.lists(steps, max_size=25), ids, ids)
def test_a_compaction_hides_nothing_that_its_function_was_not_shown(played, first, last):
    async def seen():
        session = Session(MemoryStore())
        await play(session, played)
        before = await session.get_history()
        session.on_compaction(lambda messages: CompactResult("new", first, last))
        result = await session.compact()
        after = await session.get_history()
        if result is None:
            assert after == before
            return
        start = next(at for at, one in enumerate(after) if one["parts"][0]["text"] == "new")
        kept_after = len(after) - start - 1
        assert after[:start] == before[:start]
        assert kept_after == 0 or after[-kept_after:] == before[-kept_after:]
        assert before[-kept_after - 1]["id"] == last

    asyncio.run(seen())
