"""Randomness that serves people: OpenDP's integer Laplace, exact binomials from operating-system entropy (spec 6)."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from wevent.core.arrays import IntArray, UintArray
from wevent.core.limits import MAX_SCALE
from wevent.core.permit import NoisePermit, ResponsePermit, SamplingPermit, redeem

_BLOCK = 1 << 20  # words of random bits drawn at once: 8 MB


class SecureNoise:
    """Exact sampling from the operating system's entropy. Holds no state: nothing to seed, copy or replay.

    Bits are fetched for each draw and never kept, so a fork cannot repeat them.
    """

    seeded = False

    @staticmethod
    def get_ready() -> None:
        """Load OpenDP, which takes a while, before a slot has to be ready in time; draws nothing."""
        _laplace_measurement(1.0)

    def laplace(self, permit: NoisePermit, size: int) -> IntArray:
        """Draw integer Laplace noise through OpenDP; costs what the permit's θ says for sensitivity Δ."""
        redeem(permit, NoisePermit)
        return np.array(_laplace_measurement(permit.scale)([0] * size), dtype=np.int64)

    def binomial(self, counts: IntArray, permit: SamplingPermit) -> IntArray:
        """Draw Binomial(C[g, j], p_g), exact for p_g rounded down to 64 bits; classes with p_g = 1 are kept whole."""
        redeem(permit, SamplingPermit)
        kept = counts.copy()
        sampled = ~permit.certain
        part = counts[sampled]
        probabilities = np.repeat(permit.exact_probabilities()[sampled], counts.shape[1])
        kept[sampled] = exact_binomial(part.ravel(), probabilities).reshape(part.shape)
        return kept

    def respond(self, counts: IntArray, permit: ResponsePermit) -> IntArray:
        """Draw every user's answer: the truth with p, else one of the d other answers by rejection from uniform bits."""
        redeem(permit, ResponsePermit)
        classes, answers = counts.shape
        truths = np.repeat(permit.truths, answers)
        kept = exact_binomial(counts.ravel(), truths).reshape(counts.shape)
        liars = (counts - kept).ravel()
        source = np.repeat(np.arange(classes * answers), liars)
        row, truth = np.divmod(source, answers)
        lie = uniform_below(permit.cells, len(source))
        lie += lie >= truth
        lies = np.bincount(row * answers + lie, minlength=classes * answers)
        return kept + lies.reshape(counts.shape)


def exact_binomial(counts: IntArray, probabilities: UintArray) -> IntArray:
    """Draw Binomial(n, p) for many n and 64-bit p at once, by bit decomposition (spec 6).

    Each of the n undecided compares a uniform fraction with p bit by bit from the top: at a 1 of p a random 0 is below
    (kept), at a 0 of p a random 1 is above (dropped), else it stays undecided. The ones among R fair bits are a
    popcount of R bits from the operating system: about 2n bits in all. Undecided after the last bit means not below p.
    """
    kept = np.zeros(len(counts), dtype=np.int64)
    undecided = counts.astype(np.int64)
    active = np.flatnonzero((undecided > 0) & (probabilities > 0))
    for bit in range(63, -1, -1):
        if not len(active):
            break
        rest = undecided[active]
        ones = _count_ones(rest)
        below = (probabilities[active] >> np.uint64(bit)) & np.uint64(1) == 1
        kept[active] += np.where(below, rest - ones, 0)
        rest = np.where(below, ones, rest - ones)
        undecided[active] = rest
        active = active[rest > 0]
    return kept


def uniform_below(bound: int, size: int) -> IntArray:
    """Return `size` uniform integers in [0, bound), by rejection."""
    mask = np.uint64((1 << (bound - 1).bit_length()) - 1)
    result = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        draws = (_words(size - filled) & mask).astype(np.int64)
        draws = draws[draws < bound]
        result[filled : filled + len(draws)] = draws
        filled += len(draws)
    return result


def _count_ones(bits: IntArray) -> IntArray:
    """For each entry n ≥ 1, the number of ones among n fresh fair bits; a block of words at a time.

    So memory does not grow with the number of users, and no count of theirs decides whether a slot can be drawn.
    """
    words = (bits + 63) >> 6
    ends = np.cumsum(words)
    ones = np.zeros(len(bits), dtype=np.int64)
    first = 0
    while first < len(bits):
        before = int(ends[first] - words[first])
        last = int(np.searchsorted(ends, before + _BLOCK, side="right"))
        if last > first:
            ones[first:last] = _count_at_once(bits[first:last], words[first:last], ends[first:last] - before)
        else:  # an entry that is larger than a block
            whole, rest = divmod(int(bits[first]), 64 * _BLOCK)
            last = first + 1
            ones[first] = sum(int(np.bitwise_count(_words(_BLOCK)).sum(dtype=np.int64)) for _ in range(whole))
            if rest:
                ones[first] += _count_ones(np.array([rest]))[0]
        first = last
    return ones


def _count_at_once(bits: IntArray, words: IntArray, ends: IntArray) -> IntArray:
    fresh = _words(int(ends[-1]))
    unused = ((words << 6) - bits).astype(np.uint64)  # 0 … 63 bits of each entry's last word
    fresh[ends - 1] >>= unused
    return np.add.reduceat(np.bitwise_count(fresh).astype(np.int64), ends - words)


def _words(number: int) -> UintArray:
    """Return 64-bit words straight from the operating system."""
    return np.frombuffer(bytearray(os.urandom(8 * number)), dtype=np.uint64)


@lru_cache(maxsize=256)
def _laplace_measurement(scale: float) -> Callable[[list[int]], list[int]]:
    """Return OpenDP's discrete Laplace for 64-bit integer vectors; OpenDP is loaded at the first use."""
    if not np.finfo(np.float64).tiny <= scale <= MAX_SCALE:
        raise ValueError("a noise scale must be positive, normal and at most 2^52: other noise is none or is cut off")
    from opendp.domains import atom_domain, vector_domain  # not its prelude, which loads Polars where there is one
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    measurement: Any = make_laplace(vector_domain(atom_domain(T="i64")), l1_distance(T="i64"), scale)
    invoke: Callable[[list[int]], list[int]] = measurement
    return invoke
