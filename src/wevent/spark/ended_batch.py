"""The rows of a micro-batch in `foreachBatch`: slots that have ended, kept by Spark until they are committed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from wevent.counting.counts import Counts
from wevent.counting.roster import Roster
from wevent.spark.class_counts import ClassCounter
from wevent.spark.event_plan import EventPlan

_PAUSE_MS = 20
_INTERRUPTED = "py4j.protocol.Py4JJavaError: An error occurred while calling sleep: java.lang.InterruptedException"
"""By these words Spark knows that a query was stopped, and did not fail; it looks for them in what Python says."""


class EndedBatch:
    """What `Closing.ended` brings in one batch; to be used in a `with`, which keeps its rows.

    Reading it is what makes Spark do the batch, also where nothing has ended.

    Args:
        rows: of the batch.
        plan: how they were folded.
        counter: counts them.
    """

    def __init__(self, rows: DataFrame, plan: EventPlan, counter: ClassCounter) -> None:
        self._rows, self._counter = rows, counter
        self._latest = plan.last_cells(rows)

    def __enter__(self) -> EndedBatch:
        self._rows.persist()  # spilled to disk, it is encrypted as shuffles are
        return self

    def __exit__(self, *_: object) -> None:
        self._rows.unpersist()

    def through(self) -> int:
        """The last slot that has ended, by its heartbeat; 0 if none came out."""
        beat = F.max(F.when(F.col("user").isNull(), F.col("slot")))
        found = self._rows.agg(beat.alias("beat"), F.max("slot").alias("slot")).first()
        assert found is not None, "a sum has a row"
        through: int = found["beat"] or 0
        assert (found["slot"] or 0) <= max(through, 0), "no slot ends before its heartbeat says so"
        return max(through, 0)

    def count(self, roster: Roster, first: int, last: int) -> Iterator[tuple[int, Counts]]:
        """Count slots first to last, or as many of them as can be counted at once."""
        return self._counter.count(self._latest, roster, first, min(last, first + self._counter.stretch(roster) - 1))


@contextmanager
def interruptible(alive: Callable[[], bool]) -> Iterator[None]:
    """Work of a batch: if the query is stopped meanwhile, whatever Java says of it is said in few words.

    Spark looks through what Python says with a search that takes a frame of its stack for every letter, and a stack trace of
    Java, with Spark's own, has too many: its thread would die of that.

    Args:
        alive: whether the query goes on.

    Raises:
        InterruptedError: if it does not.
    """
    try:
        yield
    except (Py4JError, PySparkException):
        if alive():
            raise
        raise InterruptedError(_INTERRUPTED) from None


def pause_in(session: Any) -> Callable[[], None]:
    """Waits a little in the thread of a query, where Spark can interrupt it.

    Raises:
        InterruptedError: if it does, in words that are short: Spark reads them.
    """
    sleep = session._jvm.java.lang.Thread.sleep

    def pause() -> None:
        try:
            sleep(_PAUSE_MS)
        except Py4JJavaError:
            raise InterruptedError(_INTERRUPTED) from None

    return pause
