"""Input files by name: which there are, of which format, with which columns."""

from __future__ import annotations

import csv
import glob
import gzip
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wevent.errors import InvalidInput

_FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".json": "ndjson",
}


@dataclass(frozen=True)
class InputFile:
    """One input file.

    Attributes:
        path: where it is.
        format: parquet, csv, tsv or ndjson.
        columns: the names in its header (ndjson: of its first object); empty for Parquet, which knows them itself.
        sample: the first row's values by name.
    """

    path: str
    format: str
    columns: tuple[str, ...]
    sample: dict[str, Any]


def find_files(patterns: Sequence[str]) -> list[str]:
    """The files behind names and globs, in the order given, each once; those of one glob by name.

    Raises:
        InvalidInput: for a name or glob without a file.
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        matches = [pattern] if Path(pattern).is_file() else sorted(glob.glob(pattern, recursive=True))
        matches = [match for match in matches if Path(match).is_file()]
        if not matches:
            raise InvalidInput(
                "an input file or a glob that matches some", f"{pattern!r}", "Check the path.", path=pattern
            )
        found.update(dict.fromkeys(matches))
    return list(found)


def open_input(path: str) -> InputFile:
    """Look at a file's ending and first row.

    Raises:
        InvalidInput: for an unknown ending, an empty or unreadable file.
    """
    endings = [ending.lower() for ending in Path(path).suffixes]
    if endings and endings[-1] == ".gz":
        endings.pop()
    kind = _FORMATS.get(endings[-1] if endings else "")
    if kind is None:
        raise InvalidInput(
            f"a file that ends in {', '.join(_FORMATS)} (the text formats also with .gz)",
            f"{path!r}",
            "Rename or convert it.",
            path=path,
        )
    try:
        if Path(path).stat().st_size == 0:
            raise _empty(path)
        if kind == "parquet":
            return InputFile(path, kind, (), {})
        with open_text(path) as lines:
            return _first_object(path, lines) if kind == "ndjson" else _header(path, kind, lines)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InvalidInput(
            "a readable file", f"{path!r}, which is not ({type(error).__name__})", "Check the file.", path=path
        ) from None


def open_text(path: str) -> io.TextIOBase:
    """A text file for reading, compressed or not."""
    if path.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8", newline="")
    return open(path, encoding="utf-8", newline="")


def require_columns(path: str, present: Sequence[str], wanted: Sequence[str]) -> None:
    """Refuse a file that lacks a column.

    Raises:
        InvalidInput: naming the first one that is missing.
    """
    for column in wanted:
        if column not in present:
            raise InvalidInput(
                f"a column {column!r}",
                f"{path!r} with {', '.join(map(repr, present)) or 'none'}",
                "Name the columns with time_column, user_column and cell_column (or slot_column).",
                path=path,
                column=column,
            )


def delimiter_of(kind: str) -> str:
    """What separates the fields of a csv or tsv file."""
    return "\t" if kind == "tsv" else ","


def _header(path: str, kind: str, lines: io.TextIOBase) -> InputFile:
    rows: Iterator[list[str]] = csv.reader(lines, delimiter=delimiter_of(kind))
    names = next(rows, None)
    first = next(rows, None)
    if names is None:
        raise _empty(path)
    names = [names[0].removeprefix("\ufeff"), *names[1:]] if names else names
    return InputFile(path, kind, tuple(names), dict(zip(names, first or [], strict=False)))


def _first_object(path: str, lines: io.TextIOBase) -> InputFile:
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            return InputFile(path, "ndjson", tuple(row), row)
    raise _empty(path)


def _empty(path: str) -> InvalidInput:
    return InvalidInput("a file with events", f"{path!r}, which is empty", "Check how it was written.", path=path)
