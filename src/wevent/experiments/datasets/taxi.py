"""T-Drive: a week of Beijing taxis, one text file per taxi (spec 13)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import numpy as np

from wevent.experiments.datasets.raw import lines_of, missing, raw_files, single_row
from wevent.experiments.datasets.recorded import Recorded

GRID = 10
WEST, EAST, SOUTH, NORTH = 116.0, 116.8, 39.5, 40.3
SLOT_S = 60

_WHERE = (
    "T-Drive is at https://www.microsoft.com/en-us/research/publication/t-drive-trajectory-data-sample/ "
    "(files <id>.txt with lines id,YYYY-MM-DD HH:MM:SS,longitude,latitude)."
)


def taxi_stream(folder: Path) -> Recorded:
    """Return taxis per one-minute slot and cell of a 10×10 grid; a taxi without a record keeps its last cell.

    Duplicate lines and positions outside the box are dropped; the last record of a slot wins. Malformed lines are
    counted in `remarks`. A taxi whose file has no usable line is a user who is never present.

    Raises:
        InvalidOption: if the folder has no such files; says where to get them.
    """
    files = raw_files(folder, "*.txt")
    if not files:
        raise missing("taxi", folder, "files of T-Drive, <id>.txt", _WHERE)
    with duckdb.connect() as connection:
        connection.execute(
            f"""CREATE TEMP TABLE raw AS
            WITH parts AS (SELECT n, string_split(line, ',') AS part FROM ({lines_of(files)}))
            SELECT n, trim(part[1]) AS id, try_cast(part[2] AS TIMESTAMP) AS time,
                   try_cast(part[3] AS DOUBLE) AS lon, try_cast(part[4] AS DOUBLE) AS lat,
                   len(part) = 4 AND regexp_full_match(trim(part[1]), '[0-9]+')
                     AND time IS NOT NULL AND isfinite(lon) AND isfinite(lat) AS good
            FROM parts"""
        )
        connection.execute(
            "CREATE TEMP VIEW distinct_lines AS SELECT DISTINCT id, time, lon, lat, good FROM raw WHERE good"
        )
        lines, good, distinct, inside = single_row(
            connection,
            f"""SELECT (SELECT count(*) FROM raw), (SELECT count(*) FROM raw WHERE good),
                   (SELECT count(*) FROM distinct_lines), (SELECT count(*) FROM distinct_lines WHERE {_inside()})""",
        )
        origin, last = single_row(connection, f"SELECT min({_slot()}), max({_slot()}) FROM raw WHERE {_inside()}")
        users = _users(connection, folder, files)
        if origin is None:
            raise missing("taxi", folder, "position inside the box of the paper", _WHERE)
        connection.register("users", {"id": np.array(users, dtype=object), "user_row": np.arange(len(users))})
        found = connection.execute(
            f"""SELECT {_slot()} - {origin} AS slot, user_row,
            arg_max({_cell()}, (time, n)) AS cell
            FROM raw JOIN users USING (id) WHERE {_inside()} GROUP BY ALL"""
        ).fetchnumpy()
    remarks = {
        "malformed lines": lines - good,
        "duplicate lines": good - distinct,
        "outside the box": distinct - inside,
    }
    labels = [f"{row},{column}" for row in range(GRID) for column in range(GRID)]
    return Recorded.from_columns(
        "taxi",
        np.array([int(user) for user in users]),
        labels,
        int(last - origin) + 1,
        *(found[name] for name in ("slot", "user_row", "cell")),
        carried=True,
        remarks=remarks,
    )


def _users(connection: duckdb.DuckDBPyConnection, folder: Path, files: Sequence[Path]) -> list[str]:
    """Return every taxi that has a file or a good line, in numerical order."""
    seen = {row[0] for row in connection.execute("SELECT DISTINCT id FROM raw WHERE good").fetchall()}
    everything = [*folder.rglob("*.txt"), *folder.rglob("*.txt.gz")]  # empty files too
    seen.update(name for name in (path.name.split(".")[0] for path in everything) if name.isdigit())
    return sorted(seen, key=int)


def _inside() -> str:
    return f"good AND lon BETWEEN {WEST} AND {EAST} AND lat BETWEEN {SOUTH} AND {NORTH}"


def _slot() -> str:
    return f"floor(epoch(time) / {SLOT_S})::BIGINT"


def _cell() -> str:
    """Return SQL for the cell: row by latitude, column by longitude; the outer edges belong to the last ones."""
    row = f"least(floor((lat - {SOUTH}) / {NORTH - SOUTH} * {GRID}), {GRID - 1})"
    column = f"least(floor((lon - {WEST}) / {EAST - WEST} * {GRID}), {GRID - 1})"
    return f"({row} * {GRID} + {column})::BIGINT"
