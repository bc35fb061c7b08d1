"""How a query and its loop end together, also where one of them does not end as it should; without Spark."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tests.support.commands import PATIENCE_S
from tests.support.streams import DAY, SECOND
from tests.support.streams import settings as stream_settings
from wevent.settings import RunOptions
from wevent.spark import publication
from wevent.spark.batch_source import SparkSource
from wevent.spark.publication import LoopThread, SparkPublication
from wevent.streams.clock import SlotClock


class Stuck(Exception):
    """What Java raises when a query does not stop within `spark.sql.streaming.stopTimeout`."""


class Query:
    """A query of Java's that does not stop."""

    def __init__(self) -> None:
        self._jsq = self

    def stop(self) -> None:
        raise Stuck


class Loop:
    """A loop that only says whether it was ended."""

    ended = False

    def end(self) -> None:
        self.ended = True


def test_a_query_that_does_not_stop_leaves_no_loop_behind() -> None:
    loop = Loop()
    stuck = SparkPublication(cast(Any, Query()), cast(Any, loop), cast(Any, None))
    with pytest.raises(Stuck):
        stuck.stop()
    assert loop.ended, "the journal would stay locked"


class Settings:
    """Of a stream whose releases are only kept."""

    out = None


class Report:
    """Of a run whose last slot is out."""

    class summary:  # noqa: N801
        last = 3


class Counter:
    """A counter that only says whether it let the roster go."""

    released = False

    def release(self) -> None:
        self.released = True


def test_nor_does_one_that_does_not_stop_after_the_last_slot_leave_people_with_spark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(publication, "run", lambda *_, **__: Report())
    loop = LoopThread(cast(Any, None), None, cast(Any, None), cast(Any, Settings()), RunOptions())
    loop.source, loop.query = SparkSource(stream_settings(), SlotClock(DAY, 60 * SECOND), 3), cast(Any, Query())
    loop.counter = cast(Any, Counter())
    loop.start()
    loop.join(PATIENCE_S)
    assert loop.counter is not None
    assert loop.counter.released
    assert isinstance(loop.error, Stuck)
