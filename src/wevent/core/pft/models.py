"""The models a filter averages over: how fast may a cell change, and what comes back every day (spec 11.2, 11.6 and 11.9)?

Everything is relative to a cell's scale s = x(1 − x/n), the variance of a count of independent users: a model is the same
for a cell of ten users and one of ten thousand. Level models walk with variance q·s per slot; trend models have a slope
that walks; v·s is an extra variance that is new in every slot (users who come and go). One more model, the null, says that
the cell holds nothing the noise would show.

The level of a seasonal model moves, beside its walk, as φ(t)·a does: cosines and sines of the cycle and of its harmonics,
with coefficients a that are learnt with the level, per cell and model. Their size is believed to be a part of the cell's
reach r, the largest level seen: τ_n·r for harmonic n. On days of another kind, which a public calendar names, other
coefficients are added. Pure post-processing: φ is a function of the slot's number and of settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from wevent.core.arrays import FloatArray, IntArray, packed, unpacked
from wevent.core.pft.constants import (
    HARMONICS,
    MEMORYLESS_PRIOR,
    SEASONAL_MODELS,
    SEASONAL_PRIOR,
    SMALLEST_REACH,
    SPECIAL_LEVEL,
    SPECIAL_SWING,
    SWING,
)


@dataclass(slots=True)
class SeasonalState:
    """What a filter knows of the swings of its seasonal models; models × coefficients × cells unless said otherwise.

    Attributes:
        mean: of the coefficients.
        cross: their covariance with the level.
        variance: their covariance; models × coefficients² × cells.
        path: of the average of all models, coefficients × cells: the mean, the covariance with the level, with the slope.
        path_variance: of that average, coefficients² × cells.
        reach: r per cell.
        released: the slot of the last release; before the first, the slot before the first slot.
    """

    mean: FloatArray
    cross: FloatArray
    variance: FloatArray
    path: FloatArray
    path_variance: FloatArray
    reach: FloatArray
    released: int

    def copy(self) -> SeasonalState:
        return SeasonalState(**{name: getattr(self, name).copy() for name in _ARRAYS}, released=self.released)

    def __getitem__(self, block: Any) -> SeasonalState:
        """Return the state of a block of cells; it shares its arrays with the whole."""
        return SeasonalState(**{name: getattr(self, name)[block] for name in _ARRAYS}, released=self.released)

    def dump(self) -> dict[str, Any]:
        """Return arrays as shape and bytes, covariances by the half of them that says all."""
        half = np.triu_indices(self.mean.shape[1])
        halves = {"variance": self.variance[:, *half], "path_variance": self.path_variance[half]}
        arrays = {name: halves.get(name, getattr(self, name)) for name in _ARRAYS}
        return {"released": self.released, **{name: packed(value) for name, value in arrays.items()}}

    @classmethod
    def load(cls, dumped: dict[str, Any]) -> SeasonalState:
        arrays = {name: unpacked(dumped[name]) for name in _ARRAYS}
        terms = arrays["mean"].shape[1]
        for name in ("variance", "path_variance"):
            arrays[name] = _mirrored(arrays[name], terms)
        return cls(**arrays, released=dumped["released"])


_ARRAYS = tuple(field.name for field in fields(SeasonalState) if field.name != "released")


def _mirrored(half: FloatArray, terms: int) -> FloatArray:
    rows, columns = np.triu_indices(terms)
    whole = np.empty((*half.shape[:-2], terms, terms, half.shape[-1]))
    whole[..., rows, columns, :] = half
    whole[..., columns, rows, :] = half
    return whole


@dataclass(frozen=True)
class SeasonalModels:
    """The models' swings, and the arithmetic of them: functions of a `SeasonalState`, which they change in place.

    Attributes:
        cycles: slots of each cycle.
        frequencies: turns per slot, one for each harmonic.
        size: τ per coefficient: those of the cosines, those of the sines; then the same for other days, and their level.
        pace: cycles per slot, per coefficient.
        walk, flicker, drift: q, v and δ per model.
        calendar: the slots with which days of another kind begin and end, in turns; None: all days are alike.
    """

    cycles: tuple[float, ...]
    frequencies: FloatArray
    size: FloatArray
    pace: FloatArray
    walk: FloatArray
    flicker: FloatArray
    drift: FloatArray
    calendar: IntArray | None = None

    def basis(self, slot: int) -> FloatArray:
        """Return φ(t), with a calendar [φ, bφ, b], b being 1 on days of the other kind."""
        angle = 2.0 * np.pi * (self.frequencies * slot % 1.0)
        turn = np.concatenate([np.cos(angle), np.sin(angle)])
        if self.calendar is None:
            return turn
        other = float(self.calendar.searchsorted(slot, side="right") % 2)
        return np.concatenate([turn, other * turn, [other]])

    def start(self, cells: int, slot: int = 1) -> SeasonalState:
        models, terms = len(self.drift), len(self.size)
        return SeasonalState(
            mean=np.zeros((models, terms, cells)),
            cross=np.zeros((models, terms, cells)),
            variance=np.zeros((models, terms, terms, cells)),
            path=np.zeros((3, terms, cells)),
            path_variance=np.zeros((terms, terms, cells)),
            reach=np.full(cells, SMALLEST_REACH),
            released=slot - 1,
        )

    def begin(self, state: SeasonalState, level: FloatArray) -> None:
        """The first release: any swing of the size that is believed."""
        np.maximum(level, SMALLEST_REACH, out=state.reach)
        state.variance[:] = np.diag(self.size**2)[:, :, None] * state.reach**2

    def turn(self, state: SeasonalState, gap: int) -> FloatArray:
        """Return Δ = φ(t) − φ(t − h), from the last release on."""
        return self.basis(state.released + gap) - self.basis(state.released)

    def predict(self, state: SeasonalState, gap: int, level: FloatArray, level_variance: FloatArray) -> None:
        """Coefficients drift; levels swing by Δ·a, and what is not known of a becomes doubt about them.

        A += δ(h/C)τ²r²; x += Δ·a; P += 2Δ·c + ΔᵀAΔ; c += AΔ.
        """
        terms, turn = np.arange(len(self.size)), self.turn(state, gap)
        drift = self.drift[:, None] * (gap * self.pace * self.size**2)
        state.variance[:, terms, terms] += drift[:, :, None] * state.reach**2
        moved = np.einsum("mdec,e->mdc", state.variance, turn)
        level += np.einsum("mdc,d->mc", state.mean, turn)
        level_variance += np.einsum("mdc,d->mc", 2.0 * state.cross + moved, turn)
        np.maximum(level_variance, 0.0, out=level_variance)  # rounding alone could make it less
        state.cross += moved

    def correct(self, state: SeasonalState, score: FloatArray, information: FloatArray, kept: FloatArray) -> None:
        """What corrects a level corrects coefficients by their covariance with it: a += cg, A −= ccᵀG, c ·= 1 − PG."""
        cross, variance, terms = state.cross, state.variance, np.arange(len(self.size))
        least = variance[:, terms, terms] * kept[:, None]  # in exact arithmetic no variance falls below this
        state.mean += cross * score[:, None]
        outer = cross[:, :, None] * cross[:, None]
        outer *= information[:, None, None]
        variance -= outer
        variance[:, terms, terms] = np.maximum(variance[:, terms, terms], least)
        cross *= kept[:, None]

    def average(
        self, state: SeasonalState, weights: FloatArray, levels: FloatArray, level: FloatArray, slope: FloatArray
    ) -> None:
        """Compute moments of the mixture of all models, of which the others do not swing; and the reach of what was seen.

        Args:
            state: after a release.
            weights, levels: of the seasonal models.
            level, slope: of the average of all models.
        """
        mean, with_level, with_slope = state.path
        mean[:] = np.einsum("mc,mdc->dc", weights, state.mean)
        with_level[:] = np.einsum("mc,mdc->dc", weights, state.cross)
        with_level += np.einsum("mc,mdc->dc", weights * (levels - level), state.mean)
        with_slope[:] = -mean * slope  # what has a slope does not swing
        around = state.mean - mean
        own = np.einsum("mc,mdec->dec", weights, state.variance)
        own += np.einsum("mdc,mec->dec", weights[:, None] * around, around)
        own += (1.0 - weights.sum(axis=0)) * (mean[:, None] * mean)
        # the same on both sides to the last bit, which sums of products are not: only half of it is stored
        state.path_variance[:] = 0.5 * (own + own.swapaxes(0, 1))
        higher = np.maximum(state.reach, level)
        growth = higher / state.reach
        if growth.max() > 1.0:  # what was believed was relative to the reach
            state.cross *= growth
            state.variance *= growth * growth
            state.reach[:] = higher

    def between(self, state: SeasonalState, gap: int) -> tuple[FloatArray, FloatArray]:
        """Return what the cycle adds to mean and variance of the average of all models, `gap` slots after the release."""
        turn = self.turn(state, gap)
        mean, with_level, with_slope = np.einsum("pdc,d->pc", state.path, turn)
        own = np.einsum("dc,d->c", np.einsum("dec,e->dc", state.path_variance, turn), turn)
        return mean, 2.0 * (with_level + gap * with_slope) + own

    def unknown_swings(
        self, periods: IntArray, observed: FloatArray, squared_reach: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the variance by which a level swings unforeseen in k slots, and on average over them; as `period_errors`.

        A coefficient drifts by δπ/C per slot, π = τ²r²; measured every k slots with the variance R + V, what is not known
        of it settles at √(2δπ(R + V)k/C), π at most. This is the long run: what is not known yet will be learnt.

        Args:
            periods: k candidates.
            observed: R + V, periods × models × scales.
            squared_reach: r² per scale.
        """
        harmonics = len(self.frequencies)
        believed = (self.size[:harmonics] ** 2)[:, None, None] * squared_reach  # harmonics × 1 × scales
        drift = self.drift[:, None] * believed * self.pace[:harmonics, None, None]
        settled = np.sqrt(2.0 * drift * observed[:, None] * periods[:, None, None, None])
        np.minimum(settled, believed, out=settled)
        # |φ(t + j) − φ(t)|² of a harmonic is 2(1 − cos ωj); the cosines of j < k sum up to Dirichlet's kernel
        angle, slots = 2.0 * np.pi * self.frequencies, periods[:, None]
        at_end = 2.0 * (1.0 - np.cos(angle * slots))
        on_average = 2.0 - (1.0 + np.sin(angle * (slots - 0.5)) / np.sin(angle / 2.0)) / slots
        return np.einsum("kn,knms->kms", at_end, settled), np.einsum("kn,knms->kms", on_average, settled)


