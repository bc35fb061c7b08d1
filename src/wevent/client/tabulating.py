"""Releases of the service as the table that `wevent.read_releases` makes of files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wevent.outputs.lines import COLUMNS
from wevent.outputs.release_table import ReleaseTable
from wevent.schemas import ReleasedSlot


def release_table(releases: Iterable[ReleasedSlot]) -> ReleaseTable:
    """One row per slot and cell."""
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for one in releases:
        labels = one.labels
        columns["cell"] += labels
        for name, values in (
            ("value", one.histogram),
            ("low", one.low),
            ("high", one.high),
            ("std_error", one.std_error),
        ):
            columns[name] += [None] * len(labels) if values is None else values
        for name in ("slot", "start", "end", "outcome", "measured", "mechanism"):
            columns[name] += [getattr(one, name)] * len(labels)
    return ReleaseTable(columns)
