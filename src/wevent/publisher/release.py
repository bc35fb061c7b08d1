"""What a slot publishes: the release, and its way into data frames and notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from wevent.core.arrays import FloatArray, IntArray
from wevent.core.mechanism import ErrorModel
from wevent.errors import InvalidOption
from wevent.publisher.confidence import LEVEL, OutcomeWord, interval_of

COLUMNS = ("slot", "cell", "value", "low", "high", "std_error", "outcome", "measured", "mechanism")
"""One row per slot and cell; outputs have these and the times of a slot."""


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """One slot's published histogram and what it cost. Everything in it is public (spec 10).

    Attributes:
        slot: its number; the first is 1.
        histogram: published value per cell, read-only float64; zeros, which say nothing, before the first measurement.
        cells: the cell labels.
        mechanism: the mechanism's name.
        outcome: "fresh" (measured in this slot), "repeated" (the numbers of slot `measured`), "estimated" (a filter's
            prediction for this slot) or "nullified" (a slot that `pba` or `ba` pays back; the numbers repeat).
        probe_charges: nano-epsilons charged to each class for the dissimilarity.
        publication_charges: nano-epsilons charged to each class for the publication.
        std_error: standard error per cell, None before the first measurement. With a filter (`pft`): of the estimate.
            Otherwise: of the noise in the fresh release that this is or repeats; for local mechanisms the part that
            does not depend on the counts.
        threshold: θ of this slot's publication plan in nano-epsilons, None if there was none.
        dissimilarity: the noisy distance to the last fresh release, None if it was not measured.
        noise: the law of the noise behind `std_error`.
        measured: the slot of the last measurement behind these numbers, None before the first.
        honest: whether `std_error` is the whole error, so that an interval for the true counts can be stated.
    """

    slot: int
    histogram: FloatArray
    cells: Sequence[Any]
    mechanism: str
    outcome: OutcomeWord
    probe_charges: IntArray
    publication_charges: IntArray
    std_error: FloatArray | None = None
    threshold: int | None = None
    dissimilarity: float | None = None
    noise: ErrorModel | None = None
    measured: int | None = None
    honest: bool = False

    @property
    def fresh(self) -> bool:
        """Whether this slot was measured anew."""
        return self.outcome == "fresh"

    @property
    def charges(self) -> IntArray:
        """Nano-epsilons charged to each class in this slot."""
        return self.probe_charges + self.publication_charges

    def interval(self, level: float = LEVEL) -> tuple[FloatArray, FloatArray] | None:
        """Return lower and upper bounds per cell that hold the true count with this probability; None where none are known.

        None are known before the first measurement, for what is repeated, where people were sampled or weighed
        differently, in the local model, and with a known total.
        """
        bounds = self.noise_interval(level)
        return bounds if self.honest else None

    def noise_interval(self, level: float = LEVEL) -> tuple[FloatArray, FloatArray] | None:
        """Return bounds that cover the stated error alone, also where it is not the whole error; None before a measurement.

        Sampling and the age of a repeated release are not in them: for the truth ask `interval`.
        """
        if not isinstance(level, (int, float)) or not 0.0 < level < 1.0:
            raise InvalidOption(
                f"The confidence level must be between 0 and 1, not {level!r}.",
                "0.95 is common.",
                option="level",
                value=level,
            )
        if self.noise is None or self.std_error is None:
            return None
        return interval_of(self.histogram, self.std_error, self.noise, level)

    def to_dict(self) -> dict[str, Any]:
        low, high = self._bounds()
        return {
            "slot": self.slot,
            "mechanism": self.mechanism,
            "outcome": self.outcome,
            "measured": self.measured,
            "cells": list(self.cells),
            "histogram": None if self._is_empty() else self.histogram.tolist(),
            "std_error": None if self.std_error is None else self.std_error.tolist(),
            "low": low,
            "high": high,
            "probe_charges": self.probe_charges.tolist(),
            "publication_charges": self.publication_charges.tolist(),
            "charges": self.charges.tolist(),
            "threshold": self.threshold,
            "dissimilarity": self.dissimilarity,
        }

    def _is_empty(self) -> bool:
        """Return whether nothing was measured yet."""
        return self.measured is None and self.std_error is None

    def _bounds(self) -> tuple[list[float] | None, list[float] | None]:
        bounds = self.interval()
        return (None, None) if bounds is None else (bounds[0].tolist(), bounds[1].tolist())

    def __repr__(self) -> str:
        shown = ", ".join(f"{label}: {value:g}" for label, value in zip(self.cells, self.histogram[:3], strict=False))
        more = ", …" if len(self.histogram) > 3 else ""
        text = "nothing measured yet" if self._is_empty() else f"{{{shown}{more}}}"
        return f"<Release slot {self.slot} {self.mechanism} {self.outcome} {text}>"

    def _repr_html_(self) -> str:
        values = ["–" if self._is_empty() else f"{value:g}" for value in self.histogram]
        errors = [""] * len(values) if self.std_error is None else [f"±{e:.3g}" for e in self.std_error]
        rows = "".join(
            f"<tr><td>{html.escape(str(label))}</td><td style='text-align:right'>{value}</td><td>{error}</td></tr>"
            for label, value, error in zip(self.cells, values, errors, strict=True)
        )
        title = f"slot {self.slot} · {html.escape(self.mechanism)} · {self.outcome}"
        return f"<table><caption>{title}</caption><tr><th>cell</th><th>value</th><th>std error</th></tr>{rows}</table>"


def to_columns(releases: Iterable[Release]) -> dict[str, list[Any]]:
    """Return one row per slot and cell, as columns that pandas.DataFrame and polars.DataFrame both take.

    Values are None before the first measurement, `low` and `high` (95 %) where no honest interval is known.

    >>> list(to_columns([]))
    ['slot', 'cell', 'value', 'low', 'high', 'std_error', 'outcome', 'measured', 'mechanism']
    """
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for release in releases if isinstance(releases, Iterable) else (releases,):
        if not isinstance(release, Release):
            raise InvalidOption(
                f"Releases must be Release objects, not {type(release).__name__}.",
                "Pass the result of step() or run().",
            )
        facts = release.to_dict()
        cells = len(facts["cells"])
        columns["cell"] += facts["cells"]
        for name, fact in (("value", "histogram"), ("low", "low"), ("high", "high"), ("std_error", "std_error")):
            columns[name] += [None] * cells if facts[fact] is None else facts[fact]
        for name in ("slot", "outcome", "measured", "mechanism"):
            columns[name] += [facts[name]] * cells
    return columns
