"""The local model for clients and servers: randomize one report, estimate from many (spec 9).

▲ Every registered client sends exactly one report per slot, absent or not, drawn once, stored, and re-sent unchanged on
retry: silence is visible and not protected. The budget of a slot is ε // w, so `epsilon` here is the slot's part.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from wevent.core.budget import response_probability
from wevent.core.estimators import randomize as _randomize
from wevent.core.estimators import unbiased
from wevent.core.requirements import Requirement
from wevent.counting.labels import Cells
from wevent.errors import InvalidReports

__all__ = ["estimate", "randomize"]


def randomize(cell: Any, *, cells: int | Sequence[Any], epsilon: object) -> int:
    """Return one user's report for one slot: a number from 0 to d, where d means absent.

    The truth is kept with probability e^ε/(e^ε + d), every other answer is equally likely; bits come from the operating
    system. Charges the user `epsilon`, whatever the neighbouring relation.

    Args:
        cell: the user's cell (label, or index for a numbered domain), None if absent.
        cells: the declared domain.
        epsilon: the budget of this slot.

    Raises:
        InvalidReports: if the cell is not in the domain.
    """
    return randomize_nano(cell, cells=cells, budget=Requirement(1, epsilon).nano)


def randomize_nano(cell: Any, *, cells: int | Sequence[Any], budget: int) -> int:
    """Return a report as `randomize` does, with a budget in nano-epsilons. A budget of 0 gives a uniform report."""
    domain = Cells.of(cells)
    answer = len(domain) if cell is None else int(domain.find(np.asarray([cell]))[0])
    if answer < 0:
        raise InvalidReports(
            "The stream has no such cell.",
            "Use a declared cell, or None for an absent user.",
            index=0,
        )
    return _randomize(answer, cells=len(domain), budget=budget, draw_bits=secrets.randbits)


def estimate(reports: Any, *, cells: int | Sequence[Any], epsilon: object) -> npt.NDArray[np.float64]:
    """Return how many users are in each cell, unbiased, from the reports of one class and slot.

    Args:
        reports: what `randomize` returned for each user, all with the same epsilon.
        cells: the declared domain.
        epsilon: the budget each report was made with.

    Raises:
        InvalidReports: if a report is not a number from 0 to d.
    """
    domain = Cells.of(cells)
    answers = np.asarray(reports)
    if answers.ndim != 1 or (len(answers) and answers.dtype.kind not in "iu"):
        raise InvalidReports(
            f"Reports must be a list of whole numbers, not of shape {answers.shape} and type {answers.dtype}.",
            "Pass one number per report.",
            index=None,
        )
    bad = np.flatnonzero((answers < 0) | (answers > len(domain)))
    if len(bad):
        raise InvalidReports(
            f"A report is outside 0 to {len(domain)}.",
            "Use the cells that the reports were made with.",
            index=int(bad[0]),
        )
    truth = response_probability(Requirement(1, epsilon).nano, len(domain)) / 2.0**64
    seen = np.bincount(answers.astype(np.int64), minlength=len(domain) + 1)[:-1]
    return unbiased(seen, len(answers), truth, len(domain))
