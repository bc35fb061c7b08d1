"""What the log says of a replica's role: each change once, and of a mistake of ours everything."""

from __future__ import annotations

import pytest

from wevent.errors import JournalUnreachable, StorageFailed
from wevent.journal.contents import Writer
from wevent.service.publisher_state import ROLE_LOG, RoleLog

FULL = StorageFailed("room", "a full disk", "Make room.", path="city")
GONE = JournalUnreachable("a database", "no answer", "Start it.", path="city")


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level("INFO", ROLE_LOG)
    return caplog


def test_a_failure_that_lasts_is_said_once(said: pytest.LogCaptureFixture) -> None:
    log = RoleLog()
    for _ in range(5):
        log.stops_writing(FULL)
    assert len(said.messages) == 1
    log.stops_writing(GONE)
    assert len(said.messages) == 2
    log.writes(7)
    log.stops_writing(GONE)
    assert said.messages[2:] == ["writes from slot 7 on", said.messages[1]], "it had written meanwhile"


def test_a_database_that_is_away_is_said_once_and_that_it_answers_too(said: pytest.LogCaptureFixture) -> None:
    log = RoleLog()
    log.answers()
    log.away(GONE)
    log.away(GONE)
    log.answers()
    log.answers()
    assert [record.levelname for record in said.records] == ["WARNING", "INFO"]


def test_a_mistake_of_ours_is_not_called_a_database_that_is_away(said: pytest.LogCaptureFixture) -> None:
    log = RoleLog()
    log.away(GONE)
    log.away(AttributeError("moved"))
    log.away(AttributeError("moved"))
    assert [record.levelname for record in said.records] == ["WARNING", "ERROR"]
    assert "AttributeError: moved" in said.text
    assert "away" not in said.messages[1]


def test_who_writes_and_who_is_about_to_begin_are_said_once_each(said: pytest.LogCaptureFixture) -> None:
    log, writer = RoleLog(), Writer(4711, "one.example", "2026-01-01T12:00:00Z")
    for _ in range(2):
        log.waits()
    for _ in range(2):
        log.stands_by(writer)
    assert said.messages == [
        "stands by until another process has begun the journal",
        "stands by: process 4711 on one.example writes, since 2026-01-01T12:00:00Z",
    ]
