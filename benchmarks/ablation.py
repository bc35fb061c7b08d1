"""What each piece of `pft` gains: the mechanism with one piece taken away, on synthetic and recorded streams."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import wevent
from benchmarks import hard_streams, report
from benchmarks.accuracy import SEED, Run, fixed_period, real_stream
from benchmarks.correlated_streams import INDEPENDENT, PEOPLE, Case, correlated
from wevent.core.builtin_mechanisms import BUILT_IN
from wevent.core.estimators import CalibratedSum, Sampling
from wevent.core.mechanism import Estimate, Mechanism
from wevent.core.pft import filter as filter_module
from wevent.core.pft.adaptive_period import AdaptivePeriod
from wevent.core.pft.calibrated_filter import CalibratedFilter
from wevent.core.pft.filter import Filter
from wevent.core.pft.models import ModelGrid, default_models
from wevent.core.pft.schedules import CalibrationPolicy

SEEDS = 3
CORRELATED = {
    "wide, independent": Case("wide", INDEPENDENT),
    "wide, correlated": Case("wide", 3.0),
    "wide, in waves": Case("wide", 1.0, "waves"),
}


class HeldFilter(Filter):
    """Learns like the filter, but publishes the last measurement as it is."""

    def __init__(self) -> None:
        super().__init__()
        self._last: Estimate | None = None

    def advance(self, state: Any, measurement: Any) -> Any:
        state, estimate = super().advance(state, measurement)
        if measurement is not None:
            spread = np.full(len(measurement.values), measurement.error.variance**0.5)
            self._last = Estimate(measurement.values.astype(float), spread, measurement.error)
        return state, self._last or estimate


def without_trends() -> ModelGrid:
    """Level models and the null only."""
    bank = default_models()
    prior = np.append(bank.prior[: bank.levels], bank.prior[-1])
    return ModelGrid(bank.walk[: bank.levels], bank.flicker[: bank.levels], bank.levels, prior / prior.sum())


def variant(name: str, **pieces: Any) -> str:
    """Register `pft` with other pieces."""
    row = BUILT_IN["pft"]
    bank: Callable[[], ModelGrid] = pieces.get("bank", default_models)
    wevent.register(
        Mechanism(
            name,
            f"pft: {name}",
            lambda declared, options: AdaptivePeriod(Filter(bank()).outlook),
            pieces.get("estimator", row.estimator),
            pieces.get("smoother", lambda options: Filter(bank())),
        )
    )
    return name


def gaussian(residual: Any, variance: Any, scale: float) -> Any:
    """The likelihood a textbook filter would use: a Gaussian of the same variance."""
    whole = variance + 2.0 * scale**2
    return -0.5 * (np.log(2.0 * np.pi * whole) + residual**2 / whole), residual / whole, np.ones_like(residual) / whole


@contextmanager
def likelihood(function: Any) -> Iterator[None]:
    """Put another likelihood into the filter."""
    own = filter_module.laplace_on_gaussian
    filter_module.laplace_on_gaussian = function
    try:
        yield
    finally:
        filter_module.laplace_on_gaussian = own


class Trusting(CalibratedFilter):
    """Never listens to anchors alone."""

    def _judge(self, state: Any, *foretold: Any) -> None:
        state.trust = np.ones_like(state.trust)


def with_anchors(name: str, smoother: Any) -> str:
    """Register `pft` with anchors and another smoother."""
    wevent.register(
        Mechanism(
            name,
            f"pft: {name}",
            lambda declared, options: CalibrationPolicy(smoother().outlook),
            lambda options: CalibratedSum(),
            lambda options: smoother(),
        )
    )
    return name


def correlated_errors(mechanism: str) -> dict[str, Any]:
    """Where requirement and cell go together, for ever or in waves."""
    found = {}
    for label, case in CORRELATED.items():
        counts, sizes = correlated(case, SEED)
        found[label] = f"{Run(mechanism, counts, sizes, PEOPLE[case.people].requirements, SEED).error:.4g}"
    return found


def errors(mechanism: str, real: dict[str, Any]) -> dict[str, Any]:
    """The sum over the synthetic streams, and each recorded stream."""
    total = 0.0
    for kind in ("tlns", "sin", "log"):
        for seed in range(SEED, SEED + SEEDS):
            counts, sizes = hard_streams.synthetic(kind, users=10_000, slots=1000, classes=9, seed=seed)
            total += Run(mechanism, counts, sizes, hard_streams.NINE, seed).error / SEEDS
    found: dict[str, Any] = {"tlns + sin + log": round(total)}
    for name, (counts, sizes) in real.items():
        found[name] = f"{Run(mechanism, counts, sizes, hard_streams.NINE, SEED).error:.4g}"
    return found


def main() -> None:
    """Measure and write."""
    folder = os.environ.get("WEVENT_DATA")
    paths = sorted(Path(folder).glob("*.parquet")) if folder else []
    real = {path.stem.split("_")[0]: real_stream(path, SEED) for path in paths}
    variants = {
        "full": "pft",
        "no estimate from anchors alone": with_anchors("pft-trusting", Trusting),
        "weights without anchors": variant("pft-weighted"),
        "sampling instead of weights, without anchors": variant("pft-sampling", estimator=lambda options: Sampling()),
        "last measurement instead of the filter, without anchors": variant(
            "pft-hold", smoother=lambda options: HeldFilter()
        ),
        "every slot instead of a chosen period, without anchors": fixed_period(1),
        "no trend models, without anchors": variant("pft-no-trend", bank=without_trends),
    }
    rows = [{"variant": label, **errors(name, real), **correlated_errors(name)} for label, name in variants.items()]
    with likelihood(gaussian):
        rows.append(
            {
                "variant": "Gaussian instead of Laplace likelihood, without anchors",
                **errors("pft-weighted", real),
                **correlated_errors("pft-weighted"),
            }
        )
    notes = [f"Mean squared error, nine equal classes; synthetic: mean of seeds {SEED} to {SEED + SEEDS - 1}."]
    if not real:
        notes.append("Recorded streams are absent: WEVENT_DATA names no folder of Parquet files.")
    report.write("ablation", "What each piece of pft gains", rows, notes)


if __name__ == "__main__":
    main()
