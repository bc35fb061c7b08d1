"""Input files: globs, formats, headers; lines and events of text files; masks of values for messages."""

from __future__ import annotations

import glob
import gzip
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from wevent.errors import InvalidInput
from wevent.settings import StreamSettings
from wevent.streams.decoding import (
    BYTE_ORDER_MARK,
    DELIMITERS,
    PIECE_BYTES,
    TIME_PROBLEMS,
    Decoded,
    DelimitedDecoder,
    LineSplitter,
    event_columns,
    line_ends,
    split_line,
    spoiled_lines,
    time_reader,
)
from wevent.streams.json_lines import ObjectDecoder

_FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".json": "ndjson",
}
_ENDINGS = ", ".join(_FORMATS) + " (the text formats also with .gz)"
_OTHER_DELIMITERS = {
    ";": ("semicolons", "save it again with commas (.csv) or tabs (.tsv)"),
    "\t": ("tabs", "name it .tsv"),
    "|": ("bars", "save it again with commas (.csv) or tabs (.tsv)"),
    ",": ("commas", "name it .csv"),
}

_EXPANSION = {"parquet": 4, ".gz": 8}  # bytes of events per byte of a compressed file, about
_SAMPLE = 200  # lines
_COLUMNS = 20  # in a message
_NUMERIC = frozenset("0123456789 .:+-TZ")
_SHOWN = 48  # characters
_SIGNS = frozenset(" \t-_:./+,;|@#\"'{}[]()=")

FRAME = "frame"
"""The format of an input that is a data frame, and the table that it is copied into."""


class InputFile(NamedTuple):
    """One input file.

    Attributes:
        path: path of the file; of a data frame the name that users know.
        format: parquet, csv, tsv or ndjson; `FRAME` for a data frame.
        columns: the names in the header of CSV and TSV; empty for other formats.
    """

    path: str
    format: str
    columns: tuple[str, ...] = ()


class EventPiece(NamedTuple):
    """Consecutive lines or rows of an input.

    Attributes:
        first: number of the first one.
        decoded: their events.
        example: returns the value at fault, given a malformed line or row and its problem; None if there is none to show.
    """

    first: int
    decoded: Decoded
    example: Callable[[int, int], str | None]


def find_files(patterns: Sequence[str]) -> list[str]:
    """Return the files behind names and globs, in the order given, each once; those of one glob by name.

    A name that exists is never read as a glob.

    Raises:
        InvalidInput: for a name or glob without a file.
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        matches = [pattern] if Path(pattern).is_file() else sorted(glob.glob(pattern, recursive=True))
        matches = [match for match in matches if Path(match).is_file()]
        if not matches and Path(pattern).is_dir():
            fix = f"Name the files in it, such as '{Path(pattern) / '*.csv'}'."
            raise InvalidInput(f"The input {pattern!r} is a folder.", fix, path=pattern)
        if not matches:
            raise InvalidInput(f"There is no input file {pattern!r}.", "Check the path.", path=pattern)
        found.update(dict.fromkeys(matches))
    return list(found)


def within_folders(patterns: Sequence[str]) -> list[str]:
    """Return names and globs, and for each folder the files in and below it that events can be in.

    Names that begin with a dot or an underscore are left out: `_SUCCESS`, checksums, unfinished files.

    Raises:
        InvalidInput: for a folder without such files.
    """
    found: list[str] = []
    for pattern in patterns:
        folder, files = Path(pattern), [pattern]
        if folder.is_dir():
            inside = (file for file in folder.rglob("*") if file.is_file() and _kind(str(file)) is not None)
            shown = (file for file in inside if not any(part[0] in "._" for part in file.relative_to(folder).parts))
            files = sorted(map(str, shown))
        if not files:
            raise InvalidInput(
                f"Folder {pattern!r} has no files that end in {_ENDINGS}.",
                "Check the path; names that begin with a dot or an underscore are left out.",
                path=pattern,
            )
        found += files
    return found


def open_input(path: str, kind: str | None = None) -> InputFile:
    """Return a file with its format and, of CSV and TSV, its header; a compressed file is read to its end.

    Args:
        path: path of the file.
        kind: its format; None: as its ending says.

    Raises:
        InvalidInput: for an unknown ending, an unreadable or damaged file, a header that is missing or none.
    """
    kind = kind or _kind(path)
    if kind is None:
        is_settings = Path(path).suffix.lower() == ".toml"
        fix = f"A configuration is named by --config {path}." if is_settings else "Rename or convert it."
        raise InvalidInput(f"File {path!r} does not end in {_ENDINGS}.", fix, path=path)
    if kind == "parquet":
        return InputFile(path, kind)
    for _ in _pieces(path):
        if not _compressed(path):
            break
    return InputFile(path, kind, _header(path, kind) if kind in DELIMITERS else ())


def _kind(path: str) -> str | None:
    """Return the format that a file's ending stands for."""
    endings = [ending.lower() for ending in Path(path).suffixes]
    if endings and endings[-1] == ".gz":
        endings.pop()
    return _FORMATS.get(endings[-1] if endings else "")


