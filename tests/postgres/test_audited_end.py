"""The audit of a journal in a database looks at the witness: an end that was cut off leaves no other trace (spec 10)."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.postgres.journal_parts import asked, begun, place_at, publish
from wevent.journal import PostgresPlace
from wevent.journal.postgres_journal import PostgresJournal
from wevent.journal.witness import WitnessFile
from wevent.verification import audit_journal


@pytest.fixture
def place(tmp_path: Path) -> PostgresPlace:
    """A journal of six slots; two writers wrote it."""
    place = place_at(tmp_path)
    with begun(place) as journal:
        publish(journal, tmp_path / "o.ndjson", 3)
    with PostgresJournal(place, write=True) as journal:
        publish(journal, tmp_path / "o.ndjson", 6)
    return place


def cut(place: PostgresPlace, last: int) -> None:
    with asked(place) as database:
        database.execute(f"DELETE FROM slots WHERE slot > {last}")
        database.execute(f"DELETE FROM state WHERE slot > {last}")
        database.execute(
            f"UPDATE head SET committed = {last}, emitted = {last},"
            f" chain = (SELECT chain FROM slots WHERE slot = {last})"
        )


def test_a_tail_that_was_cut_off_consistently_is_found(place: PostgresPlace) -> None:
    report = audit_journal(place)
    assert (report.ok, report.witness_slot, report.witness_problem) == (True, 6, None)
    cut(place, 4)
    report = audit_journal(place)
    assert [one["slot"] for one in report.violations] == [5]
    assert f"{place.schema}.2.witness shows slot 6, and the journal ends with 4" in report.violations[0]["problem"]


def test_the_newest_writer_has_the_witness(place: PostgresPlace) -> None:
    """What a fenced writer still writes into an older file never reaches the database."""
    assert place.side is not None
    older, newest = (place.side / f"{place.schema}.{fence}.witness" for fence in (2, 10))
    newest.write_bytes(older.read_bytes())
    file = WitnessFile(older, os.open(older, os.O_RDWR))
    file.update(committed=9)
    file.close()
    assert audit_journal(place).witness_slot == 6


def test_one_that_is_in_use_is_not_behind_its_witness(place: PostgresPlace, tmp_path: Path) -> None:
    """Between the write-ahead and the commit, and after it."""
    found = []
    with PostgresJournal(place, write=True) as journal:

        def look(step: str) -> None:
            if step in ("written ahead", "committed", "emitted"):
                report = audit_journal(place)
                found.append((step, report.violations, report.slots, report.witness_slot, report.write_ahead_slot))

        publish(journal, tmp_path / "o.ndjson", 7, at=look)
    assert found == [
        ("written ahead", [], 6, 7, 7),
        ("committed", [], 7, 7, None),
        ("emitted", [], 7, 7, None),
    ]


def test_where_no_witness_is_seen_that_is_said(place: PostgresPlace, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    cut(place, 4)
    for side, said in (
        (None, "the address names no side folder"),
        (tmp_path / "empty", f"no witness file in {tmp_path / 'empty'}"),
        (tmp_path / "gone", f"{tmp_path / 'gone'}: No such file or directory"),
    ):
        report = audit_journal(replace(place, side=side))
        assert (report.ok, report.witness_slot, report.witness_problem) == (True, None, said)
