"""Releases as columns: what CSV and Parquet have, in Python's own types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wevent.journal.record import Record
from wevent.outputs.lines import COLUMNS


def release_columns(records: Iterable[Record]) -> dict[str, list[Any]]:
    """One row per slot and cell; a slot that another copy of the journal released has none.

    >>> release_columns([])["value"]
    []
    """
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for record in records:
        if record.shown is None:
            continue
        terms, number, bounds = record.epoch.terms, len(record.shown.values), record.interval()
        low, high = (None, None) if bounds is None else bounds
        start, end = terms.slot_span(record.slot)
        values = None if record.is_empty else record.shown.values
        columns["cell"] += range(number) if isinstance(terms.cells, int) else terms.cells
        for name, array in (("value", values), ("low", low), ("high", high), ("std_error", record.shown.std_error)):
            columns[name] += [None] * number if array is None else array.tolist()
        same = {"slot": record.slot, "start": start, "end": end, "outcome": record.outcome}
        for name, value in {**same, "measured": record.measured, "mechanism": terms.mechanism}.items():
            columns[name] += [value] * number
    return columns
