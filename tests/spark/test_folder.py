"""`wevent publish FOLDER --engine spark`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.commands import CLOCK, PEOPLE, Done, call, slots_of, write_stream
from wevent import verify_journal
from wevent.spark.class_counts import ClassCounter


def publish(folder: Path, events: str, minutes: int, *more: str, name: str = "run") -> Done:
    end = ("--end", f"2026-01-01T00:{minutes:02d}:00Z")
    files = ("--journal", f"{name}.journal", "--out", f"{name}.ndjson")
    return call(folder, "publish", events, *CLOCK, *end, *PEOPLE, *files, *more)


def as_parquet(spark: SparkSession, folder: Path) -> None:
    """As Spark writes: a folder of parts, and files beside them that are none."""
    read = spark.read.option("header", True).csv(f"file://{folder}/events.csv")
    read.repartition(3).write.parquet(f"file://{folder}/events")
    assert (folder / "events" / "_SUCCESS").exists()


def test_a_folder_is_published_and_resumed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_stream(tmp_path, 6)
    as_parquet(spark, tmp_path)
    quiet = ("--mechanism", "uniform")
    monkeypatch.setattr(ClassCounter, "stretch", lambda self, roster: 2)  # what is folded is kept for the next slots
    for minutes in (3, 6):
        done = publish(tmp_path, "events", minutes, "--engine", "spark", *quiet)
        assert done.code == 0, done
    assert slots_of(tmp_path / "run.ndjson") == [1, 2, 3, 4, 5, 6]
    assert verify_journal(tmp_path / "run.journal").ok
    assert publish(tmp_path, "events.csv", 6, *quiet, name="other").code == 0
    lines = [(tmp_path / f"{name}.ndjson").read_text().splitlines() for name in ("run", "other")]
    assert [json.loads(line)["charges"] for line in lines[0]] == [json.loads(line)["charges"] for line in lines[1]]
    done = publish(tmp_path, "events", 7)
    assert done.code == 2
    assert "The input 'events' is a folder" in done.err, "other engines are told the files"
    done = publish(tmp_path, "events.csv", 7, "--engine", "spark", *quiet)
    assert done.code == 2
    assert "The earlier run had 3 input files" in done.err


def test_what_is_refused(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_stream(tmp_path, 2)
    (tmp_path / "empty").mkdir()
    done = publish(tmp_path, "empty", 2, "--engine", "spark")
    assert done.code == 2
    assert "Folder 'empty' has no files" in done.err
    assert "*.csv" not in done.err, "a folder is what Spark takes"
    done = publish(tmp_path, "events.csv", 2, "--engine", "sparks")
    assert "spark" in done.err
    (tmp_path / "bad.csv").write_text("time,user,cell\nnever,1,1\n")
    done = publish(tmp_path, "bad.csv", 2, "--engine", "spark", "--strict")
    assert done.code == 2
    assert "strict allows only well-formed events" in done.err
    (tmp_path / "torn.parquet").write_bytes(b"PAR1")
    assert publish(tmp_path, "torn.parquet", 2, "--engine", "spark").code == 2

    monkeypatch.setattr(os.path, "abspath", lambda path: f"{tmp_path}/gone.csv")  # a file that goes while it is read
    done = publish(tmp_path, "events.csv", 2, "--engine", "spark")
    assert done.code == 2
    assert "Traceback" not in done.err
