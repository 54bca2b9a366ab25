"""What keeps tests from leaving processes behind is itself tested."""

from __future__ import annotations

import subprocess
import sys

import pytest
from leftovers import children, none_left

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of children")


def test_a_process_that_is_left_running_is_named_and_ended():
    with pytest.raises(AssertionError, match="sleep 54321"), none_left(grace=0.2):
        subprocess.run(["bash", "-c", "setsid sleep 54321 & exit"], check=True)

    assert not any("54321" in command for command in children().values())


def test_one_that_ends_by_itself_is_none():
    with none_left():
        subprocess.run(["bash", "-c", "sleep 0.2 & exit"], check=True)
