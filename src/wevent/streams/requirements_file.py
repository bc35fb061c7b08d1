"""Requirements files: a row per user with a level, or with numbers; and other small files of the operator.

A malformed row is refused and named by its line, since the file is the operator's. No message has an id.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np
import numpy.typing as npt

from wevent.core.arrays import IntArray
from wevent.core.limits import MAX_LABEL_BYTES
from wevent.core.requirements import Levels, Requirement
from wevent.counting.label_index import Labels
from wevent.counting.string_column import StringColumn, StringIndex
from wevent.errors import InvalidInput, InvalidRequirement, InvalidRoster, WeventError
from wevent.people.membership import KeyColumn
from wevent.settings.values import WindowReader
from wevent.streams.delimited import DELIMITERS, split_fields
from wevent.streams.duckdb_tables import Table, quoted
from wevent.streams.frames import column_names, frame_name, load_frame
from wevent.streams.inputs import FRAME, InputFile, open_input, other_delimiter, read_lines
from wevent.streams.rejections import listed_columns

COLUMNS = ("user", "level", "privacy", "window", "epsilon")
"""The columns a requirements file may have; what each is called may be declared."""

Choice = Callable[[Sequence[str]], list[str]]
"""Chooses the columns to read, given the names that there are (of NDJSON: in the first object)."""

_OBJECTS = 100_000  # of NDJSON at once


class Requirements(NamedTuple):
    """Requested requirements, a row per user.

    Attributes:
        users: ids, int64 if every one is a plain whole number, else text.
        keys: (window in slots, nano-epsilons) of each.
        words: the level of each, such as "High/Small", None for numbers; None if no row has a level.
        notes: a sentence for each duration that was rounded up to whole slots.
        digest: digest of the contents, empty if it was not computed.
    """

    users: npt.NDArray[np.int64] | StringColumn
    keys: KeyColumn
    words: list[str | None] | None
    notes: tuple[str, ...] = ()
    digest: bytes = b""


def read_requirements(
    path: str | Path,
    levels: Levels | None = None,
    *,
    slot_us: int | None = None,
    columns: Mapping[str, str] | None = None,
) -> Requirements:
    """Read a file with `user,level`, `user,privacy,window` or `user,window,epsilon`.

    A file may have columns of several kinds: each row then fills in those of one. Numbers beside a level must be its own.

    Args:
        path: CSV, TSV, NDJSON (also with .gz) or Parquet. Ids are taken as they are, spaces included, as in events.
        levels: requirements of the levels; None: the default ones.
        slot_us: slot length, for windows that are written as durations; None refuses them.
        columns: names in the file of those of `COLUMNS` that have other names.

    Raises:
        InvalidInput: for a missing file, a missing column, no rows, or a row with an empty field.
        InvalidRequirement: for a window, epsilon or level that no promise can be built on, naming the line.
        InvalidRoster: for a user listed twice.
    """
    file = _open_file(str(path))
    roles: list[str] = []
    rows = _read_rows(file, _text_columns(file, _chosen(str(path), columns or {}, roles)))
    return _meant(rows, _Reading(levels, slot_us, roles[1:]))


def requirements_of_frame(
    frame: Any,
    levels: Levels | None = None,
    *,
    slot_us: int | None = None,
    columns: Mapping[str, str] | None = None,
) -> Requirements:
    """Read a data frame; rows, columns and errors as of `read_requirements`."""
    name, roles = frame_name(frame), list[str]()
    names = _chosen(name, columns or {}, roles)(column_names(frame))
    file = InputFile(name, FRAME)
    rows = _read_rows(file, _table_columns(Table(file, load_frame(frame, names).connection), names))
    return _meant(rows, _Reading(levels, slot_us, roles[1:]))


def requirements_of_mapping(asked: Mapping[Any, Requirement]) -> Requirements:
    """Return the requirements of a mapping; ids are text or whole numbers.

    Raises:
        InvalidInput: for an id that no event can have, or an empty mapping.
        InvalidRequirement: for a value that is no requirement.
        InvalidRoster: for ids that are spelled alike, such as 1 and "1".
    """
    for held in asked.values():
        if not isinstance(held, Requirement):
            raise InvalidRequirement(
                "a Requirement for each user", type(held).__name__, "Write {'ann': Requirement(40, 0.5), …}."
            )
    ids = [str(user) if isinstance(user, (str, int, np.integer)) and type(user) is not bool else "" for user in asked]
    rows = _Rows(InputFile("requirements", FRAME), StringColumn.from_texts(ids), np.arange(1, len(ids) + 1))
    return Requirements(rows.ids(), KeyColumn.of(held.key for held in asked.values()), None)


def _meant(rows: _Rows, reading: _Reading) -> Requirements:
    """Return the requirements that rows stand for."""
    users = rows.ids()
    meant = []
    for code, kind in enumerate(rows.kinds):
        try:
            meant.append(reading.requirement(kind))
        except WeventError as error:
            path, place = rows.file.path, rows.place(int(np.argmax(rows.codes == code)))
            received, facts = f"{error.received} in {path!r}, {place}", {**error.facts, "path": path, "place": place}
            raise type(error)(error.expected, received, error.remedy, **facts) from None
    distinct = KeyColumn.of(requirement.key for requirement, _ in meant)
    words = None
    if any(level is not None for _, level in meant):
        words = [meant[code][1] for code in rows.codes.tolist()]
    keys = KeyColumn(distinct.distinct, distinct.codes[rows.codes])
    return Requirements(users, keys, words, reading.windows.notes)


def read_column(path: str | Path, column: str, *, headed: bool = False) -> list[str]:
    """Return one column of a small file as text: the named one, else the first; a .txt file has a label per line.

    Args:
        path: path of the file.
        column: name of the column.
        headed: whether no other column will do; else a first value could be taken for a heading and be lost.

    Raises:
        InvalidInput: for a missing or unreadable file, or one without a column that must be there.
    """
    if str(path).endswith(".txt"):
        try:
            lines = Path(path).read_text(encoding="utf-8-sig").splitlines()  # editors may put a byte order mark first
        except OSError:
            raise InvalidInput("a readable file", f"{str(path)!r}", "Check the path.", path=str(path)) from None
        except UnicodeDecodeError:
            raise InvalidInput(
                "a file in UTF-8", f"{str(path)!r}, which is not", "Save it again as UTF-8.", path=str(path)
            ) from None
        return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]

    def choose(names: Sequence[str]) -> list[str]:
        if headed and column not in names:
            raise InvalidInput(
                f"a column {column}",
                f"{str(path)!r} with the columns {listed_columns(names)}",
                other_delimiter(names) or f"Give the column the heading {column}.",
                path=str(path),
            )
        return [column if column in names else names[0]]

    pieces = _text_columns(_open_file(str(path)), choose)
    return [text for _, (labels,) in pieces for text in labels.texts() if text]


def _chosen(path: str, columns: Mapping[str, str], roles: list[str]) -> Callable[[Sequence[str]], list[str]]:
    """Return a choice of columns that notes in `roles` what each is; declared ones, if any, keep the others out."""

    def choose(names: Sequence[str]) -> list[str]:
        declared = [role for role in COLUMNS[1:] if role in columns]
        asking = declared or [role for role in COLUMNS[1:] if role in names]
        roles[:] = ["user", *asking]
        chosen = [columns.get(role, role) for role in roles]
        missing = [name for name in chosen if names.count(name) != 1]
        whole = "level" in asking or ("window" in asking and {"privacy", "epsilon"} & set(asking))
        if missing or not whole:
            raise InvalidInput(
                "the columns user and level, or user, privacy and window, or user, window and epsilon"
                + (f" (declared as {', '.join(chosen)})" if columns else ""),
                f"{path!r} with the columns {listed_columns(names)}",
                other_delimiter(names)
                or "Write one row per user under these names, or declare yours in [requirements_columns].",
                path=path,
                column=missing[0] if missing else None,
            )
        return chosen

    return choose


class _Reading:
    """Meaning of rows, whose texts beside the id are named by `roles`."""

    def __init__(self, levels: Levels | None, slot_us: int | None, roles: Sequence[str]) -> None:
        self._levels, self.windows, self._roles = levels or Levels.default(), WindowReader(slot_us), roles

    def requirement(self, kind: tuple[str, ...]) -> tuple[Requirement, str | None]:
        """Return the requirement of a row, and the level it comes from, None for numbers.

        Raises:
            InvalidInput: for a row with an empty field.
            InvalidRequirement: for what no promise can be built on.
        """
        said = dict(zip(self._roles, kind, strict=True))
        level, privacy, window, epsilon = (said.get(role, "") for role in COLUMNS[1:])
        if level:
            requirement = self._levels.choose(level)
            if privacy or ((window or epsilon) and requirement != self._numbers(window, epsilon)):
                raise InvalidRequirement(
                    "a level alone, or beside it the window and epsilon that it stands for",
                    f"{level!r} with others",
                    "Leave the other fields of the row empty.",
                    level=level,
                )
            return requirement, level
        if privacy and epsilon:
            raise InvalidRequirement(
                "a word of privacy or an epsilon", "both", "Leave one of them empty.", level=privacy, epsilon=epsilon
            )
        if privacy and window:
            return self._levels.requirement(privacy, window), f"{privacy}/{window}"
        return self._numbers(window, epsilon), None

    def _numbers(self, window: str, epsilon: str) -> Requirement:
        if not window or not epsilon:
            raise InvalidInput(
                "a row per user, every field filled in", "a row with an empty field", "Complete the row."
            )
        return Requirement(self.windows.read(window), epsilon)


TextPieces = Iterator[tuple[IntArray, list[StringColumn]]]
"""Some columns of a file, piece by piece, with the number of the line or row that each value is from."""


class _Rows(NamedTuple):
    """Rows of a requirements file.

    Attributes:
        file: the file, for messages.
        users: the ids as text.
        numbers: the number of the line or row of each.
        kinds: the different contents of rows beside the id, a text for each column, in the order of their first rows.
        codes: the place in `kinds` of each row.
    """

    file: InputFile
    users: StringColumn
    numbers: IntArray
    kinds: Sequence[tuple[str, ...]] = ()
    codes: IntArray = np.empty(0, dtype=np.int64)

    def place(self, row: int) -> str:
        """Return where a row stands."""
        return f"{'row' if self.file.format in ('parquet', FRAME) else 'line'} {self.numbers[row]}"

    def ids(self) -> npt.NDArray[np.int64] | StringColumn:
        """Return the ids, int64 if every one is a plain whole number.

        Raises:
            InvalidInput: for no ids, or one that is empty or that no event can have.
            InvalidRoster: for an id that is there twice.
        """
        path, texts = self.file.path, self.users
        if not len(texts):
            raise InvalidInput("a row per user", f"{path!r} without rows", "Complete the file.", path=path)
        labels, empty = Labels.from_fields(texts), texts.sizes == 0
        unfit = ~labels.is_label() & ~empty
        legal = f"ids of at most {MAX_LABEL_BYTES} bytes, without NULs"
        for bad, expected, remedy in (
            (unfit, legal, "Events of such users would never count."),
            (empty, "a row per user, every field filled in", "Complete the row: it has no id."),
        ):
            if bad.any():
                place, more = self.place(int(bad.argmax())), int(np.count_nonzero(bad)) - 1
                received = f"{path!r} with another in {place}" + (f" and {more} more rows" if more else "")
                raise InvalidInput(expected, received, remedy, path=path, place=place)
        if StringIndex(texts).duplicates:
            first: dict[str, int] = {}
            repeats = [(row, first[user]) for row, user in enumerate(texts) if first.setdefault(user, row) != row]
            row, before = map(self.place, repeats[0])
            raise InvalidRoster(
                "each user once",
                f"{len(repeats)} repeated ids in {path!r}, the first in {row} (it is in {before} too)",
                "Keep one row per user: a user has one requirement at a time.",
                duplicates=len(repeats),
                path=path,
            )
        return texts if len(labels.texts) else labels.keys


def _read_rows(file: InputFile, pieces: TextPieces) -> _Rows:
    """Return all rows, the column of ids first."""
    kinds: dict[tuple[str, ...], int] = {}
    codes, numbers = [np.empty(0, dtype=np.int32)], [np.empty(0, dtype=np.int32)]

    def users() -> Iterator[StringColumn]:
        for places, (ids, *others) in pieces:
            codes.append(_kind_codes(others, kinds).astype(np.int32))  # few kinds
            numbers.append(places.astype(np.int32))
            yield ids

    everybody = StringColumn.gathered(users())
    return _Rows(file, everybody, np.concatenate(numbers), list(kinds), np.concatenate(codes))


def _kind_codes(columns: Sequence[StringColumn], numbers: dict[tuple[str, ...], int]) -> IntArray:
    """Return the number of each row's kind; a kind that is new gets the next one."""
    size = len(columns[0])
    if not size:
        return np.empty(0, dtype=np.int64)
    alike = StringIndex(columns[0]).find(columns[0])
    for place, column in enumerate(columns[1:]):
        if place:  # a product of three would not fit
            alike = np.unique(alike, return_inverse=True)[1]
        alike = alike * size + StringIndex(column).find(column)
    _, first, each = np.unique(alike, return_index=True, return_inverse=True)
    texts = zip(*(column.where(first).texts() for column in columns), strict=True)
    found = dict(zip(first.tolist(), (tuple(text.strip(" ") for text in row) for row in texts), strict=True))
    for row in sorted(found):
        numbers.setdefault(found[row], len(numbers))
    return np.array([numbers[found[row]] for row in first.tolist()], dtype=np.int64)[each]


