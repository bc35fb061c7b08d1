"""Errors of every slot, and one figure per repeat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from wevent.core.arrays import FloatArray
from wevent.experiments import metrics
from wevent.experiments.trial import Published, Trial


@dataclass(frozen=True)
class SlotErrors:
    """The errors of every slot; see `wevent.experiments.metrics`."""

    squared_error: FloatArray
    absolute_error: FloatArray
    relative_error: FloatArray
    jensen_shannon: FloatArray
    jensen_shannon_normalised: FloatArray

    @classmethod
    def of(cls, releases: FloatArray, truth: FloatArray) -> SlotErrors:
        """Compare releases with the truth; both are slots × cells."""
        return cls(
            metrics.squared_errors(releases, truth),
            metrics.absolute_errors(releases, truth),
            metrics.relative_errors(releases, truth),
            metrics.jensen_shannon(releases, truth),
            metrics.jensen_shannon(releases, truth, normalised=True),
        )


@dataclass(frozen=True)
class Scores:
    """Means over slots, the number of measured slots, the worst window and the coverage: one figure per repeat each."""

    amre: FloatArray
    ajsd: FloatArray
    ajsd_normalised: FloatArray
    mre: FloatArray
    mae: FloatArray
    fresh: FloatArray
    worst_window_share: FloatArray
    coverage: FloatArray

    @classmethod
    def joined(cls, parts: Sequence[Scores]) -> Scores:
        return cls(*(np.concatenate([getattr(part, figure.name) for part in parts]) for figure in fields(cls)))


def score(published: Published, trial: Trial, errors: SlotErrors) -> Scores:
    """Return the figures of one repeat."""
    filled = errors.relative_error[~np.isnan(errors.relative_error)]  # an empty slot has no relative error
    figures = (
        errors.squared_error.mean(),
        errors.jensen_shannon.mean(),
        errors.jensen_shannon_normalised.mean(),
        filled.sum() / max(len(filled), 1),
        errors.absolute_error.mean(),
        published.fresh.sum(),
        published.worst_window_share,
        metrics.coverage(trial.truth, published.low, published.high),
    )
    return Scores(*(np.array([figure], dtype=np.float64) for figure in figures))
