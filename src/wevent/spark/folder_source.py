"""Files counted by Spark: `wevent publish FOLDER --engine spark`.

What a row or a line says is read as the other engines read it: Parquet by Spark's own expressions, text by the same decoders
in Spark's Python workers. Of events at the same microsecond the one in the cell declared last wins: rows of Spark have no
order.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pyarrow
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from wevent.counting.counts import Counts
from wevent.counting.roster import Roster
from wevent.errors import InvalidEvents, InvalidInput, InvalidSettings
from wevent.spark.borrowed_session import BorrowedSession
from wevent.spark.class_counts import ClassCounter, FoldedSlots
from wevent.spark.event_plan import EventPlan, note_tally, tally
from wevent.spark.file_rows import FileRows
from wevent.spark.spark_session import session_for_files
from wevent.streams.clock import SlotClock
from wevent.streams.files.readers import open_readers
from wevent.streams.source import SlotCounts, Source
from wevent.streams.stream_settings import StreamSettings

_CANCEL_S = 0.2


def open_folder(settings: StreamSettings, clock: SlotClock, last: int | None) -> FolderSource:
    """The files of a stream, counted by a Spark on this machine, or by the one that its configuration names.

    Raises:
        InvalidSettings: for live lines, or without an end.
        InvalidInput, InvalidEvents: as of `wevent.streams.files.readers.open_readers`.
    """
    if settings.is_live or settings.frame is not None or last is None:
        raise InvalidSettings(
            "files and a declared end, for the engine spark",
            "live lines, a frame, or no end",
            "Streams and frames of Spark are for wevent.spark.publish and wevent.spark.count.",
            key="engine",
        )
    return FolderSource(session_for_files(), settings, clock, last)


class FolderSource(Source):
    """Counts the slots 1 to `last` of a declared clock from the settings' files, many slots in a job.

    Args:
        session: where Spark runs; it is left as it is, and nothing is kept there after the last slot, `stop` or an error.
        settings: which files, which columns.
        clock: when slots begin.
        last: the last slot.

    Raises:
        InvalidInput: for missing or damaged files, unknown formats, missing columns.
        InvalidEvents: for columns of times without an offset when none is declared.
    """

    def __init__(self, session: SparkSession, settings: StreamSettings, clock: SlotClock, last: int) -> None:
        self._plan = EventPlan(settings, clock)
        readers = open_readers(settings)  # whatever is declared is checked, as for every other engine
        self._paths = [file.path for reader in readers for file in reader.files]
        super().__init__(settings, last, len(self._paths))
        self._end = last
        self._borrowed = BorrowedSession(session)
        try:
            with self._borrowed.jobs():
                files = FileRows(self._borrowed.session, self._plan, settings, (clock, last))
                self._rows = files.read(readers)
        except (PySparkException, pyarrow.ArrowException, OSError) as error:
            raise self._unreadable(error) from None
        self._counter = ClassCounter(len(settings.cells))
        self._folded: FoldedSlots | None = None
        self._held: tuple[Roster | None, dict[int, Counts]] = None, {}  # counted already: a job counts many slots
        self._looked = self._working = False
        self._releasing = threading.Lock()

    def count(self, roster: Roster, first: int, most: int) -> Iterator[SlotCounts]:
        for slot in self._slots(first, most):
            counts = self._counts_of(roster, slot)
            if counts is None:
                return
            self._uncounted.reject(counts.reasons)
            yield SlotCounts(slot, counts, self._position(slot))

    def stop(self) -> None:
        """End `count`: a job that runs is given up, and what was counted before is handed over no more.

        A signal may come while this thread waits for Java, which hears one thread at a time: another one tells it.
        """
        super().stop()
        threading.Thread(target=self._give_up, daemon=True).start()

    def _give_up(self) -> None:
        """Cancel the job in hand, again and again, since the next one may just be on its way; then nothing is needed."""
        while self._working:
            self._borrowed.cancel()
            time.sleep(_CANCEL_S)
        self._release()

    def _release(self) -> None:
        """Let Spark forget events and people."""
        with self._releasing, suppress(PySparkException, Py4JError):  # Java may have been stopped, too
            self._held = None, {}
            self._counter.release()
            if self._folded is not None:
                self._folded.close()
            self._folded = None

    def _counts_of(self, roster: Roster, slot: int) -> Counts | None:
        """The counts of a slot, from the job that counted those before it if there was one; None after `stop`."""
        self._working = True
        needed = False  # what Spark keeps, for a slot that follows
        try:
            if self._stopped:
                return None
            if self._held[0] is not roster or slot not in self._held[1]:
                with self._borrowed.jobs():
                    self._look()
                    self._held = roster, self._counted(roster, slot)
            needed = slot < self._end
            return self._held[1].pop(slot)
        except (PySparkException, Py4JError) as error:
            if self._stopped:  # the job was given up, as asked
                return None
            raise self._unreadable(error) from None
        finally:
            self._working = False
            if not needed:
                self._release()

    def _counted(self, roster: Roster, first: int) -> dict[int, Counts]:
        """Slots from the first on, as many as go in one job."""
        if self._folded is None:  # sorted: a job skips what Spark keeps of other slots
            folded = self._plan.folded(self._rows).sortWithinPartitions("slot")
            self._folded = FoldedSlots(folded, self._plan, self._counter)
        return self._folded.count(roster, first, self._end)

    def _look(self) -> None:
        """Find out what is malformed or outside the clock."""
        if self._looked:
            return
        found = self._rows.agg(*tally()).first()
        assert found is not None, "a sum has a row"
        note_tally(self._uncounted, found.asDict())
        self._looked = True
        if self._uncounted.malformed and self._settings.strict:
            raise InvalidEvents(
                "only well-formed events (strict)",
                "malformed ones",
                "`wevent check` says where; or leave strict out to count and skip them.",
            )

    def _unreadable(self, error: Exception) -> InvalidInput:
        names = ", ".join(repr(file) for file in self._paths[:3])
        return InvalidInput(
            "readable input files",
            f"an error of Spark while reading {names} ({type(error).__name__})",
            "Check that none is cut off or still being written, and that Spark knows its types.",
            path=self._paths[0],
        )
