"""Prose: what a message says, as HTML that can do nothing.

Models write Markdown, so what they say is set as such; what people typed stays as they typed it. No HTML
of theirs passes, no picture is fetched, and a link leads to a page or an address for mail or is text.
"""

from __future__ import annotations

import re
from collections.abc import MutableMapping, Sequence
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from workspace_session.export.parts import inert

LONGEST_MARKDOWN = 50_000  # characters; beyond, a text that means harm could take minutes
_SAFE_LINK = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
_DEEPEST_HEADING = 6
_HEADINGS_ABOVE = 2  # of the page itself


class _Markdown(MarkdownIt):
    """CommonMark with tables, without HTML and without pictures."""

    def __init__(self) -> None:
        super().__init__("commonmark", {"html": False}, renderer_cls=_Renderer)
        self.enable(["table", "strikethrough"])
        self.disable("image")

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the library's name
        return _SAFE_LINK.match(url) is not None


class _Renderer(RendererHTML):
    """Headings below those of the page, links that tell nobody where they were, no styles."""

    def renderToken(  # noqa: N802 - the library's name
        self,
        tokens: Sequence[Token],
        idx: int,
        options: OptionsDict,
        env: MutableMapping[str, Any],
    ) -> str:
        token = tokens[idx]
        match token.type:
            case "heading_open" | "heading_close":
                level = min(int(token.tag[1:]) + _HEADINGS_ABOVE, _DEEPEST_HEADING)
                token.tag = f"h{level}"
            case "link_open":
                token.attrSet("rel", "noopener noreferrer nofollow")
            case "th_open" | "td_open" if style := str(token.attrs.pop("style", "")):
                token.attrSet("class", f"to-{style.rpartition(':')[2]}")  # left, right or center
        return super().renderToken(tokens, idx, options, env)


_markdown = _Markdown()


def prose(text: str) -> str:
    """A text as Markdown."""
    if len(text) > LONGEST_MARKDOWN:
        return verbatim(text)
    rendered: str = _markdown.render(inert(text))
    return f'<div class="text" dir="auto" lang="">{rendered.strip()}</div>'


def verbatim(text: str) -> str:
    """A text as it was typed."""
    return f'<div class="text typed" dir="auto" lang="">{safe(text)}</div>'


def safe(text: str) -> str:
    """A text for any place in a page: in an element or in an attribute with quotation marks."""
    return escape(inert(text))
