"""What a standby shows, and destroys, rests on what is known outside the database: a slot that only the database knows may be
lost with it, and would be drawn again (spec 10)."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.postgres.journal_parts import begun
from tests.support.commands import wait_for
from tests.support.journals import InDatabase, copy_schema
from tests.support.publications import publish
from wevent.errors import StaleJournal
from wevent.journal import open_journal
from wevent.journal.postgres.postgres_journal import PostgresJournal
from wevent.journal.postgres.side_folder import SideFolder
from wevent.outputs.lines import ndjson_line
from wevent.publishing.event_stores import ReplicaStores
from wevent.publishing.staleness import Stated, settle_stale
from wevent.service.feed import JournalFollower
from wevent.service.publisher_state import PublisherState, RoleLog


class Restorable(InDatabase):
    """A journal whose database is put back as it was, as by point-in-time recovery."""

    def remember(self) -> None:
        copy_schema(self.place, self.place.schema, self._backup)


class Died(BaseException):
    """The writer, between its commit and its mark."""


@pytest.fixture
def kept(tmp_path: Path) -> Restorable:
    """A journal of five slots, remembered."""
    (tmp_path / "kept").mkdir()
    kept = Restorable(tmp_path / "kept")
    with begun(kept.place) as journal:
        publish(journal, tmp_path / "o.ndjson", 5)
    kept.remember()
    return kept


def test_a_release_that_a_standby_showed_is_not_drawn_again(kept: Restorable, tmp_path: Path) -> None:
    """The writer dies between commit and mark; a standby shows the slot; the database is lost and put back as it was."""
    told: list[int] = []
    state = PublisherState(0, 0, committed=5)
    follower = JournalFollower(ReplicaStores(kept.place), state, told.append, RoleLog())
    follower.start()

    def die(step: str) -> None:
        if step == "committed":
            raise Died

    shown = b""
    try:
        with suppress(Died), PostgresJournal(kept.place, write=True) as journal:
            publish(journal, tmp_path / "o.ndjson", 6, at=die)
        end = time.monotonic() + 3
        while not told and time.monotonic() < end:
            time.sleep(0.05)
        if told:  # what anybody can read at GET /v1/releases of the standby from now on
            with open_journal(kept.place) as journal:
                shown = b"".join(map(ndjson_line, journal.releases(6)))
    finally:
        follower.stop()
        follower.join()
    known = SideFolder(kept.place).seen().committed
    kept.put_back()
    drawn = b""
    with PostgresJournal(kept.place, write=True) as journal, suppress(StaleJournal):
        settle_stale(journal, Stated())
        publish(journal, tmp_path / "again.ndjson", 6)
        drawn = b"".join(map(ndjson_line, journal.releases(6)))
    assert not (shown and drawn), (
        f"slot 6 was shown and drawn again: {shown!r}, then {drawn!r} (known outside: {known})"
    )


def test_a_standby_shows_it_once_it_is_known_outside(kept: Restorable, tmp_path: Path) -> None:
    told: list[int] = []
    follower = JournalFollower(ReplicaStores(kept.place), PublisherState(0, 0, committed=5), told.append, RoleLog())
    follower.start()
    try:
        with PostgresJournal(kept.place, write=True) as journal:
            publish(journal, tmp_path / "o.ndjson", 6)
            wait_for(lambda: bool(told), "the standby to show it")
    finally:
        follower.stop()
        follower.join()
    assert told == [6]
