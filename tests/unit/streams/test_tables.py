"""Times in Parquet that are finer than a microsecond: cut off, as of texts; and no file ends the reading of another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from tests.support.streams import DAY, SECOND, nonzero, plain, roster, settings
from wevent.streams import FileSource, SlotClock
from wevent.streams.inspection import NAIVE, ZONED, column_types

CLOCK = SlotClock(DAY, 60 * SECOND)
HOUR = 3600 * SECOND
JUST_BEFORE = (DAY + 60 * SECOND) * 1000 - 1  # a nanosecond before slot 2


def write(path: Path, times: list[int], kind: Any, **how: Any) -> str:
    """A user each, in cell 1."""
    columns = {"time": pyarrow.array(times, kind), "user": list(range(1, len(times) + 1)), "cell": [1] * len(times)}
    pyarrow.parquet.write_table(pyarrow.table(columns), path, **how)
    return str(path)


def users(source: FileSource) -> list[int]:
    """How many there are in each slot, asked for one by one."""
    return [sum(map(sum, plain(source.count(roster(range(1, 10)), slot, 1))[0][1])) for slot in range(1, 4)]


@pytest.mark.parametrize(
    ("zone", "offset_us", "old"), [("UTC", 0, False), (None, 0, False), (None, HOUR, False), (None, HOUR, True)]
)
def test_a_nanosecond_before_a_slot_is_in_the_slot_before(
    tmp_path: Path, zone: str | None, offset_us: int, old: bool
) -> None:
    """Also in the old kind of times (INT96), which have no offset."""
    times = [moment + offset_us * 1000 for moment in (JUST_BEFORE, JUST_BEFORE + 1, DAY * 1000 - 1, DAY * 1000)]
    kind = pyarrow.timestamp("ns", zone)
    path = write(tmp_path / "a.parquet", times, kind, use_deprecated_int96_timestamps=old)
    source = FileSource(settings([path], timezone_us=None if zone else offset_us), CLOCK, 3)
    assert users(source) == [2, 1, 0]
    assert nonzero(source) == {"events": 3, "rejected": 1, "before": 1}


@pytest.mark.parametrize("zone", ["UTC", None])
def test_before_1970_and_at_the_ends_of_64_bits(tmp_path: Path, zone: str | None) -> None:
    """One microsecond is -1,000 to -1 ns; infinity is no time, and nothing overflows."""
    times = [-1001, -1000, -1, 0, 999, 2**63 - 1, -(2**63) + 1, -(2**63), 2**63 - 2]
    path = write(tmp_path / "a.parquet", times, pyarrow.timestamp("ns", zone))
    source = FileSource(settings([path], timezone_us=0, slot_us=1), SlotClock(-1, 1), 2)
    counted = [sum(map(sum, one[1])) for one in plain(source.count(roster(range(1, 10)), 1, 2))]
    assert counted == [2, 2]
    assert nonzero(source) == {"events": 4, "rejected": 3, "before": 2, "after": 1, "malformed": 2, "no_time": 2}


def test_a_clock_beyond_what_nanoseconds_can_say(tmp_path: Path) -> None:
    slots = SlotClock(-(10**16), 10**16)  # from 1653 to 2603
    for zone in ("UTC", None):
        path = write(tmp_path / f"{zone}.parquet", [-1, 0], pyarrow.timestamp("ns", zone))
        assert users(FileSource(settings([path], timezone_us=0), slots, 3)) == [1, 1, 0]


def test_a_file_in_nanoseconds_says_nothing_of_the_next_one(tmp_path: Path) -> None:
    """A microsecond of the year 2999 is none that nanoseconds could say: one record must not end a run."""
    fine = write(tmp_path / "a.parquet", [DAY * 1000], pyarrow.timestamp("ns"))
    coarse = write(tmp_path / "b.parquet", [DAY, 32_472_144_000 * SECOND], pyarrow.timestamp("us"))
    for paths in ([fine, coarse], [coarse, fine]):
        source = FileSource(settings(paths, timezone_us=0), CLOCK, 3)
        assert users(source) == [1, 0, 0], "both are user 1"
        assert source.totals()["after"] == 1


def test_whether_nanoseconds_have_an_offset(tmp_path: Path) -> None:
    for zone, said in (("UTC", ZONED), (None, NAIVE)):
        path = write(tmp_path / "a.parquet", [0], pyarrow.timestamp("ns", zone))
        assert column_types(path)[0].type == said


@pytest.mark.parametrize("kind", [pyarrow.timestamp("us", "UTC"), pyarrow.int64(), pyarrow.float64()])
def test_a_column_with_braces_in_its_name(tmp_path: Path, kind: Any) -> None:
    table = {"{time}": pyarrow.array([DAY, DAY + 61 * SECOND], kind), "user": [1, 2], "cell": [1, 1]}
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table(table), path)
    assert users(FileSource(settings([str(path)], time_column="{time}", time_unit="us"), CLOCK, 3)) == [1, 1, 0]


@pytest.mark.parametrize("column", ["time", "user", "cell"])
def test_a_text_that_is_no_unicode_is_a_malformed_event_and_stops_no_run(tmp_path: Path, column: str) -> None:
    """Invalid bytes are neither dropped nor replaced: `1\\xff` is neither user 1 nor user `1?`."""
    sound = {"time": "2026-01-01T00:00:01Z", "user": "1", "cell": "1"}
    rows = [sound, {**sound, "user": "2"}, {**sound, column: sound[column] + "\udcff"}, {**sound, "user": "é?"}]
    for how in ({"use_dictionary": False}, {}):
        columns = {name: [row[name].encode(errors="surrogateescape") for row in rows] for name in sound}
        table = pyarrow.table({name: pyarrow.array(values).view(pyarrow.string()) for name, values in columns.items()})
        pyarrow.parquet.write_table(table, tmp_path / "a.parquet", **how)
        source = FileSource(settings([tmp_path / "a.parquet"]), CLOCK, 1)
        counted = plain(source.count(roster(["1", "2", "1?", "é?"]), 1, 1))
        assert counted == [(1, [[0, 1, 0, 0], [0, 2, 0, 0]], 0)]
        assert nonzero(source) == {"events": 3, "malformed": 1, f"no_{column}": 1}
