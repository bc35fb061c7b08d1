"""Other published w-event mechanisms, corrected, to compare with: simulated only, never offered for publishing.

The ledger has no place for them (some read earlier true counts and share threshold noise over slots), so an accountant of
their own holds their windows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Protocol

from wevent.core.arrays import FloatArray, IntArray
from wevent.experiments.baselines.accountant import BaselineAccountant, BaselineNoise, BaselineOverspent
from wevent.experiments.baselines.fast import Fast
from wevent.experiments.baselines.grouping import adapub, pegasus
from wevent.experiments.baselines.rescue import RescueDp
from wevent.experiments.baselines.spas import Spas

__all__ = ["BASELINES", "Baseline", "BaselineAccountant", "BaselineNoise", "BaselineOverspent"]


class BaselineRun(Protocol):
    """A baseline at work on a stream."""

    def step(self, counts: IntArray) -> tuple[FloatArray, bool]:
        """Return the histogram of the next slot from the true counts of its cells, and whether it was measured there."""


@dataclass(frozen=True)
class Baseline:
    """Another published mechanism, corrected so that it keeps w-event privacy at one requirement for all.

    Attributes:
        label: its name, and a word after a colon for a variant.
        start: makes a run from the number of cells, an accountant and noise.
    """

    label: str
    start: Callable[[int, BaselineAccountant, BaselineNoise], BaselineRun]


_STARTS: Mapping[str, Callable[[int, BaselineAccountant, BaselineNoise], BaselineRun]] = {
    "spas": Spas,
    "rescuedp": RescueDp,
    "rescuedp:steady": partial(RescueDp, steady=True),
    "fast": Fast,
    "pegasus": pegasus,
    "adapub": adapub,
}

BASELINES: Mapping[str, Baseline] = MappingProxyType(
    {label: Baseline(label, start) for label, start in _STARTS.items()}
)
"""By label; a line about each is in `wevent.publisher.catalogue.SIMULATED_ONLY`."""
