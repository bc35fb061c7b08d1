"""Which options a mechanism takes: checked before anything is built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from wevent.core.budget import NANO
from wevent.core.estimators.weighting import Weighting
from wevent.core.limits import MAX_CELLS, MAX_SCALE, MAX_USERS
from wevent.core.mechanism import Estimator, EstimatorName, Mechanism, Neighbours, Options, SmoothingName
from wevent.core.permit import WEIGHT_BITS
from wevent.core.postprocess import Polish
from wevent.core.requirements import Requirement
from wevent.errors import InvalidCells, InvalidOption


def check_options(row: Mechanism, options: Options, polish: Polish) -> None:
    """Refuse options that are unknown or do not apply to the mechanism.

    Raises:
        InvalidOption: naming the option.
    """
    _check_promise(row, options)
    _check_pieces(row, options)
    _check_polish(options, polish)


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
            f"at most {MAX_CELLS} cells", f"{cells}", "Publish parts of them as streams of their own.", cells=cells
        )
    k = options.max_cells_per_user
    if k > cells:
        raise _refuse("max_cells_per_user", f"to be at most {cells}, the number of cells", k, "Nobody is in more.")
    if row.local:
        return  # reports, no noise
    if row.shared_budget:
        share = min(one.nano for one in declared) // (2 * max(one.window for one in declared))
    else:
        share = max(one.share for one in declared)
    unit = NANO << (WEIGHT_BITS if isinstance(estimator, Weighting) else 0)
    largest = share * int(MAX_SCALE) // (unit * (options.sensitivity // k))
    if k > largest:
        raise _refuse(
            "max_cells_per_user",
            f"to be at most {largest} for these requirements",
            k,
            "The noise for more would not fit 64 bits: let users be in fewer cells, or ask for larger epsilons.",
        )


def _refuse(option: str, expected: str, value: Any, remedy: str) -> InvalidOption:
    return InvalidOption(f"{option} {expected}", f"{value!r}", remedy, option=option, value=value)


def _check_promise(row: Mechanism, options: Options) -> None:
    if options.neighbours not in get_args(Neighbours):
        raise _refuse("neighbours", "'add_remove' or 'replace'", options.neighbours, "See the privacy guarantee page.")
    k = options.max_cells_per_user
    if type(k) is not int or k < 1:
        raise _refuse("max_cells_per_user", "to be a whole number, at least 1", k, "1 keeps a user's last event.")
    if row.local and k != 1:
        raise _refuse("max_cells_per_user", f"1 for {row.name}", k, "In the local model a user sends one report.")
    if type(options.refund) is not bool or (options.refund and row.local):
        raise _refuse("refund", f"True or False, False for {row.name}", options.refund, "Leave it out.")
    if options.threshold is not None and (row.threshold != "scale" or options.threshold not in ("scale", "std")):
        raise _refuse(
            "threshold",
            "'scale' or 'std', for bd and ba only",
            options.threshold,
            f"Leave it out for {row.name}." if row.threshold != "scale" else "Use one of the two.",
        )


def _check_pieces(row: Mechanism, options: Options) -> None:
    for name, value, known in (
        ("estimator", options.estimator, get_args(EstimatorName)),
        ("smoothing", options.smoothing, get_args(SmoothingName)),
    ):
        if value is None:
            continue
        if value not in known:
            raise _refuse(name, f"out of {', '.join(known)}", value, "Use one of these words.")
        if row.local:
            raise _refuse(name, f"left out for {row.name}", value, "In the local model reports are all there is.")
    if row.tracks and (options.estimator == "sampling" or options.smoothing == "hold"):
        wrong = "estimator" if options.estimator == "sampling" else "smoothing"
        raise _refuse(wrong, f"left out for {row.name}", getattr(options, wrong), "It weighs and filters, always.")
    _check_switch("unbiased", options.unbiased)
    if options.unbiased and not row.tracks:
        raise _refuse("unbiased", f"False for {row.name}", True, "Sampling is what it is; use pft for this.")


def _check_switch(option: str, value: Any) -> None:
    if type(value) is not bool:
        raise _refuse(option, "True or False", value, "Leave it out for False.")


def _check_polish(options: Options, polish: Polish) -> None:
    _check_switch("nonnegative", polish.nonnegative)
    _check_switch("round", polish.whole)
    total = polish.known_total
    if total is None:
        return
    if type(total) is not int or not 0 <= total <= MAX_USERS:
        expected = f"to be a whole number of users, at most {MAX_USERS}"
        raise _refuse("known_total", expected, total, "Give the number of registered users.")
    if options.neighbours != "replace":
        raise _refuse(
            "known_total",
            "with neighbours='replace' only",
            total,
            "Under add_remove the total is what is protected: nobody may declare it.",
        )
