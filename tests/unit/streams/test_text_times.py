"""One text, one time: columns of text and Parquet read every text as one text at a time is read."""

from __future__ import annotations

from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from tests.support.streams import SECOND, settings
from tests.support.time_texts import differing, read_table, time_texts
from wevent.counting.string_column import StringColumn
from wevent.streams.times import FAR_US, TimeReader

HOW = pytest.mark.parametrize(
    ("timezone_us", "time_unit"), [(None, "s"), (-12_600 * SECOND, "ms"), (0, "us")], ids=["s", "ms", "us"]
)


def write(path: str, times: pyarrow.Array) -> None:
    """Write a row for each time."""
    ones = pyarrow.array([1] * len(times))
    pyarrow.parquet.write_table(pyarrow.table({"time": times, "user": ones, "cell": ones}), path)


@HOW
def test_every_reader_of_texts_reads_the_same(tmp_path: Path, timezone_us: int | None, time_unit: str) -> None:
    written = sorted(set(time_texts()))
    reader = TimeReader(timezone_us, time_unit)
    expected = {text: reader.one(text) for text in written}
    assert 500 < sum(time is not None for time in expected.values()) < len(written) - 1_000
    times, valid = reader.read(StringColumn.from_texts(written))
    read = [time if legal else None for time, legal in zip(times.tolist(), valid.tolist(), strict=True)]
    assert differing(expected, dict(zip(written, read, strict=True))) == []

    path = str(tmp_path / "events.parquet")
    write(path, pyarrow.array(written, pyarrow.string()))
    found, unzoned = read_table(settings([path], timezone_us=timezone_us, time_unit=time_unit), len(written))
    assert differing(expected, dict(zip(written, found, strict=True))) == []
    assumed = TimeReader(0, time_unit)
    lacking = {text for text, time in expected.items() if time is None and assumed.one(text) is not None}
    assert {written[row] for row in unzoned} == lacking
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
    write(path, pyarrow.array(numbers, kind))
    reader = TimeReader(None, "s")
    assert read_table(settings([path]), len(numbers))[0] == [reader.one(number) for number in numbers]
    assert reader.one(1e300) == FAR_US
