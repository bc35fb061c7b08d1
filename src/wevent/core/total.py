"""Post-processing that cannot fail: the guard between what was drawn and what is committed (spec 10).

A smoother and a planner compute with floats from what was drawn. If some draw made them raise, or give what is not finite,
the slot would fail after its draw and be drawn anew, and what goes out would depend on a draw that was thrown away. So
whatever they do, there is an estimate: in the last resort the measurement itself, with the error it is known to have.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wevent.core.arrays import FloatArray
from wevent.core.mechanism import Budgets, Estimate, History, Measurement, Planner, Smoother


def smooth(smoother: Smoother, history: History, measurement: Measurement | None) -> tuple[Any, Estimate]:
    """The smoother's next state and what is published, finite for every measurement.

    First from what the smoother knows (once more where the caller's numpy raises); if that fails, from this measurement
    alone, as if it were the first; if that fails too, the measurement as it is (without one, the last), and the smoother
    learns nothing from it. Live and replayed slots take the same way: it is a function of past outputs.
    """
    found = _advanced(smoother, history.smoothed, measurement)
    if found is None:
        with np.errstate(all="ignore"):
            found = _advanced(smoother, history.smoothed, measurement)
            if found is None and measurement is not None:
                found = _advanced(smoother, smoother.start(len(history.measurement), history.slot), measurement)
    return (history.smoothed, as_measured(history, measurement)) if found is None else found


def _advanced(smoother: Smoother, state: Any, measurement: Measurement | None) -> tuple[Any, Estimate] | None:
    """The smoother's step, or None if it failed or is not finite."""
    try:
        after, estimate = smoother.advance(state, measurement)
        held = estimate is state  # it was checked when it was new
        return (after, estimate) if held or _is_finite(estimate) else None
    except Exception:  # noqa: BLE001  whatever a draw can lead to, the slot goes on
        return None


def widened(estimate: Estimate, turnover: int) -> Estimate:
    """An estimate that knows nothing of so many people, who joined or left since the last publication.

    All of them may be in one cell, or none: half of their number as a further standard error makes a 95 % band wide enough
    for either. Public numbers only; what is measured or repeated as it was keeps the error of its noise.
    """
    law, std_error = estimate.error, estimate.std_error
    if not turnover or law is None or std_error is None or law.law != "estimate":
        return estimate
    more = (turnover / 2.0) ** 2
    with np.errstate(all="ignore"):  # no draw may make it fail where the caller's numpy raises
        variance = law.variance + more
        wide = _finite(np.sqrt(std_error**2 + more))
    return estimate._replace(std_error=wide, error=law._replace(scale=variance**0.5, variance=variance))


def plan_ahead(planner: Planner, ledger: Budgets, history: History) -> Any:
    """What a planner remembers; if it fails, what it remembered before."""
    with np.errstate(all="ignore"):
        try:
            return planner.replan(ledger, history)
        except Exception:  # noqa: BLE001  as there
            return history.memory


def as_measured(history: History, measurement: Measurement | None) -> Estimate:
    """A measurement as it is, with its own error; the last one's values without an error if there is none now."""
    if measurement is None:
        return Estimate(_finite(history.measurement), None, None)
    error = measurement.error
    deviation = _finite(np.full(len(measurement.values), error.variance)) ** 0.5
    return Estimate(_finite(measurement.values), _finite(deviation), error)


def _is_finite(estimate: Estimate) -> bool:
    """A sum is finite if all of it is: the fastest way to ask."""
    total = np.add.reduce(estimate.values)
    if estimate.std_error is not None:
        total = total + np.add.reduce(estimate.std_error)
    return math.isfinite(total)


def _finite(values: Any) -> FloatArray:
    finite: FloatArray = np.nan_to_num(np.asarray(values, dtype=np.float64))
    finite.setflags(write=False)
    return finite
