"""`wevent publish FOLDER --engine spark`: input files as a DataFrame, counted by `wevent.spark.class_counts`.

Spark's Python workers read whole files with the readers of the default engine. Rows of Spark have no order: among events
at the same microsecond the cell declared last wins. The sessions in which a command counts are made here, too.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from wevent.counting.roster import Counts, Rejected, Roster
from wevent.errors import InvalidEvents, InvalidInput, InvalidSettings
from wevent.settings import StreamSettings
from wevent.spark.class_counts import ClassCounter, int_columns
from wevent.spark.event_plan import COUNTS, WHY, EventPlan
from wevent.streams.clock import SlotClock
from wevent.streams.file_source import open_readers
from wevent.streams.source import MALFORMED, SlotCounts, Source

ENCRYPTION = "spark.io.encryption.enabled"
"""Makes Spark encrypt shuffles and spills, under keys that end with the application; read once, when that starts."""
PARTITIONS = "spark.sql.shuffle.partitions"
"""Number of parts into which Spark divides rows by key; its default is 200 on any machine."""
_CANCEL_S = 0.2


class FolderSource(Source):
    """Counts the slots 1 to `last` of a declared clock from the settings' files, many slots in a job.

    The session is left as it is, and Spark keeps nothing of events and users after the last slot, `stop` or an error.
    """

    def __init__(self, session: SparkSession, settings: StreamSettings, clock: SlotClock, last: int) -> None:
        self._plan = EventPlan(settings, clock)
        readers = open_readers(settings)  # checks what is declared, as for every other engine
        self._paths = [os.path.abspath(reader.file.path) for reader in readers]
        super().__init__(settings, last, len(self._paths))
        self._session = session
        self._end = last
        self._tag = f"wevent-{uuid4().hex}"  # of its own jobs: others may run in the same application
        self._counter = ClassCounter(self._plan)
        self._folded: DataFrame | None = None
        self._held: tuple[Roster | None, dict[int, Counts]] = None, {}  # counted already: a job counts many slots
        self._sizes: dict[tuple[int, int], int] = {}  # rows by slot and reason, 0 for no slot
        self._working = False
        self._rows = self._plan.read_files(session, self._paths, last)

    def count(self, roster: Roster, first: int, most: int) -> Iterator[SlotCounts]:
        for slot in self._slots(first, most):
            if not self._stopped and (self._held[0] is not roster or slot not in self._held[1]):
                with self._jobs():
                    self._held = roster, self._counted(roster, slot)
            if self._stopped:
                return
            counts = self._held[1].pop(slot)
            if slot == self._end:
                self._release()
            unknown_cell = self._sizes.get((slot, WHY["unknown_cell"]), 0)
            counts = Counts(counts.matrix, counts.reasons.plus(Rejected(unknown_cell=unknown_cell)))
            self._uncounted.events += self._sizes.get((slot, COUNTS), 0) + unknown_cell
            self._uncounted.reject(counts.reasons)
            yield SlotCounts(slot, counts, self._position(slot))

    def stop(self) -> None:
        """End `count`: a job that runs is cancelled, and slots that were counted before are not returned.

        A signal may come while this thread waits for Java, which hears one thread at a time: another thread cancels.
        """
        super().stop()
        threading.Thread(target=self._cancel, daemon=True).start()

    def _cancel(self) -> None:
        """Cancel the running job, repeatedly, since the next one may be about to start; then drop events and roster."""
        while self._working:
            with suppress(Py4JError, AttributeError):  # Java, or the context, was stopped
                self._session.sparkContext.cancelJobsWithTag(self._tag)
            time.sleep(_CANCEL_S)
        self._release()

    def _release(self) -> None:
        """Drop events and roster from Spark."""
        folded, self._folded, self._held = self._folded, None, (None, {})
        with suppress(PySparkException, Py4JError):  # Java may have been stopped
            self._counter.release()
            if folded is not None:
                folded.unpersist()

    @contextmanager
    def _jobs(self) -> Iterator[None]:
        """Run jobs that `stop` cancels; after an error Spark keeps nothing."""
        self._working, is_torn = True, False
        try:
            self._session.sparkContext.addJobTag(self._tag)
            yield
        except BaseException as error:
            is_torn = not isinstance(
                error, Exception
            )  # a signal may have torn a call of Java: answers are mixed up then
            self._release()
            if not isinstance(error, PySparkException | Py4JError | pyarrow.ArrowException | OSError):
                raise
            if not self._stopped:  # or the job was cancelled
                names = ", ".join(repr(file) for file in self._paths[:3])
                problem = f"Spark cannot read the input files {names} ({type(error).__name__})."
                fix = "Check that none is cut off or still being written, and that Spark knows its types."
                raise InvalidInput(problem, fix, path=self._paths[0]) from None
        finally:
            if not is_torn:
                with suppress(Py4JError, AttributeError):  # Java, or the context, was stopped meanwhile
                    self._session.sparkContext.removeJobTag(self._tag)
            self._working = False

    def _counted(self, roster: Roster, first: int) -> dict[int, Counts]:
        """Count slots from the first on, as many as one job may."""
        if not self._sizes:
            self._sizes = self._survey()
        if self._folded is None:  # sorted: a job skips rows of other slots
            folded = self._plan.folded(self._rows.where(F.col("why") == COUNTS))
            self._folded = folded.sortWithinPartitions("slot").persist()
        return self._counter.count(self._folded, roster, first, self._end)

    def _survey(self) -> dict[tuple[int, int], int]:
        """Return the number of rows by slot and reason; note those that are malformed or outside the clock."""
        slot = F.when(F.col("why").isin(COUNTS, WHY["unknown_cell"]), F.col("slot")).otherwise(0)
        found = int_columns(self._rows.groupBy(slot.alias("slot"), "why").count())
        keys = zip(found["slot"].tolist(), found["why"].tolist(), strict=True)
        sizes = dict(zip(keys, found["count"].tolist(), strict=True))
        self._uncounted.malform([sizes.get((0, WHY[name]), 0) for name in MALFORMED])
        self._uncounted.outside(sizes.get((0, WHY["before"]), 0), sizes.get((0, WHY["after"]), 0))
        if self._uncounted.malformed and self._settings.strict:
            fix = "`wevent check` says where; or leave strict out to count and skip them."
            raise InvalidEvents("Some events are malformed, and strict allows only well-formed events.", fix)
        return sizes


def session_for_files() -> SparkSession:
    """Return the session of this process, as it is, or a new one."""
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
    """
    if session.sparkContext.getConf().get(ENCRYPTION, "false").strip().lower() != "true":
        raise InvalidSettings(
            f"The session was started without {ENCRYPTION}=true: people's events would stay on disk for a while, in shuffles "
            "and spills.",
            fix,
            key="unencrypted",
        )


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
