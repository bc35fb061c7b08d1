"""The requirements file: who asks for what, as numbers or as levels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt

from wevent.core.arrays import IntArray
from wevent.core.limits import MAX_LABEL_BYTES
from wevent.core.requirements import Levels, Requirement
from wevent.counting.spelling import Spelled, SpelledIndex, whole_numbers
from wevent.errors import InvalidInput, InvalidRequirement, InvalidRoster
from wevent.people.membership import KeyColumn
from wevent.streams.files.frames import column_names, frame_name, load_frame
from wevent.streams.files.inputs import FRAME, InputFile
from wevent.streams.files.sql import connect, literal
from wevent.streams.files.text_tables import Choice, delimited_fields, load_columns, load_rows, open_file
from wevent.streams.records.delimited import DELIMITERS

_AT_ONCE = 1 << 16
_CANONICAL = r"0|-?[1-9]\d{0,17}"


class Requirements(NamedTuple):
    """Who asks for what, a row per user.

    Attributes:
        users: ids, int64 if every one is a plain whole number, else text.
        keys: (window in slots, nano-epsilons) of each.
        words: the levels asked for, such as "High/Small"; None for numbers.
    """

    users: npt.NDArray[np.int64] | Spelled
    keys: KeyColumn
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
    file = open_file(str(path))
    if file.format in DELIMITERS:
        return _resolved(_from_fields(file, _chosen(str(path))), levels)
    connection = connect()
    return _resolved(_from_table(connection, load_rows(connection, file.path, _chosen(file.path)), file.path), levels)


def requirements_of_frame(frame: Any, levels: Levels | None = None) -> Requirements:
    """What a data frame asks for; columns, ids and errors as of `read_requirements`.

    Raises:
        WeventError: as of `read_requirements`.
    """
    name = frame_name(frame)
    table = load_frame(frame, _chosen(name)(column_names(frame)))
    return _resolved(
        _from_table(table.connection, load_columns(table.connection, FRAME, _chosen(name), name), name), levels
    )


def requirements_of_mapping(asked: Mapping[Any, Requirement]) -> Requirements:
    """What a mapping of users to requirements asks for; ids are text or whole numbers.

    Raises:
        InvalidInput: for an id that cannot be one, or none at all.
        InvalidRequirement: for a value that is no requirement.
        InvalidRoster: for ids that are spelled alike, such as 1 and "1".
    """
    for held in asked.values():
        if not isinstance(held, Requirement):
            raise InvalidRequirement(
                "a Requirement for each user", type(held).__name__, "Write {'ann': Requirement(40, 0.5), …}."
            )
    ids = [
        str(user) if isinstance(user, (str, int, np.integer)) and not isinstance(user, bool) else "" for user in asked
    ]
    unfit = sum(len(user.encode()) > MAX_LABEL_BYTES or "\0" in user for user in ids)
    _check_rows(len(ids), unfit, ids.count(""), len(ids) - len(set(ids)), "requirements")
    return Requirements(Spelled.of(ids), KeyColumn.of((held.window, held.nano) for held in asked.values()), None)


def _resolved(asked: _Asked, levels: Levels | None) -> Requirements:
    """Windows and epsilons instead of the texts that stand for them."""
    chosen = levels or Levels.default()
    requirements = [chosen.requirement(e, w) if asked.as_levels else Requirement(_whole(w), e) for w, e in asked.pairs]
    distinct = KeyColumn.of((requirement.window, requirement.nano) for requirement in requirements)
    words = [f"{e}/{w}" for w, e in asked.pairs]
    chosen_words = [words[code] for code in asked.codes.tolist()] if asked.as_levels else None
    return Requirements(asked.users, KeyColumn(distinct.distinct, distinct.codes[asked.codes]), chosen_words)


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


class _Asked(NamedTuple):
    """A file's rows: ids, the different pairs of window and epsilon (or privacy) in their order, and which each has."""

    users: npt.NDArray[np.int64] | Spelled
    pairs: list[tuple[str, str]]
    codes: IntArray
    as_levels: bool