def event_bytes(file: InputFile) -> int:
    """Return about how many bytes the events of a file take, from its size alone."""
    factor = _EXPANSION.get(".gz" if _compressed(file.path) else file.format, 1)
    return 0 if file.format == FRAME else Path(file.path).stat().st_size * factor


def read_lines(file: InputFile) -> Iterator[bytes]:
    """Yield the lines of a text file after its header, many at a time, each with its end.

    Raises:
        InvalidInput: if it cannot be read, or is damaged as a compressed file.
    """
    headed = bool(file.columns)
    for lines in _all_lines(file.path):
        if headed and lines:
            headed, lines = False, lines[lines.find(b"\n") + 1 :]
        if lines:
            yield lines


def sample_lines(file: InputFile) -> list[bytes]:
    """Return the first lines of a text file after its header."""
    return next(read_lines(file), b"").split(b"\n")[:_SAMPLE]


def object_fields(file: InputFile) -> dict[str, list[Any]]:
    """Return the fields that most of the first objects of NDJSON have, with their values; no single record names one."""
    values: dict[str, list[Any]] = {}
    objects = 0
    for line in sample_lines(file):
        try:
            row = msgspec.json.decode(line, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        objects += 1
        for name, value in row.items():
            values.setdefault(name, []).append(value)
    return {name: found for name, found in values.items() if 2 * len(found) > objects}


def require_columns(path: str, present: Sequence[str], wanted: Sequence[str]) -> None:
    """Refuse a file that lacks a column, or has it twice.

    Raises:
        InvalidInput: naming the first one that is at fault.
    """
    for column in wanted:
        if present.count(column) != 1:
            has = f"has the column {column!r} twice" if column in present else f"has no column {column!r}"
            raise InvalidInput(
                f"{path} {has}. Its columns: {listed_columns(present)}.",
                other_delimiter(present)
                or "Name the columns with time_column, user_column and cell_column (or slot_column).",
                path=path,
                column=column,
            )


def other_delimiter(names: Sequence[str]) -> str | None:
    """Return what to do about a header that is one name with another format's delimiter; None for any other header."""
    if len(names) != 1:
        return None
    for mark, (word, remedy) in _OTHER_DELIMITERS.items():
        if mark in names[0]:
            return f"Its fields are separated by {word}: {remedy}."
    return None


class TextReader:
    """Events of a CSV, TSV or NDJSON file, compressed or not.

    Raises:
        InvalidInput: if a header lacks a column.
    """

    unit = "line"

    def __init__(self, file: InputFile, settings: StreamSettings) -> None:
        self.file = file
        times, wanted = time_reader(settings), event_columns(settings)
        self._decoder: DelimitedDecoder | ObjectDecoder
        if file.format in DELIMITERS:
            require_columns(file.path, file.columns, wanted)
            self._decoder = DelimitedDecoder(file.columns, wanted, DELIMITERS[file.format], settings.cells, times)
        else:
            names = dict(zip(("time", "user", "cell"), wanted, strict=True))
            self._decoder = ObjectDecoder(names, settings.cells, times)

    @property
    def columns(self) -> list[str]:
        """The names in the header; of NDJSON the fields that most of the first objects have."""
        return list(self.file.columns or object_fields(self.file))

    def pieces(self) -> Iterator[EventPiece]:
        """Yield the events of all lines, in their order."""
        first = 2 if self.file.columns else 1
        for lines in read_lines(self.file):
            yield EventPiece(first, self._decoder.decode(lines), partial(self._example, lines))
            first += lines.count(b"\n")

    def _example(self, lines: bytes, row: int, problem: int) -> str:
        """Return a malformed line, or the time in it if that is malformed."""
        line = lines.split(b"\n", row + 1)[row]
        time = self._decoder.time_text(line) if problem in TIME_PROBLEMS else None
        return line.decode(errors="replace") if time is None else time


def _header(path: str, kind: str) -> tuple[str, ...]:
    first = next(filter(None, _all_lines(path)), b"")
    line = first[: first.find(b"\n") + 1]
    if not line:
        raise InvalidInput(f"{path} is empty.", "Write a header line first.", path=path)
    names = None
    if not len(spoiled_lines(line, line_ends(line))):
        names = split_line(line.removesuffix(b"\n").removesuffix(b"\r"), DELIMITERS[kind])
    if names is None:
        raise InvalidInput(f"{path}, line 1: this is no header of column names.", "Check the file.", path=path)
    return tuple(name.decode() for name in names)


def _all_lines(path: str) -> Iterator[bytes]:
    splitter = LineSplitter()
    for number, piece in enumerate(_pieces(path)):
        yield splitter.feed(piece if number else piece.removeprefix(BYTE_ORDER_MARK))
    yield splitter.finish()


def _pieces(path: str) -> Iterator[bytes]:
    opened: Any = gzip.open if _compressed(path) else open
    try:
        with opened(path, "rb") as file:
            while piece := file.read(PIECE_BYTES):
                yield piece
    except (OSError, EOFError, zlib.error) as error:
        if _compressed(path) and not (isinstance(error, OSError) and error.errno):
            problem, fix = f"{path} is damaged or cut off.", "Compress it again from what it was made of."
        else:
            problem, fix = f"{path} cannot be read ({type(error).__name__}).", "Check the file."
        raise InvalidInput(problem, fix, path=path) from None


def _compressed(path: str) -> bool:
    return path.lower().endswith(".gz")


def outline(text: str) -> str:
    """Return the mask of a value for the operator: a or A for a letter, 9 for a digit, ? for a rare sign.

    >>> outline("u-4711"), outline("2026-01-31 08:15")
    ('a-9999', '9999-99-99 99:99')
    """
    characters = "".join(map(_mask, text[:_SHOWN]))
    return characters + "…" if len(text) > _SHOWN else characters


def listed_columns(names: Sequence[str]) -> str:
    """Return the columns of a file for a message; masked if they look like a record of a file without a header.

    >>> listed_columns(["time", "user"]), listed_columns(["4711", "Harbour"])
    ("'time', 'user'", "'9999', 'Aaaaaaa' (they look like a record: is the header line missing?)")
    """
    if looks_like_record(names):
        shown, end = [outline(name) for name in names], " (they look like a record: is the header line missing?)"
    else:
        shown, end = list(names), ""
    return (", ".join(map(repr, shown[:_COLUMNS])) or "none") + (", …" if len(names) > _COLUMNS else "") + end


def looks_like_record(names: Sequence[str]) -> bool:
    """Return whether one of the names of columns looks like a value."""
    return any(_is_value(name) for name in names)


def _is_value(name: str) -> bool:
    """Return whether a name has a number or a time, also between other delimiters, or is an address or a level."""
    parts = re.split(r"[;,|\t]", name)
    return "@" in name or "/" in name or any(set(part) <= _NUMERIC and any(map(str.isdigit, part)) for part in parts)


def _mask(character: str) -> str:
    if character.isalpha():
        return "A" if character.isupper() else "a"
    if character.isdigit():
        return "9"
    return character if character in _SIGNS else "?"
