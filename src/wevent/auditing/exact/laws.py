"""The exact law of every draw a mechanism makes, in decimals of 60 digits.

A draw is one call of a source of noise (spec 6 and 9): integer Laplace noise, the records that a sample keeps, or the
reports of the local model. Each law is computed from what the permit says, as the secure source draws from it: the scale is
the float's exact value, probabilities are 64-bit fractions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from functools import lru_cache
from itertools import product
from math import comb, prod
from typing import Any

import numpy as np

from wevent.core.arrays import IntArray

EXACT = Context(prec=60, Emin=MIN_EMIN, Emax=MAX_EMAX)
"""What the audit computes with: a product of some hundred factors is right to more than 50 digits."""

_ONE = Decimal(1)
_MOST_OPTIONS = 1500  # draws of one call that are enumerated: with more, a slot would take minutes


class TooManyDraws(Exception):
    """A call has more possible draws than are enumerated: the audit takes smaller counts."""


@dataclass(frozen=True, eq=False)
class LaplaceCall:
    """A vector of integer Laplace noise: P(z) = (1 − q)/(1 + q)·q^|z|, q = exp(−1/scale), independent per entry."""

    scale: float
    size: int

    def default(self) -> IntArray:
        """Return the draw without noise."""
        return np.zeros(self.size, dtype=np.int64)

    def fits(self, draw: IntArray) -> bool:
        """Return whether this could be drawn."""
        return draw.shape == (self.size,)

    def probability(self, draw: IntArray) -> Decimal:
        """Return P(z), the product over entries."""
        return laplace_probability(self.scale, len(draw), sum(map(abs, draw.tolist())))

    def natural(self, generator: np.random.Generator) -> IntArray:
        """Draw about this law, to choose what is looked at."""
        drawn = generator.laplace(0.0, min(self.scale, 2.0**40), self.size)
        noise: IntArray = np.rint(drawn).astype(np.int64)
        return noise


@lru_cache(maxsize=65536)
def laplace_probability(scale: float, size: int, total: int) -> Decimal:
    """Return the probability of a vector of `size` draws whose absolute values sum to `total`."""
    with localcontext(EXACT):
        exponent = _ONE / Decimal(scale)  # a float is a decimal, exactly
        q = (-exponent).exp()
        return ((_ONE - q) / (_ONE + q)) ** size * (-exponent * total).exp()


@lru_cache(maxsize=65536)
def laplace_between(scale: float, low: int | None, high: int | None) -> Decimal:
    """Return the probability of a draw from `low` to `high`, both included; None: without end."""
    if low is not None and high is not None and low > 0:
        low, high = -high, -low  # the law is even: what is added is never a small rest of 1
    with localcontext(EXACT):
        exponent = _ONE / Decimal(scale)
        q = (-exponent).exp()

        def up_to(end: int) -> Decimal:
            """Return P(z ≤ end) for an end below 0."""
            return (exponent * end).exp() / (_ONE + q)

        if low is not None and high is not None and high < 0:
            return up_to(high) - up_to(low - 1)
        if low is None and high is not None and high < 0:
            return up_to(high)
        if high is None and low is not None and low > 0:
            return up_to(-low)
        below = Decimal(0) if low is None else up_to(low - 1)
        above = Decimal(0) if high is None else up_to(-high - 1)
        return _ONE - below - above


def _independent(
    laws: Sequence[Sequence[tuple[Any, Decimal]]], shape: tuple[int, ...]
) -> Iterator[tuple[IntArray, Decimal]]:
    """Yield every combination of independent draws as an array of this shape, and its probability."""
    for choice in product(*laws):
        with localcontext(EXACT):
            probability = prod((chance for _, chance in choice), start=_ONE)
        yield np.array([drawn for drawn, _ in choice], dtype=np.int64).reshape(shape), probability


@dataclass(frozen=True, eq=False)
class _CountsCall:
    """A draw that changes counts; without noise it is the counts."""

    counts: IntArray

    def default(self) -> IntArray:
        """Return the draw without noise."""
        return self.counts.copy()

    def fits(self, draw: IntArray) -> bool:
        """Return whether this could be drawn."""
        return draw.shape == self.counts.shape


@dataclass(frozen=True, eq=False)
class BinomialCall(_CountsCall):
    """Which records a sample keeps: Binomial(C[g, j], p_g) each, p_g a 64-bit fraction, 1 where `certain`."""

    fractions: tuple[int, ...]
    certain: tuple[bool, ...]

    def options(self) -> Iterator[tuple[IntArray, Decimal]]:
        """Yield every possible draw and its probability.

        Raises:
            TooManyDraws: if there are more than the audit enumerates.
        """
        laws = [
            [(count, _ONE)] if sure else binomial_law(count, fraction)
            for row, fraction, sure in zip(self.counts.tolist(), self.fractions, self.certain, strict=True)
            for count in row
        ]
        if prod(map(len, laws)) > _MOST_OPTIONS:
            raise TooManyDraws
        return _independent(laws, self.counts.shape)

    def natural(self, generator: np.random.Generator) -> IntArray:
        """Draw about this law, to choose what is looked at."""
        chances = [
            1.0 if sure else fraction / 2.0**64 for fraction, sure in zip(self.fractions, self.certain, strict=True)
        ]
        return np.asarray(generator.binomial(np.maximum(self.counts, 0), np.array(chances)[:, None]), dtype=np.int64)


@lru_cache(maxsize=4096)
def binomial_law(count: int, fraction: int) -> list[tuple[int, Decimal]]:
    """Return each possible number of `count` records kept with probability fraction/2^64, and its probability."""
    with localcontext(EXACT):
        kept = Decimal(fraction) / Decimal(2**64)
        law = [(k, comb(count, k) * kept**k * (_ONE - kept) ** (count - k)) for k in range(1, count + 1) if fraction]
        return [(0, (_ONE - kept) ** count if count else _ONE), *law]


@dataclass(frozen=True, eq=False)
class ResponseCall(_CountsCall):
    """Randomized responses (spec 9): a user's answer is the truth with p_g/2^64, else one of the d others, equally likely.

    Counts are classes × (cells and "absent").
    """

    truths: tuple[int, ...]

    def options(self) -> Iterator[tuple[IntArray, Decimal]]:
        """Yield every possible draw and its probability.

        Raises:
            TooManyDraws: if there are more than the audit enumerates.
        """
        answers = self.counts.shape[1]
        most = prod(comb(sum(row) + answers - 1, answers - 1) for row in self.counts.tolist())
        if most > _MOST_OPTIONS:
            raise TooManyDraws
        laws = [
            list(response_law(tuple(row), truth).items())
            for row, truth in zip(self.counts.tolist(), self.truths, strict=True)
        ]
        return _independent(laws, self.counts.shape)

    def natural(self, generator: np.random.Generator) -> IntArray:
        """Draw about this law, to choose what is looked at."""
        reports = np.zeros_like(self.counts)
        answers = self.counts.shape[1]
        for group, (row, truth) in enumerate(zip(self.counts.tolist(), self.truths, strict=True)):
            for answer, users in enumerate(row):
                chances = np.full(answers, (1.0 - truth / 2.0**64) / (answers - 1))
                chances[answer] = truth / 2.0**64
                reports[group] += generator.multinomial(users, chances / chances.sum())
        return reports


@lru_cache(maxsize=1024)
def response_law(answers: tuple[int, ...], truth: int) -> dict[tuple[int, ...], Decimal]:
    """Return how many users of a class report each answer, given how many hold each."""
    with localcontext(EXACT):
        kept = Decimal(truth) / Decimal(2**64)
        other = (_ONE - kept) / (len(answers) - 1)
        law = {(0,) * len(answers): _ONE}
        for true_answer, users in enumerate(answers):
            for _ in range(users):
                law = _one_more(law, true_answer, kept, other)
    return law


def _one_more(law: dict[Any, Decimal], true_answer: int, kept: Decimal, other: Decimal) -> dict[Any, Decimal]:
    after: dict[Any, Decimal] = {}
    for reports, probability in law.items():
        for answer, reported in enumerate(reports):
            now = (*reports[:answer], reported + 1, *reports[answer + 1 :])
            chance = probability * (kept if answer == true_answer else other)
            after[now] = after.get(now, Decimal(0)) + chance
    return after


Call = LaplaceCall | BinomialCall | ResponseCall
