"""Anyone's events: a Parquet or CSV file of `slot,user,cell` or `time,user,cell`.

CSV is read line by line as `wevent publish` does: a malformed line is counted and touches no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from wevent.core.arrays import BoolArray, IntArray
from wevent.counting.labels import Labels
from wevent.counting.string_column import StringColumn
from wevent.errors import InvalidEvents, InvalidOption
from wevent.experiments.datasets.raw import by_user_and_slot
from wevent.experiments.datasets.recorded import Recorded
from wevent.experiments.datasets.stream import SlotTimes
from wevent.streams.decoding import DELIMITERS, split_fields
from wevent.streams.duckdb_tables import file_list
from wevent.streams.inputs import open_input, read_lines, require_columns
from wevent.streams.times import SlotReader, TimeReader

_EARLIEST = -(2**62)  # any time there is
_MOST_SLOTS = 10_000_000  # of a simulation, which counts every one of them
_FULL_RANGE = 100_000  # whole-number cells below this stand for 0 … largest


def file_stream(path: Path, *, slot_length_s: float | None = None, max_cells_per_user: int = 1) -> Recorded:
    """The events of a file; the last one of a user and slot wins, rows that cannot be read are counted in `remarks`.

    Slots of times run from the file's first to its last: in a simulation they may be discovered. Slot numbers are what
    `wevent publish` takes them for: slot 1 is the first, whether anybody is in it or not, and there is none before it.
    Cells that are whole numbers from 0 on stand for 0 … largest; others are those that occur.

    Args:
        path: `.parquet`, `.csv`, `.tsv`, or one of the last two with `.gz`.
        slot_length_s: seconds per slot; needed for a `time` column (a timestamp, or seconds as a number).
        max_cells_per_user: how many cells of a user and slot count: the last distinct ones.

    Raises:
        InvalidOption: if there is no such file, or no slot length for times.
        InvalidEvents: if columns are missing, no row can be read, or slot numbers are beyond any simulation.
    """
    if not path.is_file():
        raise InvalidOption(
            "an existing file", f"{str(path)!r}", "Check the path after file:.", option="stream", value=str(path)
        )
    with duckdb.connect() as connection:
        load = _load_parquet if _kind(path) == "parquet" else _load_text
        numbered = load(connection, path, slot_length_s) == "slot"
        readable = "slot + length(who || place) IS NOT NULL"
        connection.execute(
            f"CREATE TEMP VIEW readable AS SELECT * FROM events WHERE {readable} AND slot >= {1 if numbered else _EARLIEST}"
        )
        users = _numbered(connection, "who", whole_range=False)
        cells = _numbered(connection, "place", whole_range=True)
        found = connection.execute(
            """SELECT slot, who_rows.row AS user_row, place_rows.row AS cell
            FROM readable JOIN who_rows USING (who) JOIN place_rows USING (place) GROUP BY 1, 2, 3
            QUALIFY row_number() OVER (PARTITION BY slot, user_row ORDER BY max(n) DESC) <= ?""",
            [max_cells_per_user],
        ).fetchnumpy()
        counted = connection.execute(
            f"SELECT count(*), count(*) FILTER ({readable}), (SELECT count(*) FROM readable) FROM events"
        ).fetchone()
    assert counted is not None
    if not counted[2]:
        raise InvalidEvents(
            "at least one row with a slot (from 1 on) or time, a user and a cell",
            "none",
            "Check the file.",
            lengths=(0,),
        )
    remarks = {
        "unreadable rows": counted[0] - counted[1],
        "rows before slot 1": counted[1] - counted[2],
        "earlier events of a user in a slot": counted[2] - len(found["slot"]),
    }
    first = 1 if numbered else int(found["slot"].min())
    if int(found["slot"].max()) - first >= _MOST_SLOTS:
        raise InvalidEvents(
            f"at most {_MOST_SLOTS:,} slots" + (", numbered from 1 on" if numbered else ""),
            "a file with more",
            "Number the slots from 1 on, as wevent publish needs them." if numbered else "Choose a longer slot.",
            path=str(path),
        )
    slot, user, cell = by_user_and_slot(found["slot"] - first, found["user_row"], found["cell"])
    times = SlotTimes()
    if not numbered and slot_length_s is not None:
        length = timedelta(seconds=slot_length_s)
        times = SlotTimes.from_1970(first * length, length)
    slots = int(slot.max()) + 1
    return Recorded(f"file:{path.name}", users, cells.tolist(), slots, slot, user, cell, remarks=remarks, times=times)


def _numbered(connection: duckdb.DuckDBPyConnection, column: str, *, whole_range: bool) -> npt.NDArray[Any]:
    """The distinct labels of a column, in order; makes a table `<column>_rows` of each one's position."""
    distinct = [label for (label,) in connection.execute(f"SELECT DISTINCT {column} FROM readable").fetchall()]
    labels, rows = _ordered(distinct, whole_range)
    connection.register(f"{column}_rows", {column: np.array(distinct, dtype=object), "row": rows})
    return labels


