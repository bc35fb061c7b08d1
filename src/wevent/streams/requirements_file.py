"""Requirements files: a row per user with a level, or with numbers; and other small files of the operator.

A malformed row is refused and named by its line, since the file is the operator's. No message has an id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np
import numpy.typing as npt

from wevent.core.arrays import IntArray
from wevent.core.limits import MAX_LABEL_BYTES
from wevent.core.requirements import Levels, Requirement
from wevent.counting.labels import Labels
from wevent.counting.string_column import StringColumn, StringIndex
from wevent.errors import InvalidInput, InvalidRequirement, InvalidRoster, WeventError
from wevent.people.membership import KeyColumn
from wevent.settings.values import WindowReader
from wevent.streams.decoding import DELIMITERS, split_fields
from wevent.streams.duckdb_tables import Table, column_names, frame_name, load_frame, quoted
from wevent.streams.inputs import FRAME, InputFile, listed_columns, open_input, other_delimiter, read_lines

COLUMNS = ("user", "level", "privacy", "window", "epsilon")
"""The columns a requirements file may have; what each is called may be declared."""

TextPieces = Iterable[tuple[IntArray, list[StringColumn]]]
"""Some columns of a file, piece by piece, with the number of the line or row that each value is from."""


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
        InvalidRequirement: for a window, epsilon or level that no guarantee can be built on, naming the line.
        InvalidRoster: for a user listed twice.
    """
    file = _open_file(str(path))
    names = _choose_columns(file.path, _names(file), columns or {})
    return _read_rows(file, _text_pieces(file, [*names.values()]), [*names], levels or Levels.default(), slot_us)


def requirements_of_frame(
    frame: Any,
    levels: Levels | None = None,
    *,
    slot_us: int | None = None,
    columns: Mapping[str, str] | None = None,
) -> Requirements:
    """Read a data frame; rows, columns and errors as of `read_requirements`."""
    file = InputFile(frame_name(frame), FRAME)
    names = _choose_columns(file.path, column_names(frame), columns or {})
    table = load_frame(frame, [*names.values()])
    return _read_rows(file, _table_pieces(table, [*names.values()]), [*names], levels or Levels.default(), slot_us)


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
                f"The requirements have a value of type {type(held).__name__}.",
                "Write {'ann': Requirement(40, 0.5), …}.",
            )
    ids = [str(user) if isinstance(user, (str, int, np.integer)) and type(user) is not bool else "" for user in asked]
    users = _check_ids(InputFile("requirements", FRAME), StringColumn.from_texts(ids), np.arange(1, len(ids) + 1))
    return Requirements(users, KeyColumn.of(held.key for held in asked.values()), None)


def read_column(path: str | Path, column: str, *, headed: bool = False) -> list[str]:
    """Return one column of a small file as text: the named one, else the first; a .txt file has a label per line.

    Args:
        path: path of the file.
        column: name of the column.
        headed: whether no other column will do; else a first value could be taken for a heading and be lost.

    Raises:
        InvalidInput: for a missing or unreadable file, or one without a column that must be there.
    """
    file = _open_file(str(path), "ndjson" if str(path).endswith(".txt") else None)
    if str(path).endswith(".txt"):
        try:
            lines = b"".join(read_lines(file)).decode().splitlines()
        except UnicodeDecodeError:
            raise InvalidInput(f"{path} is not in UTF-8.", "Save it again as UTF-8.", path=str(path)) from None
        return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    names = _names(file)
    if headed and column not in names:
        raise InvalidInput(
            f"{path} has no column {column}. Its columns: {listed_columns(names)}.",
            other_delimiter(names) or f"Give the column the heading {column}.",
            path=str(path),
        )
    pieces = _text_pieces(file, [column if column in names else names[0]])
    return [text for _, (labels,) in pieces for text in labels.texts() if text]


