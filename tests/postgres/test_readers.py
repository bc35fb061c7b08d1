"""Readers of a journal in a database see every committed slot: its draw is in the witness before the database (spec 10)."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.postgres.journal_parts import Restorable, begun, check_once, place_at, publish
from tests.support.commands import call, wait_for
from wevent.errors import StaleJournal
from wevent.journal import open_journal
from wevent.journal.postgres import CommitNews, PostgresJournal
from wevent.outputs.lines import ndjson_line
from wevent.publishing.event_stores import ReplicaStores
from wevent.publishing.staleness import settle_stale
from wevent.service.publishing_thread import JournalFollower, PublisherState
from wevent.settings import RestoreOptions


class Died(BaseException):
    """The writer is gone."""


@pytest.fixture
def kept(tmp_path: Path) -> Restorable:
    """A journal of five slots, remembered."""
    (tmp_path / "kept").mkdir()
    kept = Restorable(tmp_path / "kept")
    with begun(kept.place) as journal:
        publish(journal, tmp_path / "o.ndjson", 5)
    kept.remember()
    return kept


def die(step: str) -> None:
    if step == "committed":
        raise Died


def test_a_reader_sees_a_slot_from_its_commit_on(tmp_path: Path) -> None:
    place, seen = place_at(tmp_path), []
    with begun(place) as journal, closing(CommitNews(place)) as news:

        def look(step: str) -> None:
            if step in ("written ahead", "committed"):
                with open_journal(place) as reader:
                    record, head = reader.witnessed(), reader.head()
                seen.append((step, head.committed, news.wait(0.0), record.committed, record.follows(head.digest)))

        publish(journal, tmp_path / "o.ndjson", 2, at=look)
    assert seen == [
        ("written ahead", 0, 0, 1, True),
        ("committed", 1, 1, 1, False),
        ("written ahead", 1, 1, 2, True),
        ("committed", 2, 2, 2, False),
    ]


def test_a_release_that_a_standby_showed_is_not_drawn_again(kept: Restorable, tmp_path: Path) -> None:
    """The writer dies after its commit; a standby shows the slot; the database is lost and put back as it was."""
    told: list[int] = []
    follower = JournalFollower(ReplicaStores(kept.place), PublisherState(0, 0, committed=5), told.append)
    follower.start()
    try:
        with suppress(Died), PostgresJournal(kept.place, write=True) as journal:
            publish(journal, tmp_path / "o.ndjson", 6, at=die)
        wait_for(lambda: bool(told), "the standby to show it")
        with open_journal(kept.place) as journal:
            shown = b"".join(map(ndjson_line, journal.releases(6)))
    finally:
        follower.stop()
        follower.join()
    assert told == [6]
    kept.put_back()
    with PostgresJournal(kept.place, write=True) as journal:
        assert settle_stale(journal, RestoreOptions()) == 0
        assert b"".join(map(ndjson_line, journal.releases(6))) == shown, (
            "its draw was written ahead, and is stored again"
        )
        publish(journal, tmp_path / "again.ndjson", 7)


def test_two_slots_that_were_shown_and_lost_are_charged(kept: Restorable, tmp_path: Path) -> None:
    with PostgresJournal(kept.place, write=True) as journal:
        publish(journal, tmp_path / "o.ndjson", 6)
    with suppress(Died), PostgresJournal(kept.place, write=True) as journal:
        publish(journal, tmp_path / "o.ndjson", 7, at=die)
    kept.put_back()
    with PostgresJournal(kept.place, write=True) as journal:
        with pytest.raises(StaleJournal, match="shows slot 7"):
            settle_stale(journal, RestoreOptions())
        assert settle_stale(journal, RestoreOptions(7, same_settings=True)) == 2


def test_the_next_writer_emits_what_a_writer_before_committed(kept: Restorable, tmp_path: Path) -> None:
    with suppress(Died), PostgresJournal(kept.place, write=True) as journal:
        publish(journal, tmp_path / "o.ndjson", 6, at=die)
    address = f"{kept.place.conninfo}?schema={kept.place.schema}"
    shown = call(tmp_path, "releases", address).out.encode()
    with PostgresJournal(kept.place, write=True) as journal:
        publish(journal, tmp_path / "o.ndjson", 8)
        check_once(journal, kept.place, tmp_path / "o.ndjson", 8)
    assert (tmp_path / "o.ndjson").read_bytes().startswith(shown)
