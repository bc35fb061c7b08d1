"""What a plan says: expected errors, moves between levels, warnings, and advice in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wevent.core.requirements import Population, Requirement
from wevent.experiments.intervals import Interval, is_beyond_noise, mean_interval, ratio_interval
from wevent.experiments.scores import Scores


@dataclass(frozen=True)
class Expected:
    """What one mechanism would do."""

    mechanism: str
    scores: Scores

    @property
    def typical_error(self) -> Interval:
        """Root of the mean squared error: users per cell and slot, with its interval over repeats."""
        return mean_interval(np.sqrt(self.scores.amre).tolist())

    def to_dict(self) -> dict[str, Any]:
        """In plain types."""
        return {
            "mechanism": self.mechanism,
            "amre": float(self.scores.amre.mean()),
            "typical_error": self.typical_error.mean,
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

    def to_dict(self) -> dict[str, Any]:
        """In plain types."""
        return {
            "from": {"window": self.source.window, "epsilon": self.source.epsilon},
            "to": {"window": self.target.window, "epsilon": self.target.epsilon},
            "users": self.users,
            "amre_ratio": self.ratio.mean,
        }


@dataclass(frozen=True)
class Forecast:
    """What to expect of each mechanism, the best first; what moves would change; what to mind."""

    population: Population
    expected: tuple[Expected, ...]
    mean_count: float
    moves: tuple[Move, ...]
    warnings: tuple[str, ...]
    stream: str
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Mechanisms that do not take the options, and why."""

    def advice(self) -> list[str]:
        """In sentences."""
        best = self.expected[0]
        error = best.typical_error.mean
        share = error / self.mean_count if self.mean_count else float("inf")
        sentences = [
            f"Use {best.mechanism}: a typical error of {error:,.3g} users per cell, "
            f"{share:.0%} of the mean count of {self.mean_count:,.3g}."
        ]
        if len(self.expected) > 1 and len(best.scores.amre) > 1:
            second = self.expected[1]
            ratio = ratio_interval(best.scores.amre.tolist(), second.scores.amre.tolist())
            if not is_beyond_noise(ratio):
                sentences.append(f"{second.mechanism} is within noise of it: choose by other needs.")
        if share > 0.5:
            sentences.append(
                "That is too much for single cells: use fewer cells, longer slots, shorter windows or larger epsilons."
            )
        helpful = [move for move in self.moves if move.ratio.high < 0.95]
        if helpful:
            most = min(helpful, key=lambda move: move.ratio.mean)
            sentences.append(
                f"Most would be gained if {most.users} users moved from {describe(most.source)} to "
                f"{describe(most.target)}: {most.ratio.mean - 1:+.0%} squared error."
            )
        elif self.moves:
            sentences.append("None of the moves lowers the error by more than noise.")
        return sentences

    def to_dict(self) -> dict[str, Any]:
        """In plain types."""
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
    """Short: `ε 0.6 in 120 slots`."""
    return f"ε {requirement.epsilon:g} in {requirement.window} slots"
