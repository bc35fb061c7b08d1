"""How long a lost connection is waited for, by a clock that the test moves."""

from __future__ import annotations

import pytest

from tests.support.moved_time import MovedTime
from wevent.errors import JournalUnreachable
from wevent.journal import connection as session
from wevent.journal.connection import RetryLimit

LOSS = JournalUnreachable("No answer.", "Wait.", path="postgresql://db/city")


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> MovedTime:
    moved = MovedTime()
    monkeypatch.setattr(session, "time", moved)
    return moved


def wait_until_over(patience: RetryLimit, *, held_s: float | None = None, time: MovedTime) -> int:
    """How many losses are borne; after each of them a connection holds for so long, or there is none."""
    losses = 0
    while losses < 10_000:
        try:
            patience.wait(LOSS)
        except JournalUnreachable:
            return losses
        losses += 1
        if held_s is not None:
            patience.connected()
            time.now_s += held_s
    raise AssertionError("for ever")


def test_it_begins_with_the_loss(time: MovedTime) -> None:
    patience = RetryLimit(60.0)
    patience.connected()
    time.now_s += 3600  # of work
    patience.wait(LOSS)
    assert time.pauses == 1
    time.now_s += 59
    patience.wait(LOSS)
    time.now_s += 1
    with pytest.raises(JournalUnreachable) as said:
        patience.wait(LOSS)
    assert said.value is LOSS


def test_who_has_no_connection_waits_from_the_beginning(time: MovedTime) -> None:
    """An attempt to connect may take long: no second one begins when it took all of the patience."""
    patience = RetryLimit(3.0)
    time.now_s += 10
    with pytest.raises(JournalUnreachable):
        patience.wait(LOSS)
    assert time.pauses == 0


def test_none_is_none(time: MovedTime) -> None:
    patience = RetryLimit(0.0)
    patience.connected()
    with pytest.raises(JournalUnreachable):
        patience.wait(LOSS)


def test_a_server_that_takes_connections_and_drops_them_uses_it_up(time: MovedTime) -> None:
    begun_s = time.now_s
    patience = RetryLimit(60.0)
    patience.connected()
    assert wait_until_over(patience, held_s=0.4, time=time) > 50
    assert time.now_s - begun_s < 62


def test_a_connection_that_held_has_all_of_it_again(time: MovedTime) -> None:
    patience = RetryLimit(60.0)
    patience.connected()
    patience.wait(LOSS)
    patience.connected()
    time.now_s += 61
    patience.wait(LOSS)
    time.now_s += 59  # more than what was left the first time
    patience.wait(LOSS)


def test_long_work_that_ends_the_server_is_not_begun_for_ever(time: MovedTime) -> None:
    patience = RetryLimit(60.0)
    patience.connected()
    assert wait_until_over(patience, held_s=600, time=time) <= 5
