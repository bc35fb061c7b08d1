"""How long the loss of a connection is borne, by a clock that the test moves."""

from __future__ import annotations

import pytest

from tests.support.moved_time import MovedTime
from wevent.errors import JournalUnreachable
from wevent.journal.postgres import forbearance
from wevent.journal.postgres.forbearance import Forbearance

LOSS = JournalUnreachable("an answer", "none", "Wait.", path="postgresql://db/city")


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> MovedTime:
    moved = MovedTime()
    monkeypatch.setattr(forbearance, "time", moved)
    return moved


def bear_until_over(patience: Forbearance, *, held_s: float | None = None, time: MovedTime) -> int:
    """How many losses are borne; after each of them a connection holds for so long, or there is none."""
    losses = 0
    while losses < 10_000:
        try:
            patience.bear(LOSS)
        except JournalUnreachable:
            return losses
        losses += 1
        if held_s is not None:
            patience.hold()
            time.now_s += held_s
    raise AssertionError("for ever")


def test_it_begins_with_the_loss(time: MovedTime) -> None:
    patience = Forbearance(60.0)
    patience.hold()
    time.now_s += 3600  # of work
    patience.bear(LOSS)
    assert time.pauses == 1
    time.now_s += 59
    patience.bear(LOSS)
    time.now_s += 1
    with pytest.raises(JournalUnreachable) as said:
        patience.bear(LOSS)
    assert said.value is LOSS


def test_who_has_no_connection_waits_from_the_beginning(time: MovedTime) -> None:
    """An attempt to connect may take long: no second one begins when it took all of the patience."""
    patience = Forbearance(3.0)
    time.now_s += 10
    with pytest.raises(JournalUnreachable):
        patience.bear(LOSS)
    assert time.pauses == 0


def test_none_is_none(time: MovedTime) -> None:
    patience = Forbearance(0.0)
    patience.hold()
    with pytest.raises(JournalUnreachable):
        patience.bear(LOSS)


def test_a_server_that_takes_connections_and_drops_them_uses_it_up(time: MovedTime) -> None:
    begun_s = time.now_s
    patience = Forbearance(60.0)
    patience.hold()
    assert bear_until_over(patience, held_s=0.4, time=time) > 50
    assert time.now_s - begun_s < 62


def test_a_connection_that_held_has_all_of_it_again(time: MovedTime) -> None:
    patience = Forbearance(60.0)
    patience.hold()
    patience.bear(LOSS)
    patience.hold()
    time.now_s += 61
    patience.bear(LOSS)
    time.now_s += 59  # more than what was left the first time
    patience.bear(LOSS)


def test_long_work_that_ends_the_server_is_not_begun_for_ever(time: MovedTime) -> None:
    patience = Forbearance(60.0)
    patience.hold()
    assert bear_until_over(patience, held_s=600, time=time) <= 5
