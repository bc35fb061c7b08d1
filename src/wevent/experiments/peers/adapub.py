"""AdaPub, corrected, without its pivots: groups as of PeGaSus with a limit that follows the noisy counts."""

from __future__ import annotations

from wevent.experiments.peers.grouping import SlotGroup, SlotGroups
from wevent.experiments.peers.peer_accountant import PeerAccountant
from wevent.experiments.peers.peer_noise import PeerNoise


def adapub(cells: int, accountant: PeerAccountant, noise: PeerNoise) -> SlotGroups:
    """θ = max(1, π²/ε), π = 0.9·f + 0.1·mean f of the group, f how strange the slot is: from noisy values only.

    Corrected: slots really join groups; public code starts a new one in every slot.
    """
    epsilon = accountant.requirement.epsilon

    def following(group: SlotGroup, strangeness: float) -> float:
        mean = (sum(group.strangeness) + strangeness) / (group.size + 1)
        return max(1.0, (0.9 * strangeness + 0.1 * mean) ** 2 / epsilon)

    return SlotGroups(cells, accountant, noise, following)
