"""Where malformed lines are: by number, never by content."""

from __future__ import annotations

import csv
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from wevent.streams.clock import parse_time
from wevent.streams.inputs import InputFile, delimiter_of, open_text
from wevent.streams.readers import ZONED, Reader
from wevent.streams.settings import StreamSettings

_ZONED = re.compile(ZONED)


def first_malformed(readers: Sequence[Reader], settings: StreamSettings, most: int) -> list[str]:
    """The first malformed lines of the text files, as 'FILE line N (what is wrong)'."""
    files = (one for reader in readers if reader.text for one in reader.files)
    return list(itertools.islice(itertools.chain.from_iterable(_of_file(one, settings) for one in files), most))


def _of_file(one: InputFile, settings: StreamSettings) -> Iterator[str]:
    with open_text(one.path) as lines:
        rows = _objects(lines) if one.format == "ndjson" else _records(lines, one)
        for number, row in rows:
            problem = _problem(row, settings)
            if problem:
                yield f"{one.path} line {number} ({problem})"


def _objects(lines: Any) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except ValueError:
                yield number, None


def _records(lines: Any, one: InputFile) -> Iterator[tuple[int, Any]]:
    rows = csv.reader(lines, delimiter=delimiter_of(one.format))
    next(rows)
    for row in rows:
        if row:
            whole = len(row) == len(one.columns)
            yield rows.line_num, dict(zip(one.columns, row, strict=True)) if whole else None


def _problem(row: Any, settings: StreamSettings) -> str | None:
    if not isinstance(row, dict):
        return "not a record"
    for name in (settings.columns["user"], settings.columns["cell"]):
        if row.get(name) in (None, ""):
            return f"no {name}"
    if settings.slot_column:
        return None if _whole(row.get(settings.slot_column)) else f"no number in {settings.slot_column}"
    return _time_problem(row.get(settings.columns["time"]), settings)


def _time_problem(time: Any, settings: StreamSettings) -> str | None:
    if time in (None, ""):
        return "no time"
    try:
        float(time)
    except (TypeError, ValueError):
        pass
    else:
        return None
    try:
        parse_time(time, "time", settings.timezone_us if settings.timezone_us is not None else 0)
    except ValueError:
        return "its time is not ISO 8601"
    if settings.timezone_us is None and not _ZONED.fullmatch(str(time)):
        return "its time has neither Z nor an offset"
    return None


def _whole(value: Any) -> bool:
    try:
        int(str(value))
    except ValueError:
        return False
    return True
