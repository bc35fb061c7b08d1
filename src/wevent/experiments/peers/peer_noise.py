"""Noise of the peers: integer Laplace from a seed, drawn with what an accountant was paid. For simulation only."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from wevent.core.arrays import IntArray
from wevent.experiments.peers.peer_accountant import Charge


class PeerNoise:
    """Integer Laplace noise of a seeded generator; it protects nobody.

    Args:
        seed: an integer or several; the same seed gives the same noise.
    """

    def __init__(self, seed: Any) -> None:
        self._generator = np.random.default_rng(seed)

    def laplace(self, charge: Charge, sensitivity: npt.ArrayLike, size: int) -> IntArray:
        """The difference of two geometric numbers, which whole parts of exponential ones are; scale sensitivity / epsilon.

        Args:
            charge: what was paid.
            sensitivity: of what is disturbed, which has whole values; one for all draws or one for each.
            size: how many draws.
        """
        scale = np.asarray(sensitivity) * (1.0 / charge.epsilon)
        draws = np.floor(self._generator.standard_exponential((2, size)) * scale)
        noise: IntArray = (draws[0] - draws[1]).astype(np.int64)
        return noise
