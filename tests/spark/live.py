"""A live stream of files: events as they happen, and what they must come to."""

from __future__ import annotations

import json
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tests.support.streams import SECOND
from wevent import Requirement
from wevent.streams.clock import SlotClock

CELLS = ("north", "south", "west")
LENGTH_S = 2
SCHEMA = "time double, user string, cell string"
PEOPLE = {f"u{number}": Requirement(1, 50) for number in range(60)}
"""So little noise that none is drawn in a lifetime: releases are the counts."""


def settings(**changes: Any) -> dict[str, Any]:
    given = {"slot": f"{LENGTH_S}s", "grace": "3s", "trigger": "500ms", "cells": list(CELLS), "mechanism": "uniform"}
    return {**given, "requirements": PEOPLE, **changes}


def moment(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


class Feed:
    """Writes events into a folder that Spark reads; each file appears whole."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sent: list[tuple[float, str, str]] = []
        self._number = 0
        folder.mkdir(exist_ok=True)

    def stream(self, spark: SparkSession) -> DataFrame:
        return spark.readStream.schema(SCHEMA).json(str(self.folder))

    def send(self, *events: tuple[float | None, str | None, str | None]) -> None:
        self._number += 1
        rows = [{"time": when, "user": user, "cell": cell} for when, user, cell in events]
        draft = self.folder / f".{self._number}"
        draft.write_text("".join(json.dumps(row) + "\n" for row in rows))
        draft.rename(self.folder / f"{self._number:06d}.json")
        self.sent += [event for event in events if None not in event]  # type: ignore[misc]

    def send_now(self, *people: str) -> None:
        """Everybody is somewhere now."""
        now = time.time()
        self.send(*((now, user, CELLS[(self._number + place) % 3]) for place, user in enumerate(people)))

    def counts(self, clock: SlotClock) -> dict[int, Counter[str]]:
        """Who was where last, slot by slot, if everything came in time."""
        last: dict[tuple[int, str], tuple[float, str]] = {}
        for when, user, cell in self.sent:
            slot = clock.slot_of(round(when * SECOND))
            last[slot, user] = max(last.get((slot, user), (0.0, "")), (when, cell))
        found: dict[int, Counter[str]] = {}
        for (slot, _), (_, cell) in last.items():
            found.setdefault(slot, Counter())[cell] += 1
        return found


def released(out: Path) -> dict[int, Counter[str]]:
    """What went out, slot by slot; every slot once, in order."""
    lines = [json.loads(line) for line in out.read_bytes().splitlines()]
    assert [line["slot"] for line in lines] == list(range(1, len(lines) + 1))
    found = {}
    for line in lines:
        values = Counter(dict(zip(line["cells"], line["histogram"] or [0] * len(CELLS), strict=True)))
        found[line["slot"]] = Counter({cell: number for cell, number in values.items() if number})
    return found


def clock_of(out: Path) -> SlotClock:
    first = json.loads(out.read_bytes().splitlines()[0])
    start = datetime.fromisoformat(first["start"])
    return SlotClock(round(start.timestamp() * SECOND), LENGTH_S * SECOND)


def agree(feed: Feed, out: Path) -> int:
    """Every event that was sent is in a release, once; returns how many slots there are."""
    found = released(out)
    expected = feed.counts(clock_of(out))
    for slot, counts in found.items():
        assert counts == expected.get(slot, Counter()), f"slot {slot}"
    return len(found)
