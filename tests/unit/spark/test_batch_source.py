"""Where Spark's thread and the loop's meet; without Spark."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

from tests.support.commands import PATIENCE_S, wait_for
from tests.support.streams import DAY, SECOND, roster, settings
from wevent import Counts, InvalidSettings, Roster, ServiceStopping, StorageFailed
from wevent.spark.batch_source import SparkSource
from wevent.streams.clock import SlotClock

PEOPLE = roster()


class Ended:
    """A batch that says how far slots have ended, and counts them as told."""

    def __init__(self, through: int, at_once: int = 9) -> None:
        self.through, self._at_once = through, at_once
        self.counted: list[tuple[Roster, int, int]] = []

    def count(self, people: Roster, first: int, last: int) -> dict[int, Counts]:
        last = min(last, first + self._at_once - 1)
        self.counted.append((people, first, last))
        return {slot: Counts(np.full((2, 4), slot)) for slot in range(first, last + 1)}


class Taking(threading.Thread):
    """What Spark does with a batch."""

    def __init__(self, source: SparkSource, batch: Ended) -> None:
        super().__init__(daemon=True)
        self._source, self._batch = source, batch
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._source.take(self._batch.through, self._batch.count, lambda: time.sleep(0.005))
        except BaseException as error:  # noqa: BLE001
            self.error = error

    def over(self) -> bool:
        """Whether it ends."""
        self.join(PATIENCE_S)
        return not self.is_alive()

    def waits(self) -> bool:
        """Whether it has not ended after a moment."""
        self.join(0.1)
        return self.is_alive()


def source(last: int | None = None) -> SparkSource:
    return SparkSource(settings(), SlotClock(DAY, 60 * SECOND), last)


def slots(counted: Any) -> list[int]:
    return [one.slot for one in counted]


def test_a_batch_is_done_when_its_slots_are_committed() -> None:
    spark, batch = source(), Ended(3)
    taking = Taking(spark, batch)
    assert slots(spark.count(PEOPLE, 1, 256)) == [1, 2, 3], "the next one is not in it: what is there is committed"
    assert taking.waits()
    spark.forget(2)
    assert taking.waits()
    spark.forget(3)
    assert taking.over()
    assert taking.error is None
    assert batch.counted == [(PEOPLE, 1, 3)]
    assert spark.closed_through() == 3


def test_a_batch_that_is_run_again_finds_its_slots_committed() -> None:
    spark, batch = source(), Ended(3)
    spark.resume({"slot": 3, "time_unit": "s"})
    assert Taking(spark, batch).over()
    assert batch.counted == []
    assert Taking(spark, Ended(0)).over(), "nothing has ended"


def test_slots_after_a_change_of_the_roster_are_counted_again() -> None:
    spark, batch, others = source(), Ended(4), roster([1, 2])
    taking = Taking(spark, batch)
    assert slots(spark.count(PEOPLE, 1, 2)) == [1, 2]
    spark.forget(2)
    assert slots(spark.count(others, 3, 2)) == [3, 4]
    spark.forget(4)
    assert taking.over()
    assert batch.counted == [(PEOPLE, 1, 2), (others, 3, 4)]


class Slow(Ended):
    """A batch whose counts come when they are let go."""

    def __init__(self, through: int) -> None:
        super().__init__(through)
        self.go = threading.Event()

    def count(self, people: Roster, first: int, last: int) -> dict[int, Counts]:
        counts = super().count(people, first, last)
        assert self.go.wait(PATIENCE_S)
        return counts


def test_counts_with_an_earlier_roster_are_not_used() -> None:
    spark, batch, others = source(), Slow(2), roster([1, 2])
    taking = Taking(spark, Ended(1))
    assert slots(spark.count(PEOPLE, 1, 256)) == [1]  # the next one is waited for, and not in this batch
    spark.forget(1)
    assert taking.over()
    taking = Taking(spark, batch)
    wait_for(lambda: batch.counted == [(PEOPLE, 2, 2)], "counting")
    found: list[Any] = []
    counting = threading.Thread(target=lambda: found.extend(spark.count(others, 2, 1)), daemon=True)
    counting.start()
    wait_for(lambda: spark._wanted == (others, 2, 2), "another roster")
    batch.go.set()
    counting.join(PATIENCE_S)
    assert slots(found) == [2]
    assert batch.counted == [(PEOPLE, 2, 2), (others, 2, 2)]
    spark.forget(2)
    assert taking.over()


def test_many_slots_are_counted_some_at_a_time() -> None:
    spark, batch = source(), Ended(5, at_once=2)
    taking = Taking(spark, batch)
    assert slots(spark.count(PEOPLE, 1, 256)) == [1, 2, 3, 4, 5]
    spark.forget(5)
    assert taking.over()
    assert [(first, last) for _, first, last in batch.counted] == [(1, 2), (3, 4), (5, 5)]


def test_nothing_after_the_last_slot() -> None:
    spark, batch = source(last=2), Ended(9)
    taking = Taking(spark, batch)
    assert slots(spark.count(PEOPLE, 1, 256)) == [1, 2]
    assert list(spark.count(PEOPLE, 3, 256)) == []
    spark.forget(2)
    assert taking.over()


def test_stopping_ends_both_and_commits_nothing() -> None:
    spark, batch = source(), Ended(1)
    taking = Taking(spark, batch)
    assert slots(spark.count(PEOPLE, 1, 1)) == [1]
    assert spark.idle(0.0) is False
    spark.stop()
    assert spark.idle(5.0) is True, "what is held is given up: the batch is run again"
    assert taking.over()
    assert isinstance(taking.error, ServiceStopping)
    assert list(spark.count(PEOPLE, 1, 1)) == []


def test_a_loop_that_failed_fails_the_batch() -> None:
    spark = source()
    taking = Taking(spark, Ended(1))
    assert taking.waits()
    spark.finish(StorageFailed("There is no room.", "Make some."))
    assert taking.over()
    assert isinstance(taking.error, StorageFailed)


def test_a_query_that_ended_ends_the_loop() -> None:
    spark = source()
    alive = True
    spark.alive = lambda: alive
    found: list[Any] = []
    counting = threading.Thread(target=lambda: found.append(list(spark.count(PEOPLE, 1, 1))), daemon=True)
    counting.start()
    counting.join(0.3)
    assert counting.is_alive()
    alive = False
    wait_for(lambda: not counting.is_alive(), "the end")
    assert found == [[]]
    assert spark.idle(0.0)


def test_what_is_kept_elsewhere() -> None:
    spark = source()
    assert spark.first_malformed() == []
    with pytest.raises(InvalidSettings, match="it was ms in the earlier run"):
        spark.resume({"slot": 1, "time_unit": "ms"})
    assert spark.totals()["late"] == 0


def test_totals_are_changed_by_one_thread_at_a_time() -> None:
    spark = source()
    taking = Taking(spark, Ended(1))
    found: list[Any] = []
    counting = threading.Thread(target=lambda: found.extend(spark.count(PEOPLE, 1, 1)), daemon=True)
    with spark.uncounted._lock:  # as while the query's thread adds what a batch said
        counting.start()
        counting.join(0.5)
        assert found == []
    counting.join(PATIENCE_S)
    assert slots(found) == [1]
    spark.forget(1)
    assert taking.over()
