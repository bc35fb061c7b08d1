"""One text, one time: columns of text and DuckDB read every text as one text at a time is read."""

from __future__ import annotations

from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from tests.support.streams import SECOND, settings
from tests.support.time_texts import differing, read_by_duckdb, time_texts
from wevent.streams.records.fields import Fields
from wevent.streams.records.times import FAR_US, TimeReader

HOW = pytest.mark.parametrize(
    ("timezone_us", "time_unit"), [(None, "s"), (-12_600 * SECOND, "ms"), (0, "us")], ids=["s", "ms", "us"]
)


@HOW
def test_every_reader_of_texts_reads_the_same(tmp_path: Path, timezone_us: int | None, time_unit: str) -> None:
    written = sorted(set(time_texts()))
    reader = TimeReader(timezone_us, time_unit)
    expected = {text: reader.one(text) for text in written}
    assert 500 < sum(time is not None for time in expected.values()) < len(written) - 1_000
    times, valid = reader.fields(Fields.of(written))
    read = [time if legal else None for time, legal in zip(times.tolist(), valid.tolist(), strict=True)]
    assert differing(expected, dict(zip(written, read, strict=True))) == []

    path = str(tmp_path / "events.parquet")
    column = pyarrow.array(written, pyarrow.string())
    pyarrow.parquet.write_table(pyarrow.table({"time": column, "user": column, "cell": column}), path)
    found, unzoned = read_by_duckdb(settings([path], timezone_us=timezone_us, time_unit=time_unit))
    assert differing(expected, found) == []
    assumed = TimeReader(0, time_unit)
    lacking = {text for text, time in expected.items() if time is None and assumed.one(text) is not None}
    assert unzoned == lacking
    assert len(lacking) > 20 or timezone_us is not None


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [
        (pyarrow.int64(), [-(2**63), -5, 0, 1_767_225_605, 4 * 10**12, 2**63 - 1]),
        (pyarrow.uint64(), [0, 1_767_225_605, 2**64 - 1]),
        (pyarrow.float64(), [1_767_225_605.0000005, 0.0000005, 0.0000015, -0.0000025, 1e300, -1e308, 1e308 * 10]),
        (pyarrow.float32(), [1_767_225_728.0, 0.5]),
    ],
    ids=["whole", "large", "floats", "short floats"],
)
def test_numbers_are_read_as_records_are(tmp_path: Path, kind: pyarrow.DataType, numbers: list[float]) -> None:
    path = str(tmp_path / "events.parquet")
    column = pyarrow.array(numbers, kind)
    pyarrow.parquet.write_table(pyarrow.table({"time": column, "user": column, "cell": column}), path)
    reader = TimeReader(None, "s")
    assert list(read_by_duckdb(settings([path]))[0].values()) == [reader.one(number) for number in numbers]
    assert reader.one(1e300) == FAR_US
