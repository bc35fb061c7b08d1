"""A stream made up on the spot, for tests of publishing: no files, no clock, everyone's cell a function of the slot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from wevent.core.requirements import Requirement
from wevent.counting.roster import Counts, Roster
from wevent.counting.string_column import StringColumn
from wevent.journal import SqliteJournal, Terms
from wevent.people.membership import Change, KeyColumn
from wevent.streams.requirements_file import Requirements
from wevent.streams.source import Rejections, SlotCounts, Source

MINUTE_US = 60_000_000
CLASSES = ((4, 1_000_000_000), (8, 600_000_000), (3, 400_000_000))


class QuietSource(Source):
    """A source without settings, open slots, malformed records or waiting."""

    def __init__(self) -> None: ...

    def first_malformed(self) -> list[str]:
        return []

    def resume(self, position: Any) -> None: ...

    def idle(self, wait_s: float) -> bool:
        return False

    def totals(self) -> dict[str, int]:
        return Rejections().totals()


class SyntheticSource(QuietSource):
    """Counts slots up to `end`; every class has the same shares of its users in the cells, drifting with the slot."""

    def __init__(self, end: int, cells: int = 3) -> None:
        self.end, self.cells, self.shift = end, cells, 0
        self.resumed: Any = None
        self.counted: list[int] = []

    def count(self, roster: Roster, first: int, most: int) -> Iterator[SlotCounts]:
        for slot in range(first, min(first + most, self.end + 1)):
            self.counted.append(slot)
            sizes = roster.population.sizes
            shares = 1.0 + np.sin(slot / 5.0 + self.shift + np.arange(self.cells))
            matrix = np.floor(sizes[:, None] * shares[None, :] / (shares.sum() + 1.0)).astype(np.int64)
            yield SlotCounts(slot, Counts(matrix), {"slot": slot, "time_unit": "s"})

    def resume(self, position: Any) -> None:
        self.resumed = position


def make_terms(**changes: Any) -> Terms:
    fields: dict[str, Any] = {
        "mechanism": "pbd",
        "stream": "test",
        "origin_us": 0,
        "length_us": MINUTE_US,
        "cells": ["north", "south", "west"],
        "declared": sorted(CLASSES),
    }
    return Terms(**{**fields, **changes})


def make_journal(path: Any, users: int = 90, **changes: Any) -> SqliteJournal:
    """A new journal with users spread over the classes; opened for writing."""
    journal = SqliteJournal(path, write=True)
    journal.begin(make_terms(**changes))
    register(journal, users)
    return journal


def register(journal: SqliteJournal, users: int) -> None:
    journal.registry.ask(Change("set", f"u{user}", CLASSES[user % len(CLASSES)]) for user in range(users))


def requirement(key: tuple[int, int]) -> Requirement:
    return Requirement.from_nano(*key)


def want(
    users: Iterable[str], keys: Iterable[tuple[int, int]], digest: bytes, words: Sequence[str | None] | None = None
) -> Requirements:
    """Return what a requirements file with these rows asks for."""
    return Requirements(
        StringColumn.from_texts(list(users)), KeyColumn.of(keys), None if words is None else list(words), digest=digest
    )
