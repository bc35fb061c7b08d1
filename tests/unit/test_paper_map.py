"""docs/paper-map.md: every item of the paper has a row, and what the rows name is there."""

from __future__ import annotations

import ast
import pkgutil
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ITEMS = {
    "Definition": range(1, 8),
    "Algorithm": range(1, 6),
    "Example": range(1, 5),
    "Figure": range(1, 18),
    "Table": range(1, 4),
    "Equation": range(1, 17),
    "Lemma": ("4.1",),
    "Theorem": ("4.1", "4.2", "4.3"),
}
"""What the paper has, in its own numbers."""


Row = tuple[str, str, str]


def table_rows(page: Path) -> list[Row]:
    """The rows of the tables of a page that have the columns "code" and "tests"."""
    found, inside = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = tuple(part.strip() for part in line.strip("|").split(" | "))
        if line.endswith("| code | tests |"):
            inside = True
        elif not line.startswith("|"):
            inside = False
        elif inside and not line.startswith("|---"):
            found.append(cells)
    return found  # type: ignore[return-value]


ROWS = table_rows(ROOT / "docs/paper-map.md")


def named_items(text: str) -> set[tuple[str, str]]:
    """The items that a first column names before its colon: "Figure 3", "Figures 10 and 11", "Equations 3 to 6"."""
    items = set()
    pattern = rf"({'|'.join(ITEMS)})s? (\d+(?:\.\d)?(?:(?: and | to )\d+)?)"
    for kind, numbers in re.findall(pattern, text.partition(":")[0]):
        first, word, last = re.fullmatch(r"([\d.]+)(?: (and|to) (\d+))?", numbers).groups()  # type: ignore[union-attr]
        whole = range(int(first), int(last) + 1) if word == "to" else [first, last] if word else [first]
        items |= {(kind, str(number)) for number in whole}
    return items


def test_every_item_of_the_paper_has_a_row() -> None:
    wanted = {(kind, str(number)) for kind, numbers in ITEMS.items() for number in numbers}
    assert set.union(*(named_items(first) for first, _, _ in ROWS)) == wanted


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_a_row_names_code_and_tests_that_exist(row: Row) -> None:
    check_row(row)


def check_row(row: Row) -> None:
    """Whether a row names code and tests, and all of them exist."""
    names, tests = (
        re.findall(r"`((?:wevent|tests)[\w.]+)`", row[1]),
        re.findall(r"`(tests/[\w/]+\.py)::([\w:]+)`", row[2]),
    )
    assert names
    assert tests
    for name in names:
        assert pkgutil.resolve_name(name) is not None
    for file, name in tests:
        assert name in defined(file), f"{file}::{name}"
    assert row[2].count("tests/") == len(tests), "a test is named with its function"


@cache
def defined(file: str) -> set[str]:
    """The tests of a file, those in classes with the class."""
    found = set()
    for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{one.name}" for one in node.body if isinstance(one, ast.FunctionDef)}
    return found


def test_it_would_notice() -> None:
    assert named_items("Figures 10 and 11: x") == {("Figure", "10"), ("Figure", "11")}
    assert named_items("Theorem 4.2, Equations 7 to 9") >= {("Equation", "7"), ("Equation", "8"), ("Equation", "9")}
    assert "test_it_would_notice" in defined("tests/unit/test_paper_map.py")
    assert "test_nothing" not in defined("tests/unit/test_paper_map.py")
