"""Foursquare check-ins, TIST2015: which country a user was last in (spec 13)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import duckdb
import numpy as np

from wevent.experiments.datasets.raw import lines_of, missing, raw_files, single_row
from wevent.experiments.datasets.recorded import Recorded

SLOT_S = 100 * 60
SHARE = 0.05  # of the users
HASH_SEED = 1

_PARTS = ("Checkins", "POIs", "Cities")
_WHERE = (
    "TIST2015 is at https://sites.google.com/site/yangdingqi/home/foursquare-dataset (files "
    "dataset_TIST2015_Checkins.txt, dataset_TIST2015_POIs.txt, dataset_TIST2015_Cities.txt)."
)


def foursquare_stream(folder: Path) -> Recorded:
    """Return users per 100-minute slot and country, for 5 % of the users by a seeded hash; carried as in the taxi stream.

    The countries are those of the Cities file. Check-ins with a malformed line, at an unknown venue or in a country
    outside that list are left out and counted in `remarks`.

    Raises:
        InvalidOption: if one of the three files is not there; says where to get them.
    """
    files = {part: raw_files(folder, f"*{part}.txt") for part in _PARTS}
    absent = [part for part in _PARTS if not files[part]]
    if absent:
        raise missing("foursquare", folder, f"{' and '.join(absent)} file of TIST2015", _WHERE)
    with duckdb.connect() as connection:
        cities = _table(connection, "cities", files["Cities"], 6, "part[4] AS country, part[4] <> '' AS good")
        venues = _table(connection, "venues", files["POIs"], 5, "part[1] AS venue, part[5] AS country, TRUE AS good")
        checkins = _table(connection, "checkins", files["Checkins"], 4, _CHECKIN)
        countries = [row[0] for row in connection.execute("SELECT DISTINCT country FROM cities ORDER BY 1").fetchall()]
        connection.register("domain", {"country": np.array(countries, dtype=object), "cell": np.arange(len(countries))})
        connection.execute(
            """CREATE TEMP TABLE known AS SELECT n, id, time, venues.country AS country, cell FROM checkins
            LEFT JOIN (SELECT venue, any_value(country) AS country FROM venues GROUP BY venue) AS venues USING (venue)
            LEFT JOIN domain ON domain.country = venues.country"""
        )
        unplaced, foreign, origin, last = single_row(
            connection,
            """SELECT count(*) FILTER (country IS NULL), count(*) FILTER (country IS NOT NULL AND cell IS NULL),
            (floor(min(epoch(time)) FILTER (cell IS NOT NULL) / 60) * 60)::BIGINT,
            max(epoch(time)) FILTER (cell IS NOT NULL) FROM known""",
        )
        if origin is None:
            raise missing("foursquare", folder, "check-in at a known venue", _WHERE)
        people = [row[0] for row in connection.execute("SELECT DISTINCT id FROM checkins").fetchall()]
        chosen = sorted((user for user in people if is_chosen(user)), key=lambda user: (len(user), user))
        connection.register("users", {"id": np.array(chosen, dtype=object), "user_row": np.arange(len(chosen))})
        found = connection.execute(
            f"""SELECT floor((epoch(time) - {origin}) / {SLOT_S})::BIGINT AS slot, user_row,
            arg_max(cell, (time, n)) AS cell
            FROM known JOIN users USING (id) WHERE cell IS NOT NULL GROUP BY ALL"""
        ).fetchnumpy()
    remarks = {
        "malformed lines": cities + venues + checkins,
        "check-ins at unknown venues": unplaced,
        "check-ins in countries outside the Cities file": foreign,
        "users left out by the 5 % sample": len(people) - len(chosen),
    }
    return Recorded.from_columns(
        "foursquare",
        np.array(chosen),
        countries,
        int((last - origin) // SLOT_S) + 1,
        *(found[name] for name in ("slot", "user_row", "cell")),
        carried=True,
        remarks=remarks,
    )


def is_chosen(user: str) -> bool:
    """Return whether a user is in the sample: the same users on every machine."""
    digest = hashlib.sha256(f"{HASH_SEED}:{user}".encode()).digest()
    return int.from_bytes(digest[:8], "big") < SHARE * 2**64


# "Tue Apr 03 18:00:06 +0000 2012": always UTC, so the offset in the middle is cut out.
_CHECKIN = """n, trim(part[1]) AS id, part[2] AS venue,
    try_strptime(part[3][1:20] || part[3][27:30], '%a %b %d %H:%M:%S %Y') AS time,
    regexp_full_match(trim(part[1]), '[0-9]+') AND time IS NOT NULL
      AND try_cast(part[4] AS INTEGER) IS NOT NULL AS good"""


def _table(connection: duckdb.DuckDBPyConnection, name: str, files: Sequence[Path], width: int, columns: str) -> int:
    """Make a table of the good lines of a tab-separated file; return the number of malformed lines."""
    connection.execute(
        f"""CREATE TEMP TABLE {name}_raw AS
        WITH parts AS (SELECT n, string_split(line, chr(9)) AS part FROM ({lines_of(files)}))
        SELECT {columns}, len(part) = {width} AS complete FROM parts"""
    )
    connection.execute(f"CREATE TEMP VIEW {name} AS SELECT * FROM {name}_raw WHERE complete AND good")
    (malformed,) = single_row(connection, f"SELECT (SELECT count(*) FROM {name}_raw) - (SELECT count(*) FROM {name})")
    return int(malformed)
