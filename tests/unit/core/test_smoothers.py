"""LastValue: the last measurement until there is a new one."""

from __future__ import annotations

import numpy as np

from wevent.core.mechanism import ErrorModel, Measurement
from wevent.core.postprocess import LastValue


def test_hold_repeats_and_survives_a_dump() -> None:
    hold = LastValue()
    state = hold.start(2)
    state, estimate = hold.advance(state, None)
    assert estimate.values.tolist() == [0, 0]
    assert estimate.std_error is None
    assert hold.load(hold.dump(state)).std_error is None
    state, estimate = hold.advance(state, Measurement(np.array([3, -1]), ErrorModel("laplace", 1.5, 4.0)))
    assert estimate.values.tolist() == [3, -1]
    assert estimate.std_error.tolist() == [2, 2]
    state, repeated = hold.advance(state, None)
    assert repeated.values.tolist() == [3, -1]
    loaded = hold.load(hold.dump(state))
    assert loaded.values.tolist() == [3, -1]
    assert loaded.std_error.tolist() == [2, 2]
    assert loaded.error == ErrorModel("laplace", 1.5, 4.0)
