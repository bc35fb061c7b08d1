"""The rows of a requirements file: an id, and in which words or numbers each asks; there may be millions.

A malformed row is refused and named by its line: it is the operator's, not a user's. Ids are never in a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt

from wevent.core.arrays import IntArray
from wevent.core.limits import MAX_LABEL_BYTES
from wevent.counting.spelling import Spelled, SpelledIndex, whole_numbers
from wevent.errors import InvalidInput, InvalidRoster
from wevent.streams.files.frame_table import FrameTable
from wevent.streams.files.inputs import FRAME, InputFile
from wevent.streams.files.sql import connect, literal
from wevent.streams.files.text_tables import Choice, delimited_fields, load_columns, load_rows, place_of_row
from wevent.streams.records.delimited import DELIMITERS

_AT_ONCE = 1 << 16
_CANONICAL = r"0|-?[1-9]\d{0,17}"

Kind = tuple[str, ...]
"""What a row says beside its id, blanks at the ends aside: a text for each column."""


class AskedRows(NamedTuple):
    """A file's rows.

    Attributes:
        users: ids, int64 if every one is a plain whole number, else text.
        kinds: the different things that rows say, in the order of their first rows.
        codes: for each row which of them.
    """

    users: npt.NDArray[np.int64] | Spelled
    kinds: list[Kind]
    codes: npt.NDArray[np.integer[Any]]

    def first_row(self, kind: int) -> int:
        """The first row that says a thing; the first row is 0."""
        return int(np.argmax(self.codes == kind))


def read_rows(file: InputFile, choose: Choice) -> AskedRows:
    """The rows of a file; `choose` has the column of ids first.

    Raises:
        InvalidInput: for a line that is no row, no rows at all, or an id that is empty or that no event can have.
        InvalidRoster: for an id that is there twice.
    """
    if file.format in DELIMITERS:
        return _from_fields(file, choose)
    connection = connect()
    return _from_table(connection, file, len(load_rows(connection, file.path, choose)))


def frame_rows(table: FrameTable, choose: Choice) -> AskedRows:
    """The rows of a frame, as of `read_rows`."""
    columns = load_columns(table.connection, FRAME, choose, table.name)
    return _from_table(table.connection, InputFile(table.name, FRAME), len(columns))


def _from_fields(file: InputFile, choose: Choice) -> AskedRows:
    """Rows of CSV or TSV: ids stay bytes."""
    names = choose(file.columns)
    numbers: dict[Kind, int] = {}
    codes = [np.empty(0, dtype=np.int32)]

    def users() -> Iterator[Spelled]:
        for user, *others in delimited_fields(file, [file.columns.index(name) for name in names]):
            codes.append(_kind_codes([column.spelled() for column in others], numbers).astype(np.int32))  # few kinds
            yield user.spelled()

    everybody, each = Spelled.gathered(users()), np.concatenate(codes)
    _check_ids(file, everybody.sizes == 0, everybody.sizes > MAX_LABEL_BYTES)
    if SpelledIndex(everybody).duplicates:
        raise _repeated(file, everybody.texts())
    ids, are_numbers = whole_numbers(everybody.data, everybody.starts, everybody.starts + everybody.sizes)
    return AskedRows(ids if are_numbers.all() else everybody, list(numbers), each)


def _kind_codes(columns: Sequence[Spelled], numbers: dict[Kind, int]) -> IntArray:
    """For each row the number of its kind; a kind that is new gets the next one."""
    size = len(columns[0])
    if not size:
        return np.empty(0, dtype=np.int64)
    alike = SpelledIndex(columns[0]).find(columns[0])
    for place, column in enumerate(columns[1:]):
        if place:  # a product of three would not fit
            alike = np.unique(alike, return_inverse=True)[1]
        alike = alike * size + SpelledIndex(column).find(column)
    _, first, each = np.unique(alike, return_index=True, return_inverse=True)
    texts = zip(*(column.where(first).texts() for column in columns), strict=True)
    found = dict(zip(first.tolist(), (tuple(text.strip(" ") for text in row) for row in texts), strict=True))
    for row in sorted(found):
        numbers.setdefault(found[row], len(numbers))
    return np.array([numbers[found[row]] for row in first.tolist()], dtype=np.int64)[each]


def _from_table(connection: duckdb.DuckDBPyConnection, file: InputFile, columns: int) -> AskedRows:
    """Rows of NDJSON, Parquet or a frame, which are the table `loaded`."""
    others = [f"c{index}" for index in range(1, columns)]
    texts = ", ".join(f"coalesce(trim({name}), '') AS {name}" for name in others)
    connection.execute(f"CREATE TEMP VIEW rows AS SELECT coalesce(c0, '') AS u, {texts}, rowid FROM loaded")
    odd = f"strlen(u) > {MAX_LABEL_BYTES} OR contains(u, chr(0))"
    found = connection.execute(f"SELECT u = '' AS empty, {odd} AS unfit FROM rows ORDER BY rowid").fetchnumpy()
    _check_ids(file, np.asarray(found["empty"], dtype=np.bool_), np.asarray(found["unfit"], dtype=np.bool_))
    repeated = connection.execute("SELECT count(*) - count(DISTINCT u) FROM rows").fetchall()[0][0]
    if repeated:
        raise _repeated(file, (u for (u,) in connection.execute("SELECT u FROM rows ORDER BY rowid").fetchall()))
    names = ", ".join(others)
    kinds = f"SELECT {names}, row_number() OVER (ORDER BY min(rowid)) - 1 AS code FROM rows GROUP BY {names}"
    codes = connection.execute(
        f"SELECT code FROM rows JOIN ({kinds}) USING ({names}) ORDER BY rows.rowid"
    ).fetchnumpy()["code"]
    said = [row[:-1] for row in connection.execute(f"SELECT * FROM ({kinds}) ORDER BY code").fetchall()]
    return AskedRows(_ids(connection), said, np.asarray(codes))


def spelled_ids(users: Sequence[str], file: InputFile) -> Spelled:
    """Ids that a program handed over, held to the same rules.

    Raises:
        InvalidInput, InvalidRoster: as of `read_rows`.
    """
    empty = np.array([not user for user in users], dtype=np.bool_)
    unfit = np.array([len(user.encode()) > MAX_LABEL_BYTES or "\0" in user for user in users], dtype=np.bool_)
    _check_ids(file, empty, unfit)
    if len(set(users)) != len(users):
        raise _repeated(file, users)
    return Spelled.of(users)


def _check_ids(file: InputFile, empty: npt.NDArray[np.bool_], unfit: npt.NDArray[np.bool_]) -> None:
    if not len(empty):
        raise InvalidInput("a row per user", f"{file.path!r} without rows", "Complete the file.", path=file.path)
    for bad, expected, remedy in (
        (unfit, f"ids of at most {MAX_LABEL_BYTES} bytes, without NULs", "Events of such users would never count."),
        (empty, "a row per user, every field filled in", "Complete the row: it has no id."),
    ):
        if bad.any():
            place, more = place_of_row(file, int(bad.argmax())), int(np.count_nonzero(bad)) - 1
            others = f" and {more} more rows" if more else ""
            raise InvalidInput(
                expected, f"{file.path!r} with another in {place}{others}", remedy, path=file.path, place=place
            )


def _repeated(file: InputFile, users: Iterable[str]) -> InvalidRoster:
    first: dict[str, int] = {}
    repeats = [(row, first[user]) for row, user in enumerate(users) if first.setdefault(user, row) != row]
    row, before = repeats[0]
    return InvalidRoster(
        "each user once",
        f"{len(repeats)} repeated ids in {file.path!r}, the first in {place_of_row(file, row)} "
        f"(it is in {place_of_row(file, before)} too)",
        "Keep one row per user: a user has one requirement at a time.",
        duplicates=len(repeats),
        path=file.path,
    )


def _ids(connection: duckdb.DuckDBPyConnection) -> npt.NDArray[np.int64] | Spelled:
    plain = connection.execute(f"SELECT bool_and(regexp_full_match(u, {literal(_CANONICAL)})) FROM rows").fetchall()
    if plain[0][0]:
        numbers = connection.execute("SELECT CAST(u AS BIGINT) AS u FROM rows ORDER BY rowid").fetchnumpy()
        return np.asarray(numbers["u"])
    found = connection.execute("SELECT u FROM rows ORDER BY rowid")
    parts = []
    while part := found.fetchmany(_AT_ONCE):
        parts.append(Spelled.of([user for (user,) in part]))
    return Spelled.joined(parts)
