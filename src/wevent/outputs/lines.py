"""Text of a release: the same bytes whenever it is rendered.

NDJSON has one line per slot, CSV one line per slot and cell. Both are functions of the stored record alone.
Every field is described in docs/reference/releases.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
import numpy as np

from wevent.core.arrays import FloatArray
from wevent.core.budget import decimal_text
from wevent.journal.record import Emitted, Group, Record

FORMAT = 2
"""Version of the formats."""

COLUMNS = {
    "slot": "BIGINT",
    "start": "TIMESTAMPTZ",
    "end": "TIMESTAMPTZ",
    "cell": "VARCHAR",
    "value": "DOUBLE",
    "low": "DOUBLE",
    "high": "DOUBLE",
    "std_error": "DOUBLE",
    "outcome": "VARCHAR",
    "measured": "BIGINT",
    "mechanism": "VARCHAR",
}
"""Columns of CSV and Parquet with their types."""

Column = list[Any] | None

CSV_HEADER = ",".join(COLUMNS).encode() + b"\n"
NDJSON_OPENING, CSV_OPENING = b'{"format":%d,"slot":%%d,' % FORMAT, b"%d,"
"""Beginnings of the lines of a slot."""
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r"}
_ESCAPED, _MEANINGS = re.compile(r"\\.?", re.DOTALL), {escape: sign for sign, escape in _ESCAPES.items()}
_TRANSLATION = str.maketrans(_ESCAPES)


def released_records(journal: Emitted, first: int = 1) -> Iterator[Record]:
    """Yield the slots from `first` on, without those that another copy of the journal released."""
    return (record for record in journal.releases(first) if record.shown is not None)


def cell_labels(cells: int | list[Any]) -> Iterable[Any]:
    """Return the labels of declared cells: as declared, or their numbers."""
    return range(cells) if isinstance(cells, int) else cells


def ndjson_line(record: Record) -> bytes:
    """Return a slot as a JSON object on a line of its own."""
    terms = record.epoch.terms
    start, end = terms.slot_span(record.slot)
    about = {"mechanism": terms.mechanism, "outcome": record.outcome, "measured": record.measured}
    threshold = "null" if record.threshold is None else decimal_text(record.threshold)
    charges = ",".join(map(decimal_text, (record.probe + record.publication).tolist()))
    parts = (
        msgspec.json.encode({"start": start, "end": end, **about})[1:-1],
        _rendered("json", record, _json_cells),
        _json_classes(record.group),
        f'"charges":[{charges}],"threshold":{threshold}'.encode(),
        b'"dissimilarity":%s}\n' % msgspec.json.encode(record.dissimilarity),
    )
    return NDJSON_OPENING % record.slot + b",".join(parts)


def csv_lines(record: Record) -> bytes:
    """Return a slot as lines of CSV, a line per cell."""
    terms = record.epoch.terms
    start, end = terms.slot_span(record.slot)
    measured = "" if record.measured is None else record.measured
    before = CSV_OPENING % record.slot + f"{start or ''},{end or ''},".encode()
    after = f",{record.outcome},{measured},{terms.mechanism}\n".encode()
    cells = _rendered("csv", record, _csv_cells)
    return before + cells.replace(b"\n", after + before) + after if cells else b""


def label_of(field: str) -> str:
    """Return the label that a field of CSV stands for: a backslash, a line feed and a carriage return are escaped there.

    Raises:
        ValueError: for another escape.
    """
    if "\\" not in field:
        return field
    try:
        return _ESCAPED.sub(lambda found: _MEANINGS[found[0]], field)
    except KeyError:
        raise ValueError("no such escape") from None


def _rendered(kind: str, record: Record, render: Callable[..., bytes]) -> bytes:
    """Return the cells with value, low, high and standard error, rendered once for all slots that show the same.

    Slots that show the same values may differ in whether an interval is valid.
    """
    shown = record.shown
    assert shown is not None, "a slot released elsewhere is never emitted"
    interval = record.interval()
    key = f"{kind}{', empty' if record.is_empty else ''}{'' if interval is None else ', interval'}"
    if key not in shown.text:
        numbers = None if record.is_empty else shown.values, *(interval or (None, None)), shown.std_error
        shown.text[key] = render(record.epoch.terms.cells, *(None if one is None else _plain(one) for one in numbers))
    return shown.text[key]


def _json_cells(cells: int | list[Any], value: Column, low: Column, high: Column, std_error: Column) -> bytes:
    fields = {"cells": cells, "histogram": value, "std_error": std_error, "low": low, "high": high}
    return msgspec.json.encode(fields, enc_hook=str)[1:-1]


def _csv_cells(cells: int | list[Any], *numbers: Column) -> bytes:
    labels = [_quoted(cell) for cell in cell_labels(cells)]
    rows = zip(labels, *(column or [""] * len(labels) for column in numbers), strict=True)
    lines = (f"{label},{value},{low},{high},{std_error}" for label, value, low, high, std_error in rows)
    return "\n".join(lines).encode()


def _json_classes(group: Group) -> bytes:
    if "json" not in group.text:
        rows = (f'{{"window":{held.window},"epsilon":{decimal_text(held.nano)}}}' for held in group.population.classes)
        group.text["json"] = f'"classes":[{",".join(rows)}]'.encode()
    return group.text["json"]


def _plain(values: FloatArray) -> list[Any]:
    """Return whole numbers without a decimal point."""
    if bool((np.abs(values) < 2.0**53).all() and (values == np.floor(values)).all()):  # all of them, at once
        whole: list[Any] = values.astype(np.int64).tolist()
        return whole
    return [int(value) if value.is_integer() and math.fabs(value) < 2**53 else value for value in values.tolist()]


def _quoted(label: Any) -> str:
    """Return a label as a CSV field on one line (see `label_of`); an empty one is quoted, unlike nothing."""
    text = str(label).translate(_TRANSLATION)
    quoted = not text or any(sign in text for sign in ',"')
    return '"' + text.replace('"', '""') + '"' if quoted else text
