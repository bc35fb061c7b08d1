"""The private distance between the current slot and the last publication (paper, Algorithm 3, DC; spec 7)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from wevent.core.arrays import IntArray
from wevent.core.estimators.sampling import sample
from wevent.core.limits import farthest_compared
from wevent.core.mechanism import NoiseSource
from wevent.core.permit import Permit
from wevent.core.threshold import choose_threshold


def compared(values: npt.NDArray[Any]) -> IntArray:
    """A measurement as the whole numbers that the next probes compare with: l.

    A probe adds whole noise to a whole distance, and the distance must not wrap: values beyond what any count can be are
    drawn in. Post-processing of what was published.
    """
    farthest = farthest_compared(len(values))
    if values.dtype != np.int64:
        values = np.rint(np.clip(np.nan_to_num(values), -farthest, farthest)).astype(np.int64)
    whole: IntArray = np.minimum(np.maximum(values, -farthest), farthest)
    return whole


def measure_dissimilarity(permit: Permit, counts: IntArray, last: IntArray, noise: NoiseSource) -> float | None:
    """dis = (1/d)·(Σ_j |c̃[j] − l[j]| + integer noise of scale Δ/θ), with c̃ sampled under θ = OBS(e¹).

    Charges e¹_g to class g: under the neighbouring relation one user's records change Σ_j |c̃ − l| by at most Δ, and the
    sample amplifies as in SM. ▲ The sample is used here and discarded; a publication draws its own.

    Returns:
        The noisy distance; None if no class has enough budget to look with.
    """
    choice = choose_threshold(permit)
    if choice.nano == 0:
        return None  # no class has enough budget to look with: never a reason to publish
    spend = permit.for_sampling(choice.nano)
    distance = int(np.add.reduce(np.abs(sample(counts, spend, noise) - last)))
    return (distance + int(noise.laplace(spend.noise, 1)[0])) / len(last)
