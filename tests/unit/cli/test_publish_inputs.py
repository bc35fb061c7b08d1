"""What `wevent publish` makes of its input: whether a run succeeds depends on what is declared, never on a record."""

from __future__ import annotations

import gc
import gzip
import json
import warnings
from pathlib import Path

import pytest

from tests.support.commands import RunCommand

HEADER = "time,user,cell\n"
USERS = 200
RECORD = '{"time": "2026-01-01T00:00:10Z", "user": 1, "cell": 0}\n'


@pytest.fixture
def run(invoke: RunCommand) -> RunCommand:
    # ε = 50 in a window of 1: the noise is 0 but for one draw in 10¹⁰, so that releases show what was counted
    rows = "".join(f"{user},1,50\n" for user in range(USERS))
    Path("users.csv").write_text("user,window,epsilon\n" + rows + "alice,1,50\n u1 ,1,50\n")

    return invoke


def publish(run: RunCommand, *events: str, more: tuple[str, ...] = (), minutes: int = 2) -> tuple[int, str, str]:
    clock = ("--slot", "60s", "--start", "2026-01-01T00:00:00Z", "--end", f"2026-01-01T00:0{minutes}:00Z")
    files = () if "--requirements" in more else ("--requirements", "users.csv")
    return run(
        *("publish", *events, *clock, *files, "--cells", "2", "--mechanism", "uniform"),
        *("--journal", "run.journal", "--out", "out.ndjson", *more),
    )


def released() -> list[list[int]]:
    return [json.loads(line)["histogram"] for line in Path("out.ndjson").read_text().splitlines()]


def everyone(first: str = "") -> str:
    return first + "".join(f"2026-01-01T00:00:{user % 60:02d}Z,{user},1\n" for user in range(USERS))


@pytest.mark.parametrize(
    "line", ['2026-01-01T00:00:10Z,"199,1', "a\0b", "x\ry,2,3", "\xff", '2026-01-01T00:00:10Z,"19"9,1']
)
def test_a_bad_line_takes_nobody_along(run: RunCommand, line: str) -> None:
    Path("events.csv").write_bytes((HEADER + line + "\n" + everyone()).encode("latin-1"))
    code, _, err = publish(run, "events.csv")
    assert (code, released()) == (0, [[0, USERS], [0, 0]])
    assert "1 malformed (1 not a record), 0 late; the first malformed: events.csv line 2 (not a record)." in err


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("header.csv", HEADER),
        ("header.tsv", HEADER.replace(",", "\t").rstrip("\n")),
        ("header.csv.gz", HEADER),
        ("empty.ndjson", ""),
        ("blank.ndjson", "\n \n\r\n"),
        ("empty.jsonl.gz", ""),
        ("nothing.ndjson", '{"user": 1}\n'),
        ("naive.csv", HEADER + "2026-01-01T00:00:10,1,0\n"),
        ("naive.ndjson", RECORD.replace("Z", "")),
        ("lists.ndjson", '{"time": [1], "user": {"a": 1}, "cell": [[]]}\n'),
        ("deep.ndjson", '{"time": ' + "[" * 3_000 + "]" * 3_000 + ', "user": 1, "cell": 1}\n'),
        ("long.csv", HEADER + "2026-01-01T00:00:10Z," + "x" * 200_000 + ",1\n"),
        ("endless.csv", HEADER + "x" * 3_000_000),
    ],
)
def test_no_event_is_no_error(run: RunCommand, name: str, content: str) -> None:
    Path(name).write_bytes(gzip.compress(content.encode()) if name.endswith("gz") else content.encode())
    code, _, err = publish(run, name)
    assert (code, released()) == (0, [[0, 0], [0, 0]])
    public = [line for line in err.splitlines() if "(private" not in line]
    assert public == ["Published slots 1 to 2."]


def test_one_empty_file_among_three(run: RunCommand) -> None:
    Path("1.ndjson").write_text(RECORD)
    Path("2.ndjson").write_text("")
    Path("3.ndjson").write_text('{"time": "2026-01-01T00:01:10Z", "user": 2, "cell": 1}\n')
    assert publish(run, "*.ndjson")[0] == 0
    assert released() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    "name", ["empty.csv", "columns.csv", "cut.csv.gz", "flipped.ndjson.gz", "text.csv.gz", "f.parquet"]
)
def test_what_is_declared_is_refused_before_anything_is_written(run: RunCommand, name: str) -> None:
    whole = gzip.compress((HEADER + everyone()).encode())
    contents = {
        "empty.csv": b"",
        "columns.csv": b"when,user,cell\n",
        "cut.csv.gz": whole[:-30],
        "flipped.ndjson.gz": whole[:100] + bytes([whole[100] ^ 255]) + whole[101:],
        "text.csv.gz": b"no gzip",
        "f.parquet": b"PAR1 but not really",
    }
    Path(name).write_bytes(contents[name])
    code, out, err = publish(run, name)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert sorted(path.name for path in Path().iterdir()) == sorted([name, "users.csv"])


def test_many_columns(run: RunCommand) -> None:
    names = ",".join(f"c{number}" for number in range(100_000))
    line = "2026-01-01T00:00:10Z,1,0" + "," * 100_000
    Path("wide.csv").write_text(f"time,user,cell,{names}\n{line}\n{line},\n{line}\n")
    assert publish(run, "wide.csv")[0] == 0
    assert released() == [[1, 0], [0, 0]]
    Path("wide.csv").write_text(f"when,user,cell,{names}\n")
    code, _, err = publish(run, "wide.csv", more=("--journal", "other.journal"))
    assert code == 2
    assert len(err) < 1_000


