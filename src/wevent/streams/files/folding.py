"""Events that can still count: of every user the last k distinct cells of a slot, whatever else there was."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wevent.core.arrays import IntArray
from wevent.counting.counts import NONE_REJECTED, Rejected
from wevent.counting.roster import Roster
from wevent.streams.files.text_files import TextReader

_FOLD_ABOVE = 8_000_000  # events of one slot in memory


class Folded(NamedTuple):
    """Columns t, u (what the roster finds), c (-1 for an undeclared one), and `stranger` if unregistered users count.

    Attributes:
        columns: in input order.
        rejected: events of unknown users or cells that were left out, and why.
    """

    columns: dict[str, npt.NDArray[Any]]
    rejected: Rejected


def fold_text(reader: TextReader, roster: Roster, bounds: tuple[int, int], limit: int, *, one_slot: bool) -> Folded:
    """The events of a text file in a range of times, looked up; of one slot no more than can still count."""
    strangers = roster.unknown_row is not None
    parts: list[dict[str, npt.NDArray[Any]]] = []
    size, rejected = 0, NONE_REJECTED
    full = _FOLD_ABOVE
    for batch in reader.batches(*bounds):
        part: dict[str, npt.NDArray[Any]] = {"t": batch.times, "u": roster.find(batch.users), "c": batch.cells}
        if strangers:
            part["stranger"] = np.full(len(batch.times), None, dtype=object)
            unknown = np.flatnonzero(part["u"] < 0)
            part["stranger"][unknown] = batch.users[unknown].values()
        parts.append(part)
        size += len(batch.times)
        if size > full and one_slot and not strangers:
            joined = _joined(parts)
            order = joined["t"].argsort(kind="stable")
            declared = joined["c"] >= 0
            known = order[((joined["u"] >= 0) & declared)[order]]
            kept = known[latest(joined["u"][known], joined["c"][known], limit)]
            rejected = rejected.plus(Rejected.of(declared, len(known)))
            parts = [{name: column[kept] for name, column in joined.items()}]
            size = len(kept)
            full = max(_FOLD_ABOVE, 2 * size)
    return Folded(_joined(parts) if parts else _nothing(strangers), rejected)


def latest(owners: IntArray, cells: IntArray, limit: int) -> IntArray:
    """Which events, given in time order, hold the last `limit` distinct cells of their owner; ascending."""
    owners, cells = owners[::-1], cells[::-1]  # latest first
    _, codes = np.unique(owners, return_inverse=True)
    _, first = np.unique(codes * (int(cells.max(initial=0)) + 1) + cells, return_index=True)
    first.sort()
    order = first[codes[first].argsort(kind="stable")]
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    lengths = np.diff(np.append(starts, len(order)))
    kept = order[np.arange(len(order)) - np.repeat(starts, lengths) < limit]
    kept.sort()
    chosen: IntArray = len(owners) - 1 - kept[::-1]
    return chosen


def _joined(parts: list[dict[str, npt.NDArray[Any]]]) -> dict[str, npt.NDArray[Any]]:
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _nothing(strangers: bool) -> dict[str, npt.NDArray[Any]]:
    columns: dict[str, npt.NDArray[Any]] = {name: np.empty(0, dtype=np.int64) for name in ("t", "u", "c")}
    return {**columns, "stranger": np.empty(0, dtype=object)} if strangers else columns
