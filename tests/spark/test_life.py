"""The life of a query: it ends by itself, is stopped, goes on, fails with the loop, and says what it refuses."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import wevent
import wevent.spark
from tests.spark.live import LENGTH_S, Feed, agree, clock_of, moment, released, settings
from tests.support.commands import PATIENCE_S, slots_of, wait_for
from wevent import InvalidInput, InvalidSettings, JournalLocked, StorageFailed
from wevent.journal.sqlite import SqliteJournal
from wevent.publishing.registrations import Requested, choose, leave


def publish(spark: SparkSession, folder: Path, feed: Feed, **changes: Any) -> wevent.spark.SparkPublication:
    given = {"journal": folder / "run.journal", "checkpoint": folder / "checkpoint", "out": folder / "out.ndjson"}
    return wevent.spark.publish(feed.stream(spark), **{**given, **settings(), **changes})


def wait_for_slot(folder: Path, slot: int, feed: Feed | None = None) -> None:
    """Until a slot is out; meanwhile somebody is somewhere."""

    def out() -> bool:
        if feed is not None:
            feed.send_now("u1", "u2", "u3")
            time.sleep(0.3)
        return (slots_of(folder / "out.ndjson")[-1:] or [0])[0] >= slot

    wait_for(out, f"slot {slot}")


def test_a_stream_with_an_end_ends_by_itself(spark: SparkSession, tmp_path: Path) -> None:
    feed, begun = Feed(tmp_path / "in"), int(time.time())
    feed.send((begun, "u1", "north"), (begun + 0.001, "u1", "south"), (begun - 3, "u3", "west"))
    feed.send((None, "u1", "north"), (begun, None, "north"), (begun, "u1", None), (begun, "nobody", "north"))
    outside = [(begun + 1e6, "u1", "north"), (begun + 10, "u1", "north"), (begun - 60, "u1", "north")]
    feed.send(*outside, (begun, "u1", "nowhere"))
    time.sleep(max(0.0, begun + 2.1 - time.time()))  # no event lies ahead of the clock
    feed.send((begun + 2, "u2", "west"))  # all for the first batch: none is late, however long it takes until then
    query = publish(spark, tmp_path, feed, start=moment(begun - 4), end=moment(begun + 8))
    assert isinstance(query, wevent.spark.SparkPublication)
    assert query.awaitTermination(PATIENCE_S), "it does not end"
    feed.sent = [
        event for event in feed.sent if event not in outside and event[1] != "nobody" and event[2] != "nowhere"
    ]
    assert agree(feed, tmp_path / "out.ndjson") == 6
    assert query.report is not None
    assert query.report.summary.last == 6
    time.sleep(1.5)  # a clean-up of the state would have run
    assert not (tmp_path / "checkpoint").exists(), "nothing is left of events"
    totals = {name: number for name, number in query.report.totals.items() if number}
    assert totals == {
        "events": 9, "rejected": 5, "unknown_user": 1, "unknown_cell": 1, "before": 1, "after": 2,
        "malformed": 3, "no_user": 1, "no_cell": 1, "no_time": 1,
    }  # fmt: skip
    assert "totals" not in repr(query.report)
    assert wevent.verify_journal(tmp_path / "run.journal").ok
    again = publish(spark, tmp_path, feed, start=moment(begun - 4), end=moment(begun + 8))
    assert again.awaitTermination(PATIENCE_S), "there is nothing to do"
    assert agree(feed, tmp_path / "out.ndjson") == 6


def test_stopped_and_started_again_it_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    feed, out = Feed(tmp_path / "in"), tmp_path / "out.ndjson"
    query = publish(spark, tmp_path, feed)
    wait_for_slot(tmp_path, 2, feed)
    with pytest.raises(JournalLocked):
        publish(spark, tmp_path, feed, checkpoint=tmp_path / "other")
    query.stop()
    assert (query.isActive, query.exception()) == (False, None)
    SqliteJournal(tmp_path / "run.journal", write=True).close()  # nobody holds it
    before = out.read_bytes()
    feed.send_now("u4", "u5")  # while it is down
    place, stopped = tmp_path / "run.journal", len(before.splitlines())
    leave(place, "u2")
    choose(place, "u99", Requested("1", "50"))
    with pytest.raises(InvalidSettings, match="another journal's"):
        publish(spark, tmp_path, feed, journal=tmp_path / "new.journal", out=tmp_path / "new.ndjson")
    with pytest.raises(InvalidSettings, match="other slots, cells"):
        publish(
            spark,
            tmp_path,
            feed,
            cells=["north"],
            options=wevent.RunOptions(reconfigure=True),
            out=tmp_path / "new.ndjson",
        )
    query = publish(spark, tmp_path, feed, requirements=None)
    feed.send_now("u2", "u99")
    wait_for_slot(tmp_path, clock_of(out).slot_of(round(feed.sent[-1][0] * 1e6)))
    spark.streams.get(query.id).stop()  # by somebody who knows nothing of wevent
    query.awaitTermination(PATIENCE_S)
    wait_for(lambda: query.report is not None, "the loop to notice")
    assert out.read_bytes().startswith(before)
    clock = clock_of(out)
    counted = [event for event in feed.sent if event[1] != "u2" or clock.slot_of(round(event[0] * 1e6)) <= stopped]
    assert len(counted) < len(feed.sent)
    feed.sent = counted
    agree(feed, out)
    assert wevent.verify_journal(place).ok


def test_stopped_before_the_first_slot_is_out_it_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    """Where slot 1 began is not said and not pinned yet; its events are in the checkpoint."""
    feed, out = Feed(tmp_path / "in"), tmp_path / "out.ndjson"
    query = publish(spark, tmp_path, feed, grace="1h")  # slot 1 stays open
    feed.send_now("u1", "u2", "u3")
    wait_for(lambda: query.lastProgress is not None and query.totals["events"] == 3, "a batch")
    query.stop()
    assert slots_of(out) == []
    time.sleep(LENGTH_S)  # now, slot 1 would begin later
    query = publish(spark, tmp_path, feed, grace="4s")
    wait_for_slot(tmp_path, 2)
    query.stop()
    assert agree(feed, out) >= 2
    assert sum(sum(counts.values()) for counts in released(out).values()) == 3


def test_a_loop_that_fails_fails_the_query(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = Feed(tmp_path / "in")
    query = publish(spark, tmp_path, feed)
    wait_for_slot(tmp_path, 1)

    def full(*_: Any) -> None:
        raise StorageFailed("The journal is on a full disk.", "Make room.")

    monkeypatch.setattr(SqliteJournal, "commit", full)
    with pytest.raises(StorageFailed, match="a full disk"):
        query.awaitTermination(PATIENCE_S)
    assert not query.isActive
    failed = query.exception()
    assert failed is not None
    assert "a full disk" in str(failed)
    monkeypatch.undo()
    query = publish(spark, tmp_path, feed)
    wait_for_slot(tmp_path, 3)
    query.stop()
    assert len(released(tmp_path / "out.ndjson")) >= 3


def test_what_is_there_now(spark: SparkSession, tmp_path: Path) -> None:
    """A trigger that ends, as a scheduled job does: slots that are over are out, the others stay in the checkpoint."""
    feed, begun = Feed(tmp_path / "in"), int(time.time())
    how: dict[str, Any] = {"trigger": "available now", "start": moment(begun - 1800), "slot": "10m", "grace": "0s"}
    feed.send((begun - 1500, "u1", "north"), (begun - 700, "u2", "south"), (begun, "u3", "west"))
    assert publish(spark, tmp_path, feed, **how).awaitTermination(PATIENCE_S)
    assert released(tmp_path / "out.ndjson") == {1: {"north": 1}, 2: {"south": 1}, 3: {}}
    feed.send((begun - 1500, "u1", "south"), (begun - 100, "u3", "north"))
    query = publish(spark, tmp_path, feed, **how)
    assert query.awaitTermination(PATIENCE_S)
    assert len(released(tmp_path / "out.ndjson")) == 3, "slot 4 is not over"
    assert query.totals["late"] == 2


def test_what_is_not_said_again_is_as_the_journal_has_it(spark: SparkSession, tmp_path: Path) -> None:
    feed, begun = Feed(tmp_path / "in"), int(time.time())
    how: dict[str, Any] = {"trigger": "available now", "start": moment(begun - 1800), "slot": "10m", "grace": "0s"}
    feed.send((begun - 1500, "u1", "north"), (begun - 1400, "u1", "south"))
    assert publish(spark, tmp_path, feed, **how, max_cells_per_user=2).awaitTermination(PATIENCE_S)
    assert publish(spark, tmp_path, feed, **how).awaitTermination(PATIENCE_S), "its checkpoint is of two cells per user"
    assert released(tmp_path / "out.ndjson") == {1: {"north": 1, "south": 1}, 2: {}, 3: {}}


class TestRefusals:
    def test_what_is_no_stream(self, spark: SparkSession, tmp_path: Path) -> None:
        where = {"journal": tmp_path / "run.journal", "checkpoint": tmp_path / "checkpoint"}
        for stream, said in ((spark.range(1), "a DataFrame that is not streaming"), ([1], "list")):
            with pytest.raises(InvalidInput, match=said):
                wevent.spark.publish(stream, **where, **settings())
        assert list(tmp_path.iterdir()) == []

    def test_a_watermark_that_events_move(self, spark: SparkSession, tmp_path: Path) -> None:
        own = spark.readStream.format("rate").load().withWatermark("timestamp", "1 minute").where("value > 0")
        where = {"journal": tmp_path / "run.journal", "checkpoint": tmp_path / "checkpoint"}
        with pytest.raises(InvalidInput, match=r"has a watermark \(withWatermark\)"):
            wevent.spark.publish(own, **where, **settings())
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("changes", "error", "said"),
        [
            ({"release_delay": "3500ms"}, InvalidSettings, "4 s late, the grace and 2 triggers"),
            ({"trigger": "0s"}, InvalidSettings, "is no time"),
            ({"trigger": "often"}, InvalidSettings, "trigger must be a whole number with a unit"),
            ({"close_slots_by": "lines"}, InvalidSettings, "close_slots_by in the settings"),
            ({"slot_column": "slot", "slot": None}, InvalidSettings, "slot_column in the settings"),
            ({"strict": True}, InvalidSettings, "strict in the settings"),
            ({"time_column": "when"}, InvalidInput, "no column 'when'"),
            ({"options": "new"}, InvalidSettings, "RunOptions"),
        ],
    )
    def test_settings(
        self, spark: SparkSession, tmp_path: Path, changes: dict[str, Any], error: type[Exception], said: str
    ) -> None:
        with pytest.raises(error, match=said):
            publish(spark, tmp_path, Feed(tmp_path / "in"), **changes)
        assert not (tmp_path / "checkpoint").exists()
        assert not any(thread.isActive for thread in spark.streams.active)
