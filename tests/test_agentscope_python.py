"""The adapters for AgentScope 1.x and 2.x, against the real packages in environments of their own.

The tests themselves are in `agentscope_v1/` and `agentscope_v2/`, and run there; here each has its name
and its outcome. The two environments are made side by side the first time they are needed.
"""

from __future__ import annotations

import ast
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from environments import NotInstalled, environment, run_tests

HERE = Path(__file__).parent
SDKS = {
    "v1": ("agentscope==1.0.21", "mcp<2", "sqlalchemy[asyncio]", "tqdm"),
    "v2": ("agentscope==2.0.10",),
}


def suite(version: str) -> Path:
    return HERE / f"agentscope_{version}" / "suite.py"


def names(version: str) -> list[str]:
    """The tests of a suite, found without running it: this environment lacks the SDK."""
    tree = ast.parse(suite(version).read_text("utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [
        node.name
        for node in tree.body
        if isinstance(node, functions) and node.name.startswith("test_")
    ]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory) -> dict[str, Future]:
    """What became of each suite, or why it could not run."""
    reports = tmp_path_factory.mktemp("reports")

    def run(version: str) -> dict[str, str]:
        python = environment(f"agentscope-{version}", *SDKS[version])
        return run_tests(python, suite(version), reports / f"{version}.xml")

    with ThreadPoolExecutor() as pool:
        return {version: pool.submit(run, version) for version in SDKS}


@pytest.mark.parametrize(
    ("version", "name"), [(version, name) for version in SDKS for name in names(version)]
)
def test_with_the_real_package(outcomes, version, name):
    try:
        found = outcomes[version].result()
    except NotInstalled as error:
        pytest.skip(f"AgentScope cannot be installed here: {error}")

    assert found[name] == ""
