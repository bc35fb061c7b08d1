"""Generalized randomized response: the client's randomizer and the server's estimator (spec 9), as pure functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from wevent.core.budget import response_probability


def randomize(answer: int, *, cells: int, budget: int, draw_bits: Callable[[int], int]) -> int:
    """One report out of 0 … cells, where `cells` means absent.

    The truth is kept with probability p = e^ε/(e^ε + d), floored to 64 bits; otherwise each of the d other answers is
    equally likely, by rejection. Charges the user `budget` nano-epsilons: p/q ≤ e^ε for any two answers.

    Args:
        answer: the true cell, or `cells` if absent.
        cells: d.
        budget: ε of this slot in nano-epsilons.
        draw_bits: gives an integer of that many random bits.
    """
    if draw_bits(64) < response_probability(budget, cells):
        return answer
    width = (cells - 1).bit_length()
    other = draw_bits(width) if width else 0
    while other >= cells:
        other = draw_bits(width)
    return other + (other >= answer)


def unbiased(reports: npt.NDArray[np.int64], users: Any, truths: Any, cells: int) -> npt.NDArray[np.float64]:
    """(reports_j − m·q)/(p − q) with q = (1 − p)/d: unbiased for the true counts; post-processing.

    Args:
        reports: how often each cell was reported.
        users: m, the number of reports received (absent ones included).
        truths: p as it was used, after rounding.
        cells: d.
    """
    lies = (1.0 - truths) / cells
    estimates: npt.NDArray[np.float64] = (reports - users * lies) / (truths - lies)
    return estimates
