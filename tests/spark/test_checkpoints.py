"""The folder that a query keeps its state in: whose it is, and one sentence where it cannot be used."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import wevent.spark
from tests.spark.live import Feed, agree, settings
from tests.support.commands import PATIENCE_S, slots_of, wait_for
from wevent import InvalidSettings, StorageFailed
from wevent.errors import WeventError
from wevent.spark.checkpoint import Checkpoint


def publish(spark: SparkSession, folder: Path, feed: Feed, **changes: Any) -> wevent.spark.SparkPublication:
    given = {"journal": folder / "run.journal", "checkpoint": folder / "checkpoint", "out": folder / "out.ndjson"}
    return wevent.spark.publish(feed.stream(spark), **{**given, **settings(), **changes})


def one_sentence(error: WeventError) -> bool:
    """Nothing of Java's, and not a page of it."""
    text = str(error)
    return "\n" not in text and "\tat " not in text and "py4j" not in text and len(text) < 500


def test_one_of_something_else(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "metadata").write_text('{"id":"x"}')
    with pytest.raises(InvalidSettings, match="another query's"):
        publish(spark, tmp_path, Feed(tmp_path / "in"))


def test_a_folder_with_something_in_it(spark: SparkSession, tmp_path: Path) -> None:
    """In the end the checkpoint is removed, and everything in it."""
    with pytest.raises(InvalidSettings, match="a folder with something in it"):
        publish(spark, tmp_path, Feed(tmp_path / "in"), checkpoint=tmp_path)
    assert (tmp_path / "in").is_dir()


def test_one_that_stays(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Checkpoint(spark, str(tmp_path))
    kept.remove()
    kept.remove()  # it is not there any more
    stays = SimpleNamespace(delete=lambda path, deep: False, exists=lambda path: True)
    monkeypatch.setattr(kept, "_files", stays)
    with pytest.raises(StorageFailed, match="Remove the folder"):
        kept.remove()


def beneath_a_file(folder: Path) -> str:
    (folder / "file").write_text("")
    return str(folder / "file" / "checkpoint")


PLACES: dict[str, tuple[Callable[[Path], str], str]] = {
    "an unknown file system": (lambda folder: "foo://x/y", "UnsupportedFileSystemException"),
    "half an address": (lambda folder: "a:b", "IllegalArgumentException"),
    "no name": (lambda folder: "", "IllegalArgumentException"),
    "beneath a file": (beneath_a_file, "ParentNotDirectoryException"),
    "where nobody may write": (lambda folder: "/proc/wevent", "Exception"),
}


@pytest.mark.parametrize("name", list(PLACES))
def test_a_place_that_spark_cannot_use(spark: SparkSession, tmp_path: Path, name: str) -> None:
    place_of, why = PLACES[name]
    with pytest.raises(InvalidSettings, match=f"a folder that Spark can read and write.*{why}") as found:
        publish(spark, tmp_path, Feed(tmp_path / "in"), checkpoint=place_of(tmp_path))
    assert one_sentence(found.value)
    assert found.value.facts["key"] == "checkpoint"
    assert not spark.streams.active


def test_one_whose_mark_is_gone(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing says whose events are in it."""
    feed = Feed(tmp_path / "in")
    publish(spark, tmp_path, feed).stop()
    (mark,) = (tmp_path / "checkpoint").glob("wevent-*")
    mark.unlink()
    with pytest.raises(InvalidSettings, match="another query's, or a folder with something in it") as found:
        publish(spark, tmp_path, feed)
    assert one_sentence(found.value)


def test_one_that_vanishes(spark: SparkSession, tmp_path: Path) -> None:
    feed, out = Feed(tmp_path / "in"), tmp_path / "out.ndjson"
    query = publish(spark, tmp_path, feed)
    feed.send_now("u1", "u2")
    wait_for(lambda: bool(slots_of(out)), "a release")
    shutil.rmtree(tmp_path / "checkpoint", ignore_errors=True)
    with pytest.raises(StorageFailed, match="has gone, or cannot be read") as found:
        query.awaitTermination(PATIENCE_S)
    assert one_sentence(found.value)
    assert wevent.verify_journal(tmp_path / "run.journal").ok
    before = out.read_bytes()
    query = publish(spark, tmp_path, feed)  # anew, from where the source begins: what is committed is not counted again
    wait_for(lambda: len(out.read_bytes()) > len(before), "another release")
    query.stop()
    assert out.read_bytes().startswith(before)
    agree(feed, out)
    assert wevent.verify_journal(tmp_path / "run.journal").ok


DAMAGED: dict[str, Callable[[Path], object]] = {
    "torn": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "empty": lambda file: file.write_bytes(b""),
    "garbage": lambda file: file.write_bytes(b"\xff" * 50),
    "gone": lambda file: file.unlink(),
}
PARTS = {
    "metadata": ("torn", "gone"),
    "offsets/*": ("torn",),
    "commits/*": ("empty",),
    "sources/0/*": ("gone",),
    "state/0/?/*": ("garbage", "gone"),
}


@pytest.fixture(scope="module")
def stopped(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A query that has released slots and was stopped with one more open."""
    folder = tmp_path_factory.mktemp("stopped")
    feed, out = Feed(folder / "in"), folder / "out.ndjson"
    query = publish(spark, folder, feed)
    for number in range(3):
        feed.send_now("u1", "u2")
        read = folder / "checkpoint" / "sources" / "0" / f"{number}"  # each file in a batch of its own
        wait_for(lambda number=number, read=read: len(slots_of(out)) > number and read.exists(), "a release")  # type: ignore[misc]
    query.stop()
    return folder


@pytest.mark.parametrize(("part", "kind"), [(part, kind) for part, kinds in PARTS.items() for kind in kinds])
def test_a_damaged_one(spark: SparkSession, stopped: Path, tmp_path: Path, part: str, kind: str) -> None:
    folder = tmp_path / "run"
    shutil.copytree(stopped, folder)
    for file in (folder / "checkpoint").glob(part):
        if file.is_file() and not file.name.startswith("."):
            DAMAGED[kind](file)
            (file.parent / f".{file.name}.crc").unlink(missing_ok=True)
    feed = Feed(stopped / "in")  # what the checkpoint has read
    with pytest.raises(StorageFailed, match="Spark cannot read and continue the checkpoint") as found:
        publish(spark, folder, feed).awaitTermination(PATIENCE_S)
    assert one_sentence(found.value)
    assert not spark.streams.active


def test_an_error_that_is_not_of_the_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in")
    broken = feed.stream(spark).selectExpr("time", "cast(raise_error('not here') as string) as user", "cell")
    given = {"journal": tmp_path / "run.journal", "checkpoint": tmp_path / "checkpoint"}
    query = wevent.spark.publish(broken, **{**given, **settings()})
    feed.send_now("u1")
    with pytest.raises(StreamingQueryException, match="not here"):
        query.awaitTermination(PATIENCE_S)
