"""The built-in mechanisms, one row each (spec 8 and 9), and the options that a mechanism takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from wevent.core.budget import NANO
from wevent.core.estimators import CalibratedSum, RandomizedResponse, Sampling, Weighting
from wevent.core.limits import MAX_CELLS, MAX_SCALE
from wevent.core.mechanism import Estimator, Mechanism, Policy, Smoother
from wevent.core.options import Options, ThresholdRule, check_value, option_values
from wevent.core.permit import WEIGHT_BITS
from wevent.core.pft.adaptive_period import AdaptivePeriod
from wevent.core.pft.calibrated_filter import CalibratedFilter
from wevent.core.pft.filter import Filter
from wevent.core.pft.models import ModelGrid, models_with_seasons
from wevent.core.pft.schedules import CalibrationPolicy
from wevent.core.policies import Absorption, Distribution, Sample, Shared, Uniform
from wevent.core.postprocess import LastValue
from wevent.core.requirements import Requirement
from wevent.errors import InvalidCells, InvalidOption


def _models(options: Options) -> ModelGrid:
    return models_with_seasons(options.seasonality, options.special_days)


def _pft_policy(declared: tuple[Requirement, ...], options: Options) -> Policy:
    if options.class_weights == "calibrated":
        return CalibrationPolicy(CalibratedFilter(_models(options)).outlook, sensitivity=options.sensitivity)
    equal = options.class_weights == "equal"
    return AdaptivePeriod(Filter(_models(options)).outlook, unbiased=equal, sensitivity=options.sensitivity)


def _pft_estimator(options: Options) -> Estimator:
    return CalibratedSum() if options.class_weights == "calibrated" else Weighting()


def _pft_smoother(options: Options) -> Smoother:
    return CalibratedFilter(_models(options)) if options.class_weights == "calibrated" else Filter(_models(options))


def _published(
    name: str,
    summary: str,
    policy: Callable[[], Policy],
    *,
    threshold: ThresholdRule | None = None,
    shared: bool = False,
    local: bool = False,
) -> Mechanism:
    """Return the row of a published mechanism, which samples and repeats the last value unless the options differ."""

    def estimator(options: Options) -> Estimator:
        if local:
            return RandomizedResponse()
        return Weighting() if options.estimator == "weighting" else Sampling()

    return Mechanism(
        name,
        summary,
        lambda declared, options: Shared(policy(), declared) if shared else policy(),
        estimator,
        lambda options: Filter(_models(options)) if options.smoothing == "filter" else LastValue(),
        threshold=threshold,
        shared_budget=shared,
        local=local,
    )


_ROWS = (
    Mechanism(
        "pft",
        "personalised filtered tracking: leave nobody out, choose the period, filter what was measured",
        _pft_policy,
        _pft_estimator,
        _pft_smoother,
        tracks=True,
    ),
    _published(
        "pbd",
        "personalised budget distribution: publish on change, half of the remaining budget each time",
        Distribution,
        threshold="error",
    ),
    _published(
        "pba",
        "personalised budget absorption: publish on change with the budget of skipped slots",
        Absorption,
        threshold="error",
    ),
    _published(
        "bd",
        "budget distribution with the strictest requirement for all (Kellaris 2014)",
        Distribution,
        threshold="scale",
        shared=True,
    ),
    _published(
        "ba",
        "budget absorption with the strictest requirement for all (Kellaris 2014)",
        Absorption,
        threshold="scale",
        shared=True,
    ),
    _published("uniform", "every slot, the strictest epsilon / window for all (Kellaris 2014)", Uniform, shared=True),
    _published("pbu", "every slot, each class with its own epsilon / window through the sampling mechanism", Uniform),
    _published(
        "sample",
        "once per window with the whole of the smallest epsilon, repeated in between (Kellaris 2014)",
        Sample,
        shared=True,
    ),
    _published(
        "lbu",
        "local model: users randomize their reports with the strictest epsilon / window",
        Uniform,
        shared=True,
        local=True,
    ),
    _published(
        "plbu", "local model: users randomize their reports with their own epsilon / window", Uniform, local=True
    ),
)

BUILT_IN: Mapping[str, Mechanism] = MappingProxyType({row.name: row for row in _ROWS})


def check_options(row: Mechanism, options: Options) -> None:
    """Refuse values that no option has, and options that do not apply to the mechanism.

    Raises:
        InvalidOption: naming the option.
    """
    for name, value in option_values(options).items():
        check_value(name, value)
    applies = {
        "refund": not row.local,
        "threshold": row.threshold == "scale",
        "estimator": not row.local and not (row.tracks and options.estimator == "sampling"),
        "smoothing": not row.local and not (row.tracks and options.smoothing == "hold"),
        "class_weights": row.tracks,
        "seasonality": row.tracks,
    }
    for name, fits in applies.items():
        value = getattr(options, name)
        if value not in (None, False, ()) and not fits:
            raise _refuse(name, f"Option {name} does not apply to {row.name}.", value, "Leave it out.")
    days, k = options.special_days, options.max_cells_per_user
    if row.local and k != 1:
        problem = f"{row.name} takes one cell per user, not {k}: in the local model a user sends one report."
        raise _refuse("max_cells_per_user", problem, k, "Leave it out.")
    if days and not options.seasonality:
        problem = "Option special_days needs option seasonality."
        raise _refuse("special_days", problem, days, "Give the length of a day as seasonality.")
    if any(after <= before for before, after in pairwise(days)):
        problem = "The slots of special_days must increase."
        raise _refuse("special_days", problem, days, "List begin and end of each day in order.")
    if options.known_total is not None and options.neighbours != "replace":
        problem = "Option known_total needs neighbours='replace': add_remove protects the total."
        raise _refuse("known_total", problem, options.known_total, "Leave it out.")


def complete(row: Mechanism, options: Options) -> Options:
    """Return the options with the default of `class_weights`, which is stored."""
    return replace(options, class_weights="calibrated") if row.tracks and options.class_weights is None else options


def check_reach(
    row: Mechanism, options: Options, cells: int, declared: Sequence[Requirement], estimator: Estimator
) -> None:
    """Refuse cells and a k with which a sum could wrap, or noise be cut off by the ends of 64 bits (spec 6).

    Raises:
        InvalidCells: if there are more than `MAX_CELLS`.
        InvalidOption: naming `max_cells_per_user`, if it exceeds the cells or what the requirements' noise can cover.
    """
    if cells > MAX_CELLS:
        raise InvalidCells(
            f"A stream has at most {MAX_CELLS} cells, not {cells}.",
            "Split the cells into several streams.",
            cells=cells,
        )
    k = options.max_cells_per_user
    if k > cells:
        problem = f"max_cells_per_user is {k}, but there are only {cells} cells."
        raise _refuse("max_cells_per_user", problem, k, f"Use at most {cells}.")
    if row.local:
        return  # reports, no noise
    if row.shared_budget:
        share = min(one.nano for one in declared) // (2 * max(one.window for one in declared))
    else:
        share = max(requirement.share for requirement in declared)
    unit = NANO << (WEIGHT_BITS if isinstance(estimator, (Weighting, CalibratedSum)) else 0)
    largest = share * int(MAX_SCALE) // (unit * (options.sensitivity // k))
    if k > largest:
        problem = f"The noise for max_cells_per_user {k} does not fit 64 bits."
        fix = f"Use at most {largest} with these requirements, or larger epsilons."
        raise _refuse("max_cells_per_user", problem, k, fix)


def _refuse(option: str, problem: str, value: Any, fix: str) -> InvalidOption:
    return InvalidOption(problem, fix, option=option, value=value)
