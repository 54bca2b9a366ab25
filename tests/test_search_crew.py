"""Workers that read logs beside us: quicker, and never wrong."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from search_contract import said

from workspace_session import Workspace
from workspace_session.search import crew
from workspace_session.search.crew import crew_for
from workspace_session.search.reading import Reading
from workspace_session.search.sources import sources


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.setattr(crew, "_WORTHWHILE", 1)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    with Workspace(tmp_path / "workspace", durability="os", search="sqlite") as opened:
        for number in range(8):
            tree = opened.agent("a").tree(f"s{number}")
            tree.extend([said(f"word s{number} n{n} 東京 é") for n in range(20)])
        yield opened


def test_workers_make_of_a_log_what_we_would(workspace):
    found = list(sources(workspace.layout, ()))

    with crew_for(found) as at_work:
        for source in found:
            change = at_work.result(source.log)
            here = Reading.on(source, None).piece(1000, lambda log, ids: {})
            assert change == here


def test_a_search_with_workers_finds_everything(workspace):
    assert workspace.search("word", 1).total == 160
    assert workspace.search("s3 n7", None).total == 1


def test_a_log_that_no_worker_has_begun_is_left_to_us(workspace):
    found = list(sources(workspace.layout, ()))

    with crew_for(found) as at_work:
        left = [source for source in reversed(found) if at_work.leaves(source.log)]
        theirs = [source for source in found if source not in left]
        assert [at_work.result(source.log) for source in left] == [None] * len(left)
        assert all(at_work.result(source.log) is not None for source in theirs)


@pytest.mark.parametrize(
    "program",
    ["import sys; sys.exit(3)", "print('no answer'); import time; time.sleep(0.1)", "no program"],
)
def test_workers_that_fail_only_cost_time(workspace, monkeypatch, program, capfd):
    monkeypatch.setattr(crew, "_PROGRAM", program)

    assert workspace.search("word", 1).total == 160


def test_workers_end_with_their_work(workspace, monkeypatch):
    started = []
    popen = subprocess.Popen

    def remembered(*arguments, **options):
        started.append(popen(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", remembered)

    workspace.search("word")

    assert len(started) == 2
    assert [process.returncode for process in started] == [0, 0]


def test_there_are_no_workers_for_little_work_for_one_processor_or_without_python(
    workspace, monkeypatch
):
    found = list(sources(workspace.layout, ()))
    for module, name, value in (
        (crew, "_WORTHWHILE", 1 << 30),
        (os, "cpu_count", lambda: 1),
        (sys, "executable", ""),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            with crew_for(found) as at_work:
                assert at_work.result(found[0].log) is None
