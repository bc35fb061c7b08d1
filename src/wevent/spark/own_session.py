"""The Spark that a command starts for itself: quiet, encrypted, as wide as the machine, and without a hand on Ctrl-C."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from wevent.spark.encryption import ENCRYPTION, refuse_unencrypted

PARTITIONS = "spark.sql.shuffle.partitions"
"""Into how many parts Spark divides what it sorts by key: 200 unless told, whatever the machine."""

_STOP_IT = f"Stop it first, or start it with --conf {ENCRYPTION}=true."


def session_for_files() -> SparkSession:
    """The session of this process, as it is, or a new one.

    Raises:
        InvalidSettings: if there is one already, which does not encrypt what it writes.
    """
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")  # of libraries that are not used here
    running = SparkSession.getActiveSession()
    session = _new_application() if running is None else running
    refuse_unencrypted(session, _STOP_IT)  # also a new one: another thread may have been quicker
    if running is None:
        _fit(session)
    return session


def _new_application() -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers decode with what is installed here
    quiet = Path(__file__).with_name("log4j2.properties").as_uri()
    chosen = {
        ENCRYPTION: "true",
        "spark.app.name": "wevent",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={quiet}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    with _signals_later():
        SparkContext._ensure_initialized(conf=SparkConf().setAll(list(chosen.items())))
    with _signals_kept():
        return SparkSession.builder.config(map={**chosen}).getOrCreate()


def _fit(session: SparkSession) -> None:
    """As many parts as this machine has cores; where Spark's configuration says how many, or names a cluster, as it says."""
    context = session.sparkContext
    if (context.master or "").startswith("local") and not context.getConf().contains(PARTITIONS):
        session.conf.set(PARTITIONS, str(context.defaultParallelism))


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Spark takes SIGINT over when it starts, in the main thread, and makes an error of it."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


@contextmanager
def _signals_later() -> Iterator[None]:
    """Signals wait until Java has answered: one that nobody waits for any more would say so, in many lines, after the end."""
    came: list[int] = []
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = {
            number: signal.signal(number, lambda number, frame: came.append(number))
            for number in (signal.SIGINT, signal.SIGTERM)
        }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in came[:1]:
            signal.raise_signal(number)
