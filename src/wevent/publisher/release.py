"""What a slot publishes: the release, and its way into data frames and notebooks."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from wevent.core.arrays import FloatArray, IntArray
from wevent.core.mechanism import NoiseError
from wevent.core.step import OutcomeKind
from wevent.errors import InvalidOption


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """One slot's published histogram and what it cost. Everything in it is public (spec 10).

    Attributes:
        slot: its number; the first is 1.
        histogram: published value per cell, read-only float64.
        cells: the cell labels.
        mechanism: the mechanism's name.
        outcome: "published", "repeated" or "nullified".
        probe_charges: nano-epsilons charged to each class for the dissimilarity.
        publication_charges: nano-epsilons charged to each class for the publication.
        std_error: standard error per cell, None before the first measurement. With a filter (`pft`): of the estimate.
            Otherwise: of the noise in the fresh release that this is or repeats; for local mechanisms the part that
            does not depend on the counts.
        threshold: θ of this slot's publication plan in nano-epsilons, None if there was none.
        dissimilarity: the noisy distance to the last fresh release, None if it was not measured.
        noise: the law of the noise behind `std_error`.
    """

    slot: int
    histogram: FloatArray
    cells: Sequence[Any]
    mechanism: str
    outcome: OutcomeKind
    probe_charges: IntArray
    publication_charges: IntArray
    std_error: FloatArray | None = None
    threshold: int | None = None
    dissimilarity: float | None = None
    noise: NoiseError | None = None

    @property
    def fresh(self) -> bool:
        """Whether this slot was measured anew."""
        return self.outcome == "published"

    @property
    def charges(self) -> IntArray:
        """Nano-epsilons charged to each class in this slot."""
        return self.probe_charges + self.publication_charges

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray] | None:
        """Lower and upper bounds per cell with this probability; None before the first measurement.

        With a filter (`pft`) they are for the true count. Otherwise they cover the noise only: sampling and the age of a
        repeated release are not in them.
        """
        if not 0.0 < level < 1.0:
            raise InvalidOption("a level between 0 and 1", f"{level!r}", "0.95 is common.", option="level", value=level)
        if self.noise is None or self.std_error is None:
            return None
        if self.noise.law == "laplace":
            reach: Any = laplace_quantile(self.noise.scale, level)
        else:
            reach = NormalDist().inv_cdf(0.5 + level / 2.0) * self.std_error
        if self.noise.law == "estimate":  # counts are whole and not negative
            return np.floor(np.maximum(self.histogram - reach, 0.0)), np.ceil(self.histogram + reach)
        return self.histogram - reach, self.histogram + reach

    def to_dict(self) -> dict[str, Any]:
        """Plain types, ready for JSON."""
        return {
            "slot": self.slot,
            "mechanism": self.mechanism,
            "outcome": self.outcome,
            "fresh": self.fresh,
            "cells": list(self.cells),
            "histogram": self.histogram.tolist(),
            "std_error": None if self.std_error is None else self.std_error.tolist(),
            "probe_charges": self.probe_charges.tolist(),
            "publication_charges": self.publication_charges.tolist(),
            "charges": self.charges.tolist(),
            "threshold": self.threshold,
            "dissimilarity": self.dissimilarity,
        }

    def __repr__(self) -> str:
        shown = ", ".join(f"{label}: {value:g}" for label, value in zip(self.cells, self.histogram[:3], strict=False))
        more = ", …" if len(self.histogram) > 3 else ""
        return f"<Release slot {self.slot} {self.mechanism} {self.outcome} {{{shown}{more}}}>"

    def _repr_html_(self) -> str:
        errors = [""] * len(self.histogram) if self.std_error is None else [f"±{e:.3g}" for e in self.std_error]
        rows = "".join(
            f"<tr><td>{html.escape(str(label))}</td><td style='text-align:right'>{value:g}</td><td>{error}</td></tr>"
            for label, value, error in zip(self.cells, self.histogram, errors, strict=True)
        )
        title = f"slot {self.slot} · {html.escape(self.mechanism)} · {self.outcome}"
        return f"<table><caption>{title}</caption><tr><th>cell</th><th>value</th><th>std error</th></tr>{rows}</table>"


def laplace_quantile(scale: float, level: float) -> int:
    """The smallest m with P(|X| ≤ m) ≥ level: P(|X| > m) = 2·q^(m+1)/(1 + q), q = exp(−1/scale)."""
    q = math.exp(-1.0 / scale)
    return max(0, math.ceil(-scale * math.log((1.0 - level) * (1.0 + q) / 2.0)) - 1)


def to_columns(releases: Iterable[Release]) -> dict[str, list[Any]]:
    """One row per slot and cell, as columns that pandas.DataFrame and polars.DataFrame both take.

    >>> to_columns([])
    {'slot': [], 'cell': [], 'value': [], 'std_error': [], 'outcome': [], 'fresh': [], 'mechanism': []}
    """
    columns: dict[str, list[Any]] = {
        name: [] for name in ("slot", "cell", "value", "std_error", "outcome", "fresh", "mechanism")
    }
    for release in releases:
        cells = len(release.histogram)
        columns["slot"] += [release.slot] * cells
        columns["cell"] += list(release.cells)
        columns["value"] += release.histogram.tolist()
        columns["std_error"] += [None] * cells if release.std_error is None else release.std_error.tolist()
        columns["outcome"] += [release.outcome] * cells
        columns["fresh"] += [release.fresh] * cells
        columns["mechanism"] += [release.mechanism] * cells
    return columns
