"""Whole files, replaced at once."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

import workspace_session
from workspace_session.files import atomic
from workspace_session.files.atomic import (
    make_directories,
    remove_stale_temporaries,
    set_aside_corrupt,
    sync_directory,
    write_atomic,
)
from workspace_session.files.names import temporary_name

NOW = datetime(2026, 5, 15, 8, 0, 3, tzinfo=UTC)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def synced(monkeypatch):
    """What was synced, in order: names of files and directories."""
    names: list[str] = []
    fsync = os.fsync

    def record(descriptor: int) -> None:
        names.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    return names


# -- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sync", [True, False])
def test_a_file_is_made_and_replaced_and_nothing_else_is_left(tmp_path, sync):
    path = tmp_path / "memory.json"

    write_atomic(path, b"old", sync=sync)
    write_atomic(path, b"new", sync=sync)

    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_reader_that_has_the_file_open_keeps_the_old_bytes(tmp_path):
    path = tmp_path / "memory.json"
    write_atomic(path, b"old", sync=False)

    with open(path, "rb") as reader:
        write_atomic(path, b"new and longer", sync=False)

        assert reader.read() == b"old"


def test_the_bytes_are_synced_before_the_name_is(tmp_path, synced):
    write_atomic(tmp_path / "memory.json", b"x", sync=True)

    assert len(synced) == 2
    assert synced[0].startswith(".memory.json.tmp-")
    assert synced[1] == tmp_path.name


def test_nothing_is_synced_when_that_is_left_to_the_system(tmp_path, synced):
    make_directories(tmp_path / "a/b", sync=False)
    write_atomic(tmp_path / "a/b/memory.json", b"x", sync=False)

    assert synced == []


def test_a_short_write_is_continued(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))

    write_atomic(tmp_path / "memory.json", b"0123456789", sync=False)

    assert (tmp_path / "memory.json").read_bytes() == b"0123456789"


@pytest.mark.parametrize("step", ["write", "fsync"])
def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, step):
    path = tmp_path / "memory.json"
    write_atomic(path, b"old", sync=False)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, fail)

    with pytest.raises(OSError, match="No space left"):
        write_atomic(path, b"new", sync=True)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_rename_that_fails_leaves_no_temporary_file(tmp_path):
    (tmp_path / "memory.json" / "is a directory").mkdir(parents=True)

    with pytest.raises(OSError, match=r"memory\.json"):
        write_atomic(tmp_path / "memory.json", b"new", sync=False)

    assert [path.name for path in tmp_path.iterdir()] == ["memory.json"]


# -- directories -----------------------------------------------------------------------------------


def test_missing_directories_are_made_and_those_that_changed_are_synced(tmp_path, synced):
    (tmp_path / "a").mkdir()

    make_directories(tmp_path / "a/b/c", sync=True)
    assert synced == ["a", "b"]
    make_directories(tmp_path / "a/b/c", sync=True)

    assert (tmp_path / "a/b/c").is_dir()
    assert synced == ["a", "b"]


def test_a_directory_that_another_process_makes_first_is_fine(tmp_path, monkeypatch):
    mkdir = Path.mkdir

    def lose(self: Path, mode: int = 0o777) -> None:
        mkdir(self, mode)
        mkdir(self, mode)

    monkeypatch.setattr(Path, "mkdir", lose)

    make_directories(tmp_path / "a/b", sync=True)

    assert (tmp_path / "a/b").is_dir()


def test_a_file_where_a_directory_should_be_is_an_error(tmp_path):
    (tmp_path / "a").write_text("")

    with pytest.raises(OSError, match="a"):
        make_directories(tmp_path / "a", sync=False)


def test_a_directory_that_is_missing_cannot_be_synced(tmp_path):
    with pytest.raises(FileNotFoundError):
        sync_directory(tmp_path / "nothing")


# -- what crashes leave behind ---------------------------------------------------------------------


def test_only_old_temporary_files_are_removed(tmp_path):
    names = {
        "stale": temporary_name("memory.json"),
        "fresh": temporary_name("memory.json"),
        "state": "memory.json",
        "hidden": ".tmp-notes",
    }
    for name in names.values():
        (tmp_path / name).write_text("")
    (tmp_path / temporary_name("directory")).mkdir()
    hour_ago = time.time() - 3601
    for path in tmp_path.iterdir():
        if path.name != names["fresh"]:
            os.utime(path, (hour_ago, hour_ago))

    remove_stale_temporaries(tmp_path)

    left = {path.name for path in tmp_path.iterdir() if path.is_file()}
    assert left == {names["fresh"], names["state"], names["hidden"]}


def test_corrupt_files_are_set_aside_under_names_of_their_own(tmp_path):
    path = tmp_path / "memory.json"
    for number in range(3):
        path.write_text(str(number))
        set_aside_corrupt(path, NOW)

    assert {found.name: found.read_text() for found in tmp_path.iterdir()} == {
        "memory.json.corrupt-20260515T080003Z": "0",
        "memory.json.corrupt-20260515T080003Z-2": "1",
        "memory.json.corrupt-20260515T080003Z-3": "2",
    }


# -- permissions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("umask", "file", "directory"),
    [
        (0o022, 0o600, 0o700),  # the usual one: nobody decided to share
        (0o077, 0o600, 0o700),
        (0o027, 0o600, 0o700),
        (0o002, 0o660, 0o770),  # the group may write: it is meant to share
        (0o007, 0o660, 0o770),
        (0o000, 0o666, 0o777),
    ],
)
def test_new_files_are_private_unless_the_umask_shares_them(tmp_path, umask, file, directory):
    code = (
        "import os, sys; from pathlib import Path\n"
        "from workspace_session.files import atomic\n"
        f"os.umask({umask})\n"
        "atomic.make_directories(Path(sys.argv[1]) / 'a', sync=False)\n"
        "atomic.write_atomic(Path(sys.argv[1]) / 'a' / 'f', b'', sync=False)\n"
    )
    package = Path(workspace_session.__file__).parent.parent

    subprocess.run([sys.executable, "-c", code, tmp_path], check=True, cwd=package)

    assert mode_of(tmp_path / "a") == directory
    assert mode_of(tmp_path / "a" / "f") == file


def test_reading_the_umask_does_not_change_it():
    before = os.umask(0o077)
    os.umask(before)
    atomic.file_mode.cache_clear()

    atomic.file_mode()

    after = os.umask(before)
    assert after == before


def test_a_file_that_is_replaced_keeps_its_mode(tmp_path):
    path = tmp_path / "memory.json"
    write_atomic(path, b"old", sync=False)
    path.chmod(0o640)

    write_atomic(path, b"new", sync=False)

    assert mode_of(path) == 0o640