def test_a_file_name_is_that_file(run: RunCommand) -> None:
    Path("ev[1].csv").write_text(HEADER + "2026-01-01T00:00:10Z,1,0\n")
    Path("ev1.csv").write_text(HEADER + "2026-01-01T00:00:10Z,2,1\n")
    Path("users[1].csv").write_text("user,window,epsilon\n1,1,50\n")
    Path("users1.csv").write_text("user,window,epsilon\n2,1,50\n")
    assert publish(run, "ev[1].csv", more=("--requirements", "users[1].csv"))[0] == 0
    assert released() == [[1, 0], [0, 0]]


def test_a_parquet_file_name_is_that_file(run: RunCommand) -> None:
    import duckdb

    for name, cell in (("ev[1].parquet", 0), ("ev1.parquet", 1)):
        query = f"SELECT TIMESTAMPTZ '2026-01-01 00:00:10+00' AS time, 1 AS \"user\", {cell} AS cell"
        duckdb.execute(f"COPY ({query}) TO '{name}' (FORMAT parquet)")
    duckdb.execute('COPY (SELECT 1 AS "user", 1 AS "window", 50 AS epsilon) TO \'users[1].parquet\' (FORMAT parquet)')
    assert publish(run, "ev[1].parquet", more=("--requirements", "users[1].parquet"))[0] == 0
    assert released() == [[1, 0], [0, 0]]


def test_a_column_of_lists_is_refused(run: RunCommand) -> None:
    import duckdb

    duckdb.execute("COPY (SELECT [1] AS time, 1 AS \"user\", 1 AS cell) TO 'lists.parquet' (FORMAT parquet)")
    code, _, err = publish(run, "lists.parquet")
    assert (code, err.count("\n")) == (2, 1)
    assert "INTEGER[]" in err


def test_ids_are_taken_as_they_are(run: RunCommand) -> None:
    """Nothing is trimmed, on either side."""
    lines = [f'{{"time": 1767225610, "user": "{user}", "cell": 1}}\n' for user in ("u1", " alice ", "u1\\u0000", "1.0")]
    Path("events.ndjson").write_text("".join(lines))
    assert publish(run, "events.ndjson")[0] == 0
    assert released()[0] == [0, 0]
    Path("events.ndjson").write_text('{"time": 1767225670, "user": " u1 ", "cell": 1}\n')
    assert publish(run, "events.ndjson", minutes=2, more=("--journal", "2.journal", "--out", "2.ndjson"))[0] == 0
    assert json.loads(Path("2.ndjson").read_text().splitlines()[1])["histogram"] == [0, 1]


def test_a_changed_time_unit_is_refused(run: RunCommand) -> None:
    Path("events.csv").write_text(HEADER + "1767225610,1,0\n1767225670,1,1\n")
    assert publish(run, "events.csv", minutes=1)[0] == 0
    code, _, err = publish(run, "events.csv", more=("--time-unit", "ms"))
    assert code == 2
    assert "it was s in the earlier run" in err
    assert publish(run, "events.csv")[0] == 0
    assert released() == [[1, 0], [0, 1]]


def test_strict_says_that_stopping_is_visible(run: RunCommand) -> None:
    assert "not private" in run("publish", "--help")[1]
    Path("events.csv").write_text(HEADER + everyone() + "x\n")
    code, _, err = publish(run, "events.csv", more=("--strict",))
    assert code == 2
    assert "whoever sees that it stopped" in err


def test_a_clock_from_no_events_is_one_sentence(run: RunCommand) -> None:
    Path("events.csv").write_text(HEADER + "x\n")
    code, _, err = run(
        *("publish", "events.csv", "--slot", "60s", "--start", "auto", "--requirements", "users.csv"),
        *("--cells", "2", "--journal", "run.journal"),
    )
    said = err.splitlines()
    assert (code, len(said), said[1][:6]) == (2, 2, "Error:")  # the first warns of auto


def test_a_damaged_file_changes_nothing_in_a_journal_that_is_resumed(run: RunCommand) -> None:
    Path("events.csv").write_text(HEADER + everyone())
    assert publish(run, "events.csv", minutes=1)[0] == 0
    Path("later.csv.gz").write_bytes(gzip.compress(b"time,user,cell\n" * 1_000)[:-9])
    Path("users.csv").write_text("user,window,epsilon\n1,1,50\n")
    code, _, err = publish(run, "events.csv", "later.csv.gz", more=("--reconfigure", "--mechanism", "pbu"))
    assert (code, "damaged or cut off" in err) == (2, True)
    status = json.loads(run("status", "run.journal", "--json")[1])
    assert status["mechanism"] == "uniform"


def test_a_run_that_fails_leaves_no_file_open(run: RunCommand) -> None:
    Path("events.csv").write_text(HEADER + "2026-01-01T00:01:10Z,1,0\nnonsense\n")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", ResourceWarning)
        assert publish(run, "events.csv", more=("--strict",))[0] == 2
        gc.collect()
    assert [str(one.message) for one in warned if "out.ndjson" in str(one.message)] == []
