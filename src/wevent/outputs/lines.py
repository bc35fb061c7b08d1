"""A record as it is emitted: the same bytes every time, whenever and by whom it is rendered.

NDJSON has one line per slot, CSV one line per slot and cell. Both are functions of the stored record alone. Every field is
described in docs/reference/releases.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import numpy as np

from wevent.core.arrays import FloatArray, IntArray
from wevent.core.budget import decimal_text
from wevent.journal.contract import Emitted
from wevent.journal.record import Group, Record
from wevent.journal.terms import Terms

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

Numbers = tuple[FloatArray | None, FloatArray | None, FloatArray | None, FloatArray | None]

CSV_HEADER = ",".join(COLUMNS).encode() + b"\n"
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r"}
_ESCAPED, _MEANINGS = re.compile(r"\\.?", re.DOTALL), {escape: sign for sign, escape in _ESCAPES.items()}
_TRANSLATION = str.maketrans(_ESCAPES)


def released_records(journal: Emitted, first: int = 1) -> Iterator[Record]:
    """Yield the slots from `first` on, without those that another copy of the journal released."""
    return (record for record in journal.releases(first) if record.shown is not None)


def released_numbers(record: Record) -> Numbers:
    """Return value, low, high and standard error per cell; None where nothing is known."""
    assert record.shown is not None, "a slot released elsewhere is never emitted"
    low, high = record.interval() or (None, None)
    return None if record.is_empty else record.shown.values, low, high, record.shown.std_error


def cell_labels(cells: int | list[Any]) -> Iterable[Any]:
    """Return the labels of declared cells: as declared, or their numbers."""
    return range(cells) if isinstance(cells, int) else cells


def ndjson_line(record: Record) -> bytes:
    """One slot as a JSON object on a line of its own."""
    terms = record.epoch.terms
    about = {"mechanism": terms.mechanism, "outcome": record.outcome, "measured": record.measured}
    charges = _numbers(record.probe + record.publication)
    threshold = "null" if record.threshold is None else decimal_text(record.threshold)
    end = b'"charges":%s,"threshold":%s,"dissimilarity":%s}\n' % (
        charges,
        threshold.encode(),
        msgspec.json.encode(record.dissimilarity),
    )
    parts = (msgspec.json.encode(about)[1:-1], _json_part(record), _json_classes(record.group), end)
    return ndjson_opening(terms, record.slot) + b",".join(parts)


def ndjson_opening(terms: Terms, slot: int) -> bytes:
    """How the line of a slot begins, whatever was released."""
    start, end = terms.slot_span(slot)
    known = {"format": FORMAT, "slot": slot, "start": start, "end": end}
    return msgspec.json.encode(known)[:-1] + b","


def csv_lines(record: Record) -> bytes:
    """One slot as lines of CSV, a line per cell."""
    terms = record.epoch.terms
    before = csv_opening(terms, record.slot)
    measured = "" if record.measured is None else record.measured
    after = f",{record.outcome},{measured},{terms.mechanism}\n".encode()
    part = _csv_part(record)
    return before + part.replace(b"\n", after + before) + after if part else b""


def csv_opening(terms: Terms, slot: int) -> bytes:
    """How every line of a slot begins, whatever was released."""
    start, end = terms.slot_span(slot)
    return f"{slot},{start or ''},{end or ''},".encode()


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


def _json_part(record: Record) -> bytes:
    """Cells, values and errors: made once for all slots that show the same."""
    numbers = released_numbers(record)
    text, key = _kept("json", record, numbers)
    if key not in text:
        value, low, high, std_error = map(_maybe_plain, numbers)
        cells = record.epoch.terms.cells
        fields = {"cells": cells, "histogram": value, "std_error": std_error, "low": low, "high": high}
        text[key] = msgspec.json.encode(fields, enc_hook=str)[1:-1]
    return text[key]


def _json_classes(group: Group) -> bytes:
    if "json" not in group.text:
        rows = (f'{{"window":{held.window},"epsilon":{decimal_text(held.nano)}}}' for held in group.population.classes)
        group.text["json"] = f'"classes":[{",".join(rows)}]'.encode()
    return group.text["json"]


def _csv_part(record: Record) -> bytes:
    """cell,value,low,high,std_error of every cell: made once for all slots that show the same."""
    numbers = released_numbers(record)
    text, key = _kept("csv", record, numbers)
    if key not in text:
        labels = [_quoted(cell) for cell in cell_labels(record.epoch.terms.cells)]
        columns = (_maybe_plain(column) or [""] * len(labels) for column in numbers)
        rows = zip(labels, *columns, strict=True)
        lines = (f"{cell},{value},{least},{most},{error}" for cell, value, least, most, error in rows)
        text[key] = "\n".join(lines).encode()
    return text[key]


def _kept(kind: str, record: Record, numbers: Numbers) -> tuple[dict[str, bytes], str]:
    """Return where a rendered part is kept: slots that show the same may differ in whether an interval is valid."""
    assert record.shown is not None
    value, low, _, _ = numbers
    return record.shown.text, f"{kind}, {'no ' if value is None else ''}values, {'no ' if low is None else ''}interval"


def _numbers(nanos: IntArray) -> bytes:
    """Nano-epsilons as a JSON array of exact decimals."""
    return f"[{','.join(map(decimal_text, nanos.tolist()))}]".encode()


def _maybe_plain(values: FloatArray | None) -> list[Any] | None:
    return None if values is None else _plain(values)


def _plain(values: FloatArray) -> list[Any]:
    """Whole numbers without a decimal point."""
    if bool((np.abs(values) < 2.0**53).all() and (values == np.floor(values)).all()):  # all of them, at once
        whole: list[Any] = values.astype(np.int64).tolist()
        return whole
    return [int(value) if value.is_integer() and math.fabs(value) < 2**53 else value for value in values.tolist()]


def _quoted(label: Any) -> str:
    """A label as a CSV field on one line (see `label_of`); an empty one is quoted, unlike nothing."""
    text = str(label).translate(_TRANSLATION)
    quoted = not text or any(sign in text for sign in ',"')
    return '"' + text.replace('"', '""') + '"' if quoted else text
