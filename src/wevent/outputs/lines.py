"""A record as it is emitted: the same bytes every time, whenever and by whom it is rendered.

NDJSON has one line per slot, CSV one line per slot and cell. Both are functions of the stored record alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import msgspec

from wevent.core.arrays import FloatArray
from wevent.journal.record import Record, Shown
from wevent.journal.terms import Terms, time_text

CSV_HEADER = b"slot,time,cell,value,std_error,outcome,fresh,mechanism\n"


def ndjson_line(record: Record) -> bytes:
    """One slot as a JSON object on a line of its own."""
    shown = record.shown
    assert shown is not None, "a slot released elsewhere is never emitted"
    terms = record.epoch.terms
    charges = (record.probe + record.publication).tolist()
    start = msgspec.json.encode(
        {
            "slot": record.slot,
            "time": slot_time(terms, record.slot),
            "mechanism": terms.mechanism,
            "outcome": record.kind,
            "fresh": record.kind == "published",
        }
    )
    end = msgspec.json.encode(
        {
            "classes": [[requirement.window, requirement.nano] for requirement in record.group.population.classes],
            "charges": charges,
            "threshold": record.threshold,
            "dissimilarity": record.dissimilarity,
        }
    )
    return start[:-1] + b"," + _json_part(shown, terms) + b"," + end[1:] + b"\n"


def csv_lines(record: Record) -> bytes:
    """One slot as lines of CSV, a line per cell."""
    shown = record.shown
    assert shown is not None, "a slot released elsewhere is never emitted"
    terms = record.epoch.terms
    if "csv" not in shown.text:
        errors: Iterable[Any] = [""] * len(shown.values) if shown.std_error is None else _plain(shown.std_error)
        parts = zip(_labels(terms, len(shown.values)), _plain(shown.values), errors, strict=True)
        shown.text["csv"] = "\n".join(f"{_quoted(cell)},{value},{error}" for cell, value, error in parts).encode()
    before = f"{record.slot},{slot_time(terms, record.slot)},".encode()
    after = f",{record.kind},{'true' if record.kind == 'published' else 'false'},{terms.mechanism}\n".encode()
    return b"".join(before + line + after for line in shown.text["csv"].split(b"\n"))


def slot_time(terms: Terms, slot: int) -> str:
    """Where a slot starts, in UTC."""
    return time_text(terms.origin_us + (slot - 1) * terms.length_us)


def _json_part(shown: Shown, terms: Terms) -> bytes:
    if "json" not in shown.text:
        fields: dict[str, Any] = {} if isinstance(terms.cells, int) else {"cells": terms.cells}
        fields["histogram"] = _plain(shown.values)
        fields["std_error"] = None if shown.std_error is None else _plain(shown.std_error)
        shown.text["json"] = msgspec.json.encode(fields, enc_hook=str)[1:-1]
    return shown.text["json"]


def _plain(values: FloatArray) -> list[Any]:
    """Whole numbers without a decimal point."""
    return [int(value) if value.is_integer() and math.fabs(value) < 2**53 else value for value in values.tolist()]


def _labels(terms: Terms, number: int) -> Iterable[Any]:
    return range(number) if isinstance(terms.cells, int) else terms.cells


def _quoted(label: Any) -> str:
    """A label as a CSV field on one line: line breaks are shown as escapes."""
    text = str(label).replace("\r", "\\r").replace("\n", "\\n")
    return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in ',"') else text
