"""What is in a journal file, and what is said of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import apsw
import msgspec
import pytest

from tests.support.publications import publish
from tests.support.synthetic import SyntheticSource, make_journal, make_terms, register
from wevent.errors import StorageFailed
from wevent.journal import Batch, SqliteJournal
from wevent.outputs import open_output
from wevent.publishing import loop
from wevent.publishing.loop import Publication, Running
from wevent.verification import verify_journal


def test_the_same_counts_leave_no_trace_of_themselves(tmp_path: Path) -> None:
    """A slot whose counts are not read stores the same bytes whatever they are: nothing but public numbers goes in."""
    stored = []
    for cells in (0, 7):
        journal = SqliteJournal(tmp_path / f"{cells}.journal", write=True)
        journal.begin(make_terms(mechanism="sample"))
        register(journal, 90)
        source = SyntheticSource(1)
        output = open_output(str(tmp_path / f"{cells}.ndjson"))
        Publication(journal, source, output, running=Running(last=1)).run()
        source.end, source.shift = 4, cells
        output.close()
        Publication(journal, source, output, running=Running(last=4)).run()  # slots 2 to 4 are not due
        entries = [record.entry() for record in journal.releases(2)]
        stored.append(
            [msgspec.structs.replace(entry, histogram=b"") for entry in entries]
        )  # that of slot 1, which is noisy
        output.close()
        journal.close()
    assert stored[0] == stored[1]


def test_what_is_kept_of_a_long_run_is_audited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "state_interval", lambda publisher: 16)
    path = tmp_path / "run.journal"
    make_journal(path).close()
    for end in (600, 700):
        with SqliteJournal(path, write=True) as journal:
            publish(journal, tmp_path / "o.ndjson", end, batch=32, keep=20)
            assert journal.head().first > end - 300
        assert verify_journal(path).ok


def test_a_state_that_is_too_large_for_a_row_is_replayed_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A billion bytes are what a row can hold: a stream whose state is larger must not stop for ever at its first one."""
    monkeypatch.setattr(loop, "state_interval", lambda publisher: 16)
    path = tmp_path / "run.journal"
    make_journal(path, mechanism="pft", class_weights="calibrated", seasonality=(24.0,)).close()
    for end, most, replayed in ((20, 20_000, 20), (40, 20_000, 40), (60, 1_000_000, 60 - 57)):
        with SqliteJournal(path, write=True) as journal:
            journal._database.connection.limit(apsw.SQLITE_LIMIT_LENGTH, most)
            journal._database.largest_value = most
            published = publish(journal, tmp_path / "o.ndjson", end)
            assert 20_000 < len(published.publisher.state()) < 1_000_000
            assert journal.head().committed == end
            assert len(journal.load().since) == replayed
        assert verify_journal(path).ok


def test_a_draw_that_the_database_never_saw_is_still_the_draw_of_its_slot(tmp_path: Path) -> None:
    """It was written ahead: the next writer stores it, whatever kept the database from it (spec 10)."""
    path = tmp_path / "run.journal"
    journal = make_journal(path)
    publish(journal, tmp_path / "o.ndjson", 2)
    (last,) = journal.releases(2)
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE").fetchall()
    with pytest.raises(StorageFailed):
        journal.commit(Batch([replace(last, slot=3)], {"slot": 3}, None, 2))
    other.execute("ROLLBACK").fetchall()
    other.close()
    journal.close()
    with SqliteJournal(path, write=True) as again:
        (stored,) = again.releases(3)
        assert stored.entry() == replace(last, slot=3).entry()
