"""The audit of a journal in a database looks at the side folder: an end that was cut off leaves no other trace (spec 10)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.postgres.journal_parts import asked, begun, place_at, publish
from wevent.journal import PostgresPlace
from wevent.journal.postgres.postgres_journal import PostgresJournal
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
        database.execute(f"DELETE FROM histograms WHERE slot > {last}")
        database.execute(
            f"UPDATE head SET committed = {last}, emitted = {last}, link = (SELECT chain FROM slots WHERE slot = {last})"
        )


def test_a_tail_that_was_cut_off_consistently_is_found(place: PostgresPlace) -> None:
    report = audit_journal(place)
    assert (report.ok, report.marked, report.mark_unseen) == (True, 6, None)
    cut(place, 4)
    report = audit_journal(place)
    assert [one["slot"] for one in report.violations] == [5]
    assert f"slot 6 is noted in {place.side}, and the journal ends with 4" in report.violations[0]["problem"]


def test_the_latest_slot_of_any_writer_counts(place: PostgresPlace) -> None:
    assert place.side is not None
    (newest,) = place.side.glob("*.side")
    fence = int(newest.name.split(".")[1])
    newest.with_name(f"{place.schema}.{fence + 8}.side").write_bytes(
        newest.read_bytes().replace(b'"committed":6', b'"committed":5', 1)
    )
    cut(place, 4)
    assert audit_journal(place).marked == 6


def test_one_that_is_in_use_is_not_behind_its_mark(place: PostgresPlace, tmp_path: Path) -> None:
    """Between commit and mark, and after it."""
    found = []
    with PostgresJournal(place, write=True) as journal:

        def look(step: str) -> None:
            if step in ("committed", "marked"):
                report = audit_journal(place)
                found.append((step, report.violations, report.slots, report.marked))

        publish(journal, tmp_path / "o.ndjson", 7, at=look)
    assert found == [("committed", [], 7, 6), ("marked", [], 7, 7)]


def test_where_no_mark_is_seen_that_is_said(place: PostgresPlace, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    cut(place, 4)
    for side, said in (
        (None, "the address names no side folder"),
        (tmp_path / "empty", f"no side file in {tmp_path / 'empty'}"),
        (tmp_path / "gone", f"{tmp_path / 'gone'}: No such file or directory"),
    ):
        report = audit_journal(replace(place, side=side))
        assert (report.ok, report.marked, report.mark_unseen) == (True, None, said)
