"""The files of the pages: nothing inline, nothing from elsewhere, the colours of all other pictures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from plotly.colors import sequential

import wevent.service
from wevent.plotting import style

PAGES = Path(wevent.service.__file__).parent / "pages"
HTML = sorted(PAGES.glob("*.html"))
SCRIPTS = sorted(PAGES.glob("*.js"))
STYLES = sorted(PAGES.glob("*.css"))


def imported(script: Path) -> set[str]:
    """All modules that a script needs, and those that they need."""
    found: set[str] = set()
    waiting = [script.name]
    while waiting:
        text = (PAGES / waiting.pop()).read_text(encoding="utf-8")
        new = {name for name in re.findall(r'from "\./([\w.]+)"', text) if name not in found}
        found |= new
        waiting += new
    return found


def test_they_are_installed() -> None:
    assert {page.name for page in HTML} == {"index.html", "choose.html", "admin.html"}
    assert SCRIPTS
    assert STYLES
    assert (PAGES / "icon.svg").is_file()


@pytest.mark.parametrize("page", HTML, ids=lambda page: page.name)
def test_nothing_is_inline_or_from_elsewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|javascript:", text)
    assert not re.search(r"(?:src|href)=\"(?!/|#)", text)
    assert not re.search(r"https?:|[\"' ]//", text)


@pytest.mark.parametrize("page", HTML, ids=lambda page: page.name)
def test_what_a_page_needs_is_there_and_fetched_at_once(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"/static/([\w.]+)", text):
        assert (PAGES / name).is_file(), name
    entry = re.search(r'<script type="module" src="/static/([\w.]+)">', text)
    assert entry is not None
    preloaded = set(re.findall(r'<link rel="modulepreload" href="/static/([\w.]+)">', text))
    assert preloaded == imported(PAGES / entry[1])


@pytest.mark.parametrize("file", [*SCRIPTS, *STYLES], ids=lambda file: file.name)
def test_nothing_is_fetched_from_elsewhere_or_read_as_html(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert not re.search(r"https?://|@import|url\(", text)
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|localStorage", text
    )
    assert 'setAttribute("style"' not in text


def test_every_script_is_used() -> None:
    entries = {"live.js", "choose.js", "admin.js"}
    assert set.union(entries, *(imported(PAGES / entry) for entry in entries)) == {script.name for script in SCRIPTS}


def test_mechanisms_and_values_have_their_colours() -> None:
    text = (PAGES / "looks.js").read_text(encoding="utf-8")
    block = re.search(r"LOOKS = \{(.*?)\}", text, re.DOTALL)
    assert block is not None
    assert dict(re.findall(r'(\w+): "(#\w+)"', block[1])) == {name: look.colour for name, look in style.LOOKS.items()}
    assert re.findall(r'"(#[0-9a-f]{6})"', text.split("LADDER = ")[1].split("]")[0]) == sequential.Cividis
    others = re.findall(r'"(#\w+)"', text.split("OTHERS = ")[1].split("]")[0])
    assert tuple(others) == style._OTHERS
    scale = (PAGES / "live.css").read_text(encoding="utf-8").split(".scale-colours {")[1].split("}")[0]
    assert re.findall(r"#[0-9a-f]{6}", scale) == sequential.Cividis


def test_modules_are_small() -> None:
    sizes = {script.name: len(script.read_text(encoding="utf-8").splitlines()) for script in SCRIPTS}
    assert max(sizes.values()) <= 400, sizes