def _ordered(distinct: list[str], whole_range: bool) -> tuple[npt.NDArray[Any], IntArray]:
    """Labels in numerical order if all are whole numbers, else in alphabetical order; and the position of each."""
    names: npt.NDArray[Any] = np.array(distinct, dtype=np.str_)
    try:
        numbers = np.array([int(label) for label in distinct], dtype=np.int64)
    except (ValueError, OverflowError):
        numbers = np.zeros(0, dtype=np.int64)
    if len(distinct) and len(np.unique(numbers)) == len(distinct):  # "1" and "01" would be two labels
        if whole_range and numbers.min() >= 0 and numbers.max() < _FULL_RANGE:
            return np.arange(int(numbers.max()) + 1), numbers
        names = numbers
    order = names.argsort()
    rows = np.empty(len(order), dtype=np.int64)
    rows[order] = np.arange(len(order))
    return names[order], rows


def _kind(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    kind = {".parquet": "parquet", ".csv": "csv", ".txt": "csv", ".tsv": "tsv"}.get(suffixes[-1] if suffixes else "")
    if kind is None:
        raise InvalidOption(
            "a file ending in .parquet, .csv or .tsv (plain or .gz)",
            f"{path.name!r}",
            "Rename or convert it.",
            option="stream",
            value=str(path),
        )
    return kind


def _load_parquet(connection: duckdb.DuckDBPyConnection, path: Path, slot_length_s: float | None) -> str:
    """The table `events`: n, slot, who, place; NULL for what cannot be read. The column that slots come from."""
    reader = f"read_parquet({file_list([str(path)])}, hive_partitioning = false)"
    try:
        columns = {row[0]: row[1] for row in connection.execute(f"DESCRIBE SELECT * FROM {reader}").fetchall()}
        slot = "try_cast(slot AS BIGINT)"
        time_name = _time_name(path, list(columns), slot_length_s)
        if time_name == "time":
            seconds = "coalesce(try_cast(time AS DOUBLE), epoch(try_cast(time AS TIMESTAMP)))"
            if columns["time"].startswith(("TIMESTAMP", "DATE")):
                seconds = "CASE WHEN isfinite(time) THEN epoch(time) END"
            slot = f"try_cast(floor({seconds} / {float(slot_length_s or 1)!r}) AS BIGINT)"
        connection.execute(
            f"""CREATE TEMP TABLE events AS SELECT row_number() OVER () AS n, {slot} AS slot,
            "user"::VARCHAR AS who, cell::VARCHAR AS place FROM {reader}"""
        )
    except duckdb.Error as error:
        raise InvalidEvents(
            "a readable Parquet file", f"{path.name!r} ({type(error).__name__})", "Check the file.", path=str(path)
        ) from None
    return time_name


def _load_text(connection: duckdb.DuckDBPyConnection, path: Path, slot_length_s: float | None) -> str:
    """The table `events`, as of `_load_parquet`."""
    text = open_input(str(path), _kind(path))
    time_name = _time_name(path, text.columns, slot_length_s)
    require_columns(text.path, text.columns, (time_name, "user", "cell"))
    wanted = [text.columns.index(name) for name in (time_name, "user", "cell")]
    connection.execute("CREATE TEMP TABLE events (n BIGINT, slot BIGINT, who VARCHAR, place VARCHAR)")
    done = 0
    for lines in read_lines(text):
        table = split_fields(lines, DELIMITERS[text.format], len(text.columns), wanted)
        times, users, cells = table.columns
        slots, valid = _slots(times, slot_length_s if time_name == "time" else None)
        valid &= Labels.from_fields(users).is_label() & Labels.from_fields(cells).is_label()
        columns = {
            "n": np.arange(done, done + np.count_nonzero(valid)),
            "slot": slots[valid],
            "who": np.array(users.where(valid).texts(), dtype=object),
            "place": np.array(cells.where(valid).texts(), dtype=object),
        }
        connection.register("arriving", columns)
        connection.execute("INSERT INTO events SELECT * FROM arriving")
        connection.unregister("arriving")
        bad = len(table.broken) + int(np.count_nonzero(~valid))
        connection.execute("INSERT INTO events SELECT NULL, NULL, NULL, NULL FROM range(?)", [bad])
        done += len(columns["n"])
    return time_name


def _slots(times: StringColumn, slot_length_s: float | None) -> tuple[IntArray, BoolArray]:
    """The slot of each row, and which have one; times without an offset are taken for UTC."""
    if slot_length_s is None:
        numbers, valid = SlotReader().read(times)
        return numbers + 1, valid  # it reads them as times, from 0 on
    reader = TimeReader(0, "s")
    found, valid = reader.read(times)
    days = np.flatnonzero(~valid & (times.sizes == len("2024-01-31")))
    found[days], valid[days] = reader.read([f"{text}T00:00Z" for text in times.where(days).texts()])
    return found // max(1, round(slot_length_s * 1_000_000)), valid


def _time_name(path: Path, columns: Sequence[str], slot_length_s: float | None) -> str:
    if not {"user", "cell"} <= set(columns) or not {"slot", "time"} & set(columns):
        raise InvalidEvents(
            "the columns slot,user,cell or time,user,cell",
            f"{', '.join(columns[:20])} in {path.name}",
            "Rename the columns or add a header line.",
            columns=tuple(columns),
        )
    if "slot" in columns:
        return "slot"
    if slot_length_s is None:
        raise InvalidOption(
            "a slot length for a file with times",
            "none",
            "Add --slot-length, for example 5m, 1h or 1d.",
            option="slot_length",
        )
    return "time"
