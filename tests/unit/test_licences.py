"""docs/reference/licences.md names every package that wevent asks for."""

from __future__ import annotations

import re

from tests.support.licences import TARGET, direct, page


def listed(text: str) -> dict[str, str]:
    rows = re.findall(r"^\| ([a-z0-9-]+) \| (.*?) \|", text, re.MULTILINE)
    return {name: licence for name, licence in rows if name != "package"}


def test_every_package_of_the_project_is_listed_with_its_licence() -> None:
    found = listed(TARGET.read_text(encoding="utf-8"))
    assert direct() - {*found} == set(), "run python -m tests.support.licences"
    assert all(found.values())


def test_the_page_can_be_made_from_what_is_installed() -> None:
    """Whatever versions: the packages that are asked for are the same."""
    made, kept = listed(page()), listed(TARGET.read_text(encoding="utf-8"))
    assert {name for name in made if name in direct()} == {name for name in kept if name in direct()}