def harmonics(cycle: float) -> tuple[int, ...]:
    """Return n = 1, 2, … of a cycle, as far as slots can show them: n/C below a half."""
    return tuple(n for n in range(1, HARMONICS + 1) if 2 * n < cycle)


def seasonal_models(cycles: Sequence[float], calendar: Sequence[int] = ()) -> SeasonalModels:
    """Return models of cycles of so many slots, each with its harmonics; one that two of them share counts once.

    Args:
        cycles: slots of each.
        calendar: the slots with which days of another kind begin and end, in turns; empty: all days are alike.
    """
    found = {n / cycle: (n, cycle) for cycle in reversed(cycles) for n in harmonics(cycle)}
    number, cycle = np.array(list(found.values()), dtype=np.float64).T
    size, pace = np.tile(SWING / number, 2), np.tile(1.0 / cycle, 2)
    walk, flicker, drift = np.array(SEASONAL_MODELS).T
    changes = None
    if calendar:
        size, pace = (
            np.concatenate([size, SPECIAL_SWING * size, [SPECIAL_LEVEL]]),
            np.concatenate([pace, pace, pace[:1]]),
        )
        changes = np.array(calendar, dtype=np.int64)
    return SeasonalModels(tuple(cycles), np.array(list(found)), size, pace, walk, flicker, drift, changes)


