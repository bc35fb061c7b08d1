"""How well releases did: errors of every slot, and one figure per repeat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from wevent.core.arrays import BoolArray, FloatArray
from wevent.experiments import metrics
from wevent.experiments.trial import Published, Trial


@dataclass(frozen=True)
class SlotErrors:
    """The errors of every slot; one column per repeat where several are scored together."""

    squared_error: FloatArray
    absolute_error: FloatArray
    relative_error: FloatArray
    jensen_shannon: FloatArray
    jensen_shannon_normalised: FloatArray

    @classmethod
    def of(cls, releases: FloatArray, truth: FloatArray) -> SlotErrors:
        """Compare with the truth; both are slots × … × cells."""
        return cls(
            metrics.squared_errors(releases, truth),
            metrics.absolute_errors(releases, truth),
            metrics.relative_errors(releases, truth),
            metrics.jensen_shannon(releases, truth),
            metrics.jensen_shannon(releases, truth, normalised=True),
        )


@dataclass(frozen=True)
class Scores:
    """One figure per repeat; see `wevent.experiments.metrics`."""

    amre: FloatArray
    ajsd: FloatArray
    ajsd_normalised: FloatArray
    mre: FloatArray
    mae: FloatArray
    fresh: FloatArray
    worst_window_share: FloatArray
    coverage: FloatArray

    @classmethod
    def of(cls, errors: SlotErrors, fresh: BoolArray, shares: Sequence[float], covered: Sequence[float]) -> Scores:
        """Means over slots; `shares` and `covered` have one entry per repeat."""
        filled = ~np.isnan(errors.relative_error)
        relative = np.where(filled, errors.relative_error, 0.0).sum(axis=0) / np.maximum(filled.sum(axis=0), 1)
        columns = (
            errors.squared_error.mean(axis=0),
            errors.jensen_shannon.mean(axis=0),
            errors.jensen_shannon_normalised.mean(axis=0),
            relative,
            errors.absolute_error.mean(axis=0),
            fresh.sum(axis=0).astype(np.float64),
            shares,
            covered,
        )
        return cls(*(np.atleast_1d(column) for column in columns))

    @classmethod
    def joined(cls, parts: Sequence[Scores]) -> Scores:
        """The repeats of several parts."""
        return cls(*(np.concatenate([getattr(part, figure.name) for part in parts]) for figure in fields(cls)))


def score(published: Published, trial: Trial, errors: SlotErrors) -> Scores:
    """The figures of a single repeat."""
    covered = metrics.coverage(trial.truth, published.low, published.high)
    return Scores.of(errors, published.fresh, [published.worst_window_share], [covered])
