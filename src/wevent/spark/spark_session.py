"""Sessions of Spark: the one that a command starts for itself, copies of others, and their encryption."""

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

from wevent.errors import InvalidSettings

ENCRYPTION = "spark.io.encryption.enabled"
"""Makes Spark encrypt shuffles and spills, under keys that end with the application; read once, when that starts."""
PARTITIONS = "spark.sql.shuffle.partitions"
"""Number of parts into which Spark divides rows by key; its default is 200 on any machine."""


def session_for_files() -> SparkSession:
    """Return the session of this process, as it is, or a new one.

    Raises:
        InvalidSettings: if there is one already, which does not encrypt what it writes.
    """
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")  # of libraries that are not used here
    running = SparkSession.getActiveSession()
    session = _new_application() if running is None else running
    # Also for a new one: another thread may have been quicker.
    refuse_unencrypted(session, f"Stop it first, or start it with --conf {ENCRYPTION}=true.")
    context = session.sparkContext
    is_local = (context.master or "").startswith("local")
    if running is None and is_local and not context.getConf().contains(PARTITIONS):
        session.conf.set(PARTITIONS, str(context.defaultParallelism))
    return session


def refuse_unencrypted(session: SparkSession, fix: str) -> None:
    """Refuse an application that writes shuffles and spills as they are: disks outlive it, and events are in them.

    The application's own configuration counts: a setting of the session changes nothing.

    Raises:
        InvalidSettings: if it does.
    """
    if session.sparkContext.getConf().get(ENCRYPTION, "false").strip().lower() != "true":
        raise InvalidSettings(
            f"The session was started without {ENCRYPTION}=true: people's events would stay on disk for a while, in shuffles "
            "and spills.",
            fix,
            key="unencrypted",
        )


def copy_session(session: SparkSession, values: dict[str, str]) -> SparkSession:
    """Return a session of the same application with the same settings but these: other threads do not see it."""
    java: Any = session._jsparkSession
    own = SparkSession(session.sparkContext, java.cloneSession())
    for name, value in values.items():
        own.conf.set(name, value)
    return own


def activate(session: SparkSession) -> None:
    """Make a session the active one of this thread, as it was before a copy of it was used."""
    java = getattr(session._jvm, "org.apache.spark.sql.classic.SparkSession")  # as `createDataFrame` of a copy does
    java.setActiveSession(session._jsparkSession)
    SparkSession._activeSession = session


def _new_application() -> SparkSession:
    """Start an application that is quiet and encrypted, as wide as the machine, and leaves Ctrl-C alone."""
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
        return SparkSession.builder.config(map={**chosen}).getOrCreate()


@contextmanager
def _signals_later() -> Iterator[None]:
    """Delay signals until Java has answered, and restore their handlers.

    Spark reports an answer without a reader in many lines, after the end. It also takes SIGINT over when it starts, in the
    main thread, and makes an error of it.
    """
    came: list[int] = []
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for expected in (signal.SIGINT, signal.SIGTERM):
            before[expected] = signal.signal(expected, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in came[:1]:
            signal.raise_signal(number)