def _open_file(path: str) -> InputFile:
    """Return the file of that very name, which is no glob."""
    if not Path(path).is_file():
        what = "is a folder" if Path(path).is_dir() else "is not there"
        raise InvalidInput("a file", f"{path!r}, which {what}", "Check the path.", path=path)
    return open_input(path)


def _text_columns(file: InputFile, choose: Choice) -> TextPieces:
    """Return the texts of some columns of a file; a missing value is an empty text.

    Raises:
        InvalidInput: for an unreadable file, or a line that is no row of it.
    """
    if file.format == "parquet":
        table = Table(file)
        return _table_columns(table, choose(list(table.types)))
    if file.format in DELIMITERS:
        return _delimited_columns(file, [file.columns.index(name) for name in choose(file.columns)])
    rows = _objects(file)
    first = next(rows, None)
    names = choose(list(first[1]) if first else [])
    return _object_columns(rows if first is None else itertools.chain([first], rows), names)


def _table_columns(table: Table, names: Sequence[str]) -> TextPieces:
    first = 1
    for columns in table.select([_as_text(quoted(name), table.types[name]) for name in names]):
        size = len(columns[0].present)
        yield np.arange(first, first + size), [cast(StringColumn, column.values) for column in columns]
        first += size


def _as_text(column: str, type_name: str) -> str:
    """Return text in SQL; whole floats have no decimal point, since columns with gaps are floats in many frames."""
    text = f"CAST({column} AS VARCHAR)"
    if type_name not in ("FLOAT", "DOUBLE"):
        return text
    whole = f"{column} = floor({column}) AND abs({column}) < 9e15"
    number = f"CASE WHEN {whole} THEN CAST(CAST({column} AS BIGINT) AS VARCHAR) ELSE {text} END"
    return f"CASE WHEN isfinite({column}) THEN {number} END"


