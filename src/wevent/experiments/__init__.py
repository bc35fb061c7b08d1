"""Simulation: streams whose truth is known, so that errors can be measured. Its output is not private.

`compare` and `plan` are what `wevent compare` and `wevent plan` print.
"""

from wevent.experiments.comparison import Compared, Comparison, compare
from wevent.experiments.datasets import StreamRequest, open_stream
from wevent.experiments.forecast import Expected, Forecast, Move
from wevent.experiments.planning import plan
from wevent.experiments.requirement_sampling import Assigner

__all__ = [
    "Assigner",
    "Compared",
    "Comparison",
    "Expected",
    "Forecast",
    "Move",
    "StreamRequest",
    "compare",
    "open_stream",
    "plan",
]
