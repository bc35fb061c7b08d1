"""Releases as columns: what CSV has, in Python's own types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wevent.journal.record import Record
from wevent.outputs.lines import slot_time

_NAMES = ("slot", "time", "cell", "value", "std_error", "outcome", "fresh", "mechanism")


def release_columns(records: Iterable[Record]) -> dict[str, list[Any]]:
    """One row per slot and cell; a slot that another copy of the journal released has none.

    >>> release_columns([])["value"]
    []
    """
    columns: dict[str, list[Any]] = {name: [] for name in _NAMES}
    for record in records:
        if record.shown is None:
            continue
        terms, number = record.epoch.terms, len(record.shown.values)
        same = (record.slot, slot_time(terms, record.slot), record.kind, record.kind == "published", terms.mechanism)
        for name, value in zip(("slot", "time", "outcome", "fresh", "mechanism"), same, strict=True):
            columns[name] += [value] * number
        columns["cell"] += range(number) if isinstance(terms.cells, int) else terms.cells
        columns["value"] += record.shown.values.tolist()
        columns["std_error"] += [None] * number if record.shown.std_error is None else record.shown.std_error.tolist()
    return columns
