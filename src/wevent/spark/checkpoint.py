"""The checkpoint of a query: which journal it belongs to, and how long events stay in it.

Spark keeps in it the events of open slots, folded (who, which cell, when), and for a while what it kept before. No journal
knows what it was: it has to be the one that this checkpoint was begun with.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import msgspec
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from wevent.errors import InvalidSettings, StorageFailed
from wevent.settings import StreamSettings
from wevent.settings.values import SECOND_US
from wevent.streams.clock import SlotClock

_MARK, _DRAFT = "wevent.json", ".wevent.json.draft"
_MARK_BYTES = 4_096  # more than any mark has
_RETAINED = 2  # batches: the least with which Spark can repeat the last one
_MAINTENANCE_MS = 1_000, 30_000  # between two clean-ups of the state: the least and the most


class CheckpointMark(msgspec.Struct, frozen=True):
    """The mark that is written into a checkpoint.

    Attributes:
        journal: the journal's own id.
        meaning: of slots and cells in the state.
    """

    journal: str
    meaning: str

    @classmethod
    def of(cls, journal: str, settings: StreamSettings, clock: SlotClock) -> Self:
        """Return the mark of a journal and of the meaning of numbers in the state."""
        parts = [clock.origin_us, clock.length_us, settings.cells.declaration(), settings.max_cells_per_user]
        return cls(journal, hashlib.sha256(msgspec.json.encode(parts, enc_hook=str)).hexdigest())


_TORN = CheckpointMark("", "")
"""A mark that cannot be read: it belongs to no journal."""
_JAVA_ERRORS = (Py4JJavaError, PySparkException)
_FAULT = re.compile("HDFSMetadataLog|StreamMetadata|CheckpointFileManager|CANNOT_LOAD_STATE_STORE|STREAMING_CHECKPOINT")
"""Names of the parts of Spark that read and write a checkpoint: what they say of one that is damaged takes pages."""


class Checkpoint:
    """A folder that Spark can reach: on this machine, or by address (hdfs://…, s3a://…).

    Args:
        session: whose file systems.
        place: the folder.

    Raises:
        InvalidSettings: for a place that Spark cannot reach; so do all methods but `remove` and `is_there`.
    """

    def __init__(self, session: SparkSession, place: str) -> None:
        self.place = place
        jvm: Any = session._jvm
        self._jvm = jvm
        context: Any = session.sparkContext
        with self._reaching():
            self._path = self._jvm.org.apache.hadoop.fs.Path(place)
            self._files = self._path.getFileSystem(context._jsc.hadoopConfiguration())

    def claim(self, mark: CheckpointMark) -> None:
        """Mark a new checkpoint, or make sure that it is marked so.

        Raises:
            InvalidSettings: if it is another journal's, another query's, a folder with something else in it, or of other
                slots or cells.
        """
        with self._reaching():
            found = self._read()
            if found == mark:
                return
            others = self._others()
            if others or found not in (None, _TORN):  # in the end all of it is removed
                raise self._refusal(found, mark)
            self._write(msgspec.json.encode(mark))

    def belongs_to(self, journal: str) -> bool:
        """Return whether it was begun with this journal."""
        with self._reaching():
            found = self._read()
        return found is not None and found.journal == journal

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
            return bool(self._files.exists(self._inside(_MARK)))
        except _JAVA_ERRORS:
            return False

    def _others(self) -> bool:
        """Return whether there is anything but a mark, or the beginning of one that a crash left."""
        if not self._files.exists(self._path):
            return False
        names = {str(status.getPath().getName()) for status in self._files.listStatus(self._path)}
        return bool(names - {_MARK, _DRAFT})

    def _read(self) -> CheckpointMark | None:
        """Return the mark; None if there is none, `_TORN` if it cannot be read."""
        path = self._inside(_MARK)
        if not self._files.exists(path):
            return None
        status = self._files.getFileStatus(path)
        if not status.isFile() or status.getLen() > _MARK_BYTES:
            return _TORN
        stream = self._files.open(path)
        try:
            text = self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
            return msgspec.json.decode(text, type=CheckpointMark)
        except (msgspec.MsgspecError, UnicodeError, *_JAVA_ERRORS):  # of Java: its checksum is another one
            return _TORN
        finally:
            stream.close()

    def _write(self, text: bytes) -> None:
        """Write the mark as a whole or not at all, as far as the file system can."""
        draft, path = self._inside(_DRAFT), self._inside(_MARK)
        stream = self._files.create(draft, True)
        try:
            stream.write(bytearray(text))
        finally:
            stream.close()
        self._files.delete(path, True)
        if not self._files.rename(draft, path):
            raise self._out_of_reach("a file that cannot be renamed")

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        """Replace Java's page about a folder that it cannot read or write by one sentence."""
        try:
            yield
        except _JAVA_ERRORS as error:
            raise self._out_of_reach(_java_name(error)) from None

    def _out_of_reach(self, what: str) -> InvalidSettings:
        return InvalidSettings(
            "a checkpoint in a folder that Spark can read and write",
            f"{self.place!r} ({what})",
            "Check the path, whether this user may write there, and whether Spark has the package for such addresses.",
            key="checkpoint",
        )

    def _inside(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._path, name)

    def _refusal(self, found: CheckpointMark | None, mark: CheckpointMark) -> InvalidSettings:
        if found == _TORN:
            received, remedy = (
                f"one whose mark, {_MARK}, says nothing any more ({self.place})",
                "Remove the folder, which holds people's events, and give a new one: what is not committed is read from "
                "where the source begins.",
            )
        elif found is not None and found.journal == mark.journal:
            received, remedy = (
                f"one whose open slots were counted for other slots, cells or max_cells_per_user ({self.place})",
                "Give a new folder: events of slots that are not committed are read from where the source begins.",
            )
        else:
            kind = "another query's, or a folder with something in it" if found is None else "another journal's"
            received, remedy = f"{kind} ({self.place})", "Give each journal a folder of its own, new with the journal."
        return InvalidSettings("the checkpoint of this journal", received, remedy, key="checkpoint")


def _java_name(error: Exception) -> str:
    """Return the class of an error of Java; its message is long and may have a path in it."""
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.getClass().getSimpleName())
    return type(error).__name__


def retention(slot_us: int) -> dict[str, str]:
    """Settings with which Spark's state keeps what it no longer needs for as short as it can, by the length of a slot."""
    least, most = _MAINTENANCE_MS
    every_ms = min(most, max(least, slot_us * 1_000 // SECOND_US // 4))
    return {
        "spark.sql.streaming.minBatchesToRetain": str(_RETAINED),
        "spark.sql.streaming.maxBatchesToRetainInMemory": "1",
        "spark.sql.streaming.stateStore.minDeltasForSnapshot": "1",
        "spark.sql.streaming.stateStore.maintenanceInterval": f"{every_ms}ms",
        "spark.sql.streaming.ratioExtraSpaceAllowedInCheckpoint": "0.0",
    }
