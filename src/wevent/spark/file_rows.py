"""Input files as rows of Spark: Parquet by Spark's own expressions, text by the decoders of the other engines."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import pyarrow
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from wevent.spark.columns import of_nanoseconds, shifted
from wevent.spark.event_plan import EventPlan
from wevent.spark.text_rows import text_rows
from wevent.streams.clock import SlotClock
from wevent.streams.files.inputs import InputFile
from wevent.streams.files.parquet_files import ParquetReader
from wevent.streams.files.readers import Reader
from wevent.streams.stream_settings import StreamSettings


class FileRows:
    """Reads files as `EventPlan.read` reads frames.

    Args:
        session: where Spark runs; one that reads nanoseconds as whole numbers.
        plan: how events are read.
        settings: their columns, the declared cells, how times are read.
        span: when slots begin, and the last one.
    """

    def __init__(
        self, session: SparkSession, plan: EventPlan, settings: StreamSettings, span: tuple[SlotClock, int]
    ) -> None:
        self._session, self._plan, self._settings, self._span = session, plan, settings, span

    def read(self, readers: Sequence[Reader]) -> DataFrame:
        """All rows of these files, with why they do not count.

        Raises:
            PySparkException, ArrowException, OSError: if Spark or Arrow cannot make out what is in a file.
        """
        return reduce(DataFrame.unionByName, _alike([part for reader in readers for part in self._parts(reader)]))

    def _parts(self, reader: Reader) -> Iterator[DataFrame]:
        if isinstance(reader, ParquetReader):
            yield from self._parquet(reader.files)
        else:
            file = reader.files[0]
            yield text_rows(self._session, file, _address(file), self._settings, self._span)

    def _parquet(self, files: Sequence[InputFile]) -> Iterator[DataFrame]:
        """A part for each type of times: read together, Spark takes nanoseconds for microseconds, and says nothing."""
        name, alike = self._settings.columns["time"], dict[Any, list[str]]()
        for file in files:
            alike.setdefault(_type_of(file, name), []).append(_address(file))
        for kind, addresses in alike.items():
            events = _with_instants(self._session.read.parquet(*addresses), name, kind, self._settings)
            yield self._plan.read(events, F.lit(self._span[1]))


def _type_of(file: InputFile, name: str) -> Any:
    """What a column is, as Arrow says, which sees the unit of times."""
    with open(file.path, "rb") as opened:
        kind = pyarrow.parquet.read_schema(opened).field(name).type
    return kind.value_type if pyarrow.types.is_dictionary(kind) else kind


def _with_instants(events: DataFrame, name: str, kind: Any, settings: StreamSettings) -> DataFrame:
    """Times as the other engines read them where Spark does not.

    To Spark nanoseconds are whole numbers here, and times of the old kind (INT96), which have no offset, instants in UTC.
    """
    place = events.columns.index(name)
    found, column = events.schema.fields[place].dataType, F.col(str(place))
    if not pyarrow.types.is_timestamp(kind):
        return events
    offset_us = (settings.timezone_us or 0) if kind.tz is None else 0
    if isinstance(found, T.LongType):
        read = of_nanoseconds(column, offset_us)
    elif isinstance(found, T.TimestampType) and offset_us:
        read = shifted(column, offset_us)
    else:
        return events
    numbered = events.toDF(*map(str, range(len(events.columns))))  # by place: names may have anything in them
    return numbered.withColumn(str(place), read).toDF(*events.columns)


def _alike(parts: list[DataFrame]) -> list[DataFrame]:
    """Parts whose users are all of one type: text, if some are."""
    if len({part.schema["user"].dataType for part in parts}) == 1:
        return parts
    return [part.withColumn("user", F.col("user").cast(T.StringType())) for part in parts]


def _address(file: InputFile) -> str:
    """A file of this machine, whatever file system Spark would look in; its name is not a glob."""
    path = os.path.abspath(file.path)
    for sign in "\\{}[]*?":
        path = path.replace(sign, "\\" + sign)
    return f"file://{path}"
