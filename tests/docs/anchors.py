"""Where links into pages lead: the anchors that a repository's pages have, and the site with them."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

_READER = MarkdownIt("commonmark").enable("table")


def heading_anchor(text: str) -> str:
    """The anchor of a heading: lower case, blanks as hyphens, nothing but letters, digits, hyphens and underscores.

    >>> heading_anchor("The assumption behind κ"), heading_anchor("`users add|set`")
    ('the-assumption-behind-κ', 'users-addset')
    """
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


@cache
def page_anchors(page: Path) -> list[str]:
    """Of every heading of a page, in order."""
    tokens = _READER.parse(page.read_text(encoding="utf-8"))
    return [heading_anchor(_shown(inner)) for inner in _headings(tokens)]


def heading_above(page: Path, line: int) -> tuple[str, str]:
    """The last heading before a line: its text and its anchor."""
    tokens = _READER.parse(page.read_text(encoding="utf-8"))
    texts = [_shown(inner) for inner in _headings(tokens) if inner.map is not None and inner.map[0] < line]
    return texts[-1], heading_anchor(texts[-1])


def page_links(page: Path) -> list[str]:
    """Every link and picture of a page; none of those that only look like one, in code."""
    found = []
    for token in _READER.parse(page.read_text(encoding="utf-8")):
        for part in token.children or ():
            address = part.attrs.get("href") or part.attrs.get("src")
            if address:
                found.append(unquote(str(address)))
    return found


def _headings(tokens: list[Token]) -> list[Token]:
    return [after for before, after in pairwise(tokens) if before.type == "heading_open"]


def _shown(inline: Token) -> str:
    return "".join(part.content for part in inline.children or () if part.type in ("text", "code_inline"))
