"""Sessions, written down for other readers: Markdown, JSON lines, one HTML page.

Each form is a function of one session as it is at one moment: the same entries give the same bytes.
"""

from workspace_session.export.html import to_html
from workspace_session.export.jsonl import What, to_jsonl
from workspace_session.export.markdown import to_markdown

__all__ = ["What", "to_html", "to_jsonl", "to_markdown"]
