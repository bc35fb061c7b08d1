"""Files as a source of counts."""

import errno
import gzip
import random
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from tests.support.streams import DAY, MEMORY, SECOND, nonzero, plain, roster, settings, tight_memory
from wevent.errors import InvalidEvents, InvalidInput, InvalidSettings, StorageFailed
from wevent.streams import FileSource, SlotClock, declared_clock
from wevent.streams.file_source import open_readers

CLOCK = SlotClock(DAY, 60 * SECOND)
HEADER = "time,user,cell\n"
ROWS = [
    "2026-01-01T00:00:10Z,1,0",
    "2026-01-01T00:00:50Z,1,1",  # the last event wins
    "2026-01-01T00:00:30Z,2,2",
    "2026-01-01T01:01:00+01:00,2,3",  # slot 2
    "2026-01-01T00:01:59.999999Z,99,0",  # nobody
    "2026-01-01T00:03:00Z,3,77",  # nowhere; slot 3 is empty
]
COUNTED = [
    (1, [[0, 1, 0, 0], [0, 0, 1, 0]], 0),
    (2, [[0, 0, 0, 0], [0, 0, 0, 1]], 1),
    (3, [[0, 0, 0, 0], [0, 0, 0, 0]], 0),
    (4, [[0, 0, 0, 0], [0, 0, 0, 0]], 1),
]


def csv_file(folder: Path, rows: list[str], name: str = "events.csv", header: str = HEADER) -> str:
    path = folder / name
    path.write_text(header + "".join(row + "\n" for row in rows))
    return str(path)


def count(paths: list[str], last: int = 4, people: Any = None, **others: Any) -> list[Any]:
    return plain(FileSource(settings(paths, **others), CLOCK, last).count(people or roster(), 1, 1000))


def test_every_slot_of_the_declared_clock_once_empty_ones_too(tmp_path: Path) -> None:
    assert count([csv_file(tmp_path, ROWS)]) == COUNTED


def test_the_order_in_the_file_does_not_matter(tmp_path: Path) -> None:
    rows = list(ROWS)
    random.Random(1).shuffle(rows)
    assert count([csv_file(tmp_path, rows)]) == COUNTED


def test_of_equal_times_the_later_line_wins_across_files(tmp_path: Path) -> None:
    first = csv_file(tmp_path, ["2026-01-01T00:00:10Z,1,0", "2026-01-01T00:00:10Z,1,1"], "a.csv")
    second = tmp_path / "b.ndjson"
    second.write_text('{"time": "2026-01-01T00:00:10Z", "user": 1, "cell": 2}\n')
    third = tmp_path / "c.parquet"
    duckdb.execute(
        f"COPY (SELECT {DAY // SECOND + 10} AS time, 1 AS \"user\", 3 AS cell) TO '{third}' (FORMAT parquet)"
    )
    for memory in MEMORY.values():
        with memory():
            assert count([first], 1)[0][1][0] == [0, 1, 0, 0]
            assert count([first, str(second)], 1)[0][1][0] == [0, 0, 1, 0]
            assert count([str(second), first], 1)[0][1][0] == [0, 1, 0, 0]
            assert count([first, str(second), str(third)], 1)[0][1][0] == [0, 0, 0, 1]
            assert count([first, str(third), str(second)], 1)[0][1][0] == [0, 0, 1, 0]


def test_globs_and_gz(tmp_path: Path) -> None:
    csv_file(tmp_path, ROWS[:3], "1.csv")
    with gzip.open(tmp_path / "2.csv.gz", "wt") as text:
        text.write(HEADER + "\n".join(ROWS[3:]) + "\n")
    assert count([str(tmp_path / "*")]) == COUNTED