def _from_fields(file: InputFile, choose: Choice) -> _Asked:
    """Rows of CSV or TSV: ids stay bytes, for there may be millions."""
    names = choose(file.columns)
    numbers: dict[tuple[str, str], int] = {}
    codes = [np.empty(0, dtype=np.int32)]

    def users() -> Iterator[Spelled]:
        for user, window, epsilon in delimited_fields(file, [file.columns.index(name) for name in names]):
            codes.append(_pair_codes(window.spelled(), epsilon.spelled(), numbers).astype(np.int32))  # few pairs
            yield user.spelled()

    everybody, each = Spelled.gathered(users()), np.concatenate(codes)
    blank = np.array([w == "" or e == "" for w, e in numbers], dtype=np.bool_)
    whole = (everybody.sizes > 0) & ~blank[each]
    unfit = int(np.count_nonzero(everybody.sizes > MAX_LABEL_BYTES))
    _check_rows(
        len(each), unfit, len(each) - int(np.count_nonzero(whole)), SpelledIndex(everybody).duplicates, file.path
    )
    order = np.array(sorted(range(len(numbers)), key=list(numbers).__getitem__), dtype=np.int64)
    ids, are_numbers = whole_numbers(everybody.data, everybody.starts, everybody.starts + everybody.sizes)
    return _Asked(
        ids if are_numbers.all() else everybody, sorted(numbers), order.argsort()[each], names[2] == "privacy"
    )


def _pair_codes(windows: Spelled, epsilons: Spelled, numbers: dict[tuple[str, str], int]) -> IntArray:
    """For each row the number of its pair; a pair that is new gets the next one."""
    if not len(windows):
        return np.empty(0, dtype=np.int64)
    alike = SpelledIndex(windows).find(windows) * len(windows) + SpelledIndex(epsilons).find(epsilons)
    _, first, each = np.unique(alike, return_index=True, return_inverse=True)
    texts = zip(windows.where(first).texts(), epsilons.where(first).texts(), strict=True)
    found = [numbers.setdefault((w.strip(" "), e.strip(" ")), len(numbers)) for w, e in texts]
    return np.array(found, dtype=np.int64)[each]


def _from_table(connection: duckdb.DuckDBPyConnection, names: list[str], path: str) -> _Asked:
    """Rows of NDJSON, Parquet or a frame, which are the table `loaded`."""
    connection.execute("CREATE TEMP VIEW rows AS SELECT c0 AS u, trim(c1) AS w, trim(c2) AS e, rowid FROM loaded")
    rows, whole, users = connection.execute(
        "SELECT count(*), count(*) FILTER (u <> '' AND w <> '' AND e <> ''), count(DISTINCT u) FROM rows"
    ).fetchall()[0]
    odd = f"SELECT count(*) FROM rows WHERE strlen(u) > {MAX_LABEL_BYTES} OR contains(u, chr(0))"
    _check_rows(rows, connection.execute(odd).fetchall()[0][0], rows - whole, rows - users, path)
    pairs = connection.execute("SELECT DISTINCT w, e FROM rows ORDER BY w, e").fetchall()
    codes = connection.execute(
        "SELECT code FROM rows JOIN (SELECT w, e, row_number() OVER (ORDER BY w, e) - 1 AS code FROM "
        "(SELECT DISTINCT w, e FROM rows)) USING (w, e) ORDER BY rows.rowid"
    ).fetchnumpy()["code"]
    return _Asked(_ids(connection), pairs, codes, names[2] == "privacy")


def _check_rows(rows: int, unfit: int, incomplete: int, repeated: int, path: str) -> None:
    if unfit:
        raise InvalidInput(
            f"ids of at most {MAX_LABEL_BYTES} bytes, without NULs",
            f"{path!r} with {unfit} other ones",
            "Events of such users would never count: use shorter ids.",
            path=path,
        )
    if not rows or incomplete:
        raise InvalidInput(
            "a row per user, every field filled in",
            f"{path!r} " + ("without rows" if not rows else f"with {incomplete} rows that have an empty field"),
            "Complete the file.",
            path=path,
        )
    if repeated:
        raise InvalidRoster(
            "each user once",
            f"{repeated} repeated ids in {path!r}",
            "Keep one row per user: a user has one requirement at a time.",
            duplicates=repeated,
        )


def _ids(connection: duckdb.DuckDBPyConnection) -> npt.NDArray[np.int64] | Spelled:
    plain = connection.execute(f"SELECT bool_and(regexp_full_match(u, {literal(_CANONICAL)})) FROM rows").fetchall()[0][
        0
    ]
    if plain:
        return np.asarray(
            connection.execute("SELECT CAST(u AS BIGINT) AS u FROM rows ORDER BY rowid").fetchnumpy()["u"]
        )
    found = connection.execute("SELECT u FROM rows ORDER BY rowid")
    parts = []
    while part := found.fetchmany(_AT_ONCE):
        parts.append(Spelled.of([user for (user,) in part]))
    return Spelled.joined(parts)


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
