"""Syncing clones through a remote, with a real git."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from clones import Clone, another, origin, run

from workspace_session.cli import main
from workspace_session.git import GitFailed, Synced, sync


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture(params=["", "notes"], ids=["at the top", "in a directory"])
def clones(tmp_path, request):
    one = origin(tmp_path, request.param)
    two = another(tmp_path, "two", request.param)  # has no driver and no hooks
    return one, two


def same(*all_clones: Clone) -> None:
    """Every clone has committed the same files, and nothing is wrong with any."""
    trees = {clone.git("rev-parse", "HEAD^{tree}").stdout for clone in all_clones}
    assert len(trees) == 1
    for clone in all_clones:
        assert clone.workspace.verify() == []
        assert clone.git("status", "--porcelain").stdout == ""


def test_what_one_wrote_comes_to_the_other(clones):
    one, two = clones
    one.say("hello")

    went, came = sync(one.workspace), sync(two.workspace)

    assert str(went) == "0 entries came and 2 entries went"
    assert str(came) == "2 entries came and 0 entries went"
    assert two.texts() == ["hello"]
    assert [info.id for info in two.workspace.agent("a").sessions()] == ["s"]
    same(one, two)


def test_two_who_wrote_to_one_session_have_one_tree_with_two_heads(clones):
    one, two = clones
    one.say("base")
    sync(one.workspace)
    sync(two.workspace)
    one.say("here")
    two.say("there")

    sync(one.workspace)
    merged = sync(two.workspace)
    sync(one.workspace)

    assert str(merged) == (
        "1 entry came and 1 entry went; session 's' (agent 'a') now has two heads"
    )
    assert one.texts() == ["base", "here", "there"]
    assert len(one.tree().leaves()) == len(two.tree().leaves()) == 2
    assert one.tree().leaf == two.tree().leaf
    same(one, two)


def test_a_sync_with_nothing_to_do_says_so_and_commits_nothing(clones):
    one, _two = clones
    before = one.git("rev-parse", "HEAD").stdout

    assert str(sync(one.workspace)) == "0 entries came and 0 entries went"
    assert one.git("rev-parse", "HEAD").stdout == before


def test_both_trimmed_and_the_working_set_is_made_anew_in_the_merge(clones):
    one, two = clones
    ids = [one.say(f"{number}" * 200) for number in range(20)]
    sync(one.workspace)
    sync(two.workspace)
    one.tree().compact("first", ids[0], ids[9])
    one.tree().trim()
    two.tree().compact("second", ids[10], ids[15])
    two.tree().trim()

    sync(one.workspace)
    sync(two.workspace)
    sync(one.workspace)

    summaries = [getattr(item, "summary", None) for item in one.tree().context()]
    assert summaries[:2] == ["first", "second"]
    same(one, two)


def test_a_session_deleted_here_and_written_to_there_is_kept(clones):
    one, two = clones
    one.say("base")
    sync(one.workspace)
    sync(two.workspace)
    one.workspace.agent("a").delete("s")
    two.say("more")

    sync(one.workspace)
    sync(two.workspace)
    sync(one.workspace)

    assert one.texts() == two.texts() == ["base", "more"]
    same(one, two)


def test_a_session_written_to_here_and_deleted_there_is_kept(clones):
    one, two = clones
    one.say("base")
    sync(one.workspace)
    sync(two.workspace)
    one.workspace.agent("a").delete("s")
    two.say("more")

    sync(two.workspace)
    sync(one.workspace)
    sync(two.workspace)

    assert one.texts() == two.texts() == ["base", "more"]
    same(one, two)


def test_a_session_deleted_here_and_only_trimmed_there_is_gone(clones):
    one, two = clones
    ids = [one.say(f"{number}" * 200) for number in range(6)]
    one.tree().compact("short", ids[0], ids[1])
    sync(one.workspace)
    sync(two.workspace)
    one.workspace.agent("a").delete("s")
    assert two.tree().trim() > 0

    sync(two.workspace)
    sync(one.workspace)
    sync(two.workspace)

    assert not one.tree().exists()
    assert not two.tree().exists()
    same(one, two)


def test_a_session_forked_and_deleted_is_not_taken_for_a_renamed_one(clones):
    one, two = clones
    last = [one.say(f"{number}" * 50) for number in range(9)][-1]
    sync(one.workspace)
    sync(two.workspace)
    one.tree().fork(last, one.tree("fork"))
    one.workspace.agent("a").delete("s")
    two.say("more")

    sync(one.workspace)
    sync(two.workspace)
    sync(one.workspace)

    assert "more" in one.texts("s")
    assert "more" not in one.texts("fork")
    same(one, two)


def test_a_state_that_both_changed_is_named_and_nothing_is_half_merged(clones):
    one, two = clones
    state = {}
    for clone in clones:
        state[clone] = clone.workspace.agent("a").place.states.document("s", "memory")
    for clone, value in ((one, 1), (two, 2)):
        state[clone].parent.mkdir(parents=True)
        state[clone].write_text(f'{{"version":1,"value":{value}}}\n')
        clone.say("hi", session=f"s{value}")
    sync(one.workspace)

    with pytest.raises(GitFailed, match=r"both sides changed .*memory\.json: merge it by hand"):
        sync(two.workspace)

    assert two.git("status", "--porcelain").stdout == ""
    assert not two.repository.is_undecided()
    assert '"value":2' in state[two].read_text()


def test_somebody_who_is_faster_is_merged_and_nothing_is_forced(clones, monkeypatch):
    one, two = clones
    original = type(one.repository).run
    faster = []

    def run_late(self, *args, **options):
        if "push" in args and self.root == one.root and len(faster) < 3:
            faster.append(two.say(f"faster {len(faster)}", session="t"))
            sync(two.workspace)
        return original(self, *args, **options)

    monkeypatch.setattr(type(one.repository), "run", run_late)
    one.say("slow")

    synced = sync(one.workspace)
    sync(two.workspace)

    assert (synced.came, synced.went) == (4, 2)
    assert one.texts("t") == ["faster 0", "faster 1", "faster 2"]
    same(one, two)


def test_two_who_sync_one_clone_take_turns(tmp_path):
    one = origin(tmp_path)
    one.say("hi")
    done = []

    threads = [
        threading.Thread(target=lambda: done.append(sync(one.workspace).went)) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(done) == [0, 0, 2]


def test_a_remote_that_declines_is_not_asked_again(tmp_path):
    one = origin(tmp_path)
    hook = tmp_path / "origin.git" / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho asked >> asked\nexit 1\n")
    hook.chmod(0o755)
    one.say("hi")

    with pytest.raises(GitFailed, match=r"^git push failed: .*pre-receive hook declined"):
        sync(one.workspace)

    assert (tmp_path / "origin.git" / "asked").read_text() == "asked\n"


def test_changes_elsewhere_in_the_repository_that_a_merge_would_touch_are_named(tmp_path):
    one = origin(tmp_path, "notes")
    (one.directory / "code.py").write_text("x = 1\n")
    one.commit()
    one.git("push", "-q")
    two = another(tmp_path, "two", "notes")
    (one.directory / "code.py").write_text("x = 2\n")
    one.commit()
    sync(one.workspace)
    (two.directory / "code.py").write_text("x = 3\n")

    with pytest.raises(GitFailed, match=r"would be overwritten by merge: code\.py$"):
        sync(two.workspace)

    assert (two.directory / "code.py").read_text() == "x = 3\n"


def test_other_things_in_the_repository_are_not_committed(tmp_path):
    one = origin(tmp_path, "notes")
    (one.directory / "code.py").write_text("x = 1\n")
    one.say("hi")

    sync(one.workspace)

    assert one.git("status", "--porcelain").stdout == "?? code.py\n"


@pytest.mark.parametrize(
    ("prepare", "sentence"),
    [
        (("checkout", "-q", "--detach"), "no branch is checked out (git switch goes to one)"),
        (
            ("rm", "-q", ".gitattributes"),
            "this workspace is not prepared (workspace-session git install does that)",
        ),
        (("remote", "set-url", "origin", "/nowhere"), "git fetch failed: "),
    ],
)
def test_what_is_in_the_way_is_said_in_one_sentence(tmp_path, prepare, sentence):
    one = origin(tmp_path)
    one.git(*prepare)

    with pytest.raises(GitFailed) as failed:
        sync(one.workspace)

    assert str(failed.value).startswith(sentence)
    assert "\n" not in str(failed.value)


def test_without_a_remote_everything_is_committed(tmp_path):
    one = origin(tmp_path)
    one.git("remote", "remove", "origin")
    one.say("hi")

    assert str(sync(one.workspace)) == "committed; there is no remote to sync with"
    assert str(sync(one.workspace)) == "nothing to commit; there is no remote to sync with"


def test_the_first_push_of_a_branch_takes_everything(tmp_path):
    run(tmp_path, "init", "-q", "--bare", "origin.git")
    one = another(tmp_path, "one")
    one.install()
    one.say("hi")

    assert sync(one.workspace) == Synced("origin/main", came=0, went=2, committed=True)


def test_a_user_of_several_parts_and_three_heads_are_told(clones):
    assert str(Synced("r/m", 1, 2, heads={"'s' (agent 'a')": 3})) == (
        "1 entry came and 2 entries went; session 's' (agent 'a') now has 3 heads"
    )


# -- while others write ----------------------------------------------------------------------------

_WRITER = """
import sys
from workspace_session import Workspace
tree = Workspace(sys.argv[1], durability="os").agent("a").tree("s")
number = 0
while sys.stdin.readline():
    for _ in range(5):
        tree.append({"role": "user", "content": f"{sys.argv[2]}-{number}"})
        number += 1
    print(number, flush=True)
