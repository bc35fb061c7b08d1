"""Killed and started again: every slot once, releases unchanged, no event lost or counted twice, the audit clean."""

from __future__ import annotations

import json
import os
import platform
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import wevent
import wevent.spark
from tests.spark.live import PEOPLE, Feed, agree, clock_of, settings
from tests.support.commands import PATIENCE_S, slots_of, wait_for

KILLS = int(os.environ.get("WEVENT_SPARK_KILLS", "3"))
RESULT = os.environ.get("WEVENT_SPARK_RESULT")
ROOT = Path(__file__).parents[2]


class Crowd(threading.Thread):
    """People who move about all the time."""

    def __init__(self, feed: Feed) -> None:
        super().__init__(daemon=True)
        self._feed, self._enough, self._chance = feed, threading.Event(), random.Random(1)

    def run(self) -> None:
        while not self._enough.wait(0.25):
            self._feed.send_now(*self._chance.sample(sorted(PEOPLE), 12))

    def finish(self) -> None:
        self._enough.set()
        self.join()


class Driver:
    """A driver that is started, killed, and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.out = folder, folder / "out.ndjson"
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        environment = {**os.environ, "PYTHONPATH": f"{Path(wevent.__file__).parents[1]}{os.pathsep}{ROOT}"}
        command = [sys.executable, "-m", "tests.spark.driver_process", str(self._folder)]
        with (self._folder / "log").open("ab") as log:
            self._child = subprocess.Popen(command, env=environment, start_new_session=True, stdout=log, stderr=log)

    def released(self) -> int:
        assert self._child is not None
        assert self._child.poll() is None, (self._folder / "log").read_text()[-3000:]
        return (slots_of(self.out)[-1:] or [0])[0]

    def kill(self) -> bytes:
        """Python and Java at once; what has gone out so far."""
        assert self._child is not None
        os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()
        text = self.out.read_bytes()
        return text[: text.rfind(b"\n") + 1]

    def finish(self) -> None:
        assert self._child is not None
        (self._folder / "enough").touch()
        assert self._child.wait(PATIENCE_S) == 0, (self._folder / "log").read_text()[-3000:]

    def close(self) -> None:
        if self._child is not None and self._child.poll() is None:
            os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()


def test_killed_drivers(tmp_path: Path) -> None:
    feed, driver, chance, begun = Feed(tmp_path / "in"), Driver(tmp_path), random.Random(0), time.time()
    crowd = Crowd(feed)
    crowd.start()
    try:
        for _ in range(KILLS):
            driver.start()
            before = (slots_of(driver.out)[-1:] or [0])[0]
            wait_for(lambda before=before: driver.released() > before, "a release")  # type: ignore[misc]
            time.sleep(chance.uniform(0.0, 4.0))
            gone_out = driver.kill()
            assert driver.out.read_bytes().startswith(gone_out)
        driver.start()
        crowd.finish()
        last = feed.sent[-1][0]
        wait_for(lambda: driver.released() >= clock_of(driver.out).slot_of(round(last * 1e6)), "the last slot")
        driver.finish()
    finally:
        crowd.finish()
        driver.close()
    assert driver.out.read_bytes().startswith(gone_out)
    slots = agree(feed, driver.out)
    assert wevent.verify_journal(tmp_path / "run.journal").ok
    if RESULT:
        result = {
            "command": "make soak",
            "kills": KILLS,
            "slots": slots,
            "events": len(feed.sent),
            "seconds": round(time.time() - begun, 1),
            "python": platform.python_version(),
            "pyspark": pyspark.__version__,
            "outcome": "every slot once, every event counted once, releases unchanged, the audit clean",
        }
        Path(RESULT).write_text(json.dumps(result, indent=2) + "\n")


def workers_of(parent: int) -> list[int]:
    """Python workers that descend from a process."""
    parents, commands = dict[int, int](), dict[int, bytes]()
    for entry in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        with suppress(OSError):
            parents[entry] = int(Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1])
            commands[entry] = Path(f"/proc/{entry}/cmdline").read_bytes()

    def descends(entry: int | None) -> bool:  # numbers of processes begin anew: a child may have a smaller one
        while entry is not None and entry != parent:
            entry = parents.get(entry)
        return entry == parent

    return [entry for entry, command in commands.items() if b"pyspark.daemon" in command and descends(entry)]


def test_a_killed_python_worker(spark: SparkSession, tmp_path: Path) -> None:
    """Who hands over a stream with a function in Python has workers; one that dies changes nothing."""
    feed, out, slow = Feed(tmp_path / "in"), tmp_path / "out.ndjson", tmp_path / "slow"

    def lower(text: str) -> str:
        if slow.exists():
            time.sleep(1.0)
        return text.lower()

    stream = feed.stream(spark).withColumn("cell", F.udf(lower)("cell"))
    query = wevent.spark.publish(
        stream, journal=tmp_path / "run.journal", checkpoint=tmp_path / "checkpoint", out=out, **settings()
    )
    try:
        feed.send_now("u1", "u2")
        wait_for(lambda: (slots_of(out)[-1:] or [0])[0] >= 1, "a release")
        slow.touch()
        feed.send_now("u3", "u4", "u5")
        killed = 0
        deadline = time.monotonic() + PATIENCE_S
        while killed < 2 and time.monotonic() < deadline:
            for worker in workers_of(os.getpid()):
                os.kill(worker, signal.SIGKILL)
                killed += 1
            time.sleep(0.2)
        slow.unlink()
        assert killed
        feed.send_now("u6")
        wait_for(lambda: slots_of(out)[-1] >= clock_of(out).slot_of(round(feed.sent[-1][0] * 1e6)), "the last slot")
        assert query.isActive
    finally:
        query.stop()
    agree(feed, out)
    assert wevent.verify_journal(tmp_path / "run.journal").ok
