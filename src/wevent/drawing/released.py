"""Releases as a picture needs them: slots × cells. All of it was published; there is nothing else in it."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from wevent.core.arrays import FloatArray
from wevent.errors import InvalidOption
from wevent.publisher.confidence import OUTCOMES
from wevent.settings.values import format_time, parse_time

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ELSEWHERE = "not here"
"""A slot between others that has no release here: another copy of a journal released it."""
_MOST_VALUES = 100_000_000  # slots × cells, those between others included


@dataclass(frozen=True)
class Released:
    """The releases of a journal or file, or a part of them.

    Attributes:
        name: of the journal or file.
        slots: their numbers, rising.
        starts, ends: when each begins and ends; None where a stream has no times.
        cells: the labels.
        values: published value per slot and cell; NaN where there is none.
        low, high: the 95 % interval per slot and cell; NaN where none is honest.
        outcomes, mechanisms: one word per slot; see also `ELSEWHERE`.
    """

    name: str
    slots: Sequence[int]
    starts: Sequence[datetime] | None
    ends: Sequence[datetime] | None
    cells: Sequence[str]
    values: FloatArray
    low: FloatArray
    high: FloatArray
    outcomes: Sequence[str]
    mechanisms: Sequence[str]

    @property
    def fresh(self) -> list[int]:
        """The positions of slots that were measured."""
        return [place for place, word in enumerate(self.outcomes) if word == "fresh"]

    @property
    def has_band(self) -> bool:
        """Whether an interval is stated anywhere."""
        return bool(np.isfinite(self.low).any())

    def between(self, first: str | None, last: str | None) -> Released:
        """The slots from `first` on and through `last`: numbers of slots, or times.

        Raises:
            InvalidOption: if no slot is left, or for times of a stream that has none.
            InvalidSettings: for a time that is none.
        """
        begin = 0 if first is None else self._place(first, "--from")
        end = len(self.slots) if last is None else self._place(last, "--to", through=True)
        kept = range(begin, end)
        if all(self.outcomes[place] == ELSEWHERE for place in kept):
            has = f"slots {self.slots[0]} to {self.slots[-1]}" if len(self.slots) else "no slot at all"
            asked = " ".join(f"{flag} {text}" for flag, text in (("--from", first), ("--to", last)) if text is not None)
            raise InvalidOption(
                "at least one released slot", f"none {asked}".strip(), f"{self.name} has {has}.", option="from"
            )
        return self._rows(kept)

    def only(self, cells: Sequence[str]) -> Released:
        """These cells, in this order.

        Raises:
            InvalidOption: for a cell that was never published.
        """
        places = {label: place for place, label in enumerate(self.cells)}
        for label in cells:
            if label not in places:
                some = ", ".join(self.cells[:5]) + (", …" if len(self.cells) > 5 else "")
                raise InvalidOption(
                    f"cells of {self.name}", repr(label), f"It has {some}.", option="cells", value=label
                )
        columns = [places[label] for label in dict.fromkeys(cells)]
        values, low, high = (table[:, columns] for table in (self.values, self.low, self.high))
        return replace(self, cells=[self.cells[column] for column in columns], values=values, low=low, high=high)

    def _place(self, limit: str, flag: str, *, through: bool = False) -> int:
        """The first place that is not before a limit; of a slot number that is meant too, the place behind it."""
        if limit.isdecimal():
            return bisect_left(self.slots, int(limit) + through)
        if self.starts is None:
            raise InvalidOption(
                "the number of a slot", repr(limit), f"The slots of {self.name} have no times.", option="from"
            )
        time_us = parse_time(limit, flag, 0)
        return bisect_left(self.starts, time_us, key=lambda start: (start - _EPOCH) // timedelta(microseconds=1))

    def _rows(self, kept: Sequence[int]) -> Released:
        values, low, high = (table[list(kept)] for table in (self.values, self.low, self.high))
        return replace(
            self,
            slots=[self.slots[place] for place in kept],
            starts=None if self.starts is None else [self.starts[place] for place in kept],
            ends=None if self.ends is None else [self.ends[place] for place in kept],
            values=values,
            low=low,
            high=high,
            outcomes=[self.outcomes[place] for place in kept],
            mechanisms=[self.mechanisms[place] for place in kept],
        )


def of_table(title: str, columns: Mapping[str, Sequence[Any]]) -> Released:
    """Releases from columns with one row per slot and cell, in the order of slots, as `wevent.read_releases` gives them.

    Slots between them that have none are there too, with nothing in them.

    Raises:
        InvalidOption: if there are none.
    """
    if not len(columns["slot"]):
        raise InvalidOption("releases to draw", f"none in {title}", "Publish a slot first.", option="source")
    numbers = np.asarray(columns["slot"], dtype=np.int64)
    lowest = int(numbers[0])
    slots = range(lowest, int(numbers[-1]) + 1)
    cells = {label: place for place, label in enumerate(dict.fromkeys(columns["cell"]))}
    if len(slots) * len(cells) > _MOST_VALUES:
        raise InvalidOption(
            f"at most {_MOST_VALUES:,} values to draw",
            f"{len(slots):,} slots × {len(cells):,} cells in {title}",
            "Write a part of them first: wevent releases JOURNAL --from … --to … --out PART.ndjson.",
            option="source",
        )
    places = [cells[label] for label in columns["cell"]]
    values, low, high = np.full((3, len(slots), len(cells)), np.nan)
    for table, name in ((values, "value"), (low, "low"), (high, "high")):
        table[numbers - lowest, places] = np.array(columns[name], dtype=np.float64)  # None is NaN
    first = dict(zip(reversed(columns["slot"]), range(len(numbers) - 1, -1, -1), strict=True))
    outcomes = [columns["outcome"][first[slot]] if slot in first else ELSEWHERE for slot in slots]
    mechanisms = list[str]()
    for slot in slots:
        mechanisms.append(columns["mechanism"][first[slot]] if slot in first else mechanisms[-1])
    starts = ends = None
    start, end = columns["start"][0], columns["end"][0]
    if start is not None and end is not None:
        starts = [start + (slot - lowest) * (end - start) for slot in slots]
        ends = [time + (end - start) for time in starts]
    return Released(title, slots, starts, ends, list(cells), values, low, high, outcomes, mechanisms)


def facts_of(released: Released) -> str:
    """What is drawn: slots, times, cells, mechanisms and what the slots came to."""
    first, last = released.slots[0], released.slots[-1]
    when = ""
    if released.starts is not None and released.ends is not None:
        when = f" ({_minute(released.starts[0])} to {_minute(released.ends[-1])} UTC)"
    counted = Counter(released.outcomes)
    came = ", ".join(f"{counted[word]:,} {word}" for word in OUTCOMES if counted[word])
    cells = f"{len(released.cells):,} cell{'' if len(released.cells) == 1 else 's'}"
    return f"{released.name}: slots {first:,} to {last:,}{when}, {cells}, {', '.join(mechanisms_of(released))}: {came}."


def mechanisms_of(released: Released) -> list[str]:
    """Each once, in the order of slots."""
    return list(dict.fromkeys(released.mechanisms))


def band_note(released: Released) -> str:
    """What the band is, or why there is none."""
    if released.has_band:
        missing = np.isfinite(released.values) & ~np.isfinite(released.low)
        where = " No band where no honest interval is known." if missing.any() else ""
        return f"Band: 95 % interval for the true count.{where}"
    return "No band: no honest 95 % interval is known for these numbers."


def _minute(time: datetime) -> str:
    text = format_time(round(time.timestamp() * 1e6)).replace("T", " ").removesuffix("Z")
    return text.removesuffix(":00")
