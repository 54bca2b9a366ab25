"""Makes the pictures of the README: what the terminal shows, and what the exported page looks like.

    python tests/make_pictures.py

Both are of the sample workspace. The terminal is drawn by rich, the page by Chromium; without one, only
the terminal is.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path

from browser import Browser, chromium
from make_sample import SAMPLE
from rich.console import CONSOLE_SVG_FORMAT, Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text
from terminal import Terminal

from workspace_session import Workspace
from workspace_session.export import to_html

DOCS = Path(__file__).parent.parent / "docs"
TERMINAL = DOCS / "tree.svg"
PAGE = {False: DOCS / "page.png", True: DOCS / "page-dark.png"}
COMMAND = "workspace-session tree heat-pumps"
COLUMNS = 96

# Nothing is fetched for a picture either: the fonts are those of whoever looks at it.
FORMAT = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
THEME = TerminalTheme(
    (24, 26, 30),
    (222, 219, 212),
    [
        (70, 74, 82), (224, 108, 100), (134, 201, 149), (224, 174, 94),
        (120, 146, 240), (207, 155, 228), (92, 196, 222), (222, 219, 212),
    ],
)  # fmt: skip


def terminal_picture() -> str:
    """What the command shows in a terminal, as SVG."""
    with tempfile.TemporaryDirectory() as directory:
        shutil.copytree(SAMPLE, Path(directory) / "sample")
        terminal = Terminal(Path(directory) / "home")
        shown = terminal.watch(f"cd {directory}/sample && {COMMAND}", columns=COLUMNS)
    with (Path("/dev/null")).open("w") as nowhere:
        console = Console(
            record=True, width=COLUMNS, file=nowhere, force_terminal=True, legacy_windows=False
        )
        console.print(Text(f"$ {COMMAND}"), highlight=False)
        console.print(Text.from_ansi(shown), soft_wrap=True, highlight=False)
        return console.export_svg(
            title="sample_workspace", theme=THEME, code_format=FORMAT, unique_id="tree"
        )


def page_picture(browser: Browser, *, dark: bool) -> bytes:
    """The exported page, as PNG."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        shutil.copytree(SAMPLE, place / "sample")
        with Workspace(place / "sample", create=False) as sample:
            page = to_html(sample.agent("researcher").tree("heat-pumps"))
        (place / "page.html").write_text(page, "utf-8")
        browser.open(place / "page.html", width=1200, height=780, dark=dark)
        browser.run(
            "[...document.querySelectorAll('details.branch')].at(-1).open = true;"
            "scrollTo(0, 330);"
            "new Promise(done => setTimeout(done, 400))"  # what turns or fades has come to rest
        )
        browser.picture(place / "page.png")
        return (place / "page.png").read_bytes()


if __name__ == "__main__":
    TERMINAL.write_text(terminal_picture(), "utf-8")
    program = chromium()
    if program is None:
        sys.exit("there is no Chromium: the pictures of the page stay as they were")
    opened = Browser(program)
    for is_dark, path in PAGE.items():
        path.write_bytes(page_picture(opened, dark=is_dark))
    opened.close()
