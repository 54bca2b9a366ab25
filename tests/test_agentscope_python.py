"""The adapters for AgentScope 1.x and 2.x, against the real packages in environments of their own.

The tests are in `agentscope_v1/` and `agentscope_v2/`, and run there, each suite as one test here.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from environments import NotInstalled, environment, run_tests

SDKS = {
    "v1": ("agentscope==1.0.21", "mcp<2", "sqlalchemy[asyncio]", "tqdm"),
    "v2": ("agentscope==2.0.10",),
}


@pytest.mark.timeout(900)  # the first time there is much to install
@pytest.mark.parametrize("version", SDKS)
def test_all_is_well_with_the_real_package(version):
    try:
        python = environment(f"agentscope-{version}", *SDKS[version])
    except NotInstalled as error:
        pytest.skip(f"AgentScope cannot be installed here: {error}")

    done = run_tests(python, Path(__file__).parent / f"agentscope_{version}" / "suite.py")

    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
