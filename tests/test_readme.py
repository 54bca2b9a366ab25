"""The README tells the truth: its commands are run, and what they print is what it says."""

from __future__ import annotations

import doctest
import re
import shutil
from pathlib import Path

import pytest
from make_pictures import PAGE, TERMINAL, terminal_picture
from make_sample import SAMPLE
from terminal import Terminal

from workspace_session.cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
END = "--- end of"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def commands() -> list[tuple[str, str]]:
    """The command lines of all console blocks, each with the output that is shown below it."""
    found = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", "".join(blocks("console")), re.MULTILINE)
    return [(line, output) for line, output in found]


def without_chance(text: str) -> str:
    """The text with ids and times replaced by others of the same length."""
    text = re.sub(r"\b[0-9a-f]{33}\b", "i" * 33, text)
    text = re.sub(r"\b[0-9a-f]{8}\b", "i" * 8, text)
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d", "t" * 19, text)
    return re.sub(r"\.\d{6}Z", ".uuuuuuZ", text)


def test_the_commands_print_what_the_readme_shows(tmp_path):
    terminal = Terminal(tmp_path)
    shutil.copytree(SAMPLE, tmp_path / "sample_workspace")
    script = "".join(
        f"{line}\necho '{END}' {number}\n" for number, (line, _) in enumerate(commands())
    )

    _code, out, err = terminal.run(script)

    *printed, rest = re.split(rf"{END} \d+\n", out.replace(str(tmp_path), "/home/you"))
    assert (err, rest) == ("", "")
    is_sample = True  # in which nothing is left to chance
    for (line, expected), actual in zip(commands(), printed, strict=True):
        is_sample = is_sample and " init " not in line
        if not is_sample:
            actual, expected = without_chance(actual), without_chance(expected)
        assert actual == expected, line


def test_the_library_answers_what_the_readme_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (session,) = blocks("pycon")
    test = doctest.DocTestParser().get_doctest(session, {}, "README", "README.md", 0)

    result = doctest.DocTestRunner(verbose=False).run(test)

    assert result.attempted > 5
    assert result.failed == 0


def test_the_picture_of_the_terminal_is_what_the_terminal_shows():
    assert terminal_picture() == TERMINAL.read_text("utf-8"), "tests/make_pictures.py makes it anew"


def test_links_and_pictures_lead_to_files():
    linked = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    shown = re.findall(r'(?:src|srcset)="([^"]+)"', README)

    assert {path.name for path in (TERMINAL, *PAGE.values())} <= {
        Path(one).name for one in linked + shown
    }
    for path in linked + shown:
        assert (ROOT / path).is_file(), path


def test_the_test_command_stands_where_the_ci_looks_for_it():
    found = re.search(r"<!-- tests -->\n```sh\n(.+)\n```\n<!-- /tests -->", README)

    assert found is not None
    assert found[1].startswith("python3 -m venv .venv-test && ")


@pytest.mark.parametrize("name", sorted(main.commands))
def test_every_command_is_in_the_readme(name):
    assert f"`{name}`" in README
