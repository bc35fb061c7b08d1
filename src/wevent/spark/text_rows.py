"""Lines of text as rows of Spark, decoded in its Python workers by the decoders that every other engine uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from wevent.core.arrays import IntArray
from wevent.spark.event_plan import COUNTS, WHY
from wevent.streams.clock import SlotClock
from wevent.streams.files.inputs import InputFile
from wevent.streams.files.text_files import decoder_of
from wevent.streams.records.decoding import Decoded, EventColumns
from wevent.streams.stream_settings import StreamSettings

_LINES = 20_000  # decoded at once
_SCHEMA = "user string, slot bigint, since bigint, place bigint, why int"

Row = tuple[str | None, int | None, int | None, int | None, int]


def text_rows(
    session: SparkSession, file: InputFile, address: str, settings: StreamSettings, span: tuple[SlotClock, int]
) -> DataFrame:
    """The lines of a file, as `EventPlan.read` has rows.

    Args:
        session: where Spark runs.
        file: which.
        address: as Spark knows it.
        settings: its columns, the declared cells, how times are read.
        span: when slots begin, and the last one.
    """
    place = F.col("_metadata.file_block_start").alias("place")
    lines = session.read.option("lineSep", "\n").text(address)
    told = replace(settings, inputs=(), frame=None, columns=dict(settings.columns))  # what can be sent to a worker
    decoded = lines.select(F.col("value").cast("binary"), place).rdd.mapPartitions(_decoding(file, told, span))
    return session.createDataFrame(decoded, _SCHEMA, verifySchema=False)


def _decoding(
    file: InputFile, settings: StreamSettings, span: tuple[SlotClock, int]
) -> Callable[[Iterable[Any]], Iterator[Row]]:
    """What a worker does with its lines."""

    def decode(rows: Iterable[Any]) -> Iterator[Row]:
        decoder = decoder_of(file, settings)
        lines = _without_header(rows, headed=bool(file.columns))
        while piece := list(islice(lines, _LINES)):
            yield from _rows(decoder.decode(b"".join(piece)), *span)

    return decode


def _without_header(rows: Iterable[Any], *, headed: bool) -> Iterator[bytes]:
    """Lines with their ends; the first one of a file with a header is none: it is the first of the piece at place 0."""
    for line, place in rows:
        if headed and place == 0:
            headed = False
            continue
        yield bytes(line) + b"\n"


def _rows(decoded: Decoded, clock: SlotClock, last: int) -> Iterator[Row]:
    for problem in decoded.problems.tolist():
        yield None, None, None, None, problem + 1
    events = decoded.batch
    since = events.times - clock.origin_us
    slots = since // clock.length_us + 1
    columns = slots.tolist(), (since % clock.length_us).tolist(), events.cells.tolist()
    whys = _whys(slots, events, last).tolist()
    for user, slot, offset, cell, why in zip(events.users.values(), *columns, whys, strict=True):
        yield str(user), slot, offset, cell, why


def _whys(slots: IntArray, events: EventColumns, last: int) -> IntArray:
    reasons = (slots < 1, slots > last, events.cells < 0)
    return np.select(reasons, (WHY["before"], WHY["after"], WHY["unknown_cell"]), COUNTS)