def _delimited_columns(file: InputFile, places: Sequence[int]) -> TextPieces:
    line = 2
    for lines in read_lines(file):
        table = split_fields(lines, DELIMITERS[file.format], len(file.columns), places)
        if len(table.broken):
            raise _no_row(file.path, line + int(table.broken[0]))
        yield line + table.rows, table.columns
        line += lines.count(b"\n")


def _object_columns(rows: Iterator[tuple[int, dict[str, Any]]], names: Sequence[str]) -> TextPieces:
    while piece := list(itertools.islice(rows, _OBJECTS)):
        values = ([row.get(name) for _, row in piece] for name in names)
        texts = (["" if value is None else str(value) for value in column] for column in values)
        yield np.array([line for line, _ in piece]), [StringColumn.from_texts(column) for column in texts]


def _objects(file: InputFile) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and the fields of each line of NDJSON that is not blank."""
    decode = msgspec.json.Decoder(dict[str, str | int | float | None]).decode
    lines = (line for piece in read_lines(file) for line in piece.split(b"\n")[:-1])
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                yield number, decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                raise _no_row(file.path, number) from None


def _no_row(path: str, line: int) -> InvalidInput:
    return InvalidInput(
        "a file with the same fields in every row",
        f"{path!r}, where line {line} is no row",
        "Check that no row is cut off, has a comma too many or a quote in the wrong place.",
        path=path,
    )