"""


def test_live_writers_lose_nothing_while_clones_sync(tmp_path):
    one = origin(tmp_path)
    one.say("base")
    sync(one.workspace)
    two = another(tmp_path, "two")
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(clone.root), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for clone, name in ((one, "one"), (two, "two"))
    ]
    stop = threading.Event()
    written = [0, 0]

    def drive(at):
        while not stop.is_set():
            writers[at].stdin.write("\n")
            writers[at].stdin.flush()
            written[at] = int(writers[at].stdout.readline())
            stop.wait(0.02)

    drivers = [threading.Thread(target=drive, args=(at,)) for at in (0, 1)]
    for thread in drivers:
        thread.start()
    syncs = 0
    while syncs < 4 or min(written) <= 20:  # however slow the machine is
        sync(one.workspace)
        sync(two.workspace)
        syncs += 1
    stop.set()
    for thread in drivers:
        thread.join()
    for writer in writers:
        writer.communicate()
    for clone in (one, two, one):
        sync(clone.workspace)

    wanted = {"base"} | {
        f"{name}-{n}" for at, name in enumerate(("one", "two")) for n in range(written[at])
    }
    assert sorted(wanted) == one.texts() == two.texts()
    same(one, two)


# -- the commands ----------------------------------------------------------------------------------


def command(root: Path, *args: str) -> None:
    main(["-C", str(root), "git", *args], standalone_mode=False)


def test_the_commands_say_what_was_done(tmp_path, capsys):
    one = origin(tmp_path)
    one.say("hi")

    command(one.root, "install")
    command(one.root, "status")
    command(one.root, "sync")

    shown = capsys.readouterr()
    assert shown.out == (
        "branch main, 0 commits ahead of origin/main, 0 behind\n"
        "1 session not committed:\n"
        "  's' (agent 'a')\n"
    )
    assert shown.err == "everything was in place\n0 entries came and 2 entries went\n"


def test_the_commands_print_json(tmp_path, capsys):
    one = origin(tmp_path)

    command(one.root, "status", "--json")
    found = json.loads(capsys.readouterr().out)
    command(one.root, "sync", "--json")
    synced = json.loads(capsys.readouterr().out)

    assert found["branch"] == "main"
    assert found["installed"] == {"ignore": True, "attributes": True, "driver": True, "hooks": True}
    assert synced == {
        "remote": "origin/main",
        "came": 0,
        "went": 0,
        "committed": False,
        "heads": {},
    }


@pytest.mark.parametrize("name", [*sorted(main.commands["git"].commands)])
def test_every_help_ends_in_an_example(name, capsys):
    with pytest.raises(SystemExit):
        main(["git", name, "--help"])

    *_, title, line = capsys.readouterr().out.rstrip().split("\n")
    assert title.strip() == "Example:"
    assert "workspace-session git" in line
