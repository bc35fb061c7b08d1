"""Starting over is said once, also by a run that came to no slot: in a file and in a database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.postgres.journal_parts import asked, place_at, publish
from tests.support.synthetic import make_terms, register
from wevent.errors import StaleJournal
from wevent.journal import JournalAddress, open_journal


def lose(place: JournalAddress) -> None:
    if isinstance(place, Path):
        for ending in ("", "-wal", "-shm"):
            place.with_name(place.name + ending).unlink(missing_ok=True)
    else:
        with asked(place) as connection:
            connection.execute(f"DROP SCHEMA {place.schema} CASCADE")


def slots(place: JournalAddress, out: Path, end: int, **opening: Any) -> None:
    with open_journal(place, write=True, **opening) as journal:
        if journal.is_new:
            journal.begin(make_terms())
        register(journal, 30)  # type: ignore[arg-type]
        publish(journal, out, end)


@pytest.mark.parametrize("kind", ["file", "database"])
def test_terms_that_were_stored_before_the_first_mark_lock_nobody_out(tmp_path: Path, kind: str) -> None:
    place: JournalAddress = place_at(tmp_path) if kind == "database" else tmp_path / "run.journal"
    slots(place, tmp_path / "lost.ndjson", 3)
    lose(place)
    with pytest.raises(StaleJournal, match="start-over"):
        open_journal(place, write=True)
    with open_journal(place, write=True, start_over=True) as journal:
        journal.begin(make_terms())  # and then the process is gone: the mark is still that of the lost one
    for again in (False, True):
        with open_journal(place, write=True, start_over=again) as journal:
            assert journal.head().unsafe == ("started over",)
    slots(place, tmp_path / "new.ndjson", 2)
    with open_journal(place) as journal:
        assert journal.head().committed == 2
