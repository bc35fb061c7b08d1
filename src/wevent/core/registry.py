"""The built-in mechanisms, one row each (spec 8 and 9)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from wevent.core.anchored import AnchoredFilter
from wevent.core.anchoring import Anchoring
from wevent.core.bank import Bank, bank_with_cycles
from wevent.core.estimators import Randomized, Sampling, TwoSums, Weighting
from wevent.core.filter import Filter, Hold
from wevent.core.mechanism import Estimator, Mechanism, Policy, Smoother
from wevent.core.policies import Absorption, Distribution, Sample, Shared, Uniform
from wevent.core.requirements import Requirement
from wevent.core.settings import EstimatorName, Options, SmoothingName
from wevent.core.tracking import Tracking

PolicyMaker = Callable[[tuple[Requirement, ...], Options], Policy]


def _own(policy: Callable[[], Policy]) -> PolicyMaker:
    """Every class spends its own budget."""
    return lambda declared, options: policy()


def _shared(policy: Callable[[], Policy]) -> PolicyMaker:
    """One budget, the strictest, for all declared classes."""
    return lambda declared, options: Shared(policy(), declared)


def _estimator(default: EstimatorName) -> Callable[[Options], Estimator]:
    """The estimator of the options, or this one."""
    return lambda options: Weighting() if (options.estimator or default) == "weighting" else Sampling()


def _bank(options: Options) -> Bank:
    return bank_with_cycles(options.seasonality, options.special_days)


def _smoother(default: SmoothingName) -> Callable[[Options], Smoother]:
    """The smoother of the options, or this one."""
    return lambda options: Filter(_bank(options)) if (options.smoothing or default) == "filter" else Hold()


_sampling, _hold = _estimator("sampling"), _smoother("hold")


def _tracking(declared: tuple[Requirement, ...], options: Options) -> Policy:
    if options.class_weights == "calibrated":
        return Anchoring(AnchoredFilter(_bank(options)).outlook, sensitivity=options.sensitivity)
    equal = options.class_weights == "equal"
    return Tracking(Filter(_bank(options)).outlook, unbiased=equal, sensitivity=options.sensitivity)


def _one_or_two_sums(options: Options) -> Estimator:
    return TwoSums() if options.class_weights == "calibrated" else Weighting()


def _with_offsets_or_without(options: Options) -> Smoother:
    return AnchoredFilter(_bank(options)) if options.class_weights == "calibrated" else Filter(_bank(options))


def _randomized(options: Options) -> Randomized:
    return Randomized()


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
