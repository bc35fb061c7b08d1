"""Streams whose truth is known, as experiments take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from wevent.core.arrays import IntArray


class SlotTimes(NamedTuple):
    """The start of the first slot and the length of slots; None for what a stream does not have."""

    start: datetime | None = None
    length: timedelta | None = None

    @classmethod
    def from_1970(cls, start: timedelta, length: timedelta) -> SlotTimes:
        """Return the times of slots that begin so long after 1970; without a date if no calendar has it."""
        try:
            return cls(datetime.fromtimestamp(0, UTC) + start, length)
        except OverflowError:
            return cls(None, length)


class Stream(Protocol):
    """All that an experiment needs of a stream."""

    @property
    def name(self) -> str:
        """The name in results."""

    @property
    def user_labels(self) -> npt.NDArray[Any]:
        """The registered users."""

    @property
    def cells(self) -> Sequence[Any]:
        """The cell labels."""

    @property
    def slots(self) -> int:
        """The number of slots."""

    @property
    def times(self) -> SlotTimes:
        """The times of the slots."""

    def count(self, rows: IntArray, classes: int, *, seed: Sequence[int]) -> npt.NDArray[np.int32]:
        """Return users per slot, class and cell, given each user's class (-1: not registered).

        An invented stream draws its people from the seed; a recorded one does not need it.
        """

    def resized(self, users: int, *, seed: Sequence[int]) -> Stream:
        """Return the same stream with so many users; a recorded one draws whose records they have."""


@dataclass(frozen=True)
class Invented:
    """An invented stream: users are numbers from 0 on."""

    users: int
    slots: int

    @property
    def user_labels(self) -> npt.NDArray[Any]:
        return np.arange(self.users)

    @property
    def times(self) -> SlotTimes:
        return SlotTimes()

    def resized(self, users: int, *, seed: Sequence[int]) -> Self:
        return replace(self, users=users)