@dataclass(frozen=True)
class ModelGrid:
    """Model grid: level models first, then trend models, then seasonal ones.

    Attributes:
        walk: q per model.
        flicker: v per model.
        levels: how many of them are level models.
        prior: prior weight per model, the null's last.
        seasons: how the last models swing with a public cycle; None: there are no such.
    """

    walk: FloatArray
    flicker: FloatArray
    levels: int
    prior: FloatArray
    seasons: SeasonalModels | None = None

    @property
    def trends(self) -> slice:
        return slice(self.levels, self.seasonal.start)

    @property
    def seasonal(self) -> slice:
        models = len(self.walk)
        return slice(models if self.seasons is None else models - len(self.seasons.drift), models)


def default_models() -> ModelGrid:
    """Walks from 1e-7 to 1e3 of the scale; the faster beyond 1, the rarer; trends at a half."""
    level = [
        (10.0**exponent, flicker, min(1.0, 10.0**-exponent) * (2.0 / flicker if flicker else 1.0))
        for exponent in range(-4, 4)
        for flicker in (0.0, 1.0, 8.0)
        if exponent < 1 or flicker == 1.0
    ]
    level += [(1e-7, flicker, 1.0 + flicker) for flicker in (0.0, 1.0)]
    # A stream without memory tells soon; believed any earlier, these would shorten others' periods.
    level += [(walk, flicker, MEMORYLESS_PRIOR) for walk in (1e-7, 1e-3) for flicker in (64.0, 512.0)]
    trend = [
        (10.0**exponent, flicker, 0.5 if exponent < -2 else 0.1) for exponent in range(-6, -1) for flicker in (0.0, 1.0)
    ]
    walk, flicker, weight = np.array(level + trend).T
    prior = np.append(0.7 * weight / weight.sum(), 0.3)
    return ModelGrid(walk, flicker, len(level), prior)


def models_with_seasons(cycles: Sequence[float], calendar: Sequence[int] = ()) -> ModelGrid:
    """Return the default models, and seasonal ones with a tenth of the prior that is not the null's, if there are cycles.

    Args:
        cycles, calendar: as of `seasonal_models`.
    """
    bank = default_models()
    if not cycles:
        return bank
    seasons = seasonal_models(cycles, calendar)
    models = len(seasons.drift)
    held = bank.prior[:-1]
    prior = np.concatenate(
        [(1.0 - SEASONAL_PRIOR) * held, np.full(models, SEASONAL_PRIOR * held.sum() / models), bank.prior[-1:]]
    )
    walk, flicker = np.append(bank.walk, seasons.walk), np.append(bank.flicker, seasons.flicker)
    return ModelGrid(walk, flicker, bank.levels, prior, seasons)
