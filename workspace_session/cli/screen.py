"""Where standard output goes: lines cut and wrapped to a terminal, in colour there and nowhere else.

A pipe has no edge: lines that go there are neither cut nor wrapped. Widths are counted in terminal
cells, so that scripts with wide characters line up too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest

from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style
from rich.text import Text

from workspace_session.cli.render import fit, inert, width_of

_TAB = "    "
_GAP = "  "
_LEAST = 10  # no column gets narrower than this to make room for another


class Screen:
    """Standard output: how wide it is (None: a pipe, no limit), and whether it shows colours."""

    def __init__(self) -> None:
        self._console = Console()
        colours = self._console.color_system is not None and not self._console.no_color
        self._colours = ColorSystem.STANDARD if colours else None
        self.width = self._console.width if self._console.is_terminal else None

    def paint(self, text: str, style: str) -> str:
        """The text in a style, if there are colours."""
        if self._colours is None or not text:
            return text
        return Style.parse(style).render(text, color_system=self._colours)

    def fitted(self, texts: Sequence[str], taken: int) -> list[str]:
        """Texts that follow each other, cut to what a line has left when so many cells are taken."""
        room = None if self.width is None else max(self.width - taken, 0)
        shown = []
        for text in texts:
            shown.append(fit(text, room) if room != 0 else "")
            room = None if room is None else max(room - width_of(shown[-1]), 0)
        return shown

    # -- running text ------------------------------------------------------------------------------

    def wrap(self, text: str, *, indent: int) -> list[str]:
        """The lines of a text, harmless, indented, and none of them wider than the screen."""
        lines = (inert(line) for line in text.replace("\r\n", "\n").replace("\t", _TAB).split("\n"))
        if self.width is not None:
            width = max(self.width - indent, 1)
            lines = (part for line in list(lines) for part in self._folded(line, width))
        return [f"{' ' * indent}{line}".rstrip() for line in lines]

    def _folded(self, line: str, width: int) -> list[str]:
        if width_of(line) <= width:
            return [line]
        return [part.plain.rstrip() for part in Text(line).wrap(self._console, width)]

    # -- tables ------------------------------------------------------------------------------------

    def table(
        self,
        headings: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        fixed: Collection[str] = (),
        wrap: bool = False,
    ) -> Iterator[str]:
        """The lines of a table. What is too wide is cut, or wrapped, in `fixed` columns last."""
        cells = [[inert(cell) for cell in row] for row in rows]
        first = [index for index, name in enumerate(headings) if name not in fixed]
        widths = self._widths([headings, *cells], first)
        yield self.paint(_joined(headings, widths), "bold")
        for row in cells:
            columns = [
                self._folded(cell, width) if wrap else [fit(cell, width)]
                for cell, width in zip(row, widths, strict=True)
            ]
            for parts in zip_longest(*columns, fillvalue=""):
                yield _joined(parts, widths)

    def _widths(self, rows: Sequence[Sequence[str]], first: Sequence[int]) -> list[int]:
        """The natural widths; on a terminal the widest columns give way until all of them fit."""
        widths = [max(map(width_of, column)) for column in zip(*rows, strict=True)]
        if self.width is not None:
            room = self.width - len(_GAP) * (len(widths) - 1)
            for columns in (first, range(len(widths))):
                while sum(widths) > room and max(widths[one] for one in columns) > _LEAST:
                    widths[max(columns, key=widths.__getitem__)] -= 1
        return widths


def _joined(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        cell + " " * (width - width_of(cell)) for cell, width in zip(cells, widths, strict=True)
    )
    return _GAP.join(padded).rstrip()
