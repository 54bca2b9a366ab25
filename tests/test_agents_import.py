"""`import openai-agents`: sessions out of SQLite files that the SDK itself has written."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from contextlib import suppress

import pytest
from agents import SQLiteSession
from agents.extensions.memory import AdvancedSQLiteSession
from click.testing import CliRunner
from session_contract.talk import on_a_loop

from workspace_session import SessionDeleted, SessionTree, Workspace
from workspace_session.adapters.openai_agents.importing import import_database
from workspace_session.cli import main


def user(text: str) -> dict:
    return {"role": "user", "content": text}


def said(text: str) -> dict:
    return {"role": "assistant", "content": text}


TALK = [user("one"), said("two"), {"type": "odd", "ü": [None, 2**70, "用户"]}, user("four")]


@pytest.fixture
def bring(tmp_path, monkeypatch):
    """Runs the command on the file, in a workspace of its own."""
    monkeypatch.delenv("WORKSPACE_SESSION_ROOT", raising=False)
    Workspace(tmp_path / "ws").close()
    monkeypatch.chdir(tmp_path / "ws")

    def run(*args, path="chats.db", code=0):
        command = ["import", "openai-agents", str(tmp_path / path), *args]
        result = CliRunner().invoke(main, command)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.stderr
        return result.stdout if code == 0 else result.stderr

    yield run
    assert Workspace(tmp_path / "ws").verify() == []


def tree_of(tmp_path, session="s", agent="default", user=None):
    return Workspace(tmp_path / "ws").agent(agent, user).tree(session)


def write(path, session, items):
    peer = SQLiteSession(session, path)
    asyncio.run(peer.add_items(items))
    peer.close()


def lines(tree) -> list[bytes]:
    return [entry.line for entry in tree.log()]


def test_sessions_come_with_their_items_in_order(tmp_path, bring):
    write(tmp_path / "chats.db", "s", TALK)
    write(tmp_path / "chats.db", "other / one", TALK[:1])

    shown = bring()

    assert tree_of(tmp_path).messages() == TALK
    assert tree_of(tmp_path, "other / one").messages() == TALK[:1]
    assert shown.splitlines()[0].split() == ["session", "items", "new", "branches"]
    assert [line.split()[-3:] for line in shown.splitlines()[1:]] == [
        ["1", "1", "1"],
        ["4", "4", "1"],
    ]
    assert tree_of(tmp_path).info().source == "openai-agents"


def test_a_file_that_has_grown_adds_only_what_is_new(tmp_path, bring):
    write(tmp_path / "chats.db", "s", TALK[:2])
    bring()
    before = lines(tree_of(tmp_path))

    bring()
    assert lines(tree_of(tmp_path)) == before
    write(tmp_path / "chats.db", "s", TALK[2:])
    (done,) = json.loads(bring("--json"))

    assert done == {
        "sessionId": "s",
        "items": 4,
        "added": 2,
        "branches": 1,
        "unreadable": 0,
        "refused": None,
    }
    assert tree_of(tmp_path).messages() == TALK
    assert lines(tree_of(tmp_path))[: len(before)] == before


def at(path, *times):
    """Say when the rows of a file were written."""
    with sqlite3.connect(path) as database:
        for number, time in enumerate(times, 1):
            database.execute(
                "UPDATE agent_messages SET created_at = ? WHERE id = ?", (time, number)
            )
    database.close()


def test_items_keep_their_times_and_sessions_stand_where_they_belong(tmp_path, bring):
    file = tmp_path / "chats.db"
    write(file, "s", TALK)
    at(file, "2025-01-02 03:04:05", "2025-01-02 03:04:05", "2025-01-02 03:04:09", None)
    newer = Workspace(tmp_path / "ws").agent("default").create("newer")
    bring()

    tree = tree_of(tmp_path)
    times = [entry.timestamp for entry in tree.path()]
    assert [time[:19] for time in times] == ["2025-01-02T03:04:05"] * 2 + [
        "2025-01-02T03:04:09"
    ] * 2
    assert [entry.timestamp[:10] for entry in tree.log()] == ["2025-01-02"] * len(list(tree.log()))
    assert tree.header().timestamp < times[0]
    sessions = Workspace(tmp_path / "ws").agent("default").sessions()
    assert [one.id for one in sessions] == ["newer", "s"]

    before = lines(tree)
    bring()
    assert lines(tree_of(tmp_path)) == before
    write(file, "s", [said("five"), said("six"), said("seven")])
    at(file, *[None] * 4, "2026-02-03 00:00:00", "no time", "9998-01-01 00:00:00")
    bring()
    assert tree.messages() == [*TALK, said("five"), said("six"), said("seven")]
    assert {entry.timestamp[:19] for entry in tree.path()[4:]} == {"2026-02-03T00:00:00"}
    assert newer.header().timestamp > tree.latest
    newer.append(user("now"))
    assert newer.latest > tree.latest


def test_before_the_first_time_that_can_be_it_is_taken(tmp_path, bring):
    write(tmp_path / "chats.db", "s", TALK)
    write(tmp_path / "chats.db", "t", TALK)
    at(tmp_path / "chats.db", None, "2025-01-01 00:00:00", 7, "2025-02-01 00:00:00", *["?"] * 4)
    bring()

    days = [entry.timestamp[:10] for entry in tree_of(tmp_path).path()]
    assert days == ["2025-01-01", "2025-01-01", "2025-01-01", "2025-02-01"]
    assert tree_of(tmp_path, "t").header().timestamp > "2026"


def test_a_session_that_is_brought_in_again_is_another_one(tmp_path, bring):
    write(tmp_path / "chats.db", "s", TALK)
    at(tmp_path / "chats.db", *["2025-01-02 03:04:05"] * 4)
    bring()
    tree = tree_of(tmp_path)
    assert len(tree) == 4
    Workspace(tmp_path / "ws").agent("default").delete("s")
    bring()

    with pytest.raises(SessionDeleted):
        tree.append(user("late"))
    assert tree_of(tmp_path).messages() == TALK


def test_a_copy_of_the_file_is_known_again(tmp_path, bring):
    write(tmp_path / "chats.db", "s", TALK)
    bring()
    shutil.copy(tmp_path / "chats.db", tmp_path / "copy.db")

    assert json.loads(bring("--json", path="copy.db"))[0]["added"] == 0


def test_equal_items_are_not_one_item(tmp_path, bring):
    write(tmp_path / "chats.db", "s", [user("again")] * 5)

    bring()

    assert tree_of(tmp_path).messages() == [user("again")] * 5


def test_what_was_taken_back_in_the_file_stays_here_as_a_branch(tmp_path, bring):
    write(tmp_path / "chats.db", "s", TALK)
    bring()
    peer = SQLiteSession("s", tmp_path / "chats.db")
    asyncio.run(peer.pop_item())
    peer.close()
    write(tmp_path / "chats.db", "s", [user("instead")])

    bring()

    tree = tree_of(tmp_path)
    assert tree.messages() == [*TALK[:3], user("instead")]
    assert tree.messages(tree.leaves()[0]) == TALK


def test_a_conversation_that_went_on_here_stays_the_active_one(tmp_path, bring):
    write(tmp_path / "chats.db", "s", TALK[:2])
    bring()
    tree = tree_of(tmp_path)
    tree.append(user("here"))
    write(tmp_path / "chats.db", "s", TALK[2:])

    bring()

    tree = tree_of(tmp_path)
    assert tree.messages() == [*TALK[:2], user("here")]
    assert TALK in [tree.messages(leaf) for leaf in tree.leaves()]


async def branched(path) -> dict[str, list[dict]]:
    """A file with three branches, and what is on each."""
    peer = AdvancedSQLiteSession(session_id="s", db_path=path, create_tables=True)
    await peer.add_items([user("one"), said("two"), user("three"), said("four")])
    await peer.create_branch_from_turn(2, "short")
    await peer.add_items([user("other"), said("end")])
    await peer.switch_to_branch("main")
    await peer.add_items([user("five")])
    await peer.create_branch_from_turn(1, "empty")
    await peer.switch_to_branch("short")
    await peer.create_branch_from_turn(2, "third")
    await peer.add_items([said("so")])
    found = {name: await peer.get_items(branch_id=name) for name in ("main", "short", "third")}
    peer.close()
    return found


@on_a_loop
async def test_branches_come_as_branches_and_share_their_beginning(tmp_path, bring):
    branches = await branched(tmp_path / "chats.db")

    (done,) = json.loads(bring("--json"))

    tree = tree_of(tmp_path)
    ends = {label: entry_id for entry_id, label in tree.labels().items()}
    assert tree.messages() == branches["main"]
    assert {name: tree.messages(end) for name, end in ends.items()} == {
        "short": branches["short"],
        "third": branches["third"],
    }
    assert (done["branches"], done["items"], len(tree)) == (3, 8, 8)
    assert len(tree.children(None)) == 1
    before = lines(tree)
    bring()
    assert lines(tree_of(tmp_path)) == before


@on_a_loop
async def test_what_branches_have_keeps_its_time_too(tmp_path, bring):
    await branched(tmp_path / "chats.db")
    at(tmp_path / "chats.db", *[f"2025-01-{day:02} 00:00:00" for day in range(1, 9)])
    bring()

    tree = tree_of(tmp_path)
    days = {entry.message["content"]: entry.timestamp[8:10] for entry in tree.all_messages()}
    assert list(days.values()) == sorted(days.values())
    assert days == {
        "one": "01", "two": "02", "three": "03", "four": "04",
        "other": "05", "end": "06", "five": "07", "so": "08",
    }  # fmt: skip


@pytest.mark.parametrize("writes", range(1, 9))
@on_a_loop
async def test_an_import_that_was_killed_between_any_writes_is_finished_by_the_next(
    tmp_path, bring, monkeypatch, writes
):
    branches = await branched(tmp_path / "chats.db")
    real, left = SessionTree._write, [writes]

    def killed(tree, make):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return real(tree, make)

    monkeypatch.setattr(SessionTree, "_write", killed)
    with suppress(KeyboardInterrupt):
        import_database(Workspace(tmp_path / "ws").agent("default"), tmp_path / "chats.db")
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path / "ws")
    bring()

    tree = tree_of(tmp_path)
    assert tree.messages() == branches["main"]
    assert tree.facts() == {"source": "openai-agents"}
    ends = {label: tree.messages(entry_id) for entry_id, label in tree.labels().items()}
    assert ends == {name: branches[name] for name in ("short", "third")}
    before = lines(tree)
    bring()
    assert lines(tree_of(tmp_path)) == before


@on_a_loop
async def test_branches_that_end_in_one_place_are_both_named_there_and_named_once(tmp_path, bring):
    peer = AdvancedSQLiteSession(session_id="s", db_path=tmp_path / "chats.db", create_tables=True)
    await peer.add_items([user("one"), said("two"), user("three"), said("four")])
    for name in ("b1", "b2"):
        await peer.switch_to_branch("main")
        await peer.create_branch_from_turn(2, name)
    bring()
    tree = tree_of(tmp_path)
    ((end, label),) = tree.labels().items()
    assert (tree.get(end).message, label) == (said("two"), "b1, b2")
    before = lines(tree)
    bring()
    assert lines(tree_of(tmp_path)) == before

    await peer.add_items([user("more")])
    peer.close()
    tree.label(tree.leaf, "mine")
    bring()

    named = {tree.get(one).message["content"]: label for one, label in tree.labels().items()}
    assert named == {"two": "b1", "more": "b2", "four": "mine"}


@on_a_loop
async def test_a_branch_that_has_grown_keeps_its_name_at_its_end(tmp_path, bring):
    await branched(tmp_path / "chats.db")
    bring()
    peer = AdvancedSQLiteSession(session_id="s", db_path=tmp_path / "chats.db", create_tables=True)
    await peer.switch_to_branch("short")
    await peer.add_items([user("more")])
    peer.close()

    bring()

    tree = tree_of(tmp_path)
    labels = sorted(
        (label, tree.get(end).message["content"]) for end, label in tree.labels().items()
    )
    assert labels == [("short", "more"), ("third", "so")]
    assert tree.messages()[-1] == user("five")


@on_a_loop
async def test_items_from_before_a_file_had_branches_come_too(tmp_path, bring):
    write_path = tmp_path / "chats.db"
    await asyncio.to_thread(write, write_path, "s", TALK[:2])
    await asyncio.to_thread(write, write_path, "plain", TALK[:1])
    peer = AdvancedSQLiteSession(session_id="s", db_path=write_path, create_tables=True)
    await peer.add_items(TALK[2:])
    peer.close()

    bring()

    tree = tree_of(tmp_path)
    assert tree.messages() == TALK[2:]
    assert tree.messages(next(iter(tree.labels()))) == TALK[:2]
    assert tree_of(tmp_path, "plain").messages() == TALK[:1]


def test_tables_may_have_names_of_their_own(tmp_path, bring):
    peer = SQLiteSession("s", tmp_path / "chats.db", "my_sessions", "my_messages")
    asyncio.run(peer.add_items(TALK))
    peer.close()

    bring("--agent", "clerk", "--user", "ada")

    assert tree_of(tmp_path, agent="clerk", user="ada").messages() == TALK


def test_of_several_tables_one_is_to_be_named(tmp_path, bring):
    write(tmp_path / "chats.db", "s", TALK[:1])
    peer = SQLiteSession("s", tmp_path / "chats.db", "my_sessions", "my_messages")
    asyncio.run(peer.add_items(TALK))
    peer.close()

    assert "name one of them: agent_messages, my_messages" in bring(code=1)
    assert "holds no items in 'nothing'" in bring("--table", "nothing", code=1)
    bring("--table", "my_messages")

    assert tree_of(tmp_path).messages() == TALK


def test_rows_that_hold_no_item_are_told_of_and_hide_no_others(tmp_path, bring):
    write(tmp_path / "chats.db", "s", TALK)
    with sqlite3.connect(tmp_path / "chats.db") as database:
        insert = "INSERT INTO agent_messages (session_id, message_data) VALUES ('s', ?)"
        deep = '{"a":' * 600 + "{}" + "}" * 600
        bad = ["{torn", "[1]", '{"n": NaN}', '{"n":1e999}', "[" * 100_000, deep, b"\xff\xfe"]
        database.executemany(insert, [(row,) for row in bad])
        database.execute(insert, (json.dumps(user("end")),))
    database.close()

    result = CliRunner().invoke(main, ["import", "openai-agents", str(tmp_path / "chats.db")])

    assert tree_of(tmp_path).messages() == [*TALK, user("end")]
    assert result.stderr == "s: 7 rows held no item and stayed behind\n"
    assert json.loads(bring("--json"))[0]["added"] == 0


def test_the_file_stays_as_it_is(tmp_path, bring):
    write(tmp_path / "chats.db", "s", TALK)
    before = (tmp_path / "chats.db").read_bytes()

    bring()

    assert (tmp_path / "chats.db").read_bytes() == before


def test_a_file_is_read_where_nothing_can_be_made_beside_it(tmp_path, bring):
    write(tmp_path / "chats.db", "s", TALK)
    (tmp_path / "chats.db-shm").mkdir()  # as if the directory could not be written to

    bring()

    assert tree_of(tmp_path).messages() == TALK


def test_what_stands_only_in_the_log_beside_a_file_is_read_too(tmp_path, bring):
    write(tmp_path / "chats.db", "s", TALK[:2])
    peer = sqlite3.connect(tmp_path / "chats.db")
    peer.execute("BEGIN").execute("SELECT * FROM agent_messages").fetchall()  # so the log stays
    write(tmp_path / "chats.db", "s", TALK[2:])
    for end in ("", "-wal"):
        (tmp_path / f"copy.db{end}").write_bytes((tmp_path / f"chats.db{end}").read_bytes())
    (tmp_path / "copy.db-shm").mkdir()

    bring(path="copy.db")

    peer.close()
    assert tree_of(tmp_path).messages() == TALK


def test_what_was_never_committed_is_not_read(tmp_path, bring):
    writer = sqlite3.connect(tmp_path / "chats.db", isolation_level=None)
    writer.execute("CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, session_id, message_data)")
    insert = "INSERT INTO agent_messages (session_id, message_data) VALUES ('s', ?)"
    writer.execute(insert, (json.dumps(user("committed")),))
    writer.execute("PRAGMA cache_size = 5")
    writer.execute("BEGIN")
    for number in range(500):
        writer.execute(insert, (json.dumps(user(f"{number} " + "x" * 500)),))
    for end in ("", "-journal"):  # as a writer leaves them who is killed now
        (tmp_path / f"copy.db{end}").write_bytes((tmp_path / f"chats.db{end}").read_bytes())
    writer.close()

    assert "cannot be read as an SQLite file" in bring(path="copy.db", code=1)
    assert Workspace(tmp_path / "ws").agents() == []


def test_a_file_is_not_read_without_the_log_that_lies_beside_it(tmp_path, bring):
    write(tmp_path / "chats.db", "s", TALK)
    (tmp_path / "chats.db-wal").mkdir()  # as if it could not be read

    assert "cannot be read as an SQLite file" in bring(code=1)
    assert Workspace(tmp_path / "ws").agents() == []


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda path: path.write_bytes(b"not a database" * 100), "cannot be read as an SQLite file"),
        (lambda path: sqlite3.connect(path).execute("CREATE TABLE t (x)").connection.close(), "holds no sessions"),
        (lambda path: path.mkdir(), "is a directory"),
    ],
)  # fmt: skip
def test_what_is_no_file_of_sessions_is_refused_in_one_sentence(tmp_path, bring, make, sentence):
    make(tmp_path / "chats.db")

    message = bring(code=2 if "directory" in sentence else 1)

    assert sentence in message
    assert "Traceback" not in message
    assert Workspace(tmp_path / "ws").agents() == []


def test_a_session_whose_id_cannot_be_one_stays_behind_until_it_gets_another(tmp_path, bring):
    unfit = {"": "nameless", "trip": "trip-2", "x" * 300: "long"}
    for number, session in enumerate(["Trip", *unfit, "zz"]):
        write(tmp_path / "chats.db", session, [*TALK, user(str(number))])

    told = bring(code=1).splitlines()

    sessions = Workspace(tmp_path / "ws").agent("default").sessions
    assert {one.id for one in sessions()} == {"Trip", "zz"}
    assert [line.partition(" (")[0] for line in told] == [
        "'' stayed behind",
        "trip stayed behind",
        f"{'x' * 300} stayed behind",
    ]
    assert told[1].endswith('differs only in case from "Trip"): bring it in with --rename trip NEW')

    renames = [word for pair in unfit.items() for word in ("--rename", *pair)]
    for added in (5, 0):
        done = json.loads(bring("--json", *renames))
        assert {one["sessionId"]: one["added"] for one in done} == {
            **dict.fromkeys(unfit, added),
            "Trip": 0,
            "zz": 0,
        }
    assert {one.id for one in sessions()} == {"Trip", "zz", *unfit.values()}
    assert tree_of(tmp_path, "trip-2").messages() == [*TALK, user("2")]


def test_an_id_that_is_no_text_stays_behind(tmp_path, bring):
    write(tmp_path / "chats.db", "s", TALK)
    with sqlite3.connect(tmp_path / "chats.db") as database:
        insert = "INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)"
        database.execute(insert, (b"\xff", json.dumps(user("odd"))))
    database.close()

    assert "stayed behind (invalid session id" in bring(code=1)
    assert tree_of(tmp_path).messages() == TALK


@pytest.mark.parametrize(
    ("renames", "sentence"),
    [
        (["nobody", "x"], "there is no session 'nobody' in the file"),
        (["a", "b"], "two sessions of the file would be 'b'"),
        (["a", "same", "b", "same"], "two sessions of the file would be 'same'"),
        (["a", ""], "the id of a session is not empty"),
    ],
)
def test_new_ids_that_fit_nothing_are_refused_before_anything_is_written(
    tmp_path, bring, renames, sentence
):
    write(tmp_path / "chats.db", "a", TALK)
    write(tmp_path / "chats.db", "b", TALK)
    pairs = zip(renames[::2], renames[1::2], strict=True)

    assert sentence in bring(*(word for pair in pairs for word in ("--rename", *pair)), code=1)

    assert Workspace(tmp_path / "ws").agents() == []


def test_a_file_without_items_is_no_error(tmp_path, bring):
    SQLiteSession("s", tmp_path / "chats.db").close()

    assert bring() == ""
    assert json.loads(bring("--json")) == []


def test_a_killed_import_is_finished_by_the_next(tmp_path, bring):
    write(tmp_path / "chats.db", "s", TALK)
    bring()
    log = tree_of(tmp_path).place.log("s")
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:3]))
    tree_of(tmp_path).place.tree("s").unlink()

    bring()

    assert tree_of(tmp_path).messages() == TALK
