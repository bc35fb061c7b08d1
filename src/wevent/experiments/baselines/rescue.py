"""RescueDP, corrected: adaptive sampling, adaptive budgets, small cells in groups, a Kalman filter."""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from wevent.core.arrays import FloatArray, IntArray
from wevent.core.budget import NANO
from wevent.experiments.baselines.accountant import BaselineAccountant, BaselineNoise

_REMEMBERED = 3  # releases that grouping and the controller look back on
_SMALL, _ALIKE, _CORRELATED = 30.0, 25.0, 0.5  # what cells of a group may be
_START = 100.0  # variance of the first estimate
_STEER = 10.0


class RescueDp:
    """Samples further apart while the estimate moves less than the noise to expect; longer intervals spend more.

    Corrected: one schedule for all cells, so that a user who moves between cells loses no more than one who stays; the
    filter learns its process variance from past noisy values, not from the stream itself.

    Args:
        cells: d.
        accountant: of the requirement that all share.
        noise: for the samples.
        steady: whether the filter takes (w/ε)² for the variance of measurements instead of that of their noise.
    """

    def __init__(
        self, cells: int, accountant: BaselineAccountant, noise: BaselineNoise, *, steady: bool = False
    ) -> None:
        self._cells, self._accountant, self._noise = cells, accountant, noise
        self._epsilon = accountant.requirement.nano
        self._steady = (accountant.requirement.window * NANO / self._epsilon) ** 2 if steady else None
        self._slot, self._next, self._interval = 0, 1, 1.0
        self._estimate = np.zeros(cells)
        self._variance = np.full(cells, _START)
        self._process = np.zeros(cells)
        self._differences = 0
        self._measured: tuple[FloatArray, FloatArray] | None = None
        self._released: deque[FloatArray] = deque(maxlen=_REMEMBERED)
        self._moves: deque[float] = deque(maxlen=_REMEMBERED)

    def step(self, counts: IntArray) -> tuple[FloatArray, bool]:
        self._slot += 1
        self._variance = self._variance + self._process
        nano = self._budget() if self._slot >= self._next else 0
        if not nano:
            return self._estimate.copy(), False
        measured, variances = self._measure(counts, nano)
        before = self._estimate
        self._correct(measured, variances)
        self._learn(measured, variances)
        self._steer(before)
        self._released.append(self._estimate)
        return self._estimate.copy(), True

    def _budget(self) -> int:
        left = self._epsilon - self._accountant.released(self._slot)
        return min(int(left * min(0.2 * math.log(self._interval + 1.0), 0.6)), self._epsilon // 5)

    def _measure(self, counts: IntArray, nano: int) -> tuple[FloatArray, FloatArray]:
        """Return noisy values of all cells, and the variance that the filter gives them."""
        groups = self._groups()
        sizes = np.bincount(groups)
        charge = self._accountant.release(self._slot, nano)  # once for everybody: a user is in one group only
        sums = np.bincount(groups, weights=counts, minlength=len(sizes))
        sums += self._noise.laplace(charge, 1, len(sizes))
        size = sizes[groups].astype(np.float64)
        variance = 2.0 / charge.epsilon**2 / size**2 if self._steady is None else np.full(self._cells, self._steady)
        return sums[groups] / size, variance

    def _groups(self) -> IntArray:
        """Return the group of each cell: large cells alone, small ones that go together in one. From past releases only."""
        alone = np.arange(self._cells)
        if len(self._released) < _REMEMBERED:
            return alone
        past = np.array(self._released)
        means = past.mean(axis=0)
        small = [cell for cell in np.argsort(means, kind="stable").tolist() if means[cell] <= _SMALL]
        if len(small) < 2:
            return alone
        centred = past - means
        lengths = np.sqrt((centred**2).sum(axis=0))
        with np.errstate(divide="ignore", invalid="ignore"):
            alike = np.nan_to_num((centred.T @ centred) / np.outer(lengths, lengths)) > _CORRELATED
        groups, waiting = alone.copy(), small
        while waiting:
            pivot, *others = waiting
            total, waiting = means[pivot], []
            for cell in others:
                if means[cell] - means[pivot] < _ALIKE and alike[pivot, cell] and total + means[cell] < _SMALL:
                    groups[cell] = pivot
                    total += means[cell]
                else:
                    waiting.append(cell)
        return np.unique(groups, return_inverse=True)[1]

    def _correct(self, measured: FloatArray, variances: FloatArray) -> None:
        if self._measured is None:
            self._estimate = measured
            return
        gain = self._variance / (self._variance + variances)
        self._estimate = self._estimate + gain * (measured - self._estimate)
        self._variance = (1.0 - gain) * self._variance

    def _learn(self, measured: FloatArray, variances: FloatArray) -> None:
        """Q: the running mean of what two noisy values differ by beyond their noise, never below 0.

        Floored as it runs: one release with hardly any budget would otherwise hold it at 0 for ever.
        """
        if self._measured is not None:
            earlier, earlier_variances = self._measured
            beyond_noise = (measured - earlier) ** 2 - variances - earlier_variances
            self._differences += 1
            self._process = np.maximum(self._process + (beyond_noise - self._process) / self._differences, 0.0)
        self._measured = measured, variances

    def _steer(self, before: FloatArray) -> None:
        if self._released:
            self._moves.append(float(np.abs(self._estimate - before).mean()))
            move = 0.9 * self._moves[-1] + 0.1 * sum(self._moves) / len(self._moves)
            left = (self._epsilon - self._accountant.released(self._slot + 1)) / NANO
            self._interval = max(1.0, self._interval + _STEER * (1.0 - (move * left) ** 2))
        self._next = self._slot + int(self._interval)
