"""The checkpoint of a query: which journal it belongs to, and how long events stay in it.

Spark keeps the events of open slots in it, folded (user, cell, time), and for a while the state before. Its mark names the
journal that it was begun with.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from wevent.errors import InvalidSettings, StorageFailed
from wevent.settings import StreamSettings
from wevent.settings.values import SECOND_US
from wevent.streams.clock import SlotClock

_MARK = "wevent-"
"""Beginning of the name of the file that says whose checkpoint it is: no crash leaves half of a name."""
_MAINTENANCE_MS = 1_000, 30_000  # between two clean-ups of the state: the least and the most
_JAVA_ERRORS = (Py4JJavaError, PySparkException)
_FAULT = re.compile(
    "HDFSMetadataLog|StreamMetadata|CheckpointFileManager|CANNOT_LOAD_STATE_STORE|STREAMING_CHECKPOINT"
    r"|AssertionError: assertion failed\s+at scala\.Predef\$\.assert\S*\s+at \S*FileStreamSource"
)
"""Parts of Spark that read and write a checkpoint, in the pages of errors about a damaged one."""
_AGAIN = "start again: what is committed stays, and what is not is read from where the source begins."


class Checkpoint:
    """A folder that Spark can reach: on this machine, or by address (hdfs://…, s3a://…)."""

    def __init__(self, session: SparkSession, place: str) -> None:
        self.place = place
        context: Any = session.sparkContext
        jvm: Any = session._jvm
        self._jvm, self._mark = jvm, _MARK
        with self._reaching():
            self._path = self._jvm.org.apache.hadoop.fs.Path(place)
            self._files = self._path.getFileSystem(context._jsc.hadoopConfiguration())

    def claim(self, journal: str, settings: StreamSettings, clock: SlotClock) -> None:
        """Mark a new checkpoint with a journal and the meaning of numbers in the state, or check its mark."""
        meaning = [clock.origin_us, clock.length_us, settings.cells.declaration(), settings.max_cells_per_user]
        self._mark = f"{_prefix(journal)}{_digest(meaning)}"
        with self._reaching():
            names = self._names()
            if self._mark in names:
                return
            if not names:  # in the end all of it is removed
                self._files.mkdirs(self._path)
                self._files.createNewFile(self._inside(self._mark))
                return
        if any(name.startswith(_prefix(journal)) for name in names):
            what = "has open slots that were counted for other slots, cells or max_cells_per_user"
            fix = "Give a new folder: events of slots that are not committed are read from where the source begins."
        else:
            foreign = any(name.startswith(_MARK) for name in names)
            what = "is another journal's" if foreign else "is another query's, or a folder with something in it"
            fix = "Give each journal a folder of its own, new with the journal."
        raise InvalidSettings(f"The checkpoint {self.place} {what}.", fix, key="checkpoint")

    def belongs_to(self, journal: str) -> bool:
        """Return whether it was begun with this journal."""
        with self._reaching():
            return any(name.startswith(_prefix(journal)) for name in self._names())

    def remove(self) -> None:
        """Remove it with all that is in it, at the end of the stream."""
        try:
            gone = self._files.delete(self._path, True) or not self._files.exists(self._path)
        except _JAVA_ERRORS:
            gone = False
        if not gone:
            raise StorageFailed(
                f"The checkpoint {self.place} cannot be removed.",
                "Remove the folder: the last events are in it, and nothing needs them any more.",
            )

    def fault(self, error: Exception, thrown: Any = None) -> StorageFailed | None:
        """Return one sentence for an error of Spark that comes from its checkpoint; None for any other error.

        Args:
            error: the error in Python.
            thrown: the same in Java, if Python does not have its stack trace.
        """
        trace = "" if thrown is None else self._jvm.org.apache.spark.util.Utils.exceptionString(thrown)
        try:
            is_there = self._files.exists(self._inside(self._mark))
        except _JAVA_ERRORS:
            is_there = False
        if not is_there:
            problem = f"The checkpoint {self.place} has gone, or cannot be read, and a query needs it while it runs."
            return StorageFailed(problem, f"Put it back or give a new folder, and {_AGAIN}")
        if not _FAULT.search(f"{error} {trace}"):
            return None
        problem = f"Spark cannot read and continue the checkpoint {self.place}: it is damaged, or its disk fails."
        return StorageFailed(problem, f"Check the disk; if the checkpoint is damaged, remove the folder and {_AGAIN}")

    def _names(self) -> list[str]:
        """Return the names in the folder."""
        if not self._files.exists(self._path):
            return []
        return [str(status.getPath().getName()) for status in self._files.listStatus(self._path)]

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        """Replace Java's page about a folder that it cannot read or write by one sentence."""
        try:
            yield
        except _JAVA_ERRORS as error:
            name = type(error).__name__
            if isinstance(error, Py4JJavaError):
                name = error.java_exception.getClass().getSimpleName()
            raise InvalidSettings(
                # Java's message is long and may have a path in it
                f"The checkpoint {self.place!r} is not in a folder that Spark can read and write ({name}).",
                "Check the path, whether this user may write there, and whether Spark has the package for such addresses.",
                key="checkpoint",
            ) from None

    def _inside(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._path, name)


def _prefix(journal: str) -> str:
    """Return the beginning of the marks of a journal."""
    return f"{_MARK}{_digest(journal)}-"


def _digest(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value, enc_hook=str)).hexdigest()


@contextmanager
def shortest_retention(session: SparkSession, slot_us: int) -> Iterator[None]:
    """Let Spark's state keep events for the shortest time, in queries that are started meanwhile."""
    least, most = _MAINTENANCE_MS
    every_ms = min(most, max(least, slot_us * 1_000 // SECOND_US // 4))
    values = {
        "spark.sql.streaming.minBatchesToRetain": "2",  # the least with which Spark can repeat the last one
        "spark.sql.streaming.maxBatchesToRetainInMemory": "1",
        "spark.sql.streaming.stateStore.minDeltasForSnapshot": "1",
        "spark.sql.streaming.stateStore.maintenanceInterval": f"{every_ms}ms",
        "spark.sql.streaming.ratioExtraSpaceAllowedInCheckpoint": "0.0",
    }
    before = {name: session.conf.get(name, None) for name in values}
    try:
        for name, value in values.items():
            session.conf.set(name, value)
        yield
    finally:
        with suppress(Py4JError, AttributeError):  # Java, or the context, was stopped meanwhile
            for name, earlier in before.items():
                session.conf.unset(name) if earlier is None else session.conf.set(name, earlier)
