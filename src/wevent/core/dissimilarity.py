"""The private distance between the current slot and the last publication (paper, Algorithm 3, DC; spec 7)."""

from __future__ import annotations

import math

import numpy as np

from wevent.core.arrays import IntArray
from wevent.core.estimators.sampling import sample
from wevent.core.mechanism import NoiseSource
from wevent.core.permit import Permit
from wevent.core.threshold import choose_threshold


def measure_dissimilarity(permit: Permit, counts: IntArray, last: IntArray, noise: NoiseSource) -> float:
    """dis = (1/d)·(Σ_j |c̃[j] − l[j]| + integer noise of scale Δ/θ), with c̃ sampled under θ = OBS(e¹).

    Charges e¹_g to class g: under the neighbouring relation one user's records change Σ_j |c̃ − l| by at most Δ, and the
    sample amplifies as in SM. ▲ The sample is used here and discarded; a publication draws its own.
    """
    choice = choose_threshold(permit)
    if choice.nano == 0:
        return -math.inf  # no class has a budget to look with: never a reason to publish
    spend = permit.for_sampling(choice.nano)
    distance = int(np.add.reduce(np.abs(sample(counts, spend, noise) - last)))
    return (distance + int(noise.laplace(spend.noise, 1)[0])) / len(last)
