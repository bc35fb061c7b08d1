"""What comes back every day: models whose level swings with a public cycle, for the bank of a filter (spec 11).

A seasonal model's level moves, beside its walk, by φ(t)·a: cosines and sines of the cycle and of its harmonics, with
coefficients a that are learnt with the level, per cell and model. Their size is believed to be a part of the cell's reach
r, the largest level seen: τ_n·r for harmonic n. Pure post-processing: φ is a function of the slot's number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wevent.core.arrays import FloatArray, IntArray

_HARMONICS = 6
_SIZE = 0.3  # τ of the cycle itself, relative to the reach; of harmonic n an n-th of it
_LEAST = 0.5  # no reach below this
MODELS = (  # walk, flicker, and what coefficients forget in a cycle, relative to τ²r²
    (1e-5, 1.0, 1e-4),
    (1e-5, 1.0, 1e-2),
    (1e-2, 1.0, 1e-3),
    (1e-1, 1.0, 1e-3),
    (1e-4, 8.0, 1e-4),
)


@dataclass(slots=True)
class SeasonState:
    """What is known of the swings; models × cells × coefficients unless said otherwise.

    Attributes:
        mean: of the coefficients.
        cross: their covariance with the level.
        variance: their covariance; models × cells × coefficients².
        path: of the average of all models, cells × coefficients: the mean, the covariance with the level, with the slope.
        path_variance: of that average, cells × coefficients².
        reach: r per cell.
        released: the slot of the last release.
    """

    mean: FloatArray
    cross: FloatArray
    variance: FloatArray
    path: FloatArray
    path_variance: FloatArray
    reach: FloatArray
    released: int = 0


class Swing(NamedTuple):
    """What the cycle does to levels until a slot, per model and cell: how far they move, and what that adds to variances."""

    step: FloatArray
    variance: FloatArray


@dataclass(frozen=True)
class Seasons:
    """The models' swings, and the arithmetic of them: functions of a `SeasonState`, which they change in place.

    Attributes:
        cycles: slots of each cycle.
        frequencies: turns per slot, one for each harmonic.
        size: τ per coefficient: those of the cosines, then those of the sines.
        pace: cycles per slot, per coefficient.
        walk, flicker, drift: q, v and δ per model.
    """

    cycles: tuple[int, ...]
    frequencies: FloatArray
    size: FloatArray
    pace: FloatArray
    walk: FloatArray
    flicker: FloatArray
    drift: FloatArray
    kind: Any = None

    def basis(self, slot: int) -> FloatArray:
        """φ(t)."""
        angle = 2.0 * np.pi * (self.frequencies * slot % 1.0)
        turn = np.concatenate([np.cos(angle), np.sin(angle)])
        if self.kind is None:
            return turn
        b = float(self.kind(slot))
        return np.concatenate([turn, b * turn, [b]])

    def start(self, cells: int) -> SeasonState:
        """Nothing known."""
        models, terms = len(self.drift), len(self.size)
        return SeasonState(
            mean=np.zeros((models, cells, terms)),
            cross=np.zeros((models, cells, terms)),
            variance=np.zeros((models, cells, terms, terms)),
            path=np.zeros((3, cells, terms)),
            path_variance=np.zeros((cells, terms, terms)),
            reach=np.zeros(cells),
        )

    def begin(self, state: SeasonState, level: FloatArray) -> None:
        """The first release: any swing of the size that is believed."""
        state.reach = np.maximum(level, _LEAST)
        state.variance[:] = np.diag(self.size**2) * (state.reach**2)[:, None, None]

    def turn(self, state: SeasonState, gap: int) -> FloatArray:
        """Δ = φ(t) − φ(t − h), from the last release on."""
        found: FloatArray = self.basis(state.released + gap) - self.basis(state.released)
        return found

    def predict(self, state: SeasonState, gap: int) -> Swing:
        """Coefficients drift; levels swing by Δ·a, and what is not known of a becomes doubt about the level."""
        terms = np.arange(len(self.size))
        drift = self.drift[:, None, None] * (gap * self.pace * self.size**2) * (state.reach**2)[:, None]
        state.variance[:, :, terms, terms] += drift
        turn = self.turn(state, gap)
        moved = state.variance @ turn
        swing = Swing(state.mean @ turn, 2.0 * (state.cross @ turn) + moved @ turn)
        state.cross += moved
        return swing

    def correct(self, state: SeasonState, score: FloatArray, information: FloatArray, kept: FloatArray) -> None:
        """What corrects a level corrects the coefficients by their covariance with it."""
        cross = state.cross
        terms = np.arange(len(self.size))
        least = state.variance[:, :, terms, terms] * kept[:, :, None]
        state.mean += cross * score[:, :, None]
        state.variance -= (cross * information[:, :, None])[:, :, :, None] * cross[:, :, None, :]
        # in exact arithmetic no variance falls below this part of itself
        state.variance[:, :, terms, terms] = np.maximum(state.variance[:, :, terms, terms], least)
        state.cross = cross * kept[:, :, None]

    def average(
        self, state: SeasonState, weights: FloatArray, levels: FloatArray, level: FloatArray, slope: FloatArray, gap: int
    ) -> None:
        """Moments of the mixture of all models, of which the others do not swing; and the reach of what was seen.

        Args:
            state: after a release.
            weights, levels: of the seasonal models.
            level, slope: of the average of all models.
            gap: slots since the release before.
        """
        mean = np.einsum("mc,mcd->cd", weights, state.mean)
        with_level = np.einsum("mc,mcd->cd", weights, state.cross)
        with_level += np.einsum("mc,mcd->cd", weights * (levels - level), state.mean)
        state.path = np.stack([mean, with_level, -mean * slope[:, None]])
        around = state.mean - mean
        rest = 1.0 - weights.sum(axis=0)
        state.path_variance = np.einsum("mc,mcde->cde", weights, state.variance)
        state.path_variance += np.einsum("mc,mcd,mce->cde", weights, around, around)
        state.path_variance += rest[:, None, None] * mean[:, :, None] * mean[:, None, :]
        higher = np.maximum(state.reach, level)
        growth = higher / state.reach
        state.cross *= growth[:, None]
        state.variance *= (growth * growth)[:, None, None]
        state.reach = higher
        state.released += gap

    def between(self, state: SeasonState, gap: int) -> Swing:
        """What the cycle adds to the average of all models `gap` slots after the release."""
        turn = self.turn(state, gap)
        mean, with_level, with_slope = state.path @ turn
        return Swing(mean, 2.0 * with_level + 2.0 * gap * with_slope + (state.path_variance @ turn) @ turn)

    def unknown_swings(self, periods: IntArray, observed: FloatArray, reach: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The variance by which a level swings unforeseen in k slots, and on average over them; as `period_errors`.

        A coefficient drifts by δπ/C per slot, π = τ²r²; measured every k slots with the variance R + V its own settles
        where a walk's would. What counts is the long run: what is not known yet will be learnt.

        Args:
            periods: k candidates.
            observed: R + V, periods × models × scales.
            reach: r² per scale.
        """
        harmonics = len(self.frequencies)
        believed = (self.size[:harmonics] ** 2)[:, None, None] * reach  # harmonics × 1 × scales
        drift = self.drift[:, None] * believed * self.pace[:harmonics, None, None]
        k = periods[:, None, None, None]
        settled = np.minimum(np.sqrt(2.0 * drift * observed[:, None] * k), believed)
        # |φ(t + j) − φ(t)|² of a harmonic is 2(1 − cos ωj); the cosines of j < k sum up to Dirichlet's kernel
        angle, slots = 2.0 * np.pi * self.frequencies, periods[:, None]
        turned = 2.0 * (1.0 - np.cos(angle * slots))
        on_average = 2.0 - (1.0 + np.sin(angle * (slots - 0.5)) / np.sin(angle / 2.0)) / slots
        at_end: FloatArray = np.einsum("kn,knms->kms", turned, settled)
        return at_end, np.einsum("kn,knms->kms", on_average, settled)


def harmonics(cycle: int) -> tuple[int, ...]:
    """n = 1, 2, … of a cycle, as far as slots can show them: n/C below a half."""
    return tuple(n for n in range(1, _HARMONICS + 1) if 2 * n < cycle)


def seasons_of(cycles: Sequence[int], kind: Any = None) -> Seasons:
    """Cycles of so many slots, each with its harmonics; one that two of them share counts once."""
    found = {n / cycle: (n, cycle) for cycle in reversed(cycles) for n in harmonics(cycle)}
    number, cycle = np.array(list(found.values()), dtype=np.float64).T
    walk, flicker, drift = np.array(MODELS).T
    size, pace = np.tile(_SIZE / number, 2), np.tile(1.0 / cycle, 2)
    if kind is not None:
        size, pace = np.concatenate([size, 0.7 * size, [0.15]]), np.concatenate([pace, pace, pace[:1]])
    return Seasons(tuple(cycles), np.array(list(found)), size, pace, walk, flicker, drift, kind)
