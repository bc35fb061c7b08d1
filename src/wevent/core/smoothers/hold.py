"""Publish the last measurement."""

from __future__ import annotations

from typing import Any

import numpy as np

from wevent.core.mechanism import Estimate, Measurement, NoiseError


class Hold:
    """Repeat the last measurement until there is a new one; zeros before the first (paper, Algorithm 2, line 9)."""

    def start(self, cells: int, slot: int = 1) -> Estimate:
        """Zeros, with no error to state."""
        return Estimate(_frozen(np.zeros(cells)), None, None)

    def advance(self, state: Estimate, measurement: Measurement | None) -> tuple[Estimate, Estimate]:
        """The new measurement as it is, or the old estimate."""
        if measurement is None:
            return state, state
        error = measurement.error
        spread = _frozen(np.full(len(measurement.values), error.variance**0.5))
        estimate = Estimate(_frozen(measurement.values.astype(np.float64)), spread, error)
        return estimate, estimate

    def dump(self, state: Estimate) -> Any:
        """Values and the law of their noise."""
        return [state.values.tolist(), None if state.error is None else list(state.error)]

    def load(self, dumped: Any) -> Estimate:
        """The counterpart of `dump`."""
        values, error = dumped
        if error is None:
            return self.start(len(values))
        return self.advance(self.start(len(values)), Measurement(np.array(values, dtype=float), NoiseError(*error)))[1]


def _frozen(values: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    values.setflags(write=False)
    return values
