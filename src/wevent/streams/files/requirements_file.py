"""The requirements file: who asks for what, as numbers or as levels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt

from wevent.core.arrays import IntArray
from wevent.core.limits import MAX_LABEL_BYTES
from wevent.core.requirements import Levels, Requirement
from wevent.errors import InvalidInput, InvalidRequirement, InvalidRoster
from wevent.streams.files.sql import connect, literal
from wevent.streams.files.text_tables import load_rows

_CANONICAL = r"0|-?[1-9]\d{0,17}"


class Requirements(NamedTuple):
    """Who asks for what, a row per user.

    Attributes:
        users: ids, int64 if every one is a plain whole number, else text.
        windows: in slots.
        nanos: nano-epsilons.
        words: the levels asked for, such as "High/Small"; None for numbers.
    """

    users: npt.NDArray[Any]
    windows: IntArray
    nanos: IntArray
    words: list[str] | None


def read_requirements(path: str | Path, levels: Levels | None = None) -> Requirements:
    """What a file with `user,window,epsilon` or `user,privacy,window` asks for.

    Args:
        path: CSV, TSV, NDJSON (also with .gz) or Parquet. Ids are taken as they are, spaces included, as in events.
        levels: what the words for privacy and window stand for.

    Raises:
        InvalidInput: for a missing file, a missing column, no rows, or a row with an empty field.
        InvalidRequirement: for a window, epsilon or level that no promise can be built on.
        InvalidRoster: for a user listed twice.
    """
    connection = connect()
    chosen_names = load_rows(connection, str(path), _chosen(str(path)))
    as_levels = chosen_names[2] == "privacy"
    connection.execute("CREATE TEMP TABLE rows AS SELECT c0 AS u, trim(c1) AS w, trim(c2) AS e FROM loaded")
    _check_rows(connection, str(path))
    pairs = connection.execute("SELECT DISTINCT w, e FROM rows ORDER BY w, e").fetchall()
    chosen = levels or Levels.default()
    requirements = [chosen.requirement(e, w) if as_levels else Requirement(_whole(w), e) for w, e in pairs]
    codes = connection.execute(
        "SELECT code FROM rows JOIN (SELECT w, e, row_number() OVER (ORDER BY w, e) - 1 AS code FROM "
        "(SELECT DISTINCT w, e FROM rows)) USING (w, e) ORDER BY rows.rowid"
    ).fetchnumpy()["code"]
    windows = np.array([one.window for one in requirements], dtype=np.int64)[codes]
    nanos = np.array([one.nano for one in requirements], dtype=np.int64)[codes]
    words = [f"{e}/{w}" for w, e in pairs]
    return Requirements(
        _ids(connection), windows, nanos, [words[code] for code in codes.tolist()] if as_levels else None
    )


def read_column(path: str | Path, column: str) -> list[str]:
    """One column of a small file as text: the named one, else the first; a .txt file has a label per line.

    Raises:
        InvalidInput: for a missing or unreadable file.
    """
    if str(path).endswith(".txt"):
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            raise InvalidInput("a readable file", f"{str(path)!r}", "Check the path.", path=str(path)) from None
        return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    connection = connect()
    load_rows(connection, str(path), lambda names: [column if column in names else names[0]])
    rows = connection.execute("SELECT c0 FROM loaded").fetchall()
    return [row[0] for row in rows if row[0] is not None]


def _chosen(path: str) -> Callable[[Sequence[str]], list[str]]:
    def choose(names: Sequence[str]) -> list[str]:
        wanted = ["user", "window", "privacy" if "privacy" in names else "epsilon"]
        for name in wanted:
            if name not in names:
                raise InvalidInput(
                    "the columns user, window and epsilon, or user, privacy and window",
                    f"{path!r} without {name!r}",
                    "Write one row per user under these names.",
                    path=path,
                    column=name,
                )
        return wanted

    return choose


def _check_rows(connection: duckdb.DuckDBPyConnection, path: str) -> None:
    rows, whole, users = connection.execute(
        "SELECT count(*), count(*) FILTER (u <> '' AND w <> '' AND e <> ''), count(DISTINCT u) FROM rows"
    ).fetchall()[0]
    odd = f"SELECT count(*) FROM rows WHERE strlen(u) > {MAX_LABEL_BYTES} OR contains(u, chr(0))"
    if unfit := connection.execute(odd).fetchall()[0][0]:
        raise InvalidInput(
            f"ids of at most {MAX_LABEL_BYTES} bytes, without NULs",
            f"{path!r} with {unfit} other ones",
            "Events of such users would never count: use shorter ids.",
            path=path,
        )
    if not rows or whole < rows:
        raise InvalidInput(
            "a row per user, every field filled in",
            f"{path!r} " + ("without rows" if not rows else f"with {rows - whole} rows that have an empty field"),
            "Complete the file.",
            path=path,
        )
    if users < rows:
        raise InvalidRoster(
            "each user once",
            f"{rows - users} repeated ids in {path!r}",
            "Keep one row per user: a user has one requirement at a time.",
            duplicates=rows - users,
        )


def _ids(connection: duckdb.DuckDBPyConnection) -> npt.NDArray[Any]:
    plain = connection.execute(f"SELECT bool_and(regexp_full_match(u, {literal(_CANONICAL)})) FROM rows").fetchall()[0][
        0
    ]
    if plain:
        return np.asarray(
            connection.execute("SELECT CAST(u AS BIGINT) AS u FROM rows ORDER BY rowid").fetchnumpy()["u"]
        )
    return connection.execute("SELECT u FROM rows ORDER BY rowid").fetchnumpy()["u"].astype(np.str_)


def _whole(window: str) -> int:
    try:
        return int(window)
    except ValueError:
        raise InvalidRequirement(
            "a window that is a whole number of slots",
            f"{window!r}",
            "With words instead of numbers, name the columns user, privacy and window.",
            window=window,
        ) from None
