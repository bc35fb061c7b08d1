"""What a column may be, and `wevent.spark.count`."""

from __future__ import annotations

import decimal
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import wevent.spark
from tests.support.streams import DAY, SECOND, nonzero, settings
from wevent import InvalidEvents, InvalidInput, InvalidSettings, Requirement
from wevent.spark.event_plan import WHY, EventPlan
from wevent.streams import SlotClock
from wevent.streams.file_source import FileSource, open_readers

CLOCK = SlotClock(DAY, 60 * SECOND)
START = datetime(2026, 1, 1, tzinfo=UTC)
MOMENTS = [START + timedelta(seconds=second, microseconds=1) for second in (-1, 0, 59, 60, 61, 130, 200, 10**6)]
TEXTS = [
    "2026-01-01T00:00:01Z", "2026-01-01 00:00:02+00:00", "2026-01-01T02:01:00+02", "2026-01-01T02:01:01.5+0200",
    "2026-01-01T00:01:59.999999999Z", "2026-01-01T00:02Z", "2026-01-01T00:00:03", "1767225605", "1767225665.25",
    "2026-02-30T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:00:01Z\n", "", "  ", "soon", "NaN", "1e400", "-5",
    "9999-12-31T23:59:59Z", "0000-01-01T00:00:00Z", "٢٠٢٦-01-01T00:00:01Z",
]  # fmt: skip
COLUMNS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "instants": (pyarrow.timestamp("us", "UTC"), MOMENTS, {}),
    "naive": (
        pyarrow.timestamp("us"),
        [moment.replace(tzinfo=None) for moment in MOMENTS],
        {"timezone_us": 3600 * SECOND},
    ),
    "dates": (pyarrow.date32(), [date(2026, 1, 1), date(2025, 12, 31), date(2999, 1, 1)], {"timezone_us": 0}),
    "seconds": (pyarrow.int64(), [DAY // SECOND + 1, DAY // SECOND + 61, -1, 2**62, -(2**63), 2**63 - 1], {}),
    "millis": (pyarrow.int64(), [DAY // 1000 + 1, DAY // 1000 + 61_000, 2**62], {"time_unit": "ms"}),
    "micros": (pyarrow.int64(), [DAY + 1, DAY + 61 * SECOND, 2**62], {"time_unit": "us"}),
    "floats": (pyarrow.float64(), [DAY / SECOND + 1.5, float("nan"), float("inf"), -float("inf"), 1e300, 0.0], {}),
    "decimals": (pyarrow.decimal128(20, 6), [decimal.Decimal("1767225661.5"), decimal.Decimal(10**13)], {}),
    "texts": (pyarrow.string(), TEXTS, {}),
    "naive texts": (pyarrow.string(), TEXTS, {"timezone_us": -3600 * SECOND}),
}
OUTSIDE, MALFORMED = (
    (WHY["before"], WHY["after"]),
    tuple(WHY[name] for name in ("no_user", "no_cell", "no_time", "no_offset")),
)


HOSTILE: dict[str, tuple[Any, list[Any], dict[str, Any]]] = {
    "instants": (pyarrow.timestamp("us", "UTC"), [-(2**63), -(2**63) + 1, 2**63 - 1], {}),
    "naive": (pyarrow.timestamp("us"), [-(2**63), 2**63 - 1], {"timezone_us": -3600 * SECOND}),
    "dates": (pyarrow.date32(), [-(2**31), 2**31 - 1], {"timezone_us": 3600 * SECOND}),
    "whole numbers": (pyarrow.int64(), [-(2**63), 2**63 - 1], {"time_unit": "us"}),
    "decimals": (pyarrow.decimal128(38, 0), [10**37, -(10**37), 9 * 10**12, -9_223_372_036_854], {}),
    "fractions": (pyarrow.decimal128(38, 38), [decimal.Decimal("0." + "9" * 38)], {}),
    "texts": (
        pyarrow.string(),
        [
            "-9223372036854", "-9223372036854.775808", "9223372036854.775807", "1e-999999999", "-1e-300000000",
            "1e-2147483648", "1e999999999", "9" * 2_000_000, "0." + "9" * 2_000_000, "-290308-12-31T00:00:00Z",
            "+294247-01-10T04:00:54Z", " 1767225605 ",
        ],
        {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", [*COLUMNS, *HOSTILE])
def test_times_of_every_kind_are_read_as_files_are(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """Sums of Spark would fail where they overflow, and its decimals compute every digit: no row must get there."""
    kind, times, how = {**COLUMNS, **HOSTILE}[name]
    users = [(place % 5) + 1 for place in range(len(times) + 1)]
    table = {"time": pyarrow.array([*times, None], kind), "user": users, "cell": [place % 4 for place in users]}
    path = str(tmp_path / "events.parquet")
    pyarrow.parquet.write_table(pyarrow.table(table), path)
    chosen = settings([path], **how)
    read = EventPlan(chosen, CLOCK).read(spark.read.parquet(path), F.lit(3)).groupBy("slot", "why").count().collect()
    elsewhere = FileSource(chosen, CLOCK, 3)
    assert {row["slot"]: row["count"] for row in read if row["why"] == 0} == elsewhere.survey()
    assert sum(row["count"] for row in read) == len(users)
    found = nonzero(elsewhere)
    reasons = {name: sum(row["count"] for row in read if row["why"] == number) for name, number in WHY.items()}
    assert {name: number for name, number in reasons.items() if number} == {
        name: found[name] for name in WHY if name in found
    }


IDS: dict[str, tuple[Any, list[Any]]] = {
    "whole": (pyarrow.int32(), [1, 2, 7, -1, None]),
    "floats": (pyarrow.float64(), [1, 2.5, float("nan"), 1e17, 1e300, float("inf"), -float("inf"), None]),
    "texts": (pyarrow.string(), ["1", "007", "7", "Anna", " anna", "", None, "2.5"]),
    "no Unicode": (pyarrow.binary(), [b"1", b"7\xff", b"\xc3\xa9", b"\xed\xa0\x80"]),
    "decimals": (pyarrow.decimal128(5, 1), [decimal.Decimal("2.5"), decimal.Decimal(1)]),
    "truth": (pyarrow.bool_(), [True, False, None]),
}


@pytest.mark.parametrize("name", IDS)
def test_ids_and_cells_of_every_kind(spark: SparkSession, tmp_path: Path, name: str) -> None:
    column = pyarrow.array(IDS[name][1], IDS[name][0])
    if name == "no Unicode":
        column = column.view(pyarrow.string())
    path = str(tmp_path / "events.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"time": [START] * len(column), "user": column, "cell": column}), path)
    chosen = settings([path], cells=["1", "2.5", "7", "true"])
    rows = EventPlan(chosen, CLOCK).read(spark.read.parquet(path), F.lit(1)).where("user IS NOT NULL").collect()
    (piece,) = (piece for reader in open_readers(chosen) for piece in reader.pieces())
    _, users, cells = piece.decoded.batch
    found = sorted((row["user"], row["why"]) for row in rows)
    expected = zip(users.values(), cells.tolist(), strict=True)
    assert found == sorted((str(user), WHY["unknown_cell"] if cell < 0 else 0) for user, cell in expected)


def frame(spark: SparkSession) -> DataFrame:
    rows = [
        (1.0, "anna", "a"), (2.0, "anna", "b"), (59.0, "bob", "b"), (61.0, "anna", "a"), (61.0, "bob", "a"),
        (62.0, "nobody", "a"), (62.0, "bob", "z"), (None, "bob", "a"), (1e9, "bob", "a"),
    ]  # fmt: skip
    return spark.createDataFrame(rows, "since double, who string, place string")


COUNTING: dict[str, Any] = {
    "requirements": {"anna": Requirement(4, 0.5), "bob": Requirement(8, 1)},
    "slot": "60s",
    "start": datetime(1970, 1, 1, tzinfo=UTC),
    "end": datetime(1970, 1, 1, 0, 3, tzinfo=UTC),
    "cells": ["a", "b"],
    "time_column": "since",
    "user_column": "who",
    "cell_column": "place",
}


def test_the_truth_as_a_frame(spark: SparkSession) -> None:
    counted = wevent.spark.count(frame(spark), **COUNTING)
    assert counted.columns == ["slot", "window", "epsilon", "cell", "count"]
    assert sorted(map(tuple, counted.collect())) == [
        (1, 4, 0.5, "b", 1),
        (1, 8, 1.0, "b", 1),
        (2, 4, 0.5, "a", 1),
        (2, 8, 1.0, "a", 1),
    ]
    several = wevent.spark.count(frame(spark), **{**COUNTING, "max_cells_per_user": 2, "cells": ["b", "a"]})
    assert several.where("slot = 1 and window = 4").count() == 2
    whole = wevent.spark.count(frame(spark).withColumn("place", F.lit("2")), **{**COUNTING, "cells": [1.0, 2.0]})
    assert whole.where("slot = 1").count() == 2, "2.0 is declared as 2, as everywhere"
    assert "not private" in (wevent.spark.count.__doc__ or "")


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"end": None}, InvalidSettings, "end must be set"),
        ({"start": "auto"}, InvalidSettings, "start is 'auto'"),
        ({"slot_column": "since", "slot": None, "start": None, "end": 3}, InvalidSettings, "Rows in Spark have no order"),
        ({"cell_column": "nowhere"}, InvalidInput, "no column 'nowhere'"),
        ({"slot": "9999w", "end": datetime(9000, 1, 1, tzinfo=UTC), "cells": 2_000_000}, InvalidSettings, "too many"),
        ({"requirements": 7}, InvalidInput, "Requirements are a file"),
    ],
)  # fmt: skip
def test_what_is_refused(spark: SparkSession, changes: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        wevent.spark.count(frame(spark), **{**COUNTING, **changes})


def test_columns_that_are_none(spark: SparkSession) -> None:
    for kind, column, said in (
        ("struct<a:int>", "since", "column 'since' of type STRUCT.* has no times"),
        ("binary", "who", "column 'who' of type BLOB has no ids or labels"),
        ("array<int>", "place", "column 'place' of type INTEGER.. has no ids or labels"),
    ):
        odd = frame(spark).withColumn(column, F.lit(None).cast(kind))
        with pytest.raises(InvalidInput, match=said):
            wevent.spark.count(odd, **COUNTING)
    naive = frame(spark).withColumn("since", F.lit(None).cast("timestamp_ntz"))
    with pytest.raises(InvalidEvents, match="the DataFrame: the times in column 'since' have no offset"):
        wevent.spark.count(naive, **COUNTING)
    with pytest.raises(InvalidInput, match="a streaming DataFrame"):
        wevent.spark.count(spark.readStream.format("rate").load(), **COUNTING)
    with pytest.raises(InvalidInput, match="in list"):
        wevent.spark.count([], **COUNTING)  # type: ignore[arg-type]
