"""The same seeds give the same numbers as when the golden files were recorded: nothing changed for anybody."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.golden.runs import JOURNALS, VARIANTS, journal_run, library_run

DATA = Path(__file__).parent / "data"


def golden(file: str) -> Any:
    return json.loads(gzip.decompress((DATA / f"{file}.json.gz").read_bytes()))


def same(now: Any, then: Any, where: str = "") -> None:
    """Whole numbers, words and shapes exactly; other numbers to 1e-9."""
    if isinstance(then, dict):
        assert now.keys() == then.keys(), where
        for key in then:
            same(now[key], then[key], f"{where}.{key}")
    elif isinstance(then, list):
        assert len(now) == len(then), where
        for place, (mine, its) in enumerate(zip(now, then, strict=True)):
            same(mine, its, f"{where}[{place}]")
    elif isinstance(then, float):
        assert now == pytest.approx(then, rel=1e-9, abs=1e-9), where
    else:
        assert type(now) is type(then), where
        assert now == then, where


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_library_publishes_the_same(variant: str) -> None:
    same(library_run(variant), golden("library")[variant])


@pytest.mark.parametrize("variant", JOURNALS)
@pytest.mark.parametrize("way", ["files", "live"])
def test_a_journal_holds_the_same(variant: str, way: str, tmp_path: Path) -> None:
    same(journal_run(variant, way, tmp_path), golden("journals")[f"{variant}, {way}"])
