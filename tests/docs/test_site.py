"""The documentation as a site: built strictly, complete, with references from the code, and without other hosts."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.docs.links import page_links
from tests.docs.site_building import ROOT, built_site, small_site
from tests.service.browsing import PATIENCE_MS, launch

PAGES = sorted(ROOT.glob("docs/**/*.md"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_site(tmp_path_factory)


def test_it_is_built_and_says_how_to_look_at_it(site: Path) -> None:
    assert (site / "index.html").exists()
    assert ".build/site/index.html" in (ROOT / "Makefile").read_text()
    assert ".build/" in (ROOT / ".gitignore").read_text()


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("cli", "--max-cells-per-user"),
        ("configuration", "max_cells_per_user"),
        ("http", "/v1/events"),
        ("json", "released_elsewhere"),
        ("api", "Publisher(population"),
    ],
)
def test_references_are_generated(site: Path, page: str, shown: str) -> None:
    text = re.sub(r"<[^>]+>", "", (site / f"reference/{page}.html").read_text())
    assert shown in text
    assert "generated:" not in text
    assert ":::" not in text


def test_nothing_is_fetched_from_other_hosts(site: Path) -> None:
    fetched = re.compile(
        r"""<(?:script|img|iframe|link|source|video|audio)\b[^>]*?\b(?:src|href)\s*=\s*["']?((?:https?:)?//[^"'\s>]+)"""
    )
    styles = re.compile(r"""(?:url\(|@import\s+)["']?((?:https?:)?//[^"')]+)""")
    found: list[str] = []
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        found += [address for address in fetched.findall(text) if 'rel="canonical"' not in text[:2000]]
        found += styles.findall(text)
    for sheet in site.rglob("*.css"):
        found += styles.findall(sheet.read_text(encoding="utf-8"))
    assert found == []


def test_every_page_is_on_the_first_one() -> None:
    """Who reads the repository has no menu; results are listed on a first page of their own."""
    firsts = [ROOT / "docs/index.md", ROOT / "docs/results/index.md"]
    linked = {(page.parent / link.partition("#")[0]).resolve() for page in firsts for link in page_links(page)}
    assert {*PAGES} - linked - {*firsts} == set()


def test_every_page_is_in_the_menu_once() -> None:
    menu = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    listed = Counter(re.findall(r"(\S+\.md)$", menu, re.MULTILINE))
    assert [name for name, number in listed.items() if number > 1] == []
    assert {str(page.relative_to(ROOT / "docs")) for page in PAGES} <= {*listed}


def test_every_picture_is_shown_somewhere() -> None:
    shown = {(page.parent / link).resolve() for page in [*PAGES, ROOT / "README.md"] for link in page_links(page)}
    assert {file for file in (ROOT / "docs/images").rglob("*.*") if file.is_file()} - shown == set()


class TestStrictness:
    """It would notice; each of these alone ends a build, since every warning does."""

    def test_what_is_broken(self, tmp_path: Path) -> None:
        links = ["c.md", "b.md#c", "#d", "../x.py", "/b.md"]
        text = "# A\n\n" + "\n".join(f"[x]({link})" for link in links)
        pages = {"index.md": text, "b.md": "# B\n", "unlisted.md": "# C\n"}
        done = small_site(tmp_path, pages, ["index.md", "b.md", "missing.md"])
        assert done.returncode != 0
        assert done.stderr.count("WARNING") == 7
        for words in (
            "link 'c.md', but the target is not found",
            "link 'b.md#c', but the doc 'b.md' does not contain an anchor '#c'",
            "link '#d', but there is no such anchor",
            "link 'project/x.py.md', but the target is not found",
            "absolute link '/b.md'",
            "- unlisted.md",
            "'missing.md' is included in the 'nav' configuration, which is not found",
        ):
            assert words in done.stderr


@pytest.mark.slow
def test_it_opens_from_the_disk_and_is_searched_there(site: Path) -> None:
    with sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_page()
        page.set_default_timeout(PATIENCE_MS)
        asked, failed = [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: failed.append(str(error)))
        page.goto((site / "index.html").as_uri())
        page.locator("input.md-search__input").click()
        page.locator("input.md-search__input").press_sequentially("transition")
        result = page.locator(".md-search-result__item a").first
        expect(result).to_be_visible()
        result.click()
        expect(page.locator("article")).to_contain_text("transition")
        browser.close()
    assert failed == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "about:"))] == []
