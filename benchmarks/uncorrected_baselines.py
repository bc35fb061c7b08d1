"""What public code of the peers spends, told to the same accountant: written from its description, none of it copied.

Only the spending is as in public code; each differs from the corrected peer by the one or two slips that are named.
"""

from typing import Any

import numpy as np

from wevent import Requirement
from wevent.experiments.baselines import BaselineAccountant, BaselineNoise
from wevent.experiments.baselines.accountant import Charge
from wevent.experiments.baselines.fast import Fast
from wevent.experiments.baselines.rescue import RescueDp
from wevent.experiments.baselines.spas import Spas


class Onlooker(BaselineAccountant):
    """Records what is spent and refuses nothing."""

    def _charge(self, first: int, last: int, nano: int) -> None:
        pass


class WholeBlockFast(Fast):
    """ε for each block of w slots, though a window meets two blocks."""

    def _block_budget(self) -> int:
        return self._accountant.requirement.nano


class LeftoverSpas(Spas):
    """A success also gets all of the tests' budget that is left, written down nowhere; the first window spends ε."""

    def __init__(self, cells: int, accountant: BaselineAccountant, noise: BaselineNoise) -> None:
        super().__init__(cells, accountant, noise)
        self._claimed: list[tuple[int, int]] = []
        self._extra = 0

    def _warm_up(self) -> int:
        return 20 * self._accountant.requirement.nano // max(self._window, 20)

    def _released(self) -> int:
        return sum(nano for slot, nano in self._claimed if slot > self._slot - self._window)

    def _changed(self, counts: Any, wanted: int) -> bool:
        found = super()._changed(counts, wanted)
        if found:
            self._extra = self._for_tests - sum(run.charge.nano for run in self._runs)
        return found

    def _pay(self, nano: int) -> Charge:
        self._claimed.append((self._slot, nano))
        extra, self._extra = self._extra, 0
        return super()._pay(nano + extra)


class OwnScheduleRescue:
    """A schedule per cell: each keeps its windows, a user who moves meets the largest charge of every slot."""

    def __init__(self, cells: int, accountant: BaselineAccountant, noise: BaselineNoise) -> None:
        self._accountant = accountant
        self._own = [BaselineAccountant(accountant.requirement) for _ in range(cells)]
        self._cells = [RescueDp(1, own, noise) for own in self._own]
        self._slot = 0

    def step(self, counts: Any) -> Any:
        self._slot += 1
        steps = [cell.step(counts[[place]]) for place, cell in enumerate(self._cells)]
        charged = [_last_charge(own, self._slot) for own in self._own]
        if max(charged):
            self._accountant.release(self._slot, max(charged))
        return np.array([float(released[0]) for released, _ in steps]), any(fresh for _, fresh in steps)


def _last_charge(accountant: BaselineAccountant, slot: int) -> int:
    draws = list(accountant.draws)
    return draws[-1][2] if draws and draws[-1][1] == slot else 0


UNCORRECTED = {"spas": LeftoverSpas, "fast": WholeBlockFast, "rescuedp": OwnScheduleRescue}
"""The peers whose public code overspends in a way that can be counted."""


def spent(label: str, truth: Any, requirement: Requirement, seed: int) -> float:
    """The most that a window loses, as a part of its epsilon."""
    onlooker = Onlooker(requirement)
    run = UNCORRECTED[label](truth.shape[1], onlooker, BaselineNoise([seed]))
    for counts in truth:
        run.step(counts)
    return onlooker.worst_window(requirement.window) / requirement.nano
