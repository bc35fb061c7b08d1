"""The result of a plan: expected errors, moves between levels, warnings, and advice in sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wevent.core.requirements import Population, Requirement
from wevent.experiments.formatting import change_and_interval, is_higher, is_lower, short
from wevent.experiments.intervals import Interval, known, mean_interval, ratio_interval
from wevent.experiments.scores import Scores


@dataclass(frozen=True)
class Expected:
    """The scores of one mechanism."""

    mechanism: str
    scores: Scores

    @property
    def typical_error(self) -> Interval:
        """Root of the mean squared error, by which plans rank: users per cell and slot, with its interval over repeats."""
        squared = mean_interval(self.scores.amre.tolist())
        return Interval(*(float(np.sqrt(np.maximum(end, 0.0))) for end in squared))

    def to_dict(self) -> dict[str, Any]:
        error = self.typical_error
        return {
            "mechanism": self.mechanism,
            "amre": float(self.scores.amre.mean()),
            "typical_error": error.mean,
            "typical_error_low": known(error.low),
            "typical_error_high": known(error.high),
            "mre": float(self.scores.mre.mean()),
            "mae": float(self.scores.mae.mean()),
            "fresh": float(self.scores.fresh.mean()),
            "worst_window_share": float(self.scores.worst_window_share.max()),
        }


@dataclass(frozen=True)
class Move:
    """Users choosing another level, and the squared error of the best mechanism then, against what it was."""

    source: Requirement
    target: Requirement
    users: int
    ratio: Interval

    @property
    def lowers(self) -> bool:
        return is_lower(self.ratio)

    @property
    def raises(self) -> bool:
        return is_higher(self.ratio)

    def to_dict(self) -> dict[str, Any]:
        return {
            "from": {"window": self.source.window, "epsilon": self.source.epsilon},
            "to": {"window": self.target.window, "epsilon": self.target.epsilon},
            "users": self.users,
            "amre_ratio": self.ratio.mean,
            "amre_ratio_low": known(self.ratio.low),
            "amre_ratio_high": known(self.ratio.high),
        }


@dataclass(frozen=True)
class Forecast:
    """The mechanisms, the best first, moves between levels with the best one, and warnings."""

    population: Population
    expected: tuple[Expected, ...]
    mean_count: float
    moves: tuple[Move, ...]
    warnings: tuple[str, ...]
    stream: str
    left_out: Mapping[str, str]
    """Mechanisms that do not take the options, and why."""
    seed: int

    def advice(self) -> list[str]:
        """Return sentences for the figures of the tables."""
        best = self.expected[0]
        error = best.typical_error.mean
        share = error / self.mean_count if self.mean_count else float("inf")
        sentences = [
            f"Use {best.mechanism}: a typical error of {short(error)} users per cell, "
            f"{short(100 * share, digits=2)}% of the mean count of {short(self.mean_count)}."
        ]
        if len(self.expected) > 1:
            sentences += self._against_the_second()
        if share > 0.5:
            sentences.append(
                "That is too much for single cells: use fewer cells, longer slots, shorter windows or larger epsilons."
            )
        if self.moves:
            sentences.append(self._on_moves())
        return sentences

    def _against_the_second(self) -> list[str]:
        """Name the second mechanism if the first is not ahead beyond noise."""
        best, second = self.expected[0], self.expected[1]
        ratio = ratio_interval(best.scores.amre.tolist(), second.scores.amre.tolist())
        if is_higher(ratio):
            return [
                f"In a typical repeat {second.mechanism} has the smaller error, and {best.mechanism} has fewer large ones: "
                "choose by which of them matters."
            ]
        if math.isnan(ratio.high) or is_lower(ratio):
            return []
        return [f"{second.mechanism} is within noise of it: choose by other needs."]

    def _on_moves(self) -> str:
        helpful = [move for move in self.moves if move.lowers]
        if helpful:
            most = min(helpful, key=lambda move: move.ratio.mean)
            gain, ends = change_and_interval(most.ratio)
            return (
                f"Most would be gained if {most.users:,} users moved from {describe(most.source)} to "
                f"{describe(most.target)}: {gain} squared error ({ends})."
            )
        if math.isnan(self.moves[0].ratio.low):
            return "One repeat cannot tell what a move changes from noise: plan with 5 repeats or more."
        return "None of the moves lowers the error beyond noise."

    def to_dict(self) -> dict[str, Any]:
        return {
            "classes": [
                {"window": level.window, "epsilon": level.epsilon, "users": size}
                for level, size in self.population.items()
            ],
            "mean_count": self.mean_count,
            "mechanisms": [row.to_dict() for row in self.expected],
            "moves": [move.to_dict() for move in self.moves],
            "warnings": list(self.warnings),
            "advice": self.advice(),
        }


def describe(requirement: Requirement) -> str:
    """Return `ε 0.6 in 120 slots`."""
    return f"ε {requirement.epsilon:g} in {requirement.window} slots"
