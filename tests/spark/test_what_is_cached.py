"""Events and who is registered are kept by Spark while it counts, and no longer; a session is left as it was."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import wevent.spark
from tests.spark.live import Feed, settings
from tests.spark.test_frames import CLOCK, COUNTING, frame
from tests.support.commands import slots_of, wait_for
from tests.support.streams import roster
from tests.support.streams import settings as file_settings
from wevent import InvalidEvents, InvalidInput
from wevent.publishing.registrations import Requested, choose
from wevent.spark.class_counts import ClassCounter
from wevent.spark.input_files import FolderSource


def cached(spark: SparkSession) -> int:
    """How many frames the application keeps."""
    context: Any = spark.sparkContext
    return len(context._jsc.getPersistentRDDs())


def test_rosters_are_let_go(spark: SparkSession, tmp_path: Path) -> None:
    before, feed, out = cached(spark), Feed(tmp_path / "in"), tmp_path / "out.ndjson"
    query = wevent.spark.publish(
        feed.stream(spark), journal=tmp_path / "run.journal", checkpoint=tmp_path / "checkpoint", out=out, **settings()
    )
    most = 0
    for number in range(3):
        choose(tmp_path / "run.journal", f"new{number}", Requested("1", "50"))
        released = len(slots_of(out))

        def another(released: int = released) -> bool:
            nonlocal most
            feed.send_now("u1", "u2")
            time.sleep(0.3)  # every file costs Spark a task
            most = max(most, cached(spark) - before)
            return len(slots_of(out)) > released

        wait_for(another, "a release")
    assert 0 < most <= 2, "a roster, and the rows of a batch"
    query.stop()
    wait_for(lambda: cached(spark) == before, "the last roster to be let go")


def test_counting_a_frame_keeps_nobody(spark: SparkSession) -> None:
    before = cached(spark)
    counted = wevent.spark.count(frame(spark), **COUNTING)
    assert counted.count() == 4
    assert cached(spark) == before


def is_as_before(spark: SparkSession, kept: int) -> bool:
    """Whether an application has what it had: so many frames, no tag on this thread, and the same session."""
    tags = set(spark.sparkContext.getJobTags())
    return cached(spark) == kept and not tags and SparkSession.getActiveSession() is spark


def write_text(folder: Path, *more: str) -> str:
    rows = [f"2026-01-01T00:0{minute}:01Z,{user},1" for minute in range(3) for user in (1, 2)]
    path = folder / "events.csv"
    path.write_text("\n".join(("time,user,cell", *rows, *more)) + "\n")
    return str(path)


class TestFiles:
    @pytest.fixture
    def before(self, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> int:
        """How many frames are kept; the session is the active one, and a job counts one slot."""
        monkeypatch.setattr(ClassCounter, "stretch", lambda self, roster: 1)
        spark.createDataFrame([], "nothing int")
        kept = cached(spark)
        assert is_as_before(spark, kept)
        return kept

    def test_nothing_is_kept_after_the_last_slot(self, spark: SparkSession, tmp_path: Path, before: int) -> None:
        source = FolderSource(spark, file_settings([write_text(tmp_path)]), CLOCK, 3)
        assert is_as_before(spark, before)
        counting = source.count(roster(), 1, 9)
        next(counting)
        assert cached(spark) == before + 2, "folded events, and a roster"
        assert is_as_before(spark, before + 2)
        assert [one.slot for one in counting] == [2, 3]
        assert is_as_before(spark, before)
        assert len(list(source.count(roster(), 3, 1))) == 1, "what was let go is read again"
        assert is_as_before(spark, before)

    def test_nor_after_a_stop(self, spark: SparkSession, tmp_path: Path, before: int) -> None:
        source = FolderSource(spark, file_settings([write_text(tmp_path)]), CLOCK, 3)
        next(source.count(roster(), 1, 1))
        assert cached(spark) == before + 2
        source.stop()
        wait_for(lambda: is_as_before(spark, before), "everything to be let go")
        assert list(source.count(roster(), 2, 1)) == []

    def test_nor_after_an_error(
        self, spark: SparkSession, tmp_path: Path, before: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        strict = FolderSource(spark, file_settings([write_text(tmp_path, "no event")], strict=True), CLOCK, 3)
        with pytest.raises(InvalidEvents, match="strict"):
            next(strict.count(roster(), 1, 1))
        assert is_as_before(spark, before)
        source = FolderSource(spark, file_settings([write_text(tmp_path)]), CLOCK, 3)
        next(source.count(roster(), 1, 1))
        assert cached(spark) == before + 2
        monkeypatch.setattr(ClassCounter, "count", lambda *_: spark.sql("SELECT raise_error('x')").collect())
        with pytest.raises(InvalidInput, match="Spark cannot read the input files"):
            next(source.count(roster(), 2, 1))
        assert is_as_before(spark, before)