def test_parquet_times_of_every_kind(tmp_path: Path) -> None:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for kind, column, others in (
        ("zoned", "make_timestamptz(us)", {}),
        ("naive", "make_timestamp(us)", {"timezone_us": 0}),
        ("seconds", "us // 1000000", {}),
        ("fractions", "us / 1000000", {}),
        ("millis", "us // 1000", {"time_unit": "ms"}),
        ("text", "CAST(make_timestamptz(us) AS VARCHAR)", {}),
    ):
        path = tmp_path / f"{kind}.parquet"
        rows = f"(VALUES ({DAY + SECOND}, 1, 0), ({DAY + 61 * SECOND}, 1, 1), (NULL, 2, 2)) AS t(us, u, c)"
        query = f'SELECT {column} AS time, u AS "user", c AS cell FROM {rows}'
        connection.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
        source = FileSource(settings([str(path)], **others), CLOCK, 2)
        counted = [one[1][0] for one in plain(source.count(roster(), 1, 9))]
        assert counted == [[1, 0, 0, 0], [0, 1, 0, 0]], kind
        assert source.totals()["malformed"] == 1


def test_data_already_slotted(tmp_path: Path) -> None:
    path = csv_file(tmp_path, ["1,1,0", "1,1,1", "3,2,2", "9,1,1", "x,1,1"], header="slot,user,cell\n")
    chosen = settings([path], slot_column="slot", slot_us=1, start_us=0, end_us=3)
    clock, last = declared_clock(chosen)
    assert (clock, last) == (SlotClock(0, 1), 3)
    source = FileSource(chosen, clock, last)
    counted = plain(source.count(roster(), 1, 9))
    assert [one[1] for one in counted] == [
        [[0, 1, 0, 0], [0, 0, 0, 0]],
        [[0, 0, 0, 0], [0, 0, 0, 0]],
        [[0, 0, 0, 0], [0, 0, 1, 0]],
    ]
    assert nonzero(source) == {"events": 3, "rejected": 1, "after": 1, "malformed": 1, "no_time": 1}


def test_ids_are_compared_as_text(tmp_path: Path) -> None:
    path = csv_file(tmp_path, [f"2026-01-01T00:00:10Z,{user},1" for user in ("7", "007", "anna", "Anna")])
    assert count([path], 1, people=roster([7, 8]))[0][1:] == ([[0, 1, 0, 0], [0, 0, 0, 0]], 3)
    assert count([path], 1, people=roster(["007", "anna"]))[0][1:] == ([[0, 1, 0, 0], [0, 1, 0, 0]], 2)


@pytest.mark.parametrize("columns", ["", ", 7 AS file_row_number, 7 AS rowid"])
def test_a_slot_too_large_for_memory(tmp_path: Path, columns: str) -> None:
    path = tmp_path / "events.parquet"
    rows = f'SELECT make_timestamptz({DAY} + 50 - i) AS time, i % 7 AS "user", i % 5 AS cell{columns} FROM range(50) AS t(i)'
    duckdb.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
    expected = count([str(path)], 1)
    assert expected[0][1] == [[1, 1, 0, 1], [0, 1, 1, 0]]
    with tight_memory():
        assert count([str(path)], 1) == expected


def test_events_in_a_temporary_file_are_encrypted_and_read_in_ranges(tmp_path: Path) -> None:
    rows = [f"2026-01-01T00:0{9 - second % 10}:00Z,somebody-{second},1" for second in range(200)]
    path = csv_file(tmp_path, rows)
    with tight_memory():
        source = FileSource(settings([path]), CLOCK, 10)
        assert [
            sum(map(sum, one[1])) for one in plain(source.count(roster([f"somebody-{i}" for i in range(50)]), 1, 10))
        ]
        temporary = source._spill._file
        temporary.seek(0)
        data = temporary.read()
    assert len(data) > 2_000
    assert b"somebody" not in data
    assert not Path(str(temporary.name)).exists()


@pytest.mark.parametrize("memory", MEMORY.values())
def test_a_disk_without_room_for_a_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: Any) -> None:
    """Also where no event goes to a file: whether a run stops must not depend on the number of events."""
    path = csv_file(tmp_path, ROWS * 3)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=10_000_000))
    with memory(), pytest.raises(StorageFailed, match="TMPDIR"):
        count([path])


def test_experiments_read_well_formed_events_whatever_strict_says(tmp_path: Path) -> None:
    path = csv_file(tmp_path, [*ROWS, "nonsense,1,1"])

    def number(*, strict: bool) -> int:
        readers = open_readers(settings([path], strict=strict))
        return sum(len(piece.decoded.batch.times) for reader in readers for piece in reader.pieces())

    assert number(strict=True) == number(strict=False) > 0


