"""An index is derived: whatever happens to it, the next search is right."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from search_contract import contents, said

import workspace_session
from workspace_session import Workspace, WorkspaceError
from workspace_session.search import Searcher
from workspace_session.search import index as index_module
from workspace_session.search.place import IndexPlace

ENGINES = ("whoosh", "sqlite")


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


@pytest.fixture
def workspace(tmp_path, engine):
    with Workspace(tmp_path / "workspace", durability="os", search=engine) as opened:
        yield opened


@pytest.fixture
def tree(workspace):
    tree = workspace.agent("a").tree("s")
    tree.extend([said(f"word number{number}") for number in range(20)])
    assert len(workspace.search("word", None)) == 20
    return tree


@pytest.fixture
def directory(workspace):
    return IndexPlace(workspace.layout, ()).directory


def index_files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.iterdir() if path.is_file() and path.stat().st_size)


def is_right(workspace, tree) -> None:
    tree.append(said("word of the last"))
    for opened in (workspace, Workspace(workspace.root, durability="os")):
        with opened:
            found = opened.search("word", None)
            assert len(found) == len(tree)
            assert contents(opened.search("number7")) == ["word number7"]
            assert contents(opened.search('"of the last"'))[0] == "word of the last"


# -- broken ----------------------------------------------------------------------------------------

DAMAGE = {
    "is gone": lambda path: path.unlink(),
    "is empty": lambda path: path.write_bytes(b""),
    "is cut short": lambda path: os.truncate(path, path.stat().st_size // 2),
    "is garbage": lambda path: path.write_bytes(os.urandom(path.stat().st_size)),
    "is text": lambda path: path.write_bytes(b"nothing of the kind\n" * 99),
    "is a directory": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_file_of_an_index_that_is_damaged_makes_no_difference(workspace, directory, tree, damage):
    for number in range(len(index_files(directory))):
        workspace.searcher.close()
        workspace.search("word")
        workspace.searcher.close()
        files = index_files(directory)
        DAMAGE[damage](files[number % len(files)])

        is_right(workspace, tree)


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_under_an_open_handle_makes_no_difference(workspace, directory, tree, damage):
    for path in index_files(directory):
        # SQLite maps this one into memory: to cut it short is to pull the rug from under a process.
        if path.exists() and not path.name.endswith("-shm"):
            DAMAGE[damage](path)

    is_right(workspace, tree)


def test_an_index_may_be_deleted_at_any_time(workspace, tree):
    shutil.rmtree(workspace.layout.search)
    is_right(workspace, tree)

    shutil.rmtree(workspace.layout.hidden)
    is_right(workspace, tree)


def test_a_file_where_the_index_should_be_gives_way(workspace, directory, tree):
    workspace.searcher.close()
    shutil.rmtree(directory)
    directory.write_text("in the way")

    is_right(workspace, tree)


def test_making_an_index_anew_is_logged(workspace, directory, tree, caplog):
    workspace.searcher.close()
    for path in index_files(directory):
        if path.name != "about.json":
            path.write_bytes(b"x" * 100)

    workspace.search("word")

    assert "search index is made anew" in caplog.text


def test_an_index_that_stays_broken_is_an_error_in_the_end(workspace, tree, monkeypatch):
    def broken(*_arguments):
        raise index_module.IndexBroken("always")

    monkeypatch.setattr(index_module, "catch_up", broken)

    with pytest.raises(WorkspaceError, match="cannot be made: always"):
        workspace.search("word")


# -- foreign ---------------------------------------------------------------------------------------


def noted(directory: Path, **changes) -> None:
    note = json.loads((directory / "about.json").read_bytes())
    (directory / "about.json").write_text(json.dumps({**note, **changes}))


@pytest.mark.parametrize(
    "change", [{"version": 0}, {"version": 99}, {"analysis": 0}, {"engine": "x"}]
)
def test_an_index_of_another_version_is_made_anew(workspace, directory, tree, change):
    workspace.searcher.close()
    (directory / "left over").touch()
    noted(directory, **change)

    is_right(workspace, tree)

    assert not (directory / "left over").exists()


def test_an_index_that_came_from_elsewhere_is_not_read(workspace, directory, tree, tmp_path):
    """It might hold anything, pickles among it."""
    workspace.searcher.close()
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(workspace.root, elsewhere)
    with Workspace(elsewhere, durability="os") as copied:
        place = IndexPlace(copied.layout, ())
        for path in index_files(place.directory):
            if path.name != "about.json":
                path.write_bytes(b"never read")

        assert len(copied.search("word", None)) == 20
        assert (
            json.loads((place.directory / "about.json").read_bytes())["inode"]
            != json.loads((directory / "about.json").read_bytes())["inode"]
        )


def test_the_engine_may_be_changed_at_any_time(workspace, tree, engine):
    other = ENGINES[1 - ENGINES.index(engine)]

    with Workspace(workspace.root, durability="os", search=other) as changed:
        assert len(changed.search("word", None)) == 20
        assert changed.searcher._engine == other
    with Workspace(workspace.root, durability="os") as later:
        assert later.searcher._engine == other
    is_right(workspace, tree)  # which still uses the first


# -- making it anew --------------------------------------------------------------------------------


def test_reindex_makes_the_index_anew_and_tells_how_far_it_is(workspace, directory, tree):
    workspace.agent("a", user="bob").tree("s").append(said("word"))
    (directory / "left over").touch()
    told = []

    workspace.reindex(lambda done, total: told.append((done, total)))

    assert not (directory / "left over").exists()
    assert told[-1][0] == told[-1][1] > 0
    is_right(workspace, tree)


def test_a_handle_goes_on_with_the_index_that_another_has_made(workspace, tree):
    with Workspace(workspace.root, durability="os") as other:
        assert len(other.search("word", None)) == 20
        workspace.reindex()
        is_right(other, tree)
        other.reindex()
        is_right(workspace, tree)


def test_searches_go_on_while_the_index_is_made_anew(workspace, tree, monkeypatch):
    """In another thread the old index is searched, and caught up, until the new one is there."""
    making, searched = threading.Event(), threading.Event()
    fill = index_module.Index._fill

    def slow(self, engine, report=None):
        fill(self, engine, report)
        if not making.is_set():
            making.set()
            assert searched.wait(20)

    monkeypatch.setattr(index_module.Index, "_fill", slow)
    thread = threading.Thread(target=workspace.reindex)
    thread.start()
    assert making.wait(20)
    tree.append(said("word that came meanwhile"))
    assert contents(workspace.search("meanwhile")) == ["word that came meanwhile"]
    searched.set()
    thread.join()

    assert contents(workspace.search("meanwhile")) == ["word that came meanwhile"]
    is_right(workspace, tree)


def test_what_a_killed_reindex_left_is_swept_up(workspace, directory, tree):
    left = directory.parent / ".new-12345678"
    left.mkdir()
    (left / "x").write_text("x")

    workspace.reindex()

    assert [path.name for path in directory.parent.iterdir()] == [".index"]


def test_rebuild_throws_the_index_away(workspace, directory, tree):
    workspace.rebuild()

    assert not directory.exists()
    is_right(workspace, tree)


# -- trouble that is not the index's ---------------------------------------------------------------


def test_a_full_disk_is_reported_and_leaves_the_index_as_it_was(
    workspace, directory, tree, monkeypatch
):
    from workspace_session.search import sqlite_engine, whoosh_ledger

    def full(*_arguments, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    (directory / "left over").touch()
    tree.append(said("word that found no room"))
    with monkeypatch.context() as patch:
        patch.setattr(whoosh_ledger, "write_atomic", full)
        patch.setattr(sqlite_engine.SqliteEngine, "_add", full)
        with pytest.raises(OSError, match="No space"):
            workspace.search("word")

    assert len(workspace.search("room")) == 1
    assert (directory / "left over").exists()
    is_right(workspace, tree)


def test_a_session_that_vanishes_during_a_search_is_left_out(workspace, tree, monkeypatch):
    workspace.agent("a").tree("other").append(said("word elsewhere"))
    find = index_module.Index.find
    deleted = []

    def find_and_delete(self, request, report=None):
        found = find(self, request, report)
        if not deleted:
            deleted.append(workspace.agent("a").delete("s"))
        return found

    monkeypatch.setattr(index_module.Index, "find", find_and_delete)

    assert contents(workspace.search("word", None)) == ["word elsewhere"]


def test_lines_that_move_during_a_search_are_looked_for_again(workspace, tree, monkeypatch):
    path = workspace.agent("a").place.log("s")
    find = index_module.Index.find
    moved = []

    def find_and_move(self, request, report=None):
        found = find(self, request, report)
        if not moved:
            moved.append(path.read_bytes())
            path.write_bytes(b"\n\n\n" + moved[0])
        return found

    monkeypatch.setattr(index_module.Index, "find", find_and_move)

    assert len(workspace.search("word", None)) == 20


# -- manners ---------------------------------------------------------------------------------------


def test_opening_a_workspace_imports_no_engine(tmp_path):
    program = (
        "import sys; from workspace_session import Workspace;"
        "Workspace(sys.argv[1]).agent('a').tree('s').append({'role': 'user', 'parts': []});"
        "print(sorted({'whoosh', 'sqlite3'} & set(sys.modules)))"
    )
    ours = str(Path(workspace_session.__file__).parents[1])
    ran = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "w")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": ours},
    )

    assert ran.stdout == "[]\n", ran.stderr


def test_an_index_is_its_owners_alone(workspace, directory, tree):
    for place in (directory, *directory.parents):
        if place == workspace.root:
            break
        assert stat.S_IMODE(place.stat().st_mode) == 0o700


def test_threads_may_search_and_write_at_once(workspace):
    failures = []

    def work(number):
        try:
            tree = workspace.agent("a").tree(f"s{number}")
            for turn in range(10):
                tree.append(said(f"word n{number} t{turn}"))
                assert len(workspace.search(f"n{number} t{turn}")) == 1
                assert len(tree.search("word", None)) == turn + 1
        except BaseException as failure:
            failures.append(failure)
            raise

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert len(workspace.search("word", None)) == 40


def test_an_unknown_engine_is_refused(tmp_path):
    with pytest.raises(ValueError, match="'whoosh' or 'sqlite', not 'lucene'"):
        Workspace(tmp_path / "w", search="lucene")


@pytest.mark.parametrize("settings", ["", "[]", "{", '{"search": "lucene"}', '{"search": 1}'])
def test_settings_that_are_of_no_use_mean_the_default(tmp_path, settings, caplog):
    workspace = Workspace(tmp_path / "w")
    (workspace.layout.hidden / "settings.json").write_text(settings)

    assert workspace.searcher._engine == "whoosh"
    assert "settings.json is of no use" in caplog.text


def test_other_settings_stay(tmp_path):
    workspace = Workspace(tmp_path / "w")
    path = workspace.layout.hidden / "settings.json"
    path.write_text('{"other": 1}')

    Workspace(tmp_path / "w", search="sqlite")

    assert json.loads(path.read_bytes()) == {"other": 1, "search": "sqlite"}


def test_the_default_engine_keeps_no_setting(tmp_path):
    Workspace(tmp_path / "w")

    assert not (tmp_path / "w" / ".workspace" / "settings.json").exists()


def test_merges_keep_segments_few_and_no_search_long(tmp_path):
    with Workspace(tmp_path / "w", durability="os", search="whoosh") as workspace:
        tree = workspace.agent("a").tree("s")
        longest = 0.0
        for number in range(150):
            tree.append(said(f"word number{number} and some more"))
            started = time.perf_counter()
            assert workspace.search("word", 1).total == number + 1
            longest = max(longest, time.perf_counter() - started)
        directory = IndexPlace(workspace.layout, ()).directory

        assert len(list(directory.glob("*.seg"))) < 16
        assert longest < 2.0


def test_a_closed_searcher_opens_again(workspace, tree):
    searcher = Searcher(workspace.layout, workspace.searcher._engine)
    assert len(searcher.search("word", None)) == 20
    searcher.close()
    searcher.close()

    assert len(searcher.search("word", None)) == 20
    searcher.close()


def test_a_disk_that_is_full_for_sqlite_is_reported_as_such(tmp_path):
    with Workspace(tmp_path / "w", durability="os", search="sqlite") as workspace:
        tree = workspace.agent("a").tree("s")
        tree.append(said("word"))
        assert len(workspace.search("word")) == 1
        database = workspace.searcher._index(())._engine._db
        (pages,) = database.execute("PRAGMA page_count").fetchone()
        database.execute(f"PRAGMA max_page_count = {pages}")
        tree.extend([said(f"word {number} " * 50) for number in range(200)])

        with pytest.raises(OSError, match="full"):
            workspace.search("word")
        database.execute("PRAGMA max_page_count = 1000000")

        assert workspace.search("word").total == 201
        assert workspace.searcher._index(())._engine._db is database  # nothing was thrown away


def test_a_database_that_somebody_else_holds_is_not_thrown_away(tmp_path):
    with Workspace(tmp_path / "w", durability="os", search="sqlite") as workspace:
        tree = workspace.agent("a").tree("s")
        tree.append(said("word"))
        assert len(workspace.search("word")) == 1
        database = workspace.searcher._index(())._engine._db
        database.execute("PRAGMA busy_timeout = 10")
        path = IndexPlace(workspace.layout, ()).directory / "index.sqlite"
        tree.append(said("another word"))

        with closing(sqlite3.connect(path, isolation_level=None)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            with pytest.raises(OSError, match="locked"):
                workspace.search("word")

        assert workspace.search("word").total == 2
        assert workspace.searcher._index(())._engine._db is database


def test_a_generation_that_goes_while_it_is_looked_for_is_no_damage(tmp_path):
    with Workspace(tmp_path / "w", durability="os") as workspace:
        workspace.agent("a").tree("s").append(said("word"))
        assert workspace.search("word").total == 1
        directory = IndexPlace(workspace.layout, ()).directory
        before = directory.stat().st_ino
        passing = directory / "_MAIN_999.toc"
        passing.symlink_to("removed by another process just now")
        removal = threading.Timer(0.05, passing.unlink)
        removal.start()

        with Workspace(workspace.root, durability="os") as another:
            assert another.search("word").total == 1

        removal.join()
        assert directory.stat().st_ino == before
