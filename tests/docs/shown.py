"""What a reader sees of a page: the same on the site as in the repository."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser
from typing import NamedTuple

from markdown_it import MarkdownIt

_COUNTED = {"li", "tr", "td", "th", "pre", "h1", "h2", "h3", "h4", "h5", "img", "blockquote", "code", "em", "strong"}
_HIDDEN = {"script", "style"}
_EMPTY = {"img", "br", "hr", "input", "meta", "link"}


class Shown(NamedTuple):
    """The words in order, and how often each kind of element stands there."""

    words: list[str]
    elements: Counter[str]


class _Reader(HTMLParser):
    """Reads the content of a page, from `article` on if there is one."""

    def __init__(self, *, whole: bool) -> None:
        super().__init__()
        self.text: list[str] = []
        self.elements: Counter[str] = Counter()
        self._open: list[tuple[str, bool]] = []
        self._inside, self._whole = whole, whole

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "article":
            self._inside = True
        if tag in _EMPTY:
            self.elements[tag] += self._inside and tag in _COUNTED
            return
        classes = dict(attrs).get("class") or ""
        left_out = (
            tag in _HIDDEN or "headerlink" in classes or "md-source" in classes or tag in ("button", "svg", "nav")
        )
        self._open.append((tag, left_out))
        if self._inside and tag in _COUNTED and not any(hidden for _, hidden in self._open):
            self.elements[tag] += 1
        if tag not in ("span", "a", "code", "em", "strong"):
            self.text.append(" ")

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass
        if tag not in ("span", "a", "code", "em", "strong"):
            self.text.append(" ")
        if tag == "article":
            self._inside = self._whole

    def handle_data(self, data: str) -> None:
        if self._inside and not any(hidden for _, hidden in self._open):
            self.text.append(data)


def on_site(html: str) -> Shown:
    """Of a page of the site."""
    return _read(html, whole=False)


def in_repository(markdown: str) -> Shown:
    """Of the same page as CommonMark with tables, which is what repositories show."""
    return _read(MarkdownIt("commonmark").enable("table").render(markdown), whole=True)


def _read(html: str, *, whole: bool) -> Shown:
    reader = _Reader(whole=whole)
    reader.feed(html)
    return Shown(re.sub(r"\s+", " ", "".join(reader.text)).split(), reader.elements)
