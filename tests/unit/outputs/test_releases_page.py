"""The page that describes releases says what the code does: every field, every type, every interval."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.outputs.test_lines import FIELDS
from tests.unit.publisher.test_confidence import ALIKE, MIXED, publish
from wevent import mechanisms
from wevent.core.builtin_mechanisms import BUILT_IN
from wevent.outputs.lines import COLUMNS, FORMAT
from wevent.outputs.parquet_output import FORMAT_KEY
from wevent.publisher.confidence import OUTCOMES

PAGE = (Path(__file__).parents[3] / "docs/reference/releases.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """The rows of the first table under a heading."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[part.strip() for part in line.strip("|").split(" | ")] for line in lines[2:]]


def names(heading: str) -> list[str]:
    return [row[0].strip("` ") for row in rows(heading)]


def test_every_column_and_field_is_described() -> None:
    assert names("A row") == list(COLUMNS)
    assert {row[0].strip("` "): row[1] for row in rows("A row")} == COLUMNS
    assert names("A line") == FIELDS
    assert names("Outcomes") == list(OUTCOMES)


def test_the_version_is_the_one_that_is_written() -> None:
    assert f"format {FORMAT}." in PAGE
    assert f"`{FORMAT_KEY}`" in PAGE


def test_every_mechanism_has_a_row() -> None:
    assert sorted(names("Intervals")) == sorted(mechanisms())


@pytest.mark.parametrize("row", rows("Intervals"), ids=lambda row: row[0])
def test_the_intervals_are_those_of_the_table(row: list[str]) -> None:
    mechanism, fresh, others = row[0].strip("` "), row[1], row[2]
    expected = {"yes": ({True}, {True}), "no": ({False}, {False}), "if all are counted in full": ({True}, {False})}
    for population, which in ((ALIKE, 0), (MIXED, 1)):
        releases = publish(population, mechanism, 120)
        found = {one.interval() is not None for one in releases if one.fresh and _sampled(one) == bool(which)}
        if fresh == "if all are counted in full":
            assert found <= expected[fresh][which]
        else:
            stated = {one.interval() is not None for one in releases if one.fresh}
            assert stated == expected[fresh][which]
        repeats = {one.interval() is not None for one in releases if not one.fresh and one.measured}
        assert repeats <= {others == "yes"}
    assert BUILT_IN[mechanism].name == mechanism


def _sampled(release: object) -> bool:
    charges, threshold = release.publication_charges, release.threshold  # type: ignore[attr-defined]
    return bool((charges < threshold).any())
