"""`uniform`, `pbu` and the example of the paper's introduction: 128 against about 32."""

from __future__ import annotations

import pytest

from tests.unit.scripted import ScriptedNoise, permit_for
from wevent import Population, Publisher, Requirement
from wevent.core.estimators import choose_threshold, reporting_errors

DRIVERS = Population({Requirement(4, 1): 98, Requirement(8, 1): 2})


def test_the_uniform_method_pays_128_for_the_two_drivers_with_the_long_window() -> None:
    """2·(w/ε)² with w = 8: everyone gets 1/8."""
    release = Publisher(DRIVERS, 5, "uniform", noise=ScriptedNoise([])).step([[20] * 4 + [18], [1, 1, 0, 0, 0]])
    assert release.charges.tolist() == [125_000_000] * 2
    assert release.threshold == 125_000_000
    assert choose_threshold(permit_for([125_000_000] * 2, [98, 2])).error == 128
    assert release.std_error == pytest.approx([128**0.5] * 5, rel=1e-3)  # integer noise: 1/6 below


def test_the_personalised_method_pays_about_32() -> None:
    """2·(w/ε)² with w = 4, plus what leaving out some of two drivers costs."""
    release = Publisher(DRIVERS, 5, "pbu", noise=ScriptedNoise([])).step([[20] * 4 + [18], [1, 1, 0, 0, 0]])
    assert release.charges.tolist() == [250_000_000, 125_000_000]
    assert release.threshold == 250_000_000
    assert release.std_error == pytest.approx([32**0.5] * 5, rel=3e-3)
    candidates, errors = reporting_errors([250_000_000, 125_000_000], [98, 2])
    assert candidates.tolist() == [125_000_000, 250_000_000]
    assert errors.tolist() == pytest.approx([128, 33.63], abs=0.01)