def _choose_columns(path: str, present: Sequence[str], declared: Mapping[str, str]) -> dict[str, str]:
    """Return the column of each of `COLUMNS` that is read; declared ones, if any, keep the others out."""
    roles = [role for role in COLUMNS[1:] if role in declared] or [role for role in COLUMNS[1:] if role in present]
    chosen = {role: declared.get(role, role) for role in ("user", *roles)}
    missing = [name for name in chosen.values() if present.count(name) != 1]
    whole = "level" in roles or ("window" in roles and {"privacy", "epsilon"} & set(roles))
    if missing or not whole:
        raise InvalidInput(
            f"{path} lacks a column of requirements"
            + (f" (declared as {', '.join(chosen.values())})" if declared else "")
            + f". Its columns: {listed_columns(present)}.",
            other_delimiter(present)
            or "Name them user and level, or user, privacy and window, or user, window and epsilon, "
            "or declare yours in [requirements_columns].",
            path=path,
            column=missing[0] if missing else None,
        )
    return chosen


def _read_rows(
    file: InputFile, pieces: TextPieces, roles: Sequence[str], levels: Levels, slot_us: int | None
) -> Requirements:
    """Return the requirements that rows stand for; the column of ids comes first."""
    kinds: dict[tuple[str, ...], int] = {}  # the different contents of rows beside the id, in the order of first rows
    text, nothing = (
        bytearray(),
        np.empty(0, dtype=np.int32),
    )  # four bytes for a number: a file may have millions of rows
    sizes, codes, numbers = [nothing], [nothing], [nothing]
    for places, (ids, *others) in pieces:
        codes.append(_kind_codes(others, kinds).astype(np.int32))  # few kinds
        numbers.append(places.astype(np.int32))
        text += ids.tight().data[: int(ids.sizes.sum())].data
        sizes.append(ids.sizes.astype(np.int32))
    each, lines = np.concatenate(codes), np.concatenate(numbers)
    ids = StringColumn.from_sizes(text, np.concatenate(sizes).astype(np.int64))
    del text, sizes  # before the index of ids takes as much
    users = _check_ids(file, ids, lines)
    windows, meant = WindowReader(slot_us), []
    for code, kind in enumerate(kinds):
        try:
            meant.append(_to_requirement(dict(zip(roles[1:], kind, strict=True)), levels, windows))
        except WeventError as error:
            place = _place(file, lines[int(np.argmax(each == code))])
            facts = {**error.facts, "path": file.path, "place": place}
            raise type(error)(f"{file.path}, {place}: {error.problem}", error.fix, **facts) from None
    distinct = KeyColumn.of(requirement.key for requirement, _ in meant)
    words = None
    if any(level is not None for _, level in meant):
        words = [meant[code][1] for code in each.tolist()]
    return Requirements(users, KeyColumn(distinct.distinct, distinct.codes[each]), words, windows.notes)


def _to_requirement(fields: Mapping[str, str], levels: Levels, windows: WindowReader) -> tuple[Requirement, str | None]:
    """Return the requirement of a row, and the level it comes from, None for numbers.

    Raises:
        InvalidInput: for a row with an empty field.
        InvalidRequirement: for what no guarantee can be built on.
    """
    level, privacy, window, epsilon = (fields.get(role, "") for role in COLUMNS[1:])
    if not (level or (window and (privacy or epsilon))):
        raise InvalidInput("The row has an empty field.", "Fill in the level, or a window and an epsilon.")
    if level:
        requirement = levels.choose(level)
        has_numbers = window and epsilon and not privacy
        if (privacy or window or epsilon) and not (
            has_numbers and Requirement(windows.read(window), epsilon) == requirement
        ):
            raise InvalidRequirement(
                f"Level {level!r} stands beside other fields than the window and epsilon that it stands for.",
                "Leave the other fields of the row empty.",
                level=level,
            )
        return requirement, level
    if privacy and epsilon:
        raise InvalidRequirement(
            "The row has a word of privacy and an epsilon.", "Leave one of them empty.", level=privacy, epsilon=epsilon
        )
    if privacy:
        return levels.requirement(privacy, window), f"{privacy}/{window}"
    return Requirement(windows.read(window), epsilon), None


