"""The accountant of the peers: no draw without a charge, and no charge that takes a window above its epsilon.

It is not the ledger. The ledger charges slots of their own and is asked before counts are read; peers share threshold noise
over slots and compare with earlier true counts, which no permit allows. They are simulated only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wevent.core.budget import NANO
from wevent.core.requirements import Requirement
from wevent.experiments.peers.peer_spending import PeerSpending


class PeerOverspent(RuntimeError):
    """A peer would spend more than its epsilon within a window: a bug in the peer, never a user's mistake."""


@dataclass(frozen=True)
class Charge:
    """What was paid for a draw, in nano-epsilons; made by an accountant only."""

    nano: int

    @property
    def epsilon(self) -> float:
        """As a number."""
        return self.nano / NANO


class ThresholdRun:
    """A run of threshold tests with one threshold noise, paid for once.

    Attributes:
        charge: what threshold and tests are drawn with, together.
    """

    def __init__(self, charge: Charge, number: int, last: int) -> None:
        self.charge = charge
        self.number = number
        self.last = last


class PeerAccountant:
    """Every window of one requirement, whatever is drawn (one schedule for all cells, sensitivity 1).

    Args:
        requirement: w and ε.

    Attributes:
        requirement: the same.
        spending: what was drawn.
    """

    def __init__(self, requirement: Requirement) -> None:
        self.requirement = requirement
        self.spending = PeerSpending()
        self._spent = np.zeros(4 * requirement.window, dtype=np.int64)  # by the first slot of a window
        self._released: list[tuple[int, int]] = []

    def release(self, slot: int, nano: int) -> Charge:
        """Pay for a draw that reads this slot.

        Raises:
            PeerOverspent: if a window that holds the slot would lose more than ε.
        """
        self._charge(slot - self.requirement.window + 1, slot, nano)
        self.spending.add(slot, slot, nano)
        self._released.append((slot, nano))
        return Charge(nano)

    def begin(self, slot: int, nano: int) -> ThresholdRun:
        """Pay for a run of tests, each of which reads its slot and the one before; the first is in this slot.

        Raises:
            PeerOverspent: if a window would lose more than ε.
        """
        self._charge(slot - self.requirement.window, slot, nano)
        return ThresholdRun(Charge(nano), self.spending.add(slot - 1, slot, nano), slot)

    def go_on(self, run: ThresholdRun, slot: int) -> None:
        """Pay for the run in the windows that begin after its last test, too.

        Raises:
            PeerOverspent: if one of them would lose more than ε.
        """
        self._charge(run.last + 1, slot, run.charge.nano)
        self.spending.stretch(run.number, slot)
        run.last = slot

    def released(self, slot: int) -> int:
        """Nano-epsilons of releases in the w − 1 slots before this one."""
        self._forget(slot)
        return sum(nano for at, nano in self._released if at < slot)

    def oldest_release(self, slot: int) -> int | None:
        """The first of the w − 1 slots before this one that has a release."""
        self._forget(slot)
        return self._released[0][0] if self._released and self._released[0][0] < slot else None

    def _forget(self, slot: int) -> None:
        while self._released and self._released[0][0] <= slot - self.requirement.window:
            del self._released[0]

    def _charge(self, first: int, last: int, nano: int) -> None:
        """Add to the windows that begin in these slots."""
        if nano <= 0:
            raise PeerOverspent(f"a draw needs a budget; received {nano} nano-epsilons")
        while last >= len(self._spent):
            self._spent = np.concatenate([self._spent, np.zeros_like(self._spent)])
        part = self._spent[max(first, 1) : last + 1]
        if int(part.max()) + nano > self.requirement.nano:
            raise PeerOverspent(
                f"{int(part.max()) + nano} nano-epsilons within a window of {self.requirement.window} slots, "
                f"of {self.requirement.nano}"
            )
        part += nano
