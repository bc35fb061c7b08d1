"""What an audit of mechanisms is given and what it says: shared by the exact audit and the black box.

An audit looks for two neighbouring streams (spec 1) and something to be seen whose probabilities differ by more than the
promise allows. What it finds is a fact about the code; that it finds nothing proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from wevent.core.mechanism import Measurement, NoiseSource
from wevent.core.requirements import Population, Requirement
from wevent.publisher.catalogue import find_mechanism
from wevent.publisher.publisher import Publisher
from wevent.publisher.release import Release


class Stepping(Protocol):
    """A publisher as an audit sees it: counts of a slot in, what is published out."""

    @property
    def measured(self) -> Measurement | None:
        """The measurement behind the last release; public."""

    def step(self, counts: Any) -> Release:
        """Publish one slot."""


@dataclass(frozen=True)
class AuditSubject:
    """What is audited: its name, and how to make a publisher of it.

    Attributes:
        name: how it is called in reports.
        make: population, number of cells and source of noise (None: its own, secure) to a publisher at slot 1.
        options: what it is made with, to be told in reports; `neighbours` and `max_cells_per_user` say what neighbours are.
    """

    name: str
    make: Callable[[Population, int, NoiseSource | None], Stepping]
    options: Mapping[str, Any] = field(default_factory=dict)


def build_subject(mechanism: str, **options: Any) -> AuditSubject:
    """A mechanism by its name, built in or registered, with options of a publisher.

    Raises:
        UnknownMechanism: for a name that is not registered.
    """
    name = find_mechanism(mechanism).name

    def make(population: Population, cells: int, noise: NoiseSource | None) -> Stepping:
        return Publisher(population, cells, name, noise=noise, **options)

    return AuditSubject(name, make, options)


Unclear = Literal["cannot say", "own randomness"]
"""Why an audit says neither: it could not follow the mechanism, or the mechanism draws from elsewhere."""
Verdict = Literal["broken", "cannot say", "own randomness", "nothing found"]


@dataclass(frozen=True)
class Finding:
    """The largest loss that an audit showed for one requirement.

    Attributes:
        audit: which one: "exact", "black box: library", "black box: command", "black box: service", ….
        requirement: what was promised.
        shown: the loss that was shown, in epsilons; infinite if something was seen that the neighbour never shows.
        broken: whether that is more than was promised; decided exactly, not by comparing `shown`.
        confidence: the probability with which an honest mechanism is not called broken; None: the loss was computed.
        witness: where it was seen: streams and event in words.
        trials: transcripts computed, or runs made.
        seconds: how long it took.
        unclear: set if the audit could not compute something of it; nothing is broken by that, and nothing passed.
        obstacle: what kept it from that, in words.
    """

    audit: str
    requirement: Requirement
    shown: float
    broken: bool
    confidence: float | None
    witness: str
    trials: int
    seconds: float
    unclear: Unclear | None = None
    obstacle: str = ""

    @property
    def verdict(self) -> Verdict:
        """In a word: broken is only what was shown."""
        return "broken" if self.broken else self.unclear or "nothing found"
