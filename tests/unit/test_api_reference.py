"""docs/reference/api-names.md knows every public name."""

from __future__ import annotations

import re

from tests.support.api_reference import MODULES, TARGET, page, public_names, title_of


def test_the_reference_is_made_from_the_code() -> None:
    assert TARGET.read_text(encoding="utf-8") == page(), "run python -m tests.support.api_reference"


def test_every_public_name_is_in_it() -> None:
    parts = re.split(r"^## `([\w.]+)`$", TARGET.read_text(encoding="utf-8"), flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert tuple(sections) == MODULES
    for module, name in public_names():
        described = f"### `{title_of(module, name)}`\n" in sections[module]
        again = f"`{name}`" in sections[module].partition("Also here")[2]
        assert described or again or f"{module}.{name}" in MODULES, (module, name)


def test_everything_in_it_is_explained() -> None:
    """A heading, a call perhaps, and then a sentence."""
    text = TARGET.read_text(encoding="utf-8")
    sections = re.split(r"^#{3,4} `", text, flags=re.MULTILINE)[1:]
    assert len(sections) > 150
    for section in sections:
        plain = re.sub(r"```text\n.*?```", "", section.partition("\n")[2], flags=re.DOTALL).strip()
        assert plain, section.partition("`")[0]
