"""The log of a replica's role: each change once, and of a defect its traceback."""

from __future__ import annotations

import pytest

from wevent.errors import JournalUnreachable, StorageFailed
from wevent.service.publishing_thread import ROLE_LOG, PublisherState

FULL = StorageFailed("The disk is full.", "Make room.", path="city")
GONE = JournalUnreachable("The database does not answer.", "Start it.", path="city")


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level("INFO", ROLE_LOG)
    return caplog


def test_a_topic_is_said_when_it_changes(said: pytest.LogCaptureFixture) -> None:
    state = PublisherState(0, 0)
    state.log("role", None, "nothing has changed")
    for _ in range(3):
        state.log("role", 7, "writes from slot 7 on")
        state.log("failure", "full", "cannot write")
    state.log("failure", None)
    state.log("failure", "full", "cannot write")
    assert said.messages == ["writes from slot 7 on", "cannot write", "cannot write"], "it had written meanwhile"


def test_a_database_that_is_away_is_said_once_and_that_it_answers_too(said: pytest.LogCaptureFixture) -> None:
    state = PublisherState(0, 0)
    state.hear()
    for _ in range(2):
        state.lose(GONE)
        assert state.away
    for _ in range(2):
        state.hear()
        assert not state.away
    assert [record.levelname for record in said.records] == ["WARNING", "INFO"]


def test_a_defect_is_not_called_a_database_that_is_away(said: pytest.LogCaptureFixture) -> None:
    state = PublisherState(0, 0)
    state.lose(GONE)
    state.lose(AttributeError("moved"))
    state.lose(AttributeError("moved"))
    assert [record.levelname for record in said.records] == ["WARNING", "ERROR"]
    assert "AttributeError: moved" in said.text
    assert "away" not in said.messages[1]


def test_a_storage_that_fails_is_said_once_and_that_it_works_again(said: pytest.LogCaptureFixture) -> None:
    state = PublisherState(0, 0)

    def write() -> None:
        raise FULL

    for write_now, storing in ((lambda: None, True), (write, False), (write, False), (lambda: None, True)):
        state.probe(write_now)
        assert state.storing == storing
    with pytest.raises(JournalUnreachable):
        state.probe(_unreachable)
    assert [record.levelname for record in said.records] == ["WARNING", "INFO"]


def _unreachable() -> None:
    raise GONE
