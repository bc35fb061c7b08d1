"""Reproducible randomness for simulation and tests: never for people."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from wevent.core.arrays import IntArray
from wevent.core.permit import NoisePermit, ResponsePermit, SamplingPermit, redeem
from wevent.errors import InvalidOption


class SeededNoise:
    """The same laws as `SecureNoise` from a seeded numpy generator; fast, repeatable and without any privacy.

    Probabilities and noise are computed in floats here. Whoever knows the seed can undo the noise: a state or journal
    made with it says so.

    Args:
        seed: an integer or a sequence of integers; the same seed gives the same stream.

    Raises:
        InvalidOption: for a seed that is none.
    """

    seeded = True

    def __init__(self, seed: Any = 0) -> None:
        try:
            if seed is None or isinstance(seed, (bool, float, str, np.random.Generator)):
                raise TypeError("no seed that repeats")
            self._generator = np.random.default_rng(seed)
        except (TypeError, ValueError):
            raise InvalidOption(
                f"A seed must be one or several whole numbers from 0 on, not {seed!r:.100}.",
                "Write SeededNoise(7).",
                option="seed",
                value=seed,
            ) from None

    def laplace(self, permit: NoisePermit, size: int) -> IntArray:
        """Draw the difference of two geometric numbers with q = exp(−1/scale), which is integer Laplace."""
        redeem(permit, NoisePermit)
        success = -np.expm1(-1.0 / permit.scale)
        draws = self._generator.geometric(success, (2, size))
        noise: IntArray = draws[0] - draws[1]
        return noise

    def binomial(self, counts: IntArray, permit: SamplingPermit) -> IntArray:
        redeem(permit, SamplingPermit)
        return self._generator.binomial(counts, permit.float_probabilities()[:, None])

    def respond(self, counts: IntArray, permit: ResponsePermit) -> IntArray:
        """Keep the truth with p − q, else answer uniformly over all d + 1 answers: the same law at class level."""
        redeem(permit, ResponsePermit)
        truths = permit.float_truths()
        lies = (1.0 - truths) / permit.cells
        kept = self._generator.binomial(counts, np.maximum(truths - lies, 0.0)[:, None])
        uniform = np.full(permit.cells + 1, 1.0 / (permit.cells + 1))
        scattered = self._generator.multinomial((counts - kept).sum(axis=1), uniform)
        return np.asarray(kept + scattered)

    def position(self) -> str:
        return json.dumps(self._generator.bit_generator.state)

    @classmethod
    def at(cls, position: str) -> SeededNoise:
        """Return a source that continues from a `position`."""
        source = cls(0)
        source._generator.bit_generator.state = json.loads(position)
        return source
