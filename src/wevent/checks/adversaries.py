"""Noise as it could come: every decision forced, every draw extreme. For checks only."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from wevent.core.arrays import IntArray
from wevent.core.permit import NoisePermit, ResponsePermit, SamplingPermit, redeem
from wevent.noise.seeded import SeededNoise

HUGE = 2**40  # far above any threshold, far below the ends of 64 bits
ENDS = (2**63 - 1, -(2**63), 2**62, -(2**62), 2**53 + 1, 0, 1, -1)


class Adversary(SeededNoise):
    """Seeded noise whose probe draws (size one) are pushed up or down by a coin, to force any publish/skip pattern."""

    def __init__(self, seed: int, publish: float) -> None:
        super().__init__(seed)
        self._coin = np.random.default_rng(seed + 1)
        self._publish = publish

    def laplace(self, permit: NoisePermit, size: int) -> IntArray:
        """A draw of size one is a probe's: every stream of the checks has more cells."""
        draws = super().laplace(permit, size)
        if size == 1:
            draws += HUGE if self._coin.random() < self._publish else -HUGE
        return draws


class ScriptedDraws:
    """Draws what is written, again and again, and keeps everyone; a probe (size one) draws from a list of its own."""

    seeded = True

    def __init__(self, draws: Iterable[int], probes: Iterable[int] = (HUGE,), *, mirrored: bool = False) -> None:
        self._draws = itertools.cycle(draws)
        self._probes = itertools.cycle(probes)
        self._mirrored = mirrored

    def force(self, probe: int) -> None:
        """What the next probes draw."""
        self._probes = itertools.cycle([probe])

    def laplace(self, permit: NoisePermit, size: int) -> IntArray:
        """The next ones that are written."""
        redeem(permit, NoisePermit)
        source = self._probes if size == 1 else self._draws
        return np.array(list(itertools.islice(source, size)), dtype=np.int64)

    def binomial(self, counts: IntArray, permit: SamplingPermit) -> IntArray:
        """Everyone is kept."""
        redeem(permit, SamplingPermit)
        return counts.copy()

    def respond(self, counts: IntArray, permit: ResponsePermit) -> IntArray:
        """Everyone tells the truth; mirrored, everyone answers from the other end."""
        redeem(permit, ResponsePermit)
        return (counts[:, ::-1] if self._mirrored else counts).copy()


class Failing(ScriptedDraws):
    """No entropy: while it is broken, every draw raises after its permit was redeemed."""

    def __init__(self) -> None:
        super().__init__([0])
        self.broken = True

    def laplace(self, permit: NoisePermit, size: int) -> IntArray:
        """Fail, or draw nothing."""
        draws = super().laplace(permit, size)
        self._fail()
        return draws

    def binomial(self, counts: IntArray, permit: SamplingPermit) -> IntArray:
        """Fail, or keep everyone."""
        kept = super().binomial(counts, permit)
        self._fail()
        return kept

    def respond(self, counts: IntArray, permit: ResponsePermit) -> IntArray:
        """Fail, or answer truly."""
        reports = super().respond(counts, permit)
        self._fail()
        return reports

    def _fail(self) -> None:
        if self.broken:
            raise OSError("no entropy")
