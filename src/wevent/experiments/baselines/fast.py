"""FAST, corrected: adaptive sampling and a Kalman filter with fixed variances."""

from __future__ import annotations

import math

import numpy as np

from wevent.core.arrays import FloatArray, IntArray
from wevent.experiments.baselines.accountant import BaselineAccountant, BaselineNoise

_SAMPLED_SHARE = 0.075  # of a block's slots
_FIRST = 5  # slots of a block that are sampled one after the other
_PROCESS, _MEASUREMENT, _START = 1e5, 1e6, 100.0  # the filter's variances
_SET_POINT = 0.1  # relative error that the interval is steered to
_STEER = 5.0


class Fast:
    """Blocks of w slots with M samples each; a controller spaces them by the relative error of the filter.

    Corrected: a window meets two blocks, so a block spends ε/2, not ε.

    Args:
        cells: d.
        accountant: of the requirement that all share.
        noise: for the samples.
    """

    def __init__(self, cells: int, accountant: BaselineAccountant, noise: BaselineNoise) -> None:
        self._cells, self._accountant, self._noise = cells, accountant, noise
        self._window = accountant.requirement.window
        self._samples = max(1, int(_SAMPLED_SHARE * self._window))
        self._nano = self._block_budget() // self._samples
        self._slot = 0
        self._estimate = np.zeros(cells)
        self._variance = _START
        self._errors: list[float] = []
        self._taken, self._next, self._interval = 0, _FIRST, 1

    def step(self, counts: IntArray) -> tuple[FloatArray, bool]:
        offset = self._slot % self._window
        self._slot += 1
        if offset == 0:
            self._errors, self._taken, self._next, self._interval = [], 0, _FIRST, 1
        self._variance += _PROCESS
        due = offset < _FIRST or offset == self._next
        if not due or self._taken == self._samples:
            return self._estimate.copy(), False
        charge = self._accountant.release(self._slot, self._nano)  # a sample's part of ε/2, for everybody
        measured = counts + self._noise.laplace(charge, 1, self._cells)
        self._taken += 1
        if offset == 0:
            self._estimate, self._variance = measured.astype(np.float64), _START
        else:
            self._correct(measured)
        if offset == self._next:
            self._steer()
        return self._estimate.copy(), True

    def _block_budget(self) -> int:
        return self._accountant.requirement.nano // 2

    def _correct(self, measured: IntArray) -> None:
        gain = self._variance / (self._variance + _MEASUREMENT)
        before = self._estimate
        self._estimate = before + gain * (measured - before)
        self._variance *= 1.0 - gain
        relative = np.abs(self._estimate - before) / np.maximum(self._estimate, 1.0)
        self._errors.append(float(relative.mean()))

    def _steer(self) -> None:
        error = 0.9 * self._errors[-1] + 0.1 * sum(self._errors[-5:])
        excess = min((error - _SET_POINT) / _SET_POINT, 50.0)  # beyond, the interval is 1 anyway
        self._interval = max(1, self._interval + int(_STEER * (1.0 - math.exp(excess))))
        self._next += self._interval
