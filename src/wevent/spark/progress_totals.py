"""What Spark says of its batches, added up for the operator: rows that do not count, and rows that came too late."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from wevent.spark.event_plan import note_tally
from wevent.spark.heartbeats import OBSERVED
from wevent.spark.shared_totals import SharedTotals
from wevent.streams.uncounted import Uncounted


class ProgressTotals:
    """Reads the progress of a query, a batch after the other; the query's thread does, and whoever asks for totals.

    Args:
        totals: what it is added to.
        ahead: how many slots the first heartbeat of a batch lies ahead (`Closing.ahead`).
    """

    def __init__(self, totals: SharedTotals, ahead: int) -> None:
        self._totals, self._ahead = totals, ahead
        self._query: Any = None
        self._batch = -1
        self._ended: int | None = None  # slots up to this one had ended for the batch before

    def follow(self, query: Any) -> None:
        """The query to read, as Java has it."""
        self._query = query

    def look(self) -> None:
        """Add the batch that was done last, unless it was added."""
        progress = None if self._query is None else self._query.lastProgress()
        if progress is not None:
            self.add(msgspec.json.decode(progress.json()))

    def add(self, progress: dict[str, Any]) -> None:
        """Add what a batch says, in Spark's JSON, unless it was added."""
        with self._totals.changing() as uncounted:  # whether it was is asked and answered by one thread at a time
            if progress["batchId"] > self._batch:
                self._batch = progress["batchId"]
                self._note(progress, uncounted)

    def _note(self, progress: dict[str, Any], uncounted: Uncounted) -> None:
        observed = progress.get("observedMetrics", {}).get(OBSERVED)
        if observed:
            note_tally(uncounted, observed)
        times = progress.get("eventTime", {})
        ended = _slot(times["watermark"]) if "watermark" in times else None
        dropped = sum(operator["numRowsDroppedByWatermark"] for operator in progress["stateOperators"])
        if dropped and "max" in times:
            beat = _slot(times["max"]) - self._ahead - 1  # in a slot that has ended before it is no news, and dropped
            dropped -= int(self._ended is None or beat <= self._ended)
        uncounted.late += max(0, dropped)
        self._ended = ended


def _slot(time: str) -> int:
    """The slot that Spark takes for a second."""
    return int(datetime.fromisoformat(time).timestamp())
