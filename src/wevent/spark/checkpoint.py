"""The checkpoint of a query: which journal it belongs to, and how long events stay in it.

Spark keeps the events of open slots in it, folded (user, cell, time), and for a while the state before. Its mark names the
journal that it was begun with.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from wevent.errors import InvalidSettings, StorageFailed
from wevent.settings import StreamSettings
from wevent.settings.values import SECOND_US
from wevent.streams.clock import SlotClock

_MARK = "wevent-"
"""Beginning of the name of the file that says whose checkpoint it is: no crash leaves half of a name."""
_RETAINED = 2  # batches: the least with which Spark can repeat the last one
_MAINTENANCE_MS = 1_000, 30_000  # between two clean-ups of the state: the least and the most
_JAVA_ERRORS = (Py4JJavaError, PySparkException)
_FAULT = re.compile(
    "HDFSMetadataLog|StreamMetadata|CheckpointFileManager|CANNOT_LOAD_STATE_STORE|STREAMING_CHECKPOINT"
    r"|AssertionError: assertion failed\s+at scala\.Predef\$\.assert\S*\s+at \S*FileStreamSource"
)
"""Parts of Spark that read and write a checkpoint, in the pages of errors about a damaged one."""


class Checkpoint:
    """A folder that Spark can reach: on this machine, or by address (hdfs://…, s3a://…).

    Args:
        session: whose file systems.
        place: the folder.

    Raises:
        InvalidSettings: for a place that Spark cannot reach; so do `claim` and `belongs_to`.
    """

    def __init__(self, session: SparkSession, place: str) -> None:
        self.place = place
        jvm: Any = session._jvm
        context: Any = session.sparkContext
        self._jvm, self._mark = jvm, _MARK
        with self._reaching():
            self._path = self._jvm.org.apache.hadoop.fs.Path(place)
            self._files = self._path.getFileSystem(context._jsc.hadoopConfiguration())

    def claim(self, journal: str, settings: StreamSettings, clock: SlotClock) -> None:
        """Mark a new checkpoint with a journal and the meaning of numbers in the state, or check its mark.

        Raises:
            InvalidSettings: if it is another journal's, another query's, a folder with something else in it, or of other
                slots or cells.
        """
        meaning = [clock.origin_us, clock.length_us, settings.cells.declaration(), settings.max_cells_per_user]
        self._mark = f"{_MARK}{_digest(journal)}-{_digest(meaning)}"
        with self._reaching():
            names = self._names()
            if self._mark in names:
                return
            if not names:  # in the end all of it is removed
                self._files.mkdirs(self._path)
                self._files.createNewFile(self._inside(self._mark))
                return
        if self._is_marked(names, journal):
            received = f"one whose open slots were counted for other slots, cells or max_cells_per_user ({self.place})"
            remedy = "Give a new folder: events of slots that are not committed are read from where the source begins."
        else:
            foreign = any(name.startswith(_MARK) for name in names)
            kind = "another journal's" if foreign else "another query's, or a folder with something in it"
            received, remedy = f"{kind} ({self.place})", "Give each journal a folder of its own, new with the journal."
        raise InvalidSettings("the checkpoint of this journal", received, remedy, key="checkpoint")

    def belongs_to(self, journal: str) -> bool:
        """Return whether it was begun with this journal."""
        with self._reaching():
            return self._is_marked(self._names(), journal)

    def remove(self) -> None:
        """Remove it with all that is in it, at the end of the stream.

        Raises:
            StorageFailed: if something is left.
        """
        try:
            gone = self._files.delete(self._path, True) or not self._files.exists(self._path)
        except _JAVA_ERRORS:
            gone = False
        if not gone:
            raise StorageFailed(
                "a checkpoint that can be removed",
                f"one that cannot ({self.place})",
                "Remove the folder: the last events are in it, and nothing needs them any more.",
            )

    def fault(self, error: Exception, thrown: Any = None) -> StorageFailed | None:
        """Return one sentence for an error of Spark that comes from its checkpoint; None for any other error.

        Args:
            error: the error in Python.
            thrown: the same in Java, if Python does not have its stack trace.
        """
        trace = "" if thrown is None else self._jvm.org.apache.spark.util.Utils.exceptionString(thrown)
        if not self.is_there():
            return StorageFailed(
                "the checkpoint of a query to stay where it is while the query runs",
                f"none, or none that can be read, at {self.place}",
                "Put it back or give a new folder, and start again: what is committed stays, and what is not is read from "
                "where the source begins.",
            )
        if not _FAULT.search(f"{error} {trace}"):
            return None
        return StorageFailed(
            "a checkpoint that Spark can read and continue",
            f"one that is damaged, or on a disk that fails ({self.place})",
            "Check the disk; if the checkpoint is damaged, remove the folder and start again: what is committed stays, and "
            "what is not is read from where the source begins.",
        )

    def is_there(self) -> bool:
        """Return whether the folder is still there, with its mark."""
        try:
            return bool(self._files.exists(self._inside(self._mark)))
        except _JAVA_ERRORS:
            return False

    def _names(self) -> list[str]:
        """Return the names in the folder."""
        if not self._files.exists(self._path):
            return []
        return [str(status.getPath().getName()) for status in self._files.listStatus(self._path)]

    def _is_marked(self, names: list[str], journal: str) -> bool:
        return any(name.startswith(f"{_MARK}{_digest(journal)}-") for name in names)

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
                "a checkpoint in a folder that Spark can read and write",
                f"{self.place!r} ({name})",  # the message is long and may have a path in it
                "Check the path, whether this user may write there, and whether Spark has the package for such addresses.",
                key="checkpoint",
            ) from None

    def _inside(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._path, name)


def _digest(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value, enc_hook=str)).hexdigest()


def retention(slot_us: int) -> dict[str, str]:
    """Return the settings with which Spark's state keeps events for the shortest time, by the length of a slot."""
    least, most = _MAINTENANCE_MS
    every_ms = min(most, max(least, slot_us * 1_000 // SECOND_US // 4))
    return {
        "spark.sql.streaming.minBatchesToRetain": str(_RETAINED),
        "spark.sql.streaming.maxBatchesToRetainInMemory": "1",
        "spark.sql.streaming.stateStore.minDeltasForSnapshot": "1",
        "spark.sql.streaming.stateStore.maintenanceInterval": f"{every_ms}ms",
        "spark.sql.streaming.ratioExtraSpaceAllowedInCheckpoint": "0.0",
    }
