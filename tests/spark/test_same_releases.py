"""With one seed, one release: whatever counts, the loop, the registry and the journal behind it do the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.arrivals import (
    CELLS,
    CLOCK,
    LAST,
    PEOPLE,
    SLOT,
    Streamed,
    by_files,
    by_log,
    by_spark_files,
    script,
)
from tests.support.commands import PATIENCE_S
from tests.support.synthetic import make_terms
from wevent import SeededNoise
from wevent.journal import SqliteJournal
from wevent.outputs import KeptOutput
from wevent.outputs.lines import ndjson_line
from wevent.people.membership import Change
from wevent.publishing import loop
from wevent.publishing.loop import Publication, Running
from wevent.streams.source import Source

NARROW, WIDE = (2, 2_000_000_000), (3, 1_000_000_000)


def publish(path: Path, source: Source) -> list[bytes]:
    """Publish the whole stream; after slot 1 people join, change and leave."""
    terms = make_terms(
        origin_us=CLOCK.origin_us, length_us=SLOT, cells=list(CELLS), declared=[NARROW, WIDE], unknown_users=2
    )
    with SqliteJournal(path, write=True) as journal:
        journal.begin(terms)
        journal.registry.ask(Change("set", user, (NARROW, WIDE)[len(user) % 2]) for user in PEOPLE)

        def at(step: str) -> None:
            if step == "emitted" and journal.head().committed == 1:
                moved = (Change("set", "anna", WIDE), Change("remove", "bob"), Change("set", "zoe", NARROW))
                journal.registry.ask(moved)

        publication = Publication(
            journal, source, KeptOutput(), running=Running(last=LAST, at=at), noise=SeededNoise(7)
        )
        assert publication.run().last == LAST
        return [ndjson_line(record) for record in journal.releases()]


def test_every_engine_releases_the_same(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "_BEHIND", 1)  # people change between the same two slots, however many close at once
    arrivals = script(seed=11)
    expected = publish(tmp_path / "spool.journal", by_log(tmp_path, arrivals))
    assert len(expected) == LAST
    others: dict[str, Callable[[], Source]] = {
        "files": lambda: by_files(tmp_path, arrivals),
        "files of spark": lambda: by_spark_files(spark, tmp_path, arrivals),
    }
    for name, source_of in others.items():
        assert publish(tmp_path / f"{name}.journal", source_of()) == expected, name
    streamed = Streamed(spark, tmp_path, arrivals)
    query = streamed.start()
    assert publish(tmp_path / "stream.journal", streamed.source) == expected
    assert query.awaitTermination(PATIENCE_S)
