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
        """The difference of two geometric numbers; the scale is sensitivity / epsilon.

        Args:
            charge: what was paid.
            sensitivity: of what is disturbed, which has whole values; one for all draws or one for each.
            size: how many draws.
        """
        success = -np.expm1(-charge.epsilon / np.asarray(sensitivity, dtype=np.float64))
        draws = self._generator.geometric(success, (2, size))
        noise: IntArray = draws[0] - draws[1]
        return noise
