"""Who takes a journal from whom: a live writer keeps it, a dead one does not keep it for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.postgres.journal_parts import asked, begun, place_at, publish
from tests.support.synthetic import make_terms
from wevent.errors import JournalLocked
from wevent.journal.postgres import PostgresJournal

NOBODYS_PID = 1 << 30


def test_a_live_writer_in_another_container_of_the_same_name_keeps_its_journal(tmp_path: Path) -> None:
    """Containers, cloned machines and pods with a fixed hostname have process numbers that mean nothing here."""
    place = place_at(tmp_path)
    with begun(place) as journal:
        publish(journal, tmp_path / "o.ndjson", 2)
        with asked(place) as connection:
            connection.execute("UPDATE writer SET pid = %s", (NOBODYS_PID,))
        with pytest.raises(JournalLocked):
            PostgresJournal(place, write=True).close()
        publish(journal, tmp_path / "o.ndjson", 4)  # undisturbed


def test_a_lease_that_ends_in_the_far_future_is_not_valid(tmp_path: Path) -> None:
    """The database's clock was set back, or a standby took over whose clock is behind: a dead writer is still replaced."""
    place = place_at(tmp_path)
    journal = PostgresJournal(place, write=True)
    journal.begin(make_terms())
    lease = journal._lease
    assert lease is not None
    lease._closing.set()  # its machine is gone without a word
    lease._renewing.join()
    lease._session.connection.close()
    journal.session.close()
    with asked(place) as connection:
        connection.execute("UPDATE writer SET host = 'elsewhere'")
        connection.execute("UPDATE lease SET expires = clock_timestamp() + interval '1 day'")
    PostgresJournal(place, write=True).close()  # long before its lease is over
