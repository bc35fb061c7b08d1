"""SPAS, corrected: releases when a sparse-vector test finds a change."""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from wevent.core.arrays import FloatArray, IntArray
from wevent.core.budget import NANO
from wevent.experiments.baselines.accountant import BaselineAccountant, BaselineNoise, Charge, ThresholdRun

_WARM_UP = 20  # slots between releases of the first window


class Spas:
    """Three quarters of ε for releases, a quarter for tests of the change since the slot before.

    The test compares mean|x_t − x_{t−1}|, so it reads the true counts of two slots; tests up to a success share the noise
    of their threshold. How many releases a window should have, c, follows from the differences of past releases.

    Corrected: a success gets its share of the budget for releases and nothing else; every run of tests draws its own
    threshold noise; the first window spends no more than other windows.

    Args:
        cells: d.
        accountant: of the requirement that all share.
        noise: for releases, thresholds and tests.
    """

    def __init__(self, cells: int, accountant: BaselineAccountant, noise: BaselineNoise) -> None:
        self._cells, self._accountant, self._noise = cells, accountant, noise
        self._window = accountant.requirement.window
        self._for_tests = accountant.requirement.nano // 4
        self._for_releases = accountant.requirement.nano - self._for_tests
        self._slot = 0
        self._last = np.zeros(cells, dtype=np.int64)
        self._before = np.zeros(cells, dtype=np.int64)
        self._differences: deque[tuple[int, float, float]] = deque()
        self._runs: list[ThresholdRun] = []
        self._open: ThresholdRun | None = None
        self._threshold = 0

    def step(self, counts: IntArray) -> tuple[FloatArray, bool]:
        self._slot += 1
        nano = self._budget(counts)
        self._before = counts
        if nano:
            released = counts + self._noise.laplace(self._pay(nano), 1, self._cells)
            self._learn(released)
            self._last = released
        return self._last.astype(np.float64), nano > 0

    def _budget(self, counts: IntArray) -> int:
        """Return the budget of a release of this slot; 0 for none."""
        if self._slot <= self._window:
            return self._warm_up() if (self._slot - 1) % _WARM_UP == 0 else 0
        left = self._for_releases - self._released()
        wanted = self._wanted_releases()
        oldest = self._accountant.oldest_release(self._slot)
        until_freed = self._window - (self._slot - oldest) if oldest is not None else self._window
        if until_freed <= left * wanted // self._for_releases:
            return left // until_freed
        share = self._for_releases // wanted
        return share if left >= share and self._changed(counts, wanted) else 0

    def _warm_up(self) -> int:
        left = self._for_releases - self._released()
        return min(left, _WARM_UP * self._for_releases // self._window)

    def _released(self) -> int:
        return self._accountant.released(self._slot)

    def _pay(self, nano: int) -> Charge:
        """Pay for a release: everybody loses this much, out of ¾ε."""
        return self._accountant.release(self._slot, nano)

    def _wanted_releases(self) -> int:
        """Return c: as many as the spread of differences between releases suggests."""
        while self._differences and self._differences[0][0] <= self._slot - 2 * self._window:
            self._differences.popleft()
        if not self._differences:
            return 1
        squared = sum(entry[1] for entry in self._differences) / len(self._differences)
        absolute = sum(entry[2] for entry in self._differences) / len(self._differences)
        spread = max(squared - absolute**2, 0.0)
        wanted = max(1, int(self._for_releases / NANO * math.sqrt(3.0 * spread) / 6.0))
        return min(wanted, max(self._for_tests - 1, 1))  # so that shares are whole nano-epsilons

    def _learn(self, released: IntArray) -> None:
        difference = np.abs(released - self._last).astype(np.float64)
        if self._slot > 1 and difference.any():
            self._differences.append((self._slot, float((difference**2).mean()), float(difference.mean())))

    def _changed(self, counts: IntArray, wanted: int) -> bool:
        """Test for a change on sums over cells, whole numbers that a user changes by at most 2 (1 if d = 1)."""
        run = self._running(wanted)
        if run is None:
            return False
        sensitivity = min(self._cells, 2)
        change = int(np.abs(counts - self._before).sum())
        noisy = change + int(self._noise.laplace(run.charge, 4 * sensitivity, 1)[0])
        found = noisy > self._cells * wanted / (self._for_releases / NANO) + self._threshold
        if found:
            self._open = None
        return found

    def _running(self, wanted: int) -> ThresholdRun | None:
        """Return the open run, or a new one, if tests of this slot can be paid; None if not."""
        self._runs = [run for run in self._runs if run is self._open or run.last >= self._slot - self._window]
        others = sum(run.charge.nano for run in self._runs if run is not self._open)
        nano = self._open.charge.nano if self._open is not None else self._for_tests // (wanted + 1)
        if not nano or others + nano > self._for_tests:
            return None
        if self._open is not None:
            self._accountant.go_on(self._open, self._slot)
            return self._open
        # once for everybody, however many tests follow: half for the threshold (2Δ/e), half for its tests (4Δ/e)
        run = self._accountant.begin(self._slot, nano)
        self._threshold = int(self._noise.laplace(run.charge, 2 * min(self._cells, 2), 1)[0])
        self._runs.append(run)
        self._open = run
        return run
