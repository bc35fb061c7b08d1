"""The peers that `wevent compare` offers, one row each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Protocol

from wevent.core.arrays import FloatArray, IntArray
from wevent.experiments.peers.adapub import adapub
from wevent.experiments.peers.fast import Fast
from wevent.experiments.peers.peer_accountant import PeerAccountant
from wevent.experiments.peers.peer_noise import PeerNoise
from wevent.experiments.peers.pegasus import pegasus
from wevent.experiments.peers.rescue import RescueDp
from wevent.experiments.peers.spas import Spas
from wevent.publisher.catalogue import SIMULATED_ONLY


class PeerRun(Protocol):
    """A peer at work on a stream."""

    def step(self, counts: IntArray) -> tuple[FloatArray, bool]:
        """The histogram of the next slot from the true counts of its cells, and whether it was measured there."""


@dataclass(frozen=True)
class Peer:
    """Another published mechanism, corrected so that it keeps w-event privacy at one requirement for all.

    Attributes:
        label: its name, and a word after a colon for a variant.
        summary: one line about it.
        start: makes a run from the number of cells, an accountant and noise.
    """

    label: str
    summary: str
    start: Callable[[int, PeerAccountant, PeerNoise], PeerRun]


_STARTS: Mapping[str, Callable[[int, PeerAccountant, PeerNoise], PeerRun]] = {
    "spas": Spas,
    "rescuedp": RescueDp,
    "fast": Fast,
    "pegasus": pegasus,
    "adapub": adapub,
}
_VARIANTS = (
    Peer(
        "rescuedp:steady",
        "RescueDP, corrected, whose filter takes (w/ε)² for the variance of every measurement",
        partial(RescueDp, steady=True),
    ),
)
_ROWS = (*(Peer(name, SIMULATED_ONLY[name], start) for name, start in _STARTS.items()), *_VARIANTS)

PEERS: Mapping[str, Peer] = MappingProxyType({row.label: row for row in _ROWS})
"""By label."""
