"""The seam between streams and experiments."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from wevent.core.arrays import IntArray


class Stream(Protocol):
    """A stream whose truth is known: all that an experiment needs of it."""

    @property
    def name(self) -> str:
        """What it is called in results."""

    @property
    def user_labels(self) -> npt.NDArray[Any]:
        """The registered users."""

    @property
    def cells(self) -> Sequence[Any]:
        """The cell labels."""

    @property
    def slots(self) -> int:
        """How many."""

    def count(self, rows: IntArray, classes: int, *, seed: Sequence[int]) -> npt.NDArray[np.int32]:
        """Users per slot, class and cell, given each user's class (-1: not registered).

        An invented stream draws its people from the seed; a recorded one does not need it.
        """

    def resized(self, users: int, *, seed: Sequence[int]) -> Stream:
        """The same stream with as many users as wanted; a recorded one draws whose records they live."""


class SlotTimes(NamedTuple):
    """When the first slot begins and how long slots are; None for what a stream does not know."""

    start: datetime | None = None
    length: timedelta | None = None

    @classmethod
    def from_1970(cls, start: timedelta, length: timedelta) -> SlotTimes:
        """Of slots of which the first begins so long after 1970; without a date if no calendar has it."""
        try:
            return cls(datetime.fromtimestamp(0, UTC) + start, length)
        except OverflowError:
            return cls(None, length)


@runtime_checkable
class Timed(Protocol):
    """A stream whose slots have a length."""

    @property
    def times(self) -> SlotTimes:
        """When its slots are."""


def times_of(stream: Stream) -> SlotTimes:
    """When the slots of a stream are, as far as it knows."""
    return stream.times if isinstance(stream, Timed) else SlotTimes()
