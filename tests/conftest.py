"""What the tests share: a workspace in a temporary directory, and how long Hypothesis may look."""

from __future__ import annotations

import logging
import os

import leftovers
import pytest
from hypothesis import HealthCheck, settings
from postgres_server import connection, dsn, fresh_name, server, shared_connection  # noqa: F401 - fixtures

from workspace_session import Workspace

pytest.register_assert_rewrite("contracts", "logs", "naive", "session_contract", "search_contract")

_quiet = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture)
settings.register_profile(
    "quick",
    deadline=None,
    max_examples=60,
    stateful_step_count=30,
    suppress_health_check=_quiet,
)
settings.register_profile(
    "deep", deadline=None, max_examples=3000, stateful_step_count=60, suppress_health_check=_quiet
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_configure():
    leftovers.adopt_orphans()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    """A worker has ended, perhaps out of time: what it had started is ours now."""
    leftovers.kill(list(leftovers.children()))


@pytest.fixture(autouse=True)
def no_process_left():
    with leftovers.none_left():
        yield


@pytest.fixture(autouse=True)
def log_level():
    """A test that quietens our logger does so for itself alone."""
    logger = logging.getLogger("workspace_session")
    before = logger.level
    yield
    logger.setLevel(before)


@pytest.fixture
def workspace(tmp_path):
    """A workspace that leaves syncing to the kernel: the tests kill processes, not machines."""
    with Workspace(tmp_path / "workspace", durability="os") as opened:
        yield opened


@pytest.fixture
def agent(workspace):
    return workspace.agent("a")


@pytest.fixture
def tree(agent):
    return agent.tree("s")


@pytest.fixture
def check_clean(workspace):
    """Ends a storage test: nothing in the workspace is broken, and it can be read anew."""

    def check() -> None:
        assert [str(problem) for problem in workspace.verify()] == []
        with Workspace(workspace.root, durability="os", create=False) as reopened:
            for agent in reopened.agents():
                for info in agent.sessions():
                    agent.tree(info.id).context()
            assert reopened.verify() == []

    return check


@pytest.fixture
def root(tmp_path, monkeypatch):
    """An empty workspace, which is also the current directory."""
    monkeypatch.delenv("WORKSPACE_SESSION_ROOT", raising=False)
    Workspace(tmp_path / "ws").close()
    monkeypatch.chdir(tmp_path / "ws")
    return tmp_path / "ws"
