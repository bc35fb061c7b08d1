"""What Spark says of its batches, for the operator."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

from tests.support.commands import PATIENCE_S
from wevent.spark.batch_source import QueryTotals
from wevent.spark.event_plan import OBSERVED, WHY


def progress(batch: int, ended: int, latest: int, dropped: int, **observed: int) -> dict[str, Any]:
    """As Spark writes it; slots are seconds."""
    times = {"max": f"1970-01-01T00:00:{latest:02d}.000Z", "watermark": f"1970-01-01T00:00:{ended:02d}.000Z"}
    metrics = {OBSERVED: {**dict.fromkeys(("rows", *WHY), 0), **observed}} if observed else {}
    state = [{"numRowsDroppedByWatermark": dropped}]
    return {"batchId": batch, "eventTime": times, "stateOperators": state, "observedMetrics": metrics}


def test_heartbeats_are_not_late_events() -> None:
    totals = QueryTotals(ahead=1)
    totals.add(progress(0, ended=0, latest=5, dropped=1))
    assert totals.totals()["late"] == 0, "nobody knows what ended before: the heartbeat's own row may be it"
    totals.add(progress(1, ended=3, latest=5, dropped=2))
    assert totals.totals()["late"] == 2, "slot 3 had not ended for the batch before: the heartbeat is news"
    totals.add(progress(2, ended=3, latest=5, dropped=3))
    assert totals.totals()["late"] == 4, "now it is none"
    totals.add(progress(2, ended=3, latest=5, dropped=3))
    assert totals.totals()["late"] == 4, "each batch once"


def test_reasons() -> None:
    totals = QueryTotals(ahead=0)
    totals.add(progress(0, 0, 1, 0, rows=20, no_user=1, no_time=2, no_offset=3, before=4, after=5, unknown_cell=1))
    found = {name: number for name, number in totals.totals().items() if number}
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
    totals = QueryTotals(ahead=0)
    totals.look()
    assert totals.totals()["events"] == 0


class Meeting(dict[str, Any]):
    """A batch over which two threads meet, if they can, when they ask for its number."""

    def __init__(self, said: dict[str, Any]) -> None:
        super().__init__(said)
        self._both = threading.Barrier(2)

    def __getitem__(self, name: str) -> Any:
        if name == "batchId":
            with suppress(threading.BrokenBarrierError):
                self._both.wait(0.3)
        return super().__getitem__(name)


def test_a_batch_that_two_threads_look_at_counts_once() -> None:
    totals = QueryTotals(ahead=0)
    said = Meeting(progress(0, 0, 1, 0, rows=20, no_user=1))
    threads = [threading.Thread(target=totals.add, args=(said,), daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert (totals.totals()["events"], totals.totals()["malformed"]) == (19, 1)
