"""PeGaSus, corrected: slots join a group while their counts stay close to its mean."""

from __future__ import annotations

from wevent.core.budget import NANO
from wevent.experiments.peers.grouping import SlotGroup, SlotGroups, shares
from wevent.experiments.peers.peer_accountant import PeerAccountant
from wevent.experiments.peers.peer_noise import PeerNoise

_LIMIT = 5.0


def pegasus(cells: int, accountant: PeerAccountant, noise: PeerNoise) -> SlotGroups:
    """Perturb, group, smooth, with θ = 5/g, g what a slot pays for its test.

    Corrected: every cell has groups of its own, and the noisy comparison is made without absolute values.
    """
    for_tests, _ = shares(accountant)
    limit = _LIMIT * NANO / max(for_tests, 1)

    def constant(group: SlotGroup, strangeness: float) -> float:
        return limit

    return SlotGroups(cells, accountant, noise, constant)
