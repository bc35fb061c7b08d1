"""Releases as a picture takes them: slots × cells. All of it was published; there is nothing else in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from wevent.core.arrays import FloatArray
from wevent.errors import InvalidOption
from wevent.publisher.confidence import OUTCOMES
from wevent.settings.values import parse_time

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ELSEWHERE = "not here"
"""The outcome of a slot between others that has no release here: another copy of a journal released it."""
_MOST_VALUES = 100_000_000  # slots × cells, those between others included


@dataclass(frozen=True)
class ReleaseData:
    """The releases of a journal or file, or a part of them.

    Attributes:
        name: of the journal or file.
        slots: their numbers.
        start, length: when the first slot begins (UTC) and how long slots are; None for a stream without times.
        cells: the labels.
        values: published value per slot and cell; NaN where there is none.
        low, high: the 95 % interval per slot and cell; NaN where none is valid.
        outcomes, mechanisms: one word per slot; see also `ELSEWHERE`.
    """

    name: str
    slots: range
    start: datetime | None
    length: timedelta | None
    cells: Sequence[str]
    values: FloatArray
    low: FloatArray
    high: FloatArray
    outcomes: Sequence[str]
    mechanisms: Sequence[str]

    @property
    def edges(self) -> list[Any]:
        """The start of every slot and the end of the last: times, or numbers of slots."""
        if self.start is None or self.length is None:
            return [*self.slots, self.slots.stop]
        return [self.start + place * self.length for place in range(len(self.slots) + 1)]

    @property
    def fresh(self) -> list[int]:
        """The positions of slots that were measured."""
        return [place for place, word in enumerate(self.outcomes) if word == "fresh"]

    @property
    def mechanism_names(self) -> list[str]:
        """Each mechanism once, in the order of slots."""
        return list(dict.fromkeys(self.mechanisms))

    def between(self, first: str | None, last: str | None) -> ReleaseData:
        """Return the slots from `first` on and through `last`: numbers of slots, or times.

        Raises:
            InvalidOption: if no slot is left, or for times of a stream that has none.
            InvalidSettings: for a malformed time.
        """
        count = len(self.slots)
        begin = 0 if first is None else min(max(self._place(first, "--from"), 0), count)
        end = count if last is None else min(max(self._place(last, "--to", through=True), begin), count)
        if all(word == ELSEWHERE for word in self.outcomes[begin:end]):
            raise InvalidOption(
                f"No released slot is between --from and --to: {self.name} has slots {self.slots[0]} to "
                f"{self.slots[-1]}.",
                "Choose some of these.",
                option="from",
            )
        return replace(
            self,
            slots=self.slots[begin:end],
            start=self.edges[begin] if self.start is not None else None,
            values=self.values[begin:end],
            low=self.low[begin:end],
            high=self.high[begin:end],
            outcomes=self.outcomes[begin:end],
            mechanisms=self.mechanisms[begin:end],
        )

    def only(self, cells: Sequence[str]) -> ReleaseData:
        """Return these cells, in this order.

        Raises:
            InvalidOption: for a cell that was never published.
        """
        places = {label: place for place, label in enumerate(self.cells)}
        for label in cells:
            if label not in places:
                some = ", ".join(self.cells[:5]) + (", …" if len(self.cells) > 5 else "")
                raise InvalidOption(
                    f"{self.name} has no cell {label!r}.", f"It has {some}.", option="cells", value=label
                )
        columns = [places[label] for label in dict.fromkeys(cells)]
        values, low, high = (table[:, columns] for table in (self.values, self.low, self.high))
        return replace(self, cells=[self.cells[column] for column in columns], values=values, low=low, high=high)

    def _place(self, limit: str, flag: str, *, through: bool = False) -> int:
        """Return the first place that is not before a limit; for a slot number that is included, the place after it."""
        if limit.isdecimal():
            return int(limit) + through - self.slots[0]
        if self.start is None or self.length is None:
            raise InvalidOption(
                f"The slots of {self.name} have no times.", f"Give {flag} the number of a slot.", option="from"
            )
        time = _EPOCH + timedelta(microseconds=parse_time(limit, flag, 0))
        return -((self.start - time) // self.length)


def data_from_table(name: str, columns: Mapping[str, Sequence[Any]]) -> ReleaseData:
    """Arrange columns with one row per slot and cell, in the order of slots, as `wevent.read_releases` returns them.

    Slots between them that have none are there too, with nothing in them.

    Raises:
        InvalidOption: if there are none, or too many.
    """
    if not len(columns["slot"]):
        raise InvalidOption(f"{name} has no releases.", "Publish a slot first.", option="source")
    numbers = np.asarray(columns["slot"], dtype=np.int64)
    slots = range(int(numbers[0]), int(numbers[-1]) + 1)
    cells = {label: place for place, label in enumerate(dict.fromkeys(columns["cell"]))}
    if len(slots) * len(cells) > _MOST_VALUES:
        raise InvalidOption(
            f"{name} has {len(slots):,} slots × {len(cells):,} cells, more than {_MOST_VALUES:,} values.",
            "Write a part of them first: wevent releases JOURNAL --from … --to … --out PART.ndjson.",
            option="source",
        )
    places = [cells[label] for label in columns["cell"]]
    values, low, high = np.full((3, len(slots), len(cells)), np.nan)
    for table, column in ((values, "value"), (low, "low"), (high, "high")):
        table[numbers - slots[0], places] = np.array(columns[column], dtype=np.float64)  # None is NaN
    first = dict(zip(reversed(columns["slot"]), range(len(numbers) - 1, -1, -1), strict=True))
    outcomes = [columns["outcome"][first[slot]] if slot in first else ELSEWHERE for slot in slots]
    mechanisms = list[str]()
    for slot in slots:
        mechanisms.append(columns["mechanism"][first[slot]] if slot in first else mechanisms[-1])
    start, end = columns["start"][0], columns["end"][0]
    if start is None or end is None:
        return ReleaseData(name, slots, None, None, list(cells), values, low, high, outcomes, mechanisms)
    times = start.astimezone(UTC), end - start
    return ReleaseData(name, slots, *times, list(cells), values, low, high, outcomes, mechanisms)


def describe_data(data: ReleaseData) -> str:
    """Name slots, times, cells and mechanisms, and count the outcomes of slots."""
    when = f" ({_minute(data.edges[0])} to {_minute(data.edges[-1])} UTC)" if data.start is not None else ""
    counted = Counter(data.outcomes)
    outcomes = ", ".join(f"{counted[word]:,} {word}" for word in OUTCOMES if counted[word])
    cells = f"{len(data.cells):,} cell{'' if len(data.cells) == 1 else 's'}"
    slots = f"slots {data.slots[0]:,} to {data.slots[-1]:,}{when}"
    return f"{data.name}: {slots}, {cells}, {', '.join(data.mechanism_names)}: {outcomes}."


def describe_band(data: ReleaseData) -> str:
    """Explain the band, or why there is none."""
    stated = np.isfinite(data.low)
    if not stated.any():
        return "No band: no valid 95 % interval is known for these numbers."
    missing = (np.isfinite(data.values) & ~stated).any()
    return "Band: 95 % interval for the true count." + (" No band where none is valid." if missing else "")


def _minute(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S}".removesuffix(":00")
