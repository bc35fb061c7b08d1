"""What Spark says of its batches, for the operator."""

from __future__ import annotations

from typing import Any

from wevent.spark.event_plan import REASONS
from wevent.spark.heartbeats import OBSERVED
from wevent.spark.progress_totals import ProgressTotals
from wevent.streams.uncounted import Uncounted


def progress(batch: int, ended: int, latest: int, dropped: int, **observed: int) -> dict[str, Any]:
    """As Spark writes it; slots are seconds."""
    times = {"max": f"1970-01-01T00:00:{latest:02d}.000Z", "watermark": f"1970-01-01T00:00:{ended:02d}.000Z"}
    metrics = {OBSERVED: {**dict.fromkeys(("rows", *REASONS), 0), **observed}} if observed else {}
    state = [{"numRowsDroppedByWatermark": dropped}]
    return {"batchId": batch, "eventTime": times, "stateOperators": state, "observedMetrics": metrics}


def test_heartbeats_are_not_late_events() -> None:
    uncounted = Uncounted()
    totals = ProgressTotals(uncounted, ahead=1)
    totals.add(progress(0, ended=0, latest=5, dropped=1))
    assert uncounted.late == 0, "nobody knows what ended before: the heartbeat's own row may be it"
    totals.add(progress(1, ended=3, latest=5, dropped=2))
    assert uncounted.late == 2, "slot 3 had not ended for the batch before: the heartbeat is news"
    totals.add(progress(2, ended=3, latest=5, dropped=3))
    assert uncounted.late == 4, "now it is none"
    totals.add(progress(2, ended=3, latest=5, dropped=3))
    assert uncounted.late == 4, "each batch once"


def test_reasons() -> None:
    uncounted = Uncounted()
    ProgressTotals(uncounted, ahead=0).add(
        progress(0, 0, 1, 0, rows=20, no_user=1, no_time=2, no_offset=3, before=4, after=5, unknown_cell=1)
    )
    found = {name: number for name, number in uncounted.totals().items() if number}
    assert found == {
        "events": 14,
        "rejected": 10,
        "malformed": 6,
        "no_user": 1,
        "no_time": 2,
        "no_offset": 3,
        "before": 4,
        "after": 5,
        "unknown_cell": 1,
    }
    uncounted = Uncounted()
    ProgressTotals(uncounted, ahead=0).look()
    assert uncounted.events == 0
