"""Streams that were recorded rather than invented."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from wevent.core.arrays import IntArray
from wevent.experiments.datasets.stream import SlotTimes


@dataclass(frozen=True)
class Recorded:
    """Positions that were recorded: one entry per user and slot, the last one of the slot (or the last few).

    Attributes:
        user_labels: the users, present or not.
        slot, user, cell: one entry per record, as positions from 0; sorted by user, then slot.
        carried: whether a user without a record stays in the last cell (and starts in the first one). The guarantee then
            covers the carried positions, not the raw records (specification 13).
        remarks: numbers of records that were left out, by reason.
        times: of the slots, if the records have any.
    """

    name: str
    user_labels: npt.NDArray[Any]
    cells: Sequence[Any]
    slots: int
    slot: IntArray
    user: IntArray
    cell: IntArray
    carried: bool = False
    remarks: Mapping[str, int] = field(default_factory=dict)
    times: SlotTimes = field(default_factory=SlotTimes)

    @classmethod
    def from_columns(
        cls,
        name: str,
        user_labels: npt.NDArray[Any],
        cells: Sequence[Any],
        slots: int,
        slot: IntArray,
        user: IntArray,
        cell: IntArray,
        **others: Any,
    ) -> Recorded:
        """Sort the records by user, then slot."""
        order = np.lexsort((slot, user))
        slot, user, cell = (np.asarray(column).astype(np.int64)[order] for column in (slot, user, cell))
        return cls(name, user_labels, cells, slots, slot, user, cell, **others)

    def count(self, rows: IntArray, classes: int, *, seed: Sequence[int] = ()) -> npt.NDArray[np.int32]:
        known = rows[self.user] >= 0
        slot, user, cell = (self.slot, self.user, self.cell) if known.all() else self._where(known)
        place = rows[user] * len(self.cells) + cell
        shape = (self.slots, classes, len(self.cells))
        width = classes * len(self.cells)
        if not self.carried:
            return np.bincount(slot * width + place, minlength=self.slots * width).reshape(shape).astype(np.int32)
        first = np.ones(len(user), dtype=np.bool_)
        first[1:] = user[1:] != user[:-1]
        arrival = np.where(first, 0, slot)  # before the first record: in the first cell
        again = np.flatnonzero(~first)
        arrivals = np.bincount(arrival * width + place, minlength=self.slots * width)
        departures = np.bincount(slot[again] * width + place[again - 1], minlength=self.slots * width)
        counts = (arrivals - departures).astype(np.int32).reshape(shape)
        return np.cumsum(counts, axis=0, dtype=np.int32)

    def limited(self, *, users: int | None = None, slots: int | None = None) -> Recorded:
        """Return the first users and slots only."""
        people = len(self.user_labels) if users is None else min(users, len(self.user_labels))
        length = self.slots if slots is None else min(slots, self.slots)
        if (people, length) == (len(self.user_labels), self.slots):
            return self
        kept = (self.user < people) & (self.slot < length)
        slot, user, cell = self._where(kept)
        return replace(self, user_labels=self.user_labels[:people], slots=length, slot=slot, user=user, cell=cell)

    def resized(self, users: int, *, seed: Sequence[int]) -> Recorded:
        """Return so many users, each with the records of a user drawn with replacement."""
        drawn = np.random.default_rng(seed).integers(len(self.user_labels), size=users)
        starts = np.searchsorted(self.user, drawn)
        lengths = np.searchsorted(self.user, drawn, side="right") - starts
        owner = np.repeat(np.arange(users), lengths)
        source = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + np.repeat(starts, lengths)
        return replace(self, user_labels=np.arange(users), slot=self.slot[source], user=owner, cell=self.cell[source])

    def _where(self, kept: npt.NDArray[np.bool_]) -> tuple[IntArray, IntArray, IntArray]:
        return self.slot[kept], self.user[kept], self.cell[kept]