def test_where_no_folder_takes_a_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> str:
        raise FileNotFoundError("no usable temporary directory")

    path = csv_file(tmp_path, ROWS * 3)
    monkeypatch.setattr(tempfile, "gettempdir", full)
    with tight_memory(), pytest.raises(StorageFailed, match="TMPDIR") as caught:
        count([path])
    assert caught.value.passing


def test_a_temporary_file_that_cannot_be_finished_is_no_error_of_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last bytes leave the buffer late."""
    made = tempfile.TemporaryFile

    class Full:
        def __init__(self) -> None:
            self._file = made()

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

        def flush(self) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    path = csv_file(tmp_path, ROWS * 3)
    monkeypatch.setattr(tempfile, "TemporaryFile", Full)
    with tight_memory(), pytest.raises(StorageFailed, match="TMPDIR") as caught:
        count([path])
    assert caught.value.passing


def test_ranges_small_and_large_and_calls_of_any_size_agree(tmp_path: Path) -> None:
    path = csv_file(tmp_path, ROWS)
    with tight_memory():
        assert count([path]) == COUNTED
    source, counted = FileSource(settings([path]), CLOCK, 4), []
    for first in range(1, 5):  # the caller may change the roster before every slot
        counted += plain(source.count(roster(), first, 1))
    assert counted == COUNTED


def test_events_outside_the_clock_are_rejected(tmp_path: Path) -> None:
    rows = ["2025-12-31T23:59:59Z,1,0", "2026-01-01T00:02:00Z,1,0", "2999-01-01T00:00:00Z,1,0", ROWS[0]]
    source = FileSource(settings([csv_file(tmp_path, rows)]), CLOCK, 2)
    assert [one[0] for one in plain(source.count(roster(), 1, 99))] == [1, 2]
    assert nonzero(source) == {"events": 1, "rejected": 3, "before": 1, "after": 2}


def test_malformed_lines_are_counted_and_shown_by_number_only(tmp_path: Path) -> None:
    bad = [
        "secret",
        "yesterday,1,0",
        "2026-01-01T00:00:10Z,,0",
        "2026-01-01T00:00:10,1,0",
        "2026-01-01T00:00:10Z,1,0,9",
    ]
    path = csv_file(tmp_path, [ROWS[0], *bad, *ROWS[1:]])
    source = FileSource(settings([path]), CLOCK, 4)
    assert plain(source.count(roster(), 1, 9)) == COUNTED
    assert source.totals()["malformed"] == len(bad)
    assert [place.split(" line ")[1] for place in source.first_malformed()] == [
        "3 (not a record)",
        "4 (its time is not ISO 8601 with Z or an offset, or a number)",
        "5 (no user, or one of more than 256 bytes)",
    ]


def test_strict_stops_before_the_first_slot(tmp_path: Path) -> None:
    path = csv_file(tmp_path, [*ROWS, "secret"])
    with pytest.raises(InvalidEvents, match="line 8") as caught:
        count([path], strict=True)
    assert "secret" not in str(caught.value)


def test_local_times_without_an_offset_do_not_count_unless_one_is_declared(tmp_path: Path) -> None:
    assert count([csv_file(tmp_path, ["2026-01-01T00:00:10,1,0", *ROWS])]) == COUNTED
    assert count([csv_file(tmp_path, ["2026-01-01 00:00:10,1,0"])], 1, timezone_us=0)[0][1][0] == [1, 0, 0, 0]
    hour = 3600 * SECOND
    assert count([csv_file(tmp_path, ["2026-01-01 01:00:10,1,0"])], 1, timezone_us=hour)[0][1][0] == [1, 0, 0, 0]


def test_bad_files_get_one_sentence_each(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "spoiled.csv").write_bytes(b'time,user,"cell\n')
    (tmp_path / "twice.csv").write_text("time,user,user,cell\n")
    whole = gzip.compress(HEADER.encode() + b"2026-01-01T00:00:10Z,1,0\n" * 10_000)
    (tmp_path / "cut.csv.gz").write_bytes(whole[:-20])
    (tmp_path / "flipped.csv.gz").write_bytes(whole[:50] + bytes([whole[50] ^ 255]) + whole[51:])
    (tmp_path / "columns.csv").write_text("when,who,where\n1,2,3\n")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 but not really")
    (tmp_path / "events.xlsx").write_bytes(b"x")
    (tmp_path / "broken.csv.gz").write_bytes(b"no gzip")
    for name in (
        "missing.csv",
        "*.tsv",
        "empty.csv",
        "spoiled.csv",
        "twice.csv",
        "cut.csv.gz",
        "flipped.csv.gz",
        "columns.csv",
        "broken.parquet",
        "events.xlsx",
        "broken.csv.gz",
    ):
        with pytest.raises(InvalidInput) as caught:  # before a slot is counted
            FileSource(settings([str(tmp_path / name)]), CLOCK, 4)
        assert str(caught.value).count("\n") == 0, name


def test_a_file_that_is_cut_off_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    query = f'SELECT make_timestamptz({DAY} + i) AS time, i AS "user", i AS cell FROM range(100000) AS t(i)'
    duckdb.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    source = FileSource(settings([str(path)]), CLOCK, 1)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(InvalidInput, match="cut off"):
        list(source.count(roster(), 1, 1))


def test_the_clock_of_files_is_declared_or_openly_read_from_them(tmp_path: Path) -> None:
    path = csv_file(tmp_path, ROWS)
    assert declared_clock(settings([path], end_us=DAY + 150 * SECOND)) == (
        CLOCK,
        2,
    )  # a slot cut short is not published
    for undeclared in ({}, {"start_us": None, "end_us": DAY}):
        with pytest.raises(InvalidSettings, match="declared"):
            declared_clock(settings([path], **undeclared))
    assert declared_clock(settings([path], start_us=None, start_auto=True)) == (CLOCK, 4)
    pinned = SlotClock(DAY - 60 * SECOND, 60 * SECOND)
    assert declared_clock(settings([path], start_us=None, start_auto=True), pinned) == (pinned, 5)
    with pytest.raises(InvalidSettings):
        declared_clock(settings([path], end_us=DAY + 59 * SECOND))


def test_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = csv_file(tmp_path, ROWS)
    empty = tmp_path / "here"
    empty.mkdir()
    monkeypatch.chdir(empty)
    source = FileSource(settings([path]), CLOCK, 4)
    assert len(list(source.count(roster(), 1, 9))) == 4
    assert list(empty.iterdir()) == []


def test_events_without_a_header_are_shown_to_nobody(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("2026-01-01T00:00:01Z,rider-0815,Geheimhafen\n")
    with pytest.raises(InvalidInput, match="is the header line missing") as caught:
        FileSource(settings(inputs=(str(tmp_path / "events.csv"),)), SlotClock(DAY, 60 * SECOND), 1)
    assert not [secret for secret in ("0815", "rider", "Geheim", "2026") if secret in str(caught.value)]


@pytest.mark.parametrize("limit", [1, 2])
@pytest.mark.parametrize("unknown_limit", [0, 2])
def test_a_large_slot_counts_unregistered_users_as_a_small_one_does(
    tmp_path: Path, limit: int, unknown_limit: int
) -> None:
    draw = random.Random(limit)
    users = ["1", "2", "3", "x", "y", "z", "a"]
    rows = [f"{DAY // SECOND + draw.randrange(60)},{draw.choice(users)},{draw.randrange(6)}" for _ in range(300)]
    known = roster([1, 2, 3])
    people = known.reclassify(known.classes, known.population, unknown_row=1, unknown_limit=unknown_limit)
    path = csv_file(tmp_path, rows)
    expected = count([path], 1, people=people, max_cells_per_user=limit)
    assert sum(expected[0][1][1]) == limit * (1 + unknown_limit)
    with tight_memory():
        found = count([path], 1, people=people, max_cells_per_user=limit)
    assert found[0][1] == expected[0][1]
