"""The accountant of the baselines, and noise drawn with its charges. For simulation only.

It is not the ledger. The ledger charges slots of their own and is asked before counts are read; baselines share threshold
noise over slots and compare with earlier true counts, which no permit allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from wevent.core.arrays import IntArray
from wevent.core.budget import NANO
from wevent.core.requirements import Requirement


class BaselineOverspent(RuntimeError):
    """A baseline would spend more than its epsilon within a window: a bug in the baseline, never a user's mistake."""


@dataclass(frozen=True)
class Charge:
    """The nano-epsilons paid for a draw; made by an accountant only."""

    nano: int

    @property
    def epsilon(self) -> float:
        return self.nano / NANO


@dataclass
class ThresholdRun:
    """A run of threshold tests with one threshold noise, paid for once.

    Attributes:
        charge: for the threshold and all tests together.
        number: of its draw.
        last: the slot of its last test.
    """

    charge: Charge
    number: int
    last: int


class BaselineAccountant:
    """Every window of one requirement, whatever is drawn (one schedule for all cells, sensitivity 1).

    A draw costs its budget once in every window that holds a slot it reads. A release reads its own slot. A run of
    threshold tests that share their noise reads the slots from its first test to its last, and the slot before if tests
    compare with it; its loss is that of the whole run, however many tests it makes.

    Args:
        requirement: w and ε.

    Attributes:
        requirement: the same.
        draws: first slot, last slot and nano-epsilons of each.
    """

    def __init__(self, requirement: Requirement) -> None:
        self.requirement = requirement
        self.draws: list[tuple[int, int, int]] = []
        self._spent = np.zeros(4 * requirement.window, dtype=np.int64)  # by the first slot of a window
        self._released: list[tuple[int, int]] = []

    def release(self, slot: int, nano: int) -> Charge:
        """Pay for a draw that reads this slot.

        Raises:
            BaselineOverspent: if a window that holds the slot would lose more than ε.
        """
        self._charge(slot - self.requirement.window + 1, slot, nano)
        self.draws.append((slot, slot, nano))
        self._released.append((slot, nano))
        return Charge(nano)

    def begin(self, slot: int, nano: int) -> ThresholdRun:
        """Pay for a run of tests, each of which reads its slot and the one before; the first is in this slot.

        Raises:
            BaselineOverspent: if a window would lose more than ε.
        """
        self._charge(slot - self.requirement.window, slot, nano)
        self.draws.append((slot - 1, slot, nano))
        return ThresholdRun(Charge(nano), len(self.draws) - 1, slot)

    def go_on(self, run: ThresholdRun, slot: int) -> None:
        """Pay for the run in the windows that begin after its last test, too.

        Raises:
            BaselineOverspent: if one of them would lose more than ε.
        """
        self._charge(run.last + 1, slot, run.charge.nano)
        first, _, nano = self.draws[run.number]
        self.draws[run.number] = first, slot, nano
        run.last = slot

    def released(self, slot: int) -> int:
        """Return the nano-epsilons of releases in the w − 1 slots before this one."""
        self._discard(slot)
        return sum(nano for at, nano in self._released if at < slot)

    def oldest_release(self, slot: int) -> int | None:
        """Return the first of the w − 1 slots before this one that has a release."""
        self._discard(slot)
        return self._released[0][0] if self._released and self._released[0][0] < slot else None

    def worst_window(self, window: int) -> int:
        """Recount from the draws: the most nano-epsilons that they cost within any `window` consecutive slots."""
        if not self.draws:
            return 0
        first, last, nano = np.array(self.draws, dtype=np.int64).T
        begins = np.maximum(first - window + 1, 1)  # windows by their first slot
        changes = np.zeros(int(last.max()) + 2, dtype=np.int64)
        np.add.at(changes, begins, nano)
        np.subtract.at(changes, last + 1, nano)
        return int(changes.cumsum().max())

    def _discard(self, slot: int) -> None:
        while self._released and self._released[0][0] <= slot - self.requirement.window:
            del self._released[0]

    def _charge(self, first: int, last: int, nano: int) -> None:
        """Add to the windows that begin in these slots."""
        if nano <= 0:
            raise BaselineOverspent(f"a draw needs a budget; received {nano} nano-epsilons")
        while last >= len(self._spent):
            self._spent = np.concatenate([self._spent, np.zeros_like(self._spent)])
        part = self._spent[max(first, 1) : last + 1]
        if int(part.max()) + nano > self.requirement.nano:
            raise BaselineOverspent(
                f"{int(part.max()) + nano} nano-epsilons within a window of {self.requirement.window} slots, "
                f"of {self.requirement.nano}"
            )
        part += nano


class BaselineNoise:
    """Integer Laplace noise of a seeded generator; it protects nobody.

    Args:
        seed: an integer or several; the same seed gives the same noise.
    """

    def __init__(self, seed: Any) -> None:
        self._generator = np.random.default_rng(seed)

    def laplace(self, charge: Charge, sensitivity: npt.ArrayLike, size: int) -> IntArray:
        """Draw the difference of two geometric numbers (whole parts of exponential ones); scale sensitivity / epsilon.

        Args:
            charge: from the accountant.
            sensitivity: of whole values; one for all draws or one for each.
            size: number of draws.
        """
        scale = np.asarray(sensitivity) * (1.0 / charge.epsilon)
        draws = np.floor(self._generator.standard_exponential((2, size)) * scale)
        noise: IntArray = (draws[0] - draws[1]).astype(np.int64)
        return noise
