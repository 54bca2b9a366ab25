"""Watching: what any process writes is told once, in order, however it came into the files."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspace_session import EntriesAdded, SessionRemoved, Workspace
from workspace_session.files.follow import GRACE, Choice, Following
from workspace_session.files.layout import Layout

PATIENCE = 20.0  # a busy machine may be slow; nothing waits that long when all is well


def said(text: str, message_id: str | None = None) -> dict:
    named = {} if message_id is None else {"id": message_id}
    return {**named, "role": "user", "parts": [{"type": "text", "text": text}]}


def texts(events) -> list[str]:
    """What the messages in events say, in the order they were told."""
    return [
        entry.message["parts"][0]["text"]
        for event in events
        if isinstance(event, EntriesAdded)
        for entry in event.entries
        if entry.type == "message"
    ]


def kinds(events) -> list[str]:
    return [type(event).__name__ for event in events]


class Seen(list):
    """A callback that keeps what it is told, and can wait for it."""

    def __call__(self, event) -> None:
        self.append(event)

    def wait_for(self, done) -> None:
        deadline = time.monotonic() + PATIENCE
        while not done(list(self)):
            assert time.monotonic() < deadline, kinds(self)
            time.sleep(0.005)


# -- looking at the files: no threads, no notices --------------------------------------------------


@pytest.fixture
def following(workspace):
    return Following(workspace.layout, Choice())


def look(following) -> list:
    return list(following.look())


def test_each_entry_is_told_once_and_in_order(tree, following):
    tree.append(said("one"))
    first = look(following)
    tree.append(said("two"))
    tree.extend([said("three"), said("four")])

    assert texts(first) == ["one"]
    assert texts(look(following)) == ["two", "three", "four"]
    assert look(following) == []


def test_an_event_names_agent_user_and_session(workspace, following):
    workspace.agent("a", user="u").tree("s").append(said("hi"))

    (event,) = look(following)

    assert (event.agent_id, event.user_id, event.session_id) == ("a", "u", "s")
    assert [entry.type for entry in event.entries] == ["session", "message"]
    assert not event.existing


def test_what_was_there_at_the_beginning_is_marked(tree, following):
    tree.append(said("old"))

    assert [event.existing for event in following.begin()] == [True]


def test_half_a_line_waits_until_it_is_whole(agent, tree, following):
    tree.append(said("one"))
    tree.append(said("two"))
    path = agent.place.log("s")
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    before = look(following)
    with path.open("ab") as file:
        file.write(whole[-20:])

    assert texts(before) == ["one"]
    assert texts(look(following)) == ["two"]


def test_half_a_batch_waits_until_it_is_whole(agent, tree, following):
    tree.append(said("one"))
    tree.extend([said("two"), said("three")])
    path = agent.place.log("s")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    before = look(following)
    with path.open("ab") as file:
        file.write(lines[-1])

    assert texts(before) == ["one"]
    assert texts(look(following)) == ["two", "three"]


def test_a_batch_that_a_crash_cut_short_is_never_told(workspace, agent, tree, following):
    tree.append(said("one"))
    tree.extend([said("two"), said("three")])
    path = agent.place.log("s")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    shutil.copy(path, agent.place.tree("s"))
    first = look(following)
    Workspace(workspace.root, durability="os").agent("a").tree("s").append(said("four"))

    assert texts(first + look(following)) == ["one", "four"]


def test_a_line_that_is_no_entry_is_passed_over(agent, tree, following):
    tree.append(said("one"))
    with agent.place.log("s").open("ab") as file:
        file.write(b"<<<<<<< ours\n")
    first = look(following)
    tree.append(said("two"))

    assert texts(first + look(following)) == ["one", "two"]


def test_of_a_replaced_log_only_what_is_new_is_told(tmp_path, workspace, agent, tree, following):
    tree.append(said("one"))
    shutil.copytree(workspace.root, tmp_path / "clone")
    tree.append(said("ours"))
    Workspace(tmp_path / "clone", durability="os").agent("a").tree("s").append(said("theirs"))
    ours, theirs = agent.place.log("s"), Layout(tmp_path / "clone").agent("a").log("s")
    assert texts(look(following)) == ["one", "ours"]
    lines = {*ours.read_bytes().splitlines(), *theirs.read_bytes().splitlines()}
    merged = sorted(lines, key=lambda line: json.loads(line)["timestamp"], reverse=True)
    ours.with_name("new").write_bytes(b"\n".join(merged) + b"\n")
    os.replace(ours.with_name("new"), ours)

    events = look(following)

    assert kinds(events) == ["SessionReplaced", "EntriesAdded"]
    assert texts(events) == ["theirs"]


def test_a_log_that_shrank_and_grew_again_is_read_from_its_beginning(agent, tree, following):
    tree.append(said("one"))
    tree.append(said("two"))
    path = agent.place.log("s")
    look(following)
    lines = path.read_bytes().splitlines(keepends=True)
    other = [
        line.replace(b"two", b"other" * 100).replace(b'"id":"', b'"id":"x') for line in lines[2:]
    ]
    path.write_bytes(b"".join(lines[:2] + other))  # the same inode

    events = look(following)

    assert kinds(events) == ["SessionReplaced", "EntriesAdded"]
    assert texts(events) == ["other" * 100]


def test_a_deleted_session_is_told_and_a_restored_one_tells_nothing_twice(agent, tree, following):
    tree.append(said("one"))
    look(following)
    agent.delete("s")
    away = look(following)
    time.sleep(GRACE * 1.1)
    gone = look(following)
    agent.restore("s")
    back = look(following)
    agent.tree("s").append(said("two"))

    assert (away, kinds(gone), kinds(back)) == ([], ["SessionRemoved"], ["SessionReplaced"])
    assert texts(look(following)) == ["two"]


def test_a_log_that_is_away_for_a_moment_was_not_deleted(agent, tree, following):
    tree.append(said("one"))
    look(following)
    path = agent.place.log("s")
    data = path.read_bytes()
    path.unlink()
    away = look(following)
    path.write_bytes(data)
    time.sleep(GRACE * 1.1)

    assert away == []
    assert SessionRemoved not in map(type, look(following))


def test_a_lost_log_is_not_a_deleted_session(agent, tree, following):
    tree.append(said("one"))
    look(following)
    agent.place.log("s").unlink()
    look(following)
    time.sleep(GRACE * 1.1)
    lost = look(following)
    agent.tree("s").append(said("two"))

    assert lost == []
    assert not following.is_pending
    assert texts(look(following)) == ["two"]


def test_a_session_that_cannot_be_read_does_not_hide_the_others(agent, tree, following, caplog):
    tree.append(said("fine"))
    elsewhere = agent.workspace.root.parent / "elsewhere"
    elsewhere.write_text("{}\n")
    agent.place.log("bad").symlink_to(elsewhere)

    assert texts(look(following) + look(following)) == ["fine"]
    assert len(caplog.records) == 1  # said once, not at every look


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (Choice(), ["a1", "a2", "b1", "u1"]),
        (Choice(agent="a"), ["a1", "a2", "u1"]),
        (Choice(user="u"), ["u1"]),
        (Choice(user=""), ["a1", "a2", "b1"]),
        (Choice(agent="a", user="", session="2"), ["a2"]),
    ],
)
def test_a_choice_narrows_it_down(workspace, choice, expected):
    workspace.agent("a").tree("1").append(said("a1"))
    workspace.agent("a").tree("2").append(said("a2"))
    workspace.agent("b").tree("1").append(said("b1"))
    workspace.agent("a", user="u").tree("1").append(said("u1"))

    assert sorted(texts(look(Following(workspace.layout, choice)))) == expected


@given(st.data())
def test_whatever_is_done_to_a_log_each_entry_is_told_once(tmp_path_factory, data):
    root = tmp_path_factory.mktemp("w")
    agent = Workspace(root, durability="os").agent("a")
    tree = agent.tree("s")
    tree.extend([said(str(number)) for number in range(3)])
    for number in range(3, 8):
        tree.append(said(str(number)))
    path = agent.place.log("s")
    lines = path.read_bytes().splitlines(keepends=True)
    following, told = Following(agent.place.layout, Choice()), []
    for _ in range(data.draw(st.integers(1, 6))):
        some = data.draw(st.permutations(lines))[: data.draw(st.integers(0, len(lines)))]
        content = b"".join(some)
        if data.draw(st.booleans()):
            path.unlink()
        path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
        told += look(following)
    path.write_bytes(b"".join(lines))
    told += look(following)

    keys = [
        entry.key for event in told if isinstance(event, EntriesAdded) for entry in event.entries
    ]
    assert len(keys) == len(set(keys)) == len(lines)
    for event in told:
        if isinstance(event, EntriesAdded):
            assert list(event.entries) == sorted(event.entries, key=lambda entry: entry.key)


# -- the watch -------------------------------------------------------------------------------------

WRITER = """
import sys, time
from workspace_session import Workspace
root, who, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
workspace = Workspace(root, durability="os")
trees = [workspace.agent("a").tree("shared"), workspace.agent(f"agent-{who}").tree("own")]
for n in range(count):
    trees[n % 2].append({"role": "user", "parts": [{"type": "text", "text": f"{who}-{n}"}]})
