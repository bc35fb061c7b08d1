"""The documentation as a site: built strictly, complete, the same as in the repository, and without anybody else's host."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.docs.anchors import page_anchors, page_links
from tests.docs.shown import in_repository, on_site
from tests.docs.site_building import ROOT, built_site, small_site
from tests.service.browsing import PATIENCE_MS, launch

PAGES = sorted(ROOT.glob("docs/**/*.md"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_site(tmp_path_factory)


def of_site(site: Path, page: Path) -> Path:
    """Where a page of docs/ is on the site."""
    place = site / page.relative_to(ROOT / "docs").with_suffix(".html")
    return place.with_name("index.html") if page.name == "README.md" else place


def test_it_is_built_and_says_how_to_look_at_it(site: Path) -> None:
    assert (site / "index.html").exists()
    assert ".build/site/index.html" in (ROOT / "Makefile").read_text()
    assert ".build/" in (ROOT / ".gitignore").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_site_shows_what_the_repository_shows(page: Path, site: Path) -> None:
    here, there = in_repository(page.read_text(encoding="utf-8")), on_site(of_site(site, page).read_text())
    assert there.words == here.words
    assert there.elements == here.elements


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


@pytest.mark.parametrize("page", sorted([*PAGES, *ROOT.glob("*.md")]), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_into_pages_lead_to_a_heading(page: Path) -> None:
    """In the repository; mkdocs checks those of the site. What stands there twice has another anchor in each."""
    wrong = []
    for link in page_links(page):
        target, _, anchor = link.partition("#")
        if anchor and "://" not in link:
            there = (page.parent / target).resolve() if target else page
            if there.suffix == ".md" and page_anchors(there).count(anchor) != 1:
                wrong.append(link)
    assert wrong == []


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

    def test_what_repositories_show_otherwise(self, tmp_path: Path) -> None:
        """A list without a blank line before it; a bar in the code of a table is no difference."""
        pages = {
            "index.md": "# A\nA list:\n- one\n",
            "b.md": "# B\n\n| a | b |\n|---|---|\n| `x\\|y` | [b](index.md) |\n",
        }
        assert small_site(tmp_path, pages, list(pages)).returncode == 0
        shown = {name: on_site((tmp_path / "site" / name).with_suffix(".html").read_text()) for name in pages}
        assert shown["index.md"] != in_repository(pages["index.md"])
        assert shown["b.md"] == in_repository(pages["b.md"])


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