def _check_ids(
    file: InputFile, users: StringColumn, lines: npt.NDArray[np.integer[Any]]
) -> npt.NDArray[np.int64] | StringColumn:
    """Return the ids, int64 if every one is a plain whole number.

    Raises:
        InvalidInput: for no ids, or one that is empty or that no event can have.
        InvalidRoster: for an id that is there twice.
    """
    path = file.path
    if not len(users):
        raise InvalidInput(f"{path} has no rows.", "Write a row per user.", path=path)
    labels = Labels.from_fields(users)
    unfit = ~labels.is_label()
    if unfit.any():
        row = int(unfit.argmax())
        place = _place(file, lines[row])
        problem = "The row has no id." if not users.sizes[row] else "No event can have this id."
        remedy = f"Give each user an id of at most {MAX_LABEL_BYTES} bytes, without NULs."
        raise InvalidInput(f"{path}, {place}: {problem}", remedy, path=path, place=place)
    duplicates = StringIndex(users).duplicates
    if duplicates:
        seen: dict[str, int] = {}
        again, before = next((row, seen[user]) for row, user in enumerate(users) if seen.setdefault(user, row) != row)
        raise InvalidRoster(
            f"{path}, {_place(file, lines[again])}: the id is in {_place(file, lines[before])} too.",
            "Keep one row per user: a user has one requirement at a time.",
            duplicates=duplicates,
            path=path,
        )
    return users if len(labels.texts) else labels.keys


def _place(file: InputFile, number: int) -> str:
    return f"{'row' if file.format in ('parquet', FRAME) else 'line'} {number}"


def _kind_codes(columns: Sequence[StringColumn], numbers: dict[tuple[str, ...], int]) -> IntArray:
    """Return the number of each row's kind; a kind that is new gets the next one."""
    size = len(columns[0])
    alike = np.zeros(size, dtype=np.int64)
    for column in columns:
        alike = np.unique(alike * size + StringIndex(column).find(column), return_inverse=True)[1]
    _, first, each = np.unique(alike, return_index=True, return_inverse=True)
    texts = zip(*(column.where(first).texts() for column in columns), strict=True)
    kinds = [tuple(text.strip(" ") for text in row) for row in texts]
    for place in first.argsort().tolist():
        numbers.setdefault(kinds[place], len(numbers))
    return np.array([numbers[kind] for kind in kinds], dtype=np.int64)[each]


def _open_file(path: str, kind: str | None = None) -> InputFile:
    """Return the file of that very name, which is no glob."""
    if not Path(path).is_file():
        what = "is a folder" if Path(path).is_dir() else "is not there"
        raise InvalidInput(f"{path} {what}.", "Name a file.", path=path)
    return open_input(path, kind)


def _names(file: InputFile) -> list[str]:
    """Return the names of the columns; of NDJSON the fields of the first object."""
    if file.format == "parquet":
        return list(Table(file).types)
    first = next((rows for rows in _objects(file) if rows), None) if file.format not in DELIMITERS else None
    return list(file.columns if first is None else first[0][1])


def _text_pieces(file: InputFile, names: Sequence[str]) -> TextPieces:
    """Yield the texts of some columns of a file; a missing value is an empty text.

    Raises:
        InvalidInput: for an unreadable file, or a line that is no row of it.
    """
    if file.format == "parquet":
        yield from _table_pieces(Table(file), names)
    elif file.format in DELIMITERS:
        line, places = 2, [file.columns.index(name) for name in names]
        for lines in read_lines(file):
            table = split_fields(lines, DELIMITERS[file.format], len(file.columns), places)
            if len(table.broken):
                raise _no_row(file.path, line + int(table.broken[0]))
            yield line + table.rows, table.columns
            line += lines.count(b"\n")
    else:
        for rows in _objects(file):
            values = [[row.get(name) for _, row in rows] for name in names]
            texts = (["" if value is None else str(value) for value in column] for column in values)
            yield np.array([line for line, _ in rows], dtype=np.int64), [*map(StringColumn.from_texts, texts)]


def _table_pieces(table: Table, names: Sequence[str]) -> TextPieces:
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


def _objects(file: InputFile) -> Iterator[list[tuple[int, dict[str, Any]]]]:
    """Yield numbers and fields of the lines of NDJSON that are not blank, many at a time."""
    decode = msgspec.json.Decoder(dict[str, str | int | float | None]).decode
    number = 0
    for lines in read_lines(file):
        rows: list[tuple[int, dict[str, Any]]] = []
        for line in lines.split(b"\n")[:-1]:
            number += 1
            if line.strip():
                try:
                    rows.append((number, decode(line)))
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    raise _no_row(file.path, number) from None
        yield rows


def _no_row(path: str, line: int) -> InvalidInput:
    return InvalidInput(
        f"{path}, line {line} is no row.",
        "Check that no row is cut off, has a comma too many or a quote in the wrong place.",
        path=path,
    )