"""


def start_writer(root, who: int, count: int) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", WRITER, str(root), str(who), str(count)])


@pytest.mark.parametrize("polling", [False, True], ids=["notices", "polling"])
def test_a_thousand_entries_of_eight_processes_arrive_complete_and_once(workspace, polling):
    seen = Seen()
    with workspace.watch(seen, polling=polling):
        for writer in [start_writer(workspace.root, who, 125) for who in range(8)]:
            assert writer.wait(timeout=60) == 0
        seen.wait_for(lambda events: len(texts(events)) >= 1000)
        time.sleep(0.3)  # anything that is told twice would come now

    expected = [f"{who}-{n}" for who in range(8) for n in range(125)]
    assert sorted(texts(seen)) == sorted(expected)
    keys = [
        (event.agent_id, event.session_id, entry.key)
        for event in seen
        if isinstance(event, EntriesAdded)
        for entry in event.entries
    ]
    assert len(keys) == len(set(keys))
    for place in {key[:2] for key in keys}:
        own = [key for key in keys if key[:2] == place]
        assert own == sorted(own)


def test_a_new_agent_of_a_new_user_is_seen_at_once(workspace):
    seen = Seen()
    with workspace.watch(seen):
        started = time.monotonic()
        workspace.agent("new", user="new").tree("s").append(said("hi"))
        seen.wait_for(lambda events: texts(events) == ["hi"])

    assert time.monotonic() - started < 2.0


def test_without_any_notice_the_files_are_looked_at(workspace, tree, monkeypatch, caplog):
    def none_left(*_args, **_options):
        raise OSError(24, "inotify instance limit reached")

    monkeypatch.setattr("workspace_session.files.watch._observer", none_left)
    seen = Seen()
    with workspace.watch(seen):
        tree.append(said("hi"))
        seen.wait_for(lambda events: texts(events) == ["hi"])

    assert "inotify instance limit reached" in caplog.text


def test_lost_notices_are_made_good(workspace, tree, monkeypatch):
    monkeypatch.setattr("workspace_session.files.watch.Hints.add", lambda _self, _path: None)
    seen = Seen()
    with workspace.watch(seen):
        tree.append(said("hi"))
        seen.wait_for(lambda events: texts(events) == ["hi"])


def test_with_more_users_than_can_be_listened_to_apart_all_are_heard(workspace, monkeypatch):
    monkeypatch.setattr("workspace_session.files.watch._MANY", 2)
    seen = Seen()
    with workspace.watch(seen):
        for number in range(5):
            workspace.agent("a", user=f"u{number}").tree("s").append(said(str(number)))
        seen.wait_for(lambda events: len(texts(events)) == 5)


def test_a_watch_tells_of_deletion_and_restoring(workspace, agent, tree):
    tree.append(said("one"))
    seen = Seen()
    with workspace.watch(seen):
        agent.delete("s")
        seen.wait_for(lambda events: kinds(events) == ["SessionRemoved"])
        agent.restore("s")
        seen.wait_for(lambda events: kinds(events)[1:] == ["SessionReplaced"])


def test_what_was_there_before_is_told_only_if_asked_for(workspace, tree):
    tree.append(said("old"))
    plain, asked = Seen(), Seen()
    with workspace.watch(plain), workspace.watch(asked, existing=True):
        tree.append(said("new"))
        plain.wait_for(lambda events: texts(events) == ["new"])
        asked.wait_for(lambda events: texts(events) == ["old", "new"])

    assert asked[0].existing


def test_an_exception_in_the_callback_is_logged_and_the_watch_goes_on(workspace, tree, caplog):
    seen = Seen()

    def failing(event):
        seen(event)
        raise RuntimeError("broken callback")

    with caplog.at_level(logging.ERROR), workspace.watch(failing):
        tree.append(said("one"))
        seen.wait_for(lambda events: texts(events) == ["one"])
        tree.append(said("two"))
        seen.wait_for(lambda events: texts(events) == ["one", "two"])

    assert "broken callback" in caplog.text


def test_after_stop_nothing_is_told_and_no_thread_is_left(workspace, tree):
    before = threading.active_count()
    seen = Seen()
    watch = workspace.watch(seen)
    watch.stop()
    watch.stop()
    tree.append(said("late"))
    time.sleep(0.2)

    assert (seen, watch.is_running, threading.active_count()) == ([], False, before)


def test_a_callback_may_stop_its_own_watch(workspace, tree):
    seen = Seen()

    def once(event):
        seen(event)
        watch.stop()

    watch = workspace.watch(once)
    tree.append(said("one"))
    seen.wait_for(bool)
    tree.append(said("two"))
    watch._thread.join(PATIENCE)

    assert texts(seen) == ["one"]


def test_closing_the_workspace_stops_its_watches(tmp_path):
    workspace = Workspace(tmp_path / "w", durability="os")
    watch, events = workspace.watch(Seen()), workspace.events()
    workspace.close()

    assert not watch.is_running
    assert list(events) == []


def test_watchdog_is_imported_only_by_those_who_watch(tmp_path):
    script = (
        "import sys; from workspace_session import Workspace; w = Workspace(sys.argv[1]);"
        "assert 'watchdog' not in sys.modules; w.events().close(); assert 'watchdog' in sys.modules"
    )

    subprocess.run([sys.executable, "-c", script, str(tmp_path / "w")], check=True, timeout=60)


# -- iterators -------------------------------------------------------------------------------------


def test_events_are_what_is_written_after_the_call(workspace, tree):
    tree.append(said("old"))
    with workspace.events(timeout=PATIENCE) as events:
        tree.append(said("new"))

        assert texts([next(events)]) == ["new"]


def test_events_end_when_nothing_happens_for_the_timeout(workspace):
    assert list(workspace.events(timeout=0.05)) == []


def test_a_close_from_another_thread_ends_the_iteration(workspace):
    events = workspace.events()
    threading.Timer(0.1, events.close).start()

    assert list(events) == []


def test_a_slow_reader_loses_nothing(workspace, tree, monkeypatch):
    monkeypatch.setattr("workspace_session.files.watch._ROOM", 1)
    with workspace.events(timeout=2.0) as events:
        for number in range(30):
            tree.append(said(str(number)))
            time.sleep(0.002)
        got = []
        while len(texts(got)) < 30:
            got.append(next(events))

    assert texts(got) == [str(number) for number in range(30)]


def test_events_that_nobody_holds_stop_their_thread(workspace):
    before = threading.active_count()
    for _event in workspace.events(timeout=0.01):
        pass
    deadline = time.monotonic() + PATIENCE
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)

    assert threading.active_count() == before


def test_async_events_are_the_same(workspace, tree):
    async def watch() -> list:
        got = []
        async with workspace.events_async(timeout=PATIENCE) as events:
            await asyncio.to_thread(tree.append, said("one"))
            await asyncio.to_thread(tree.extend, [said("two"), said("three")])
            async for event in events:
                got.append(event)
                if len(texts(got)) == 3:
                    break
        return got

    assert texts(asyncio.run(watch())) == ["one", "two", "three"]


def test_async_events_leave_the_loop_free_and_can_be_cancelled(workspace):
    async def watch() -> int:
        ticks = 0
        events = workspace.events_async()
        waiting = asyncio.ensure_future(anext(events))
        while ticks < 5:
            await asyncio.sleep(0.01)
            ticks += 1
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await events.aclose()
        return ticks

    assert asyncio.run(watch()) == 5


def test_async_events_end_at_the_timeout_and_after_aclose(workspace):
    async def watch() -> list:
        first = [event async for event in workspace.events_async(timeout=0.05)]
        events = workspace.events_async()
        await events.aclose()
        return first + [event async for event in events]

    assert asyncio.run(watch()) == []


def test_a_workspace_that_cannot_be_looked_at_is_an_error_at_once(workspace, monkeypatch):
    def denied(_self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Layout, "namespaces", denied)

    with pytest.raises(PermissionError):
        workspace.events()
