"""Whether there is a journal in a database: one that cannot be used is there, and whoever needs it says what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

import wevent
from tests.postgres.journal_parts import asked, begun, place_at, publish
from tests.support.commands import CLOCK, PATIENCE_S, PEOPLE, call, start, write_stream
from wevent.errors import InvalidJournal, StaleJournal
from wevent.journal import PostgresAddress, is_begun, open_journal
from wevent.journal.address import NoJournal
from wevent.publishing.configuration import PUBLISHING, refuse_missing

END = "2026-01-01T00:05:00Z"
WRONG = {
    "newer": ("UPDATE facts SET value = '99' WHERE name = 'format'", "format 99, from a newer wevent"),
    "damaged": ("DROP TABLE blobs", "is damaged"),
    "another's": ("DELETE FROM facts", "other tables under the same names"),
}


@pytest.fixture(params=WRONG)
def wrong(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[PostgresAddress, str]:
    """A journal that cannot be used, and what is said of it."""
    place = place_at(tmp_path)
    with begun(place):
        pass
    statement, said = WRONG[request.param]
    with asked(place) as database:
        database.execute(statement)
    return place, said


def test_one_that_cannot_be_used_is_there(wrong: tuple[PostgresAddress, str]) -> None:
    place, said = wrong
    assert is_begun(place)
    with pytest.raises(InvalidJournal, match=said) as told:
        open_journal(place)
    assert not isinstance(told.value, NoJournal)


def test_whoever_publishes_is_told_what_is_wrong_and_not_that_settings_are_missing(
    wrong: tuple[PostgresAddress, str], tmp_path: Path
) -> None:
    place, said = wrong
    given = {"inputs": "events.csv", "cells": ["a"], "slot": "1m", "end": "2026-01-01T01:00:00Z", "journal": place}
    refuse_missing(given, PUBLISHING, framed=False)  # start and requirements are the journal's
    (tmp_path / "events.csv").write_text("time,user,cell\n2026-01-01T00:00:10Z,ann,a\n")
    with pytest.raises(InvalidJournal, match=said):
        wevent.publish(
            tmp_path / "events.csv",
            cells=["a"],
            slot="1m",
            start="2026-01-01T00:00:00Z",
            end="2026-01-01T01:00:00Z",
            journal=place,
        )


def test_none_is_not_begun(tmp_path: Path) -> None:
    place = place_at(tmp_path)
    assert not is_begun(place)
    with pytest.raises(NoJournal):
        open_journal(place)


def test_one_that_is_lost_is_not_begun_and_can_be_started_over(tmp_path: Path) -> None:
    """As of a file that is gone beside its witness: settings are read before anybody can say what is to become of it."""
    place = place_at(tmp_path)
    with begun(place) as journal:
        publish(journal, tmp_path / "o.ndjson", 3)
    with asked(place) as database:
        database.execute(f"DROP SCHEMA {place.schema} CASCADE")
    assert not is_begun(place)
    with pytest.raises(StaleJournal, match="--start-over"):
        open_journal(place)
    write_stream(tmp_path, 5)
    address = f"{place.conninfo}?schema={place.schema}&witness={place.folder}"
    command = ("publish", "events.csv", *PEOPLE, *CLOCK, "--end", END, "--out", "new.ndjson", "--journal", address)
    refused = call(tmp_path, *command)
    assert refused.code == 2
    assert "--start-over" in refused.err
    assert call(tmp_path, *command, "--start-over").code == 0
    assert is_begun(place)


def test_a_replica_that_stands_by_says_what_is_wrong_and_does_not_wait_for_ever(tmp_path: Path) -> None:
    place = place_at(tmp_path)
    write_stream(tmp_path)
    address = f"{place.conninfo}?schema={place.schema}&witness={place.folder}"
    with begun(place), asked(place) as database:  # another one writes: a newer wevent, in the middle of an upgrade
        database.execute("UPDATE facts SET value = '99' WHERE name = 'format'")
        served = start(tmp_path, "serve", "--listen", "127.0.0.1:0", *PEOPLE, "--slot", "60s", "--journal", address)
        try:
            _, said = served.communicate(timeout=PATIENCE_S)
        finally:
            served.kill()
    assert served.returncode == 2
    assert "format 99, from a newer wevent" in said
