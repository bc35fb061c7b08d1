"""The same seeds give the same numbers as when the golden files were recorded: nothing changed for anybody."""

from __future__ import annotations

import gzip
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.golden.runs import HALF, JOURNALS, VARIANTS, continued_run, first_version, journal_run, library_run
from tests.support.commands import call, publish
from wevent.journal import SqliteJournal

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
    same(library_run(variant)["releases"], golden("library")[variant]["releases"])


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_old_state_goes_on_the_same(variant: str) -> None:
    then = golden("library")[variant]
    same(continued_run(then["state"]), then["releases"][HALF:])


@pytest.mark.parametrize("variant", JOURNALS)
@pytest.mark.parametrize("way", ["files", "live"])
def test_a_journal_holds_the_same(variant: str, way: str, tmp_path: Path) -> None:
    same(journal_run(variant, way, tmp_path), golden("journals")[f"{variant}, {way}"])


def test_an_earlier_journal_goes_on(tmp_path: Path) -> None:
    """Twenty slots of pft and a change of requirements in the queue, made by the commands of version 0.1.

    Its output is in the first format: refused, untouched; once it is moved away, a new one gets the same numbers.
    """
    with tarfile.open(DATA / "format2.tar.gz") as stored:
        stored.extractall(tmp_path, filter="data")
    out, moved = tmp_path / "out.ndjson", tmp_path / "first-format.ndjson"
    before = out.read_bytes()
    refused = publish(tmp_path, 30, "--mechanism", "pft")
    assert refused.code == 2, refused
    assert "in format 1" in refused.err
    assert out.read_bytes() == before
    out.rename(moved)
    done = publish(tmp_path, 30, "--mechanism", "pft")
    assert done.code == 0, done
    lines = out.read_text().splitlines()
    same([first_version(line) for line in lines[:20]], [json.loads(line) for line in before.splitlines()])
    assert [json.loads(line)["slot"] for line in lines] == list(range(1, 31))
    audited = call(tmp_path, "audit", "run.journal")
    assert audited.code == 0, audited
    assert "30 slots" in audited.out
    with SqliteJournal(tmp_path / "run.journal") as journal:
        assert journal.head().pinned.generation == 1  # it began before there were others, and nobody said another
