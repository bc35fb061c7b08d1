"""Pages of the repository that lie outside docs/, such as the changelog, as pages of the site; a hook of mkdocs.

What mkdocs.yml lists under `project/` is taken from the repository: `project/CHANGELOG.md` is CHANGELOG.md, and
`project/benchmarks/endless.py.md` shows a file that is no page. Links are written for whoever reads the files in the
repository; those that cross the border of docs/ are turned here, so that they work on the site, too.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_LINK = re.compile(r"(!?\[(?:[^\]\[]|\[[^\]]*\])*\]\()([^)\s]+)(\))")
_FENCE = re.compile(r"^ *(```|~~~)")
_CODE = re.compile(r"(`+)(?:(?!\1).)+?\1")
_PLACE = "project/"
_LANGUAGES = {".py": "python", ".cff": "yaml"}
_ROOT = Path(__file__).parents[2]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Take the listed files of the repository among the pages."""
    for listed in _listed(config.nav):
        if not listed.startswith(_PLACE):
            continue
        source = _ROOT / _in_repository(listed)
        if not source.exists():  # mkdocs says so
            continue
        if source.suffix == ".md":
            files.append(File.generated(config, listed, abs_src_path=str(source)))
        else:
            name, language = source.relative_to(_ROOT).as_posix(), _LANGUAGES.get(source.suffix, "text")
            text = source.read_text(encoding="utf-8")
            files.append(File.generated(config, listed, content=f"# {name}\n\n```{language}\n{text}```\n"))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn the links of a page that cross the border of docs/."""
    here = page.file.src_uri
    lines, fence = [], ""
    for line in markdown.split("\n"):
        begins = _FENCE.match(line)
        if begins and (not fence or begins[1] == fence):
            fence = "" if fence else begins[1]
        lines.append(line if fence else _turned(line, here))
    return "\n".join(lines)


def _turned(line: str, here: str) -> str:
    """The line with its links turned; code is left as it is."""
    if line.startswith("|"):  # in a table a bar in code is written \\|, which this reader of tables would show as it is
        line = _CODE.sub(lambda match: match[0].replace("\\|", "|"), line)
    code = [match.span() for match in _CODE.finditer(line)]

    def turn(match: re.Match[str]) -> str:
        if any(start <= match.start() < end for start, end in code):
            return match[0]
        return match[1] + turned_link(match[2], here) + match[3]

    return _LINK.sub(turn, line)


def turned_link(link: str, here: str) -> str:
    """A link of the page `here` of the site, as it has to be written there."""
    target, hash_sign, anchor = link.partition("#")
    if not target or target.startswith(("/", "mailto:")) or "://" in target:
        return link
    found = posixpath.normpath(posixpath.join(posixpath.dirname(_in_repository(here)), target))
    there = found.removeprefix("docs/") if found.startswith("docs/") else _on_site(found)
    return posixpath.relpath(there, posixpath.dirname(here) or ".") + hash_sign + anchor


def _in_repository(page: str) -> str:
    """Where a page of the site is in the repository."""
    if not page.startswith(_PLACE):
        return f"docs/{page}"
    plain = page.removeprefix(_PLACE)
    return plain if (_ROOT / plain).exists() else plain.removesuffix(".md")


def _on_site(name: str) -> str:
    """Where a file outside docs/ is on the site."""
    return _PLACE + (name if name.endswith(".md") else f"{name}.md")


def _listed(nav: Any) -> Iterator[str]:
    """Every page that mkdocs.yml lists."""
    if isinstance(nav, str):
        yield nav
    for entry in nav if isinstance(nav, list) else nav.values() if isinstance(nav, dict) else ():
        yield from _listed(entry)
