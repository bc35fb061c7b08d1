"""A pair of streams that is being tried: the runs so far, and the event they speak for."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from wevent.auditing.black_box.events import Event, best_event
from wevent.auditing.black_box.seen import Seen
from wevent.auditing.black_box.stream_pairs import Pair


class Runs(Protocol):
    """Something that is audited from outside."""

    @property
    def audit(self) -> str:
        """How the audit is called in reports."""

    @property
    def batch(self) -> int:
        """How many runs are made at a time."""

    def pairs(self) -> Iterable[Pair]:
        """Neighbouring streams to try."""

    def run(self, pair: Pair, stream: int, number: int) -> Seen:
        """That many runs on one of the two streams of a pair."""


@dataclass
class TriedPair:
    """What was seen so far of a pair, and how long that took."""

    pair: Pair
    parts: tuple[list[Seen], list[Seen]] = field(default_factory=lambda: ([], []))
    seconds: float = 0.0
    trials: int = 0

    def add(self, runs: Runs, random: np.random.Generator, number: int) -> None:
        """More runs of both streams, which comes first by chance."""
        begun = time.perf_counter()
        for stream in random.permutation(2).tolist():
            self.parts[stream].append(runs.run(self.pair, stream, number))
        self.seconds += time.perf_counter() - begun
        self.trials += 2 * number

    @property
    def seconds_per_run(self) -> float:
        """On one stream."""
        return self.seconds / max(self.trials, 1)

    def choice(self, future: int) -> tuple[float, Event]:
        """The best event by these runs, and about what `future` runs of each stream will prove with it."""
        here, there = (Seen.together(parts) for parts in self.parts)
        return best_event(self.pair, (here, there), future)

    def hits(self, event: Event) -> list[int]:
        """In how many runs of each stream it happened."""
        return [event.hits(self.pair, Seen.together(parts)) for parts in self.parts]
