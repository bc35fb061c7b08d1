"""Documentation does not point at what is not there."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_named_tests_exist(page: Path) -> None:
    text = page.read_text()
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    missing = [link for link in links if link and not (page.parent / link).exists()]
    missing += [name for name in re.findall(r"tests/[\w/]+\.py", text) if not (ROOT / name).exists()]
    assert missing == []


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/**/*.md")), ids=lambda page: str(page.relative_to(ROOT)))
def test_named_modules_and_names_exist(page: Path) -> None:
    named = set(re.findall(r"`(wevent(?:\.\w+)+)`", page.read_text())) - {"wevent.toml"}
    missing = []
    for name in sorted(named):
        try:
            pkgutil.resolve_name(name)
        except (ImportError, AttributeError):
            missing.append(name)
    assert missing == []


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/**/*.md")), ids=lambda page: str(page.relative_to(ROOT)))
def test_named_files_of_code_exist(page: Path) -> None:
    """`core/step.py` is a file of the package, `tests/…` and `benchmarks/…` one of the repository."""
    places = (ROOT, ROOT / "src/wevent")
    named = set(re.findall(r"`((?:\w+/)+\w+\.py)`", page.read_text()))
    assert [name for name in sorted(named) if not any((place / name).exists() for place in places)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_import_public_names_only(page: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    imports = [line for block in blocks for line in block.splitlines() if re.match(r"\s*(from|import) wevent\.", line)]
    public = ("wevent.client ", "wevent.experiments ", "wevent.checks ", "wevent.spark", "wevent.errors ")
    assert [line for line in imports if not line.split(None, 1)[1].startswith(public)] == []
