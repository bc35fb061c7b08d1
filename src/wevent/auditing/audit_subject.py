"""Subject and findings of an audit, shared by the exact audit and the black box.

An audit looks for two neighbouring streams (spec 1) and an output whose probabilities differ by more than the guarantee
allows. A finding is a fact about the code. No finding proves nothing.
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
    """A publisher as an audit uses it: counts of a slot in, release out."""

    @property
    def measured(self) -> Measurement | None:
        """The measurement behind the last release; public."""

    def step(self, counts: Any) -> Release:
        """Publish one slot."""


@dataclass(frozen=True)
class AuditSubject:
    """The audited mechanism.

    Attributes:
        name: name in reports.
        make: makes a publisher at slot 1 of population, number of cells and source of noise (None: its own, secure).
        options: options of the publisher; `neighbours` and `max_cells_per_user` define neighbouring streams.
    """

    name: str
    make: Callable[[Population, int, NoiseSource | None], Stepping]
    options: Mapping[str, Any] = field(default_factory=dict)


def build_subject(mechanism: str, **options: Any) -> AuditSubject:
    """Return a mechanism, built in or registered, with options of a publisher.

    Raises:
        UnknownMechanism: for a name that is not registered.
    """
    name = find_mechanism(mechanism).name

    def make(population: Population, cells: int, noise: NoiseSource | None) -> Stepping:
        return Publisher(population, cells, name, noise=noise, **options)

    return AuditSubject(name, make, options)


Unclear = Literal["cannot say", "own randomness"]
"""Reason of an open verdict: the audit could not follow the mechanism, or the mechanism has other randomness."""
Verdict = Literal["broken", "cannot say", "own randomness", "nothing found"]


@dataclass(frozen=True)
class Finding:
    """The largest loss that an audit showed for one requirement.

    Attributes:
        audit: "exact: enumerated", "exact: searched", "exact: tabulated" or "black box".
        requirement: the guarantee.
        shown: loss in epsilons; infinite for an output that the neighbour never shows.
        broken: whether the loss exceeds the guarantee; decided exactly, not by comparing `shown`.
        confidence: the probability that an honest mechanism is not called broken; None: the loss was computed.
        witness: streams and event.
        trials: transcripts computed, or runs made.
        seconds: duration.
        unclear: reason why something could not be computed.
        obstacle: the same in words.
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
        """The verdict; broken is only what was shown."""
        return "broken" if self.broken else self.unclear or "nothing found"
