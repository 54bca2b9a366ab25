"""The examples for the OpenAI Agents SDK run offline, and print what their page shows."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLES = DOCS / "examples" / "openai-agents"
SHOWN = re.findall(r"^```console\n(.*?)^```$", (DOCS / "openai-agents.md").read_text(), re.M | re.S)


def commands(block: str) -> list[tuple[str, list[str], str]]:
    """The command lines of a block: the program, its arguments, what it prints."""
    found = []
    for part in re.split(r"^\$ python ", block, flags=re.M)[1:]:
        line, _, printed = part.partition("\n")
        name, *arguments = line.split()
        found.append((name, arguments, printed))
    return found


def test_every_example_is_on_the_page():
    shown = {name for block in SHOWN for name, *_ in commands(block)}

    assert shown == {path.name for path in EXAMPLES.glob("*.py")} - {"scripted.py"}


@pytest.mark.parametrize("block", SHOWN, ids=lambda block: commands(block)[0][0])
def test_an_example_prints_what_the_page_shows(block, tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.chdir(tmp_path)
    for name, arguments, printed in commands(block):
        monkeypatch.setattr(sys, "argv", [name, *arguments])

        runpy.run_path(str(EXAMPLES / name), run_name="__main__")

        assert capsys.readouterr().out == printed
