"""An adversary who decides in every slot whether the dissimilarity is large or small, on the real mechanisms.

Budgets depend on the data through one bit per slot only: publish or skip. The dissimilarity is noisy, so any pattern of
these bits can happen; here the noise is replaced and the pattern written down. A probe's noise is the only draw of
size 1 when there are at least two cells: +huge forces a publication, −huge a skip.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import wevent
from tests.support.window_checker import RequirementKey

HUGE = 2**60  # far above any threshold (at most about 1e10 · Δ), far below int64's end
CELLS = 2  # at least two, so that a draw of size 1 is always a probe's


class ForcedNoise:
    """A noise source without noise: everybody is kept, nothing is added, and a probe says what `publish` says.

    Attributes:
        publish: the decision forced on the next probe.
        probes: how many probes were measured so far.
    """

    seeded = True

    def __init__(self) -> None:
        self.publish = True
        self.probes = 0

    def laplace(self, permit: Any, size: int) -> np.ndarray:
        if size != 1:
            return np.zeros(size, dtype=np.int64)
        self.probes += 1
        return np.array([HUGE if self.publish else -HUGE], dtype=np.int64)

    def binomial(self, counts: np.ndarray, permit: Any) -> np.ndarray:
        return counts.copy()

    def respond(self, counts: np.ndarray, permit: Any) -> np.ndarray:
        return counts.copy()


@dataclass
class Run:
    """What a driven publisher did: one entry per slot.

    Attributes:
        releases: the releases.
        charges: requirement → (probe, publication) as plain integers, read off the releases.
    """

    releases: list[wevent.Release] = field(default_factory=list)
    charges: list[dict[RequirementKey, tuple[int, int]]] = field(default_factory=list)

    @property
    def outcomes(self) -> list[str]:
        return [release.outcome for release in self.releases]


def forced_publisher(population: wevent.Population, mechanism: str, **options: Any) -> wevent.Publisher:
    """A real publisher whose publish/skip decisions can be forced."""
    return wevent.Publisher(population, CELLS, mechanism, noise=ForcedNoise(), **options)


def drive(
    publisher: wevent.Publisher,
    script: Sequence[bool],
    updates: Mapping[int, wevent.Population] | None = None,
) -> Run:
    """Step a forced publisher through a script, one decision per slot.

    Args:
        publisher: made by `forced_publisher`.
        script: True forces a publication if the mechanism offers one, False a skip.
        updates: slot → the population in force from that slot on.
    """
    noise = publisher._noise
    assert isinstance(noise, ForcedNoise)
    run = Run()
    counts = _counts(publisher.population)
    for publish in script:
        if updates and publisher.slot in updates:
            publisher.update(updates[publisher.slot], turnover=1)
            counts = _counts(publisher.population)
        noise.publish = publish
        release = publisher.step(counts)
        run.releases.append(release)
        run.charges.append(charges_of(release, publisher.population))
    return run


def charges_of(release: wevent.Release, population: wevent.Population) -> dict[RequirementKey, tuple[int, int]]:
    """A release's charges for the independent checker: plain integers by requirement."""
    pairs = zip(release.probe_charges.tolist(), release.publication_charges.tolist(), strict=True)
    return {(one.window, one.nano): pair for one, pair in zip(population.classes, pairs, strict=True)}


def _counts(population: wevent.Population) -> np.ndarray:
    """Everybody in the first cell; the decisions are forced, so any counts do."""
    counts = np.zeros((len(population), CELLS), dtype=np.int64)
    counts[:, 0] = population.sizes
    return counts
