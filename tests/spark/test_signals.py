"""`wevent publish --engine spark`, stopped before its first slot: as with every other engine, and no word of Java's."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import wevent
from tests.spark.arrivals import CLOCK as SLOTS
from tests.spark.arrivals import LAST, Raw, settings, write_parquet
from tests.support.commands import CLOCK, PATIENCE_S, PEOPLE, slots_of, start, wait_for, write_stream
from tests.support.streams import roster
from wevent.spark.class_counts import ClassCounter
from wevent.spark.input_files import FolderSource


def has_java(parent: int) -> bool:
    """Whether Spark is on its way: a process has one whose parent it is."""
    return bool(Path(f"/proc/{parent}/task/{parent}/children").read_text().split())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_spark_starts_ends_it_with_exit_code_0(tmp_path: Path, number: signal.Signals) -> None:
    write_stream(tmp_path, 2)
    files = ("--end", "2026-01-01T00:02:00Z", "--journal", "run.journal", "--out", "out.ndjson")
    child = start(tmp_path, "publish", "events.csv", *CLOCK, *files, *PEOPLE, "--engine", "spark")
    wait_for(lambda: (tmp_path / "run.journal").exists() and has_java(child.pid), "Java")
    child.send_signal(number)
    _, err = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 0, err
    assert "No slot was published. Stopped as asked" in err
    assert not any(word in err for word in ("Traceback", "KeyboardInterrupt", "ERROR")), err
    assert slots_of(tmp_path / "out.ndjson") == []


def test_a_job_that_runs_is_given_up(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_parquet(tmp_path / "events.parquet", [Raw("2026-01-01T00:00:01Z", "1", "1")])
    source = FolderSource(spark, settings(inputs=(path,)), SLOTS, LAST)

    def lasting(*_: Any) -> Any:
        source.stop()
        return spark.range(10**11).selectExpr("sum(hash(id))").collect()

    monkeypatch.setattr(ClassCounter, "count", lasting)
    assert list(source.count(roster(), 1, 1)) == []


_OF_HADOOP = re.compile(
    r"[^\n]*WARN Shell: Interrupted[^\n]*\njava\.lang\.InterruptedException[^\n]*\n(?:\tat [^\n]*\n?)*"
)
"""What Hadoop logs if it is just renaming a file of the checkpoint when the query is stopped: Spark does that again."""


def test_the_program_on_the_page_ends_with_exit_code_0(spark: SparkSession, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "spark.md").read_text(encoding="utf-8")
    program = page.split("```python\n")[1].split("```")[0].replace("/data/", f"{tmp_path}/")
    write_stream(tmp_path, 2)
    (tmp_path / "users.csv").rename(tmp_path / "requirements.csv")
    (tmp_path / "cells.txt").write_text("a\nb\n")
    (tmp_path / "events").mkdir()
    environment = {**os.environ, "PYTHONPATH": str(Path(wevent.__file__).parents[1]), "PYSPARK_PYTHON": sys.executable}
    child = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_for(lambda: (tmp_path / "checkpoint" / "commits" / "0").exists(), "a batch")
    os.killpg(child.pid, signal.SIGINT)  # as a terminal does
    _, err = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 0, err
    told = _OF_HADOOP.sub("", err)
    assert not any(word in told for word in ("Traceback", "KeyboardInterrupt", "\tat ")), err


_OWN = """
import signal
from wevent.spark.input_files import PARTITIONS, session_for_files
before = signal.getsignal(signal.SIGINT)
session = session_for_files()
print(session.conf.get(PARTITIONS), session.sparkContext.defaultParallelism, signal.getsignal(signal.SIGINT) is before)
"""


def test_a_session_that_a_command_makes_fits_the_machine_and_leaves_signals_alone(spark: SparkSession) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(wevent.__file__).parents[1])}
    told = [*["--master", "local[3]", "pyspark-shell"]]
    found = []
    for more in ([], ["--conf", "spark.sql.shuffle.partitions=7"]):
        chosen = {**environment, "PYSPARK_SUBMIT_ARGS": " ".join([*more, *told])}
        done = subprocess.run([sys.executable, "-c", _OWN], env=chosen, capture_output=True, text=True, check=True)
        found.append(done.stdout.split())
    assert found == [["3", "3", "True"], ["7", "3", "True"]]
