"""Links of a page."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from markdown_it import MarkdownIt

_READER = MarkdownIt("commonmark").enable("table")


def page_links(page: Path) -> list[str]:
    """Return the target of every link and picture of a page, code excluded."""
    parts = [part for token in _READER.parse(page.read_text(encoding="utf-8")) for part in token.children or ()]
    targets = [part.attrs.get("href") or part.attrs.get("src") for part in parts]
    return [unquote(str(target)) for target in targets if target]
