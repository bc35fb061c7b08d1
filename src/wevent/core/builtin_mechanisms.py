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
from wevent.core.options import EstimatorName, Options, SmoothingName, check_value, option_values
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

PolicyMaker = Callable[[tuple[Requirement, ...], Options], Policy]


def _own(policy: Callable[[], Policy]) -> PolicyMaker:
    """Every class spends its own budget."""
    return lambda declared, options: policy()


def _shared(policy: Callable[[], Policy]) -> PolicyMaker:
    """One budget, the strictest, for all declared classes."""
    return lambda declared, options: Shared(policy(), declared)


def _estimator(default: EstimatorName) -> Callable[[Options], Estimator]:
    """Return the estimator of the options, or this one."""
    return lambda options: Weighting() if (options.estimator or default) == "weighting" else Sampling()


def _bank(options: Options) -> ModelGrid:
    return models_with_seasons(options.seasonality, options.special_days)


def _smoother(default: SmoothingName) -> Callable[[Options], Smoother]:
    """Return the smoother of the options, or this one."""
    return lambda options: Filter(_bank(options)) if (options.smoothing or default) == "filter" else LastValue()


_sampling, _hold = _estimator("sampling"), _smoother("hold")


def _tracking(declared: tuple[Requirement, ...], options: Options) -> Policy:
    if options.class_weights == "calibrated":
        return CalibrationPolicy(CalibratedFilter(_bank(options)).outlook, sensitivity=options.sensitivity)
    equal = options.class_weights == "equal"
    return AdaptivePeriod(Filter(_bank(options)).outlook, unbiased=equal, sensitivity=options.sensitivity)


def _one_or_two_sums(options: Options) -> Estimator:
    return CalibratedSum() if options.class_weights == "calibrated" else Weighting()


def _with_offsets_or_without(options: Options) -> Smoother:
    return CalibratedFilter(_bank(options)) if options.class_weights == "calibrated" else Filter(_bank(options))


def _randomized(options: Options) -> RandomizedResponse:
    return RandomizedResponse()


_ROWS = (
    Mechanism(
        "pft",
        "personalised filtered tracking: leave nobody out, choose the period, filter what was measured",
        _tracking,
        _one_or_two_sums,
        _with_offsets_or_without,
        tracks=True,
    ),
    Mechanism(
        "pbd",
        "personalised budget distribution: publish on change, half of the remaining budget each time",
        _own(Distribution),
        _sampling,
        _hold,
        threshold="error",
    ),
    Mechanism(
        "pba",
        "personalised budget absorption: publish on change with the budget of skipped slots",
        _own(Absorption),
        _sampling,
        _hold,
        threshold="error",
    ),
    Mechanism(
        "bd",
        "budget distribution with the strictest requirement for all (Kellaris 2014)",
        _shared(Distribution),
        _sampling,
        _hold,
        threshold="scale",
        shared_budget=True,
    ),
    Mechanism(
        "ba",
        "budget absorption with the strictest requirement for all (Kellaris 2014)",
        _shared(Absorption),
        _sampling,
        _hold,
        threshold="scale",
        shared_budget=True,
    ),
    Mechanism(
        "uniform",
        "every slot, the strictest epsilon / window for all (Kellaris 2014)",
        _shared(Uniform),
        _sampling,
        _hold,
        shared_budget=True,
    ),
    Mechanism(
        "pbu",
        "every slot, each class with its own epsilon / window through the sampling mechanism",
        _own(Uniform),
        _sampling,
        _hold,
    ),
    Mechanism(
        "sample",
        "once per window with the whole of the smallest epsilon, repeated in between (Kellaris 2014)",
        _shared(Sample),
        _sampling,
        _hold,
        shared_budget=True,
    ),
    Mechanism(
        "lbu",
        "local model: users randomize their reports with the strictest epsilon / window",
        _shared(Uniform),
        _randomized,
        _hold,
        shared_budget=True,
        local=True,
    ),
    Mechanism(
        "plbu",
        "local model: users randomize their reports with their own epsilon / window",
        _own(Uniform),
        _randomized,
        _hold,
        local=True,
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
    if row.local:
        _check_local(row, options)
    if options.threshold is not None and row.threshold != "scale":
        raise _refuse(
            "threshold",
            f"Option threshold does not apply to {row.name}.",
            options.threshold,
            "Leave it out, or use bd or ba.",
        )
    if row.tracks and (options.estimator == "sampling" or options.smoothing == "hold"):
        wrong = "estimator" if options.estimator == "sampling" else "smoothing"
        raise _refuse(
            wrong,
            f"Option {wrong} does not apply to {row.name}.",
            getattr(options, wrong),
            "Leave it out: the mechanism always weighs and filters.",
        )
    if options.class_weights is not None and not row.tracks:
        problem = f"Option class_weights does not apply to {row.name}."
        raise _refuse("class_weights", problem, options.class_weights, "Leave it out, or use pft.")
    if options.seasonality and not row.tracks:
        raise _refuse(
            "seasonality",
            f"Option seasonality does not apply to {row.name}.",
            options.seasonality,
            "Leave it out, or use pft.",
        )
    if options.special_days and not options.seasonality:
        raise _refuse(
            "special_days",
            "Option special_days needs option seasonality.",
            options.special_days[:2],
            "Give the length of a day as seasonality.",
        )
    if any(after <= before for before, after in pairwise(options.special_days)):
        raise _refuse(
            "special_days",
            "The slots of special_days must increase.",
            options.special_days[:2],
            "List begin and end of each day in order.",
        )
    if options.known_total is not None and options.neighbours != "replace":
        raise _refuse(
            "known_total",
            "Option known_total needs neighbours='replace'.",
            options.known_total,
            "Leave it out: add_remove protects the total.",
        )


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
        raise _refuse(
            "max_cells_per_user",
            f"max_cells_per_user is {k}, but there are only {cells} cells.",
            k,
            f"Use at most {cells}.",
        )
    if row.local:
        return  # reports, no noise
    if row.shared_budget:
        share = min(requirement.nano for requirement in declared) // (
            2 * max(requirement.window for requirement in declared)
        )
    else:
        share = max(requirement.share for requirement in declared)
    unit = NANO << (WEIGHT_BITS if isinstance(estimator, (Weighting, CalibratedSum)) else 0)
    largest = share * int(MAX_SCALE) // (unit * (options.sensitivity // k))
    if k > largest:
        raise _refuse(
            "max_cells_per_user",
            f"The noise for max_cells_per_user {k} does not fit 64 bits.",
            k,
            f"Use at most {largest} with these requirements, or larger epsilons.",
        )


def _refuse(option: str, problem: str, value: Any, fix: str) -> InvalidOption:
    return InvalidOption(problem, fix, option=option, value=value)


def _check_local(row: Mechanism, options: Options) -> None:
    """In the local model a user sends one report, and reports are all there is."""
    if options.max_cells_per_user != 1:
        k = options.max_cells_per_user
        raise _refuse(
            "max_cells_per_user",
            f"{row.name} takes one cell per user, not {k}.",
            k,
            "Leave it out: in the local model a user sends one report.",
        )
    if options.refund:
        raise _refuse("refund", f"Option refund does not apply to {row.name}.", True, "Leave it out.")
    for name in ("estimator", "smoothing"):
        value = getattr(options, name)
        if value is not None:
            raise _refuse(
                name,
                f"Option {name} does not apply to {row.name}.",
                value,
                "Leave it out: the local model has reports only.",
            )
