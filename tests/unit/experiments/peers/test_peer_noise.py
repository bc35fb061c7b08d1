"""Noise of the peers: whole numbers of the scale that was paid for."""

import numpy as np
import pytest

from wevent import Requirement
from wevent.experiments.peers import PeerAccountant, PeerNoise


@pytest.mark.parametrize(("nano", "sensitivity"), [(1_000_000_000, 1), (250_000_000, 2), (20_000_000, 8)])
def test_the_scale_is_sensitivity_over_epsilon(nano, sensitivity):
    charge = PeerAccountant(Requirement(10, 1)).release(1, nano)
    draws = PeerNoise([1]).laplace(charge, sensitivity, 40_000)
    ratio = np.exp(-nano / 1e9 / sensitivity)
    variance = 2 * ratio / (1 - ratio) ** 2  # of the discrete Laplace law
    assert draws.dtype == np.int64
    assert abs(draws.mean()) < 5 * np.sqrt(variance / len(draws))
    assert draws.var() == pytest.approx(variance, rel=0.06)


def test_every_draw_may_have_a_sensitivity_of_its_own():
    charge = PeerAccountant(Requirement(10, 1)).release(1, 1_000_000)
    draws = np.array([PeerNoise([seed]).laplace(charge, [1, 100], 2) for seed in range(300)])
    assert draws[:, 1].std() > 50 * draws[:, 0].std()


def test_the_same_seed_gives_the_same_noise():
    charge = PeerAccountant(Requirement(10, 1)).release(1, 1_000_000)
    first, again, other = (PeerNoise(seed).laplace(charge, 1, 5).tolist() for seed in ([1, 2], [1, 2], [1, 3]))
    assert first == again != other
