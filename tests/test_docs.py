"""The pages in `docs/` tell the truth: their examples are run, and print what the pages show.

For those who write pages:

- A fenced block `python` is run. Top-level `await` is allowed, as in `python -m asyncio`.
- A fenced block `output` shows all that was printed since the last one, to the letter. What is
  printed and not shown fails as well. Blocks of any other language are left alone.
- A section, from one `## ` heading to the next, is one program: its blocks run in order and share
  names, an event loop and a working directory that is empty at first. Sections share nothing, so
  that a reader may start at any of them.
"""

from __future__ import annotations

import ast
import asyncio
import io
import re
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from postgres_server import new_database
from psycopg.conninfo import conninfo_to_dict

import workspace_session
from workspace_session import Session, SessionError, SessionManager

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(DOCS.glob("*.md"))
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
SESSION_API = (DOCS / "session-api.md").read_text(encoding="utf-8")


@dataclass
class Block:
    """A fenced block; `line` is that of its first line in the page, counted from 0."""

    language: str
    line: int
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(line + "\n" for line in self.lines)


@dataclass
class Section:
    """What stands below one heading."""

    page: Path
    heading: str
    blocks: list[Block] = field(default_factory=list)


def sections(page: Path) -> list[Section]:
    """The sections of a page that have something to run."""
    found, block = [Section(page, "")], None
    for number, line in enumerate(page.read_text(encoding="utf-8").split("\n")):
        if block is not None:
            if line == "```":
                block = None
            else:
                block.lines.append(line)
        elif line.startswith("```"):
            block = Block(line[3:].strip(), number + 1)
            found[-1].blocks.append(block)
        elif line.startswith("## "):
            found.append(Section(page, line[3:]))
    return [one for one in found if any(block.language == "python" for block in one.blocks)]


def run(section: Section) -> None:
    """Run the blocks of a section and compare what they print."""
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = io.StringIO()
    with asyncio.Runner() as runner:
        for block in section.blocks:
            if block.language == "python":
                check_shown(section, block, printed, "")
                with redirect_stdout(printed):
                    execute(block, section.page, names, runner)
            elif block.language == "output":
                check_shown(section, block, printed, block.text)
                printed = io.StringIO()
    assert printed.getvalue() == "", f"{section.page.name}, {section.heading}: not shown"


def check_shown(section: Section, block: Block, printed: io.StringIO, shown: str) -> None:
    """A page shows what was printed before the next block is run."""
    where = f"{section.page.name}:{block.line}"
    assert printed.getvalue() == shown, f"{where} shows something else than was printed"


def execute(block: Block, page: Path, names: dict[str, Any], runner: asyncio.Runner) -> None:
    """Run one block; empty lines before it make the line numbers of a traceback those of the page."""
    source = "\n" * block.line + block.text
    code = compile(source, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    awaitable = eval(code, names)
    if awaitable is not None:  # a block without `await` runs outside the loop, and may start one
        runner.run(awaitable)


@pytest.fixture
def database_of_the_environment(server, monkeypatch):
    """A database without tables, where programs find one that are not told of any."""
    with new_database(server) as address:
        for name, value in conninfo_to_dict(address).items():
            monkeypatch.setenv({"dbname": "PGDATABASE"}.get(name, f"PG{name.upper()}"), str(value))
        yield


def examples(*, of_postgres):
    """The sections of the page on Postgres, or of all others."""
    return [
        pytest.param(section, id=f"{page.name}: {section.heading}")
        for page in PAGES
        for section in sections(page)
        if (page.name == "postgres.md") is of_postgres
    ]


@pytest.mark.parametrize("section", examples(of_postgres=False))
def test_the_examples_of_a_section_run_and_print_what_is_shown(section, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    run(section)


@pytest.mark.parametrize("section", examples(of_postgres=True))
@pytest.mark.usefixtures("database_of_the_environment")
def test_the_examples_on_postgres_run_and_print_what_is_shown(section, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    run(section)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_and_headings_lead_somewhere(page):
    text = FENCED.sub("", page.read_text(encoding="utf-8"))  # in code, `](` is no link
    anchors = {anchor(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}

    for path, wanted in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", text):
        assert path == "" or (page.parent / path).exists(), path
        assert path != "" or wanted in anchors, wanted


def anchor(heading: str) -> str:
    """A heading as GitHub names it in links."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("kind", [Session, SessionManager], ids=lambda kind: kind.__name__)
def test_every_method_is_on_the_page_of_the_session_api(kind):
    methods = {name for name in dir(kind) if not name.startswith("_")}

    hidden = {"is_deleted"}  # public to the manager only
    missing = {name for name in methods - hidden if not re.search(rf"\b{name}\b", SESSION_API)}
    assert missing == set()


def test_every_error_of_sessions_is_on_the_page_of_the_session_api():
    public = vars(workspace_session).items()
    errors = {
        name for name, one in public if isinstance(one, type) and issubclass(one, SessionError)
    }

    assert {name for name in errors if f"`{name}`" not in SESSION_API} == set()


# -- of the machinery itself -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ("```python\nprint(1)\n```\n```output\n2\n```\n", "something else"),
        ("```python\nprint(1)\n```\n", "not shown"),
        ("```python\nprint(1)\n```\n```python\npass\n```\n", "something else"),
        ("```python\npass\n```\n```output\n1\n```\n", "something else"),
    ],
)
def test_a_page_that_shows_other_output_is_found(tmp_path, page, complaint):
    (tmp_path / "page.md").write_text(page)
    (section,) = sections(tmp_path / "page.md")

    with pytest.raises(AssertionError, match=complaint):
        run(section)


def test_blocks_share_names_and_a_loop_and_sections_do_not(tmp_path):
    (tmp_path / "page.md").write_text(
        "## One\n```python\nimport asyncio\nlock = asyncio.Lock()\nawait lock.acquire()\n```\n"
        "```python\nprint(lock.locked(), asyncio.get_running_loop() is not None)\n"
        "await asyncio.sleep(0)\n```\n```output\nTrue True\n```\n"
        "## Two\n```python\nprint('lock' in globals())\n```\n```output\nFalse\n```\n"
    )

    for section in sections(tmp_path / "page.md"):
        run(section)
