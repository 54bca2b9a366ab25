"""The sample workspace is what its script makes, and a workspace like any other."""

from __future__ import annotations

import shutil

from make_sample import SAMPLE, files_of, made

from workspace_session import Workspace


def test_it_is_made_the_same_to_the_byte():
    assert made() == made() == files_of(SAMPLE)


def test_it_is_a_workspace_without_problems(tmp_path):
    shutil.copytree(SAMPLE, tmp_path / "copy")

    workspace = Workspace(tmp_path / "copy", create=False)

    assert workspace.verify() == []
    assert [(agent.id, agent.user) for agent in workspace.agents()] == [
        ("guide", None), ("researcher", None), ("guide", "anna"),
    ]  # fmt: skip


def test_its_sessions_show_what_they_are_meant_to_show(tmp_path):
    shutil.copytree(SAMPLE, tmp_path / "copy")
    workspace = Workspace(tmp_path / "copy", create=False)

    pumps = workspace.agent("researcher").tree("heat-pumps")
    porto = workspace.agent("guide").tree("porto")

    assert [item.message["role"] for item in pumps.context()] == ["assistant", "user", "assistant"]
    assert set(pumps.leaves()) == {"a1b", "a3"}
    assert pumps.labels() == {"a1b": "cautious answer"}
    assert porto.get("z5").message["parts"][0]["text"].startswith("改去莱罗书店")
    assert {hit.message_id for hit in workspace.search("咖啡")} == {"z5", "z1"}
