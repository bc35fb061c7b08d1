"""Runs of a mechanism through the library: counts of a slot in, a release out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from wevent.auditing.audit_subject import AuditSubject
from wevent.auditing.black_box.seen import STOPPED, Seen
from wevent.auditing.black_box.stream_pairs import Pair, Victim, pairs_of, whispered
from wevent.core.arrays import FloatArray, IntArray
from wevent.core.requirements import Requirement
from wevent.errors import WeventError

PROMISES = (Requirement(1, 1), Requirement(2, 1), Requirement(3, 2))
"""What victims ask for: epsilons that a few thousand runs can come near to."""
WHISPER = Requirement(1, "2e-9")
"""The strictest promise there is: noise as wide as can be."""


class LibraryRuns:
    """A subject's publishers with noise of their own, made anew for every run."""

    audit = "black box: library"
    batch = 10

    def __init__(self, subject: AuditSubject, promises: Sequence[Requirement] = (*PROMISES, WHISPER)) -> None:
        self._subject = subject
        self._promises = promises

    def pairs(self) -> Iterator[Pair]:
        """Pairs of streams that the subject takes: what it refuses for everybody tells nothing about anyone.

        Raises:
            WeventError: what the subject says if it refuses all of them.
        """
        taken, refusal = False, None
        victim = Victim.of(self._subject.options)
        for requirement in self._promises:
            tried = whispered if requirement.epsilon < 1e-6 else pairs_of
            for pair in tried(requirement, victim):
                try:
                    self._subject.make(pair.population, pair.cells, None)
                except WeventError as error:
                    refusal = error
                    continue
                taken = True
                yield pair
        if refusal is not None and not taken:
            raise refusal

    def run(self, pair: Pair, stream: int, number: int) -> Seen:
        """That many runs on one of the two streams."""
        counts = pair.streams[stream]
        values = np.full((number, pair.slots, pair.cells), np.nan)
        distances = np.full((number, pair.slots), np.nan)
        words: list[tuple[str, ...]] = []
        plans: list[str] = []
        for place in range(number):
            outcomes, plan = self._one(pair, counts, values[place], distances[place])
            words.append(outcomes)
            plans.append(plan)
        return Seen(values, distances, words, {"thresholds": plans})

    def _one(
        self, pair: Pair, counts: IntArray, values: FloatArray, distances: FloatArray
    ) -> tuple[tuple[str, ...], str]:
        """One run: fills the values and distances of its slots in; the outcomes and the thresholds that it told."""
        publisher = self._subject.make(pair.population, pair.cells, None)
        outcomes: list[str] = []
        plan: list[str] = []
        for slot in range(pair.slots):
            try:
                release = publisher.step(counts[slot])
            except Exception as error:  # noqa: BLE001  whatever it is, everybody sees that the run stopped
                outcomes += [f"{STOPPED} with {type(error).__name__}"] * (pair.slots - slot)
                break
            outcomes.append(release.outcome)
            values[slot] = release.histogram
            plan.append(str(release.threshold))
            if release.dissimilarity is not None:
                distances[slot] = release.dissimilarity
        return tuple(outcomes), " ".join(plan)
