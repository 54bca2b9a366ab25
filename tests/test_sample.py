"""The sample workspace is what its script makes, and a workspace like any other."""

from __future__ import annotations

import shutil

import pytest
from make_sample import SAMPLE, files_of, made
from terminal import Terminal

from workspace_session import Workspace


@pytest.fixture
def sample(tmp_path):
    """The sample workspace, where nothing that is derived from it lands in the repository."""
    shutil.copytree(SAMPLE, tmp_path / "sample_workspace")
    with Workspace(tmp_path / "sample_workspace", create=False) as opened:
        yield opened


def test_it_is_made_the_same_to_the_byte():
    assert made() == made() == files_of(SAMPLE)


def test_it_is_a_workspace_without_problems(sample):
    assert sample.verify() == []
    assert [(agent.id, agent.user, agent.session_ids()) for agent in sample.agents()] == [
        ("guide", None, ["packing", "porto", "porto-rain"]),
        ("researcher", None, ["heat-pumps", "noise-survey"]),
        ("guide", "anna", ["lisbon"]),
    ]


def test_its_long_session_has_branches_labels_tools_and_a_summary(sample):
    pumps = sample.agent("researcher").tree("heat-pumps")

    assert len(pumps.leaves()) == 3
    assert set(pumps.labels().values()) == {"more careful", "noise at the window", "attic first"}
    assert [item.type for item in pumps.context()] == ["compaction", *["message"] * 5]
    assert pumps.info().input_tokens == 5120 + 9480 + 3312
    assert pumps.info().model == "example-large"


def test_its_chinese_session_has_an_update_a_deletion_and_a_fork(sample):
    guide = sample.agent("guide")
    porto, fork = guide.tree("porto"), guide.tree("porto-rain")

    kinds = {entry.type for entry in porto.log()}
    assert {"update", "delete", "compaction", "leaf", "label", "info", "usage"} <= kinds
    assert "那就整天在室内" in porto.path()[5].message["content"]
    assert fork.header().parent_session == "porto"
    assert [entry.id for entry in fork.path()[:4]] == [entry.id for entry in porto.path()[:4]]


def test_a_tool_call_of_the_session_that_was_stopped_is_unanswered(sample):
    survey = sample.agent("researcher").tree("noise-survey")

    assert survey.info().dangling_tool_calls == ("toolu_02",)
    assert survey.info().end_reason == "interrupted"


def test_words_of_both_languages_are_found_in_it_and_users_stay_apart(sample):
    assert {hit.session_id for hit in sample.search("咖啡")} == {"porto", "porto-rain"}
    assert {hit.session_id for hit in sample.search("concrete plinth")} == {"heat-pumps"}
    assert [hit.session_id for hit in sample.search("电车", user="anna")] == ["lisbon"]
    assert not sample.search("电车")


def test_its_agents_have_state(sample):
    assert sample.agent("guide").state.list_keys("porto") == ["bookings", "memory"]
    assert sample.agent("guide", user="anna").state.list_keys("lisbon") == ["memory"]
    assert len(sample.agent("researcher").state.get_list("heat-pumps", "sources")) == 2


def test_it_is_ready_for_git(sample, tmp_path):
    terminal = Terminal(tmp_path / "home")
    line = f"cd {sample.root} && git init -q && workspace-session git install"

    code, _out, talk = terminal.run(line)

    assert code == 0
    assert "merge.union.driver" in talk
    assert ".gitignore" not in talk
    assert ".gitattributes" not in talk
