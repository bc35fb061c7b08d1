"""The laws of draws that the exact audit computes with, against closed forms and brute force."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest

from wevent.auditing.exact.laws import (
    EXACT,
    BinomialCall,
    LaplaceCall,
    ResponseCall,
    TooManyDraws,
    binomial_law,
    response_law,
)

TINY = Decimal("1e-50")


def near(value: Decimal, wanted: Fraction) -> bool:
    with localcontext(EXACT):
        return abs(value - Decimal(wanted.numerator) / Decimal(wanted.denominator)) < TINY


@pytest.mark.parametrize("scale", [0.25, 2.0, 10.0, 1 / 0.3])
def test_laplace_probabilities_sum_to_one(scale: float) -> None:
    call = LaplaceCall(scale, 1)
    with localcontext(EXACT):
        within = sum(call.probability(np.array([z])) for z in range(-50, 51))
        q = (-1 / Decimal(scale)).exp()
        beyond = 2 * q**51 / (1 + q)
        assert abs(within + beyond - 1) < TINY


def test_one_step_of_laplace_noise_costs_one_over_scale() -> None:
    call = LaplaceCall(2.0, 2)
    with localcontext(EXACT):
        ratio = call.probability(np.array([5, -3])) / call.probability(np.array([6, -3]))
        assert abs(ratio.ln() - Decimal("0.5")) < TINY


@pytest.mark.parametrize("fraction", [0, 1, 2**63, 2**64 - 1, 9271516081557032190])
def test_binomial_law_is_exact(fraction: int) -> None:
    p = Fraction(fraction, 2**64)
    law = dict(binomial_law(3, fraction))
    for kept in range(4):
        wanted = comb(3, kept) * p**kept * (1 - p) ** (3 - kept)
        assert near(law.get(kept, Decimal(0)), wanted)


def test_kept_matrices_are_independent_cells_and_certain_classes_stay_whole() -> None:
    fraction = 2**62
    call = BinomialCall(np.array([[2, 1], [7, 3]]), (fraction, 0), (False, True))
    options = [(kept.tolist(), chance) for kept, chance in call.options()]
    assert len(options) == 6
    with localcontext(EXACT):
        assert abs(sum(chance for _, chance in options) - 1) < TINY
    assert all(kept[1] == [7, 3] for kept, _ in options)
    chance = next(chance for kept, chance in options if kept[0] == [1, 1])
    assert near(chance, 2 * Fraction(1, 4) * Fraction(3, 4) * Fraction(1, 4))


def test_reports_against_every_user_answering_alone() -> None:
    answers, truth = (1, 0, 2), 2**63 + 12345
    p = Fraction(truth, 2**64)
    q = (1 - p) / 2
    holders = [0, 2, 2]
    brute: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for said in product(range(3), repeat=3):
        chance = Fraction(1)
        for true, reported in zip(holders, said, strict=True):
            chance *= p if true == reported else q
        brute[tuple(said.count(answer) for answer in range(3))] += chance
    law = response_law(answers, truth)
    assert law.keys() == brute.keys()
    assert all(near(law[reports], brute[reports]) for reports in brute)


def test_too_much_to_enumerate_is_refused_not_cut_short() -> None:
    with pytest.raises(TooManyDraws):
        list(BinomialCall(np.array([[500, 500]]), (2**63,), (False,)).options())
    with pytest.raises(TooManyDraws):
        list(ResponseCall(np.array([[100, 100, 100]]), (2**63,)).options())
