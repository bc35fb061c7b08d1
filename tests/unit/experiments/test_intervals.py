"""Student's t, against scipy."""

import math

import numpy as np
import pytest
from scipy import stats

from wevent.experiments.formatting import is_lower
from wevent.experiments.intervals import mean_interval, ratio_interval


def test_a_mean_and_its_interval():
    values = [1.0, 2.0, 4.0]
    low, high = stats.t.interval(0.95, 2, loc=np.mean(values), scale=stats.sem(values))
    assert mean_interval(values) == pytest.approx((np.mean(values), low, high), rel=1e-12)
    assert math.isnan(mean_interval([3.0]).low)


def test_a_paired_ratio_sees_what_means_do_not():
    ratio = ratio_interval([10.0, 100.0, 1000.0], [20.0, 210.0, 1900.0])
    assert ratio.mean == pytest.approx(0.5, abs=0.01)
    assert is_lower(ratio)
    assert not is_lower(ratio_interval([10.0, 100.0, 1000.0], [20.0, 50.0, 1000.0]))
    assert ratio_interval([0.0, 0.0], [1.0, 2.0]).mean < 1e-200
