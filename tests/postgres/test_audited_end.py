"""Verification of a journal in a database reads the witness: an end that was cut off leaves no other trace (spec 10)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.postgres.journal_parts import asked, begun, place_at, publish
from wevent.journal import PostgresAddress
from wevent.journal.postgres import PostgresJournal
from wevent.verification import verify_journal


@pytest.fixture
def place(tmp_path: Path) -> PostgresAddress:
    """A journal of six slots; two writers wrote it."""
    place = place_at(tmp_path)
    with begun(place) as journal:
        publish(journal, tmp_path / "o.ndjson", 3)
    with PostgresJournal(place, write=True) as journal:
        publish(journal, tmp_path / "o.ndjson", 6)
    return place


def cut(place: PostgresAddress, last: int) -> None:
    with asked(place) as database:
        database.execute(f"DELETE FROM slots WHERE slot > {last}")
        chain = f"(SELECT chain FROM slots WHERE slot = {last})"
        database.execute(f"UPDATE head SET committed = {last}, emitted = {last}, chain = {chain}")


def newest_file(place: PostgresAddress) -> Path:
    assert place.folder is not None
    (newest,) = place.folder.glob("*.witness")
    return newest


def test_a_tail_that_was_cut_off_consistently_is_found(place: PostgresAddress) -> None:
    report = verify_journal(place)
    assert (report.ok, report.witness_slot, report.witness_problem) == (True, 6, None)
    cut(place, 4)
    report = verify_journal(place)
    assert [one["slot"] for one in report.violations] == [5]
    assert f"{newest_file(place)} shows slot 6, and the journal ends with 4" in report.violations[0]["problem"]


def test_a_changed_histogram_is_found(place: PostgresAddress) -> None:
    """The server hashes histograms."""
    with asked(place) as database:
        database.execute(
            "UPDATE blobs SET data = data || '\\x00' WHERE get_byte(data, 0) = 147"
        )  # MessagePack [_, _, _]
    report = verify_journal(place)
    assert {one["problem"] for one in report.violations} == {
        "a blob that the slot names is missing or is not what was committed"
    }


def test_the_file_with_the_largest_fence_counts(place: PostgresAddress) -> None:
    """A fenced writer may have written ahead what never reached the database."""
    newest = newest_file(place)
    fence = int(newest.name.split(".")[1])
    older = newest.with_name(f"{place.schema}.{fence - 1}.witness")
    newest.rename(older)
    newest.write_bytes(bytes(8192))
    report = verify_journal(place)
    assert (report.witness_slot, report.witness_problem) == (None, f"{newest} has no record that can be read")
    newest.unlink()
    assert verify_journal(place).witness_slot == 6


def test_one_that_is_in_use_is_not_behind_its_witness(place: PostgresAddress, tmp_path: Path) -> None:
    """Before and after its draw is stored."""
    found = []
    with PostgresJournal(place, write=True) as journal:

        def look(step: str) -> None:
            if step in ("written ahead", "committed"):
                report = verify_journal(place)
                found.append((step, report.violations, report.slots, report.witness_slot, report.write_ahead_slot))

        publish(journal, tmp_path / "o.ndjson", 7, at=look)
    assert found == [("written ahead", [], 6, 7, 7), ("committed", [], 7, 7, None)]


def test_a_missing_witness_is_reported(place: PostgresAddress, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    cut(place, 4)
    for side, problem in (
        (None, "the address names no witness folder"),
        (tmp_path / "empty", f"no witness file in {tmp_path / 'empty'}"),
        (tmp_path / "gone", f"{tmp_path / 'gone'}: No such file or directory"),
    ):
        report = verify_journal(replace(place, folder=side))
        assert (report.ok, report.witness_slot, report.witness_problem) == (True, None, problem)
