"""Which options a mechanism takes: checked before anything is built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from wevent.core.budget import NANO
from wevent.core.estimators import TwoSums, Weighting
from wevent.core.limits import MAX_CELLS, MAX_SCALE
from wevent.core.mechanism import Estimator, Mechanism
from wevent.core.permit import WEIGHT_BITS
from wevent.core.requirements import Requirement
from wevent.core.settings import Options, check_value, option_text, option_values
from wevent.errors import InvalidCells, InvalidOption


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
        raise _refuse("threshold", "for bd and ba only", options.threshold, f"Leave it out for {row.name}.")
    if row.tracks and (options.estimator == "sampling" or options.smoothing == "hold"):
        wrong = "estimator" if options.estimator == "sampling" else "smoothing"
        raise _refuse(wrong, f"left out for {row.name}", getattr(options, wrong), "It weighs and filters, always.")
    if options.unbiased and not row.tracks:
        raise _refuse("unbiased", f"False for {row.name}", True, "Sampling is what it is; use pft for this.")
    if options.anchors and not row.tracks:
        raise _refuse("anchors", f"False for {row.name}", True, "Only what weighs and filters can use them: use pft.")
    if options.anchors and options.unbiased:
        raise _refuse("anchors", "False with unbiased", True, "Classes always count alike, or now and then: say one.")
    if options.cycle and not row.tracks:
        raise _refuse(
            "cycle", f"left out for {row.name}", options.cycle, "Only what filters and plans learns it: use pft."
        )
    if options.calendar and not options.cycle:
        raise _refuse("calendar", "with a cycle only", options.calendar[:2], "Say how long a day is: cycle.")
    if any(after <= before for before, after in pairwise(options.calendar)):
        raise _refuse("calendar", "with slots that increase", options.calendar[:2], "Days begin and end in turns.")
    if options.known_total is not None and options.neighbours != "replace":
        raise _refuse(
            "known_total",
            "with neighbours='replace' only",
            options.known_total,
            "Under add_remove the total is what is protected: nobody may declare it.",
        )


def complete(row: Mechanism, options: Options) -> Options:
    """Return the options with the values of `anchors` and `unbiased`, which are stored.

    All that track use anchors, unless one of the two says how classes count.
    """
    anchors, alike = options.anchors, options.unbiased
    if anchors is None:
        anchors = row.tracks and alike is None
    if alike is None:
        alike = row.tracks and not anchors
    return replace(options, anchors=anchors, unbiased=alike)


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
        share = min(requirement.nano for requirement in declared) // (
            2 * max(requirement.window for requirement in declared)
        )
    else:
        share = max(requirement.share for requirement in declared)
    unit = NANO << (WEIGHT_BITS if isinstance(estimator, (Weighting, TwoSums)) else 0)
    largest = share * int(MAX_SCALE) // (unit * (options.sensitivity // k))
    if k > largest:
        raise _refuse(
            "max_cells_per_user",
            f"to be at most {largest} for these requirements",
            k,
            "The noise for more would not fit 64 bits: let users be in fewer cells, or ask for larger epsilons.",
        )


def _refuse(option: str, expected: str, value: Any, remedy: str) -> InvalidOption:
    return InvalidOption(f"{option} {expected}", option_text(value), remedy, option=option, value=value)


def _check_local(row: Mechanism, options: Options) -> None:
    """In the local model a user sends one report, and reports are all there is."""
    if options.max_cells_per_user != 1:
        k = options.max_cells_per_user
        raise _refuse("max_cells_per_user", f"1 for {row.name}", k, "In the local model a user sends one report.")
    if options.refund:
        raise _refuse("refund", f"False for {row.name}", True, "Leave it out.")
    for name in ("estimator", "smoothing"):
        value = getattr(options, name)
        if value is not None:
            raise _refuse(name, f"left out for {row.name}", value, "In the local model reports are all there is.")
