"""A session of its own in an application that others use, too; what is taken from it is given back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from wevent.spark.spark_session import PARTITIONS

_GONE = (Py4JError, AttributeError)  # what calls raise when Java, or the context, was stopped meanwhile


class BorrowedSession:
    """Jobs in somebody's application.

    Args:
        lender: the session that is active there; it is left as it is.

    Attributes:
        session: where its frames are made.
    """

    def __init__(self, lender: SparkSession) -> None:
        self._lender = lender
        self.session = lender.newSession()
        self.session.conf.set("spark.sql.caseSensitive", "true")  # as for every other engine, user and User are two
        self.session.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true")  # or a file that has any is refused
        self.session.conf.set(PARTITIONS, lender.conf.get(PARTITIONS) or "")
        self._tag = f"wevent-{uuid4().hex}"  # of its own jobs: others may run in the same application

    @contextmanager
    def jobs(self) -> Iterator[None]:
        """Frames and jobs of its own, which `cancel` ends; afterwards this thread's next ones are the lender's again."""
        self.session.sparkContext.addJobTag(self._tag)
        try:
            yield
        except Exception:
            self._give_back()
            raise
        self._give_back()  # not after a signal that tore a call of Java's: in this thread answers are mixed up then

    def _give_back(self) -> None:
        with suppress(*_GONE):
            self.session.sparkContext.removeJobTag(self._tag)
            # The session that made the last frame from Python's data is the active one: it is the lender's again.
            self._lender.createDataFrame([], "nothing int")

    def cancel(self) -> None:
        """Give up its jobs that run now; from any thread."""
        with suppress(*_GONE):
            self.session.sparkContext.cancelJobsWithTag(self._tag)
