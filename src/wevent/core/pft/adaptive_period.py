"""When to release: choose a period, spend what its windows allow (spec 11.6 and 11.7).

Releasing every k slots with k slots' budget beats averaging k releases: the noise variance falls with k², not k. The period
is the one with the smallest error that the filter's models expect. Everything here looks only at past releases, charges,
class sizes and settings, so it costs nothing; what is spent goes through the gate as always.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from wevent.core.arrays import FloatArray, IntArray, any_true, frozen_ints
from wevent.core.budget import MAX_EPSILON, NANO
from wevent.core.mechanism import History, NoOffer, PolicyInput, is_mostly_new
from wevent.core.pft.constants import (
    CLEAR_NOISE,
    ENTRIES_AT_ONCE,
    EXACT_RELEASES,
    FIRST_PART,
    HYSTERESIS,
    NEXT_PART,
    PERIOD_STEP,
    PHASE,
    PLANNED_WINDOWS,
    READY,
    RECONSIDER,
    SETTLED,
)
from wevent.core.pft.expected_errors import FilterForecast
from wevent.core.pft.models import harmonics

_MOST = np.iinfo(np.int64).max


class AdaptivePeriod:
    """Release every k slots, k chosen from past releases.

    Args:
        outlook: what the smoother expects, from its state.
        unbiased: weigh all classes alike, with the smallest budget: more noise, but no bias if requirement and cell are
            correlated.
        sensitivity: Δ.
    """

    def __init__(
        self,
        outlook: Callable[[Any], FilterForecast],
        *,
        unbiased: bool = False,
        sensitivity: int = 1,
    ) -> None:
        self._outlook = outlook
        self._unbiased = unbiased
        self._sensitivity = sensitivity

    def probe(self, ledger: PolicyInput) -> IntArray | None:
        return None

    def offer(self, ledger: PolicyInput, history: History) -> IntArray | NoOffer:
        """Up to a sixth of ε at first; then every k slots the most that can be repeated every k slots in all windows."""
        if not history.last_fresh:
            return self._fair(self.first(ledger, len(history.measurement)), ledger)
        period: int = history.memory or 1  # nothing remembered: planning failed
        waited = history.slot - history.last_fresh
        if is_mostly_new(ledger.sizes, history):
            look = self._fair(self.again(ledger, len(history.measurement)), ledger)
            if self.tells(look, ledger):
                return look
        if waited < period:
            period = self._soonest(period, ledger, history)
        if waited < period:
            return NoOffer.NOT_DUE
        budgets = sustainable(ledger, period)
        wanted = steady(ledger, period)
        if self._unbiased:
            budgets, wanted = self._level(budgets, ledger), self._level(wanted, ledger)
        users = ledger.typical_sizes.astype(np.float64)  # budget · users may exceed 64 bits
        if float(budgets @ users) < READY * float(wanted @ users):
            return NoOffer.NOT_DUE
        if self._unbiased:
            return budgets
        capped_budgets: IntArray = self._capped(budgets[None], ledger, self._outlook(history.smoothed)).budgets[0]
        return capped_budgets

    def replan(self, ledger: PolicyInput, history: History) -> Any:
        """Return the period for the next release."""
        outlook = self._outlook(history.smoothed)
        if history.memory and outlook.releases >= SETTLED and outlook.releases % RECONSIDER:
            return history.memory
        candidates = periods(some_of(planned_windows(ledger)), outlook.cycles)
        current = history.memory or int(candidates[len(candidates) // 2])
        errors = outlook.expected_errors(candidates, *self._expected(candidates, ledger, outlook))
        best = int(errors.argmin())
        held = int(np.abs(candidates - current).argmin())
        if outlook.releases <= 3 or errors[best] < (1.0 - HYSTERESIS) * errors[held]:
            return int(candidates[best])
        return current

    def first(self, ledger: PolicyInput, cells: int) -> IntArray:
        """Return what the first look takes: no more than is needed to see cells of the usual size, if n users share them.

        Such a cell varies by the root of its users from slot to slot, so finer noise shows nothing that lasts; what it
        would take is missing until the first window is over.
        """
        least, most = ledger.epsilons // ledger.windows, ledger.epsilons // FIRST_PART
        usual = max(float(ledger.sizes.sum()), 1.0) / cells
        enough = 2.0**0.5 * self._sensitivity / (CLEAR_NOISE * usual**0.5) * NANO
        most = np.minimum(most, int(min(enough, MAX_EPSILON * NANO)))
        budgets: IntArray = np.maximum(most, least)
        return budgets

    def again(self, ledger: PolicyInput, cells: int) -> IntArray:
        """Return what a first look at other users takes: as the first of all, never more than a part of what is left.

        So people who enrol little by little are looked at again and again, and there is always something left for it.
        """
        left = ledger.forecast(np.zeros(1, dtype=np.int64))[:, 0]
        budgets: IntArray = np.minimum(self.first(ledger, cells), np.maximum(left, 0) // NEXT_PART)
        return budgets

    def tells(self, look: IntArray, ledger: PolicyInput) -> bool:
        """Return whether a look at other users is worth it: it has half of what every slot could have, or less noise
        than there are users. With the last few nano-epsilons of a window the filter would begin anew with noise alone.
        """
        users = ledger.typical_sizes.astype(np.float64)  # budget · users may exceed 64 bits
        spent = float(look @ users)
        return spent >= min(READY * float(steady(ledger, 1) @ users), math.sqrt(2.0) * self._sensitivity * NANO)

    def _soonest(self, period: int, ledger: PolicyInput, history: History) -> int:
        """After the first look no longer than until a jump would show: slot 1 may be unlike all others, and the window is
        unspent. Later releases keep to their period, which a cycle may have made longer than every window.
        """
        outlook = self._outlook(history.smoothed)
        if outlook.releases > 1:
            return period
        noise = float(self._capped(steady(ledger, 1)[None], ledger, outlook).noise[0])
        return int(min(max(1.0, np.ceil((noise / outlook.jump) ** 0.5)), float(ledger.windows.max()), float(period)))

    def _expected(
        self, candidates: IntArray, ledger: PolicyInput, outlook: FilterForecast
    ) -> tuple[FloatArray, FloatArray]:
        """For each period, the noise variance and the CV² of the weights of a release; so many at once as fit in memory."""
        at_once = max(1, ENTRIES_AT_ONCE // len(ledger.windows))
        plans = [
            self._capped(steady(ledger, candidates[first : first + at_once, None]), ledger, outlook)
            for first in range(0, len(candidates), at_once)
        ]
        return np.concatenate([plan.noise for plan in plans]), np.concatenate([plan.composition for plan in plans])

    def _level(self, budgets: IntArray, ledger: PolicyInput) -> IntArray:
        """With `unbiased`, the smallest budget of any class with members, for all."""
        if not self._unbiased:
            return budgets
        members = ledger.sizes > 0
        smallest = (budgets[..., members] if any_true(members) else budgets).min(axis=-1, keepdims=True)
        leveled: IntArray = np.minimum(budgets, smallest)
        return leveled

    def _fair(self, budgets: IntArray, ledger: PolicyInput) -> IntArray:
        """Return the budgets of a look: equal with `unbiased`, otherwise without excess."""
        return self._level(budgets, ledger) if self._unbiased else without_excess(budgets, ledger)

    def _capped(self, budgets: IntArray, ledger: PolicyInput, outlook: FilterForecast) -> Capped:
        return capped(
            self._level(budgets, ledger),
            ledger.sizes if self._unbiased else ledger.typical_sizes,
            scale=outlook.scale,
            gain=outlook.gain,
            sensitivity=self._sensitivity,
        )


class Capped(NamedTuple):
    """For each of several releases: budgets after the cap, the noise variance they give and the CV² of their weights."""

    budgets: IntArray
    noise: FloatArray
    composition: FloatArray


def capped(budgets: IntArray, sizes: IntArray, *, scale: float, gain: float, sensitivity: int = 1) -> Capped:
    """Cap all budgets at the θ that minimises gain·noise + CV²·scale; releases × classes, each release on its own.

    Which classes happen to be in a cell may persist, so no filter averages that error out; noise is averaged with the
    filter's gain. Equal weights (θ the smallest) have no composition error, θ the largest has the least noise. Where nobody
    has a budget, nothing is capped and the noise is as good as infinite.
    """
    if not sizes.any():  # nobody is registered: all classes count alike
        sizes = np.ones_like(sizes)
    order = budgets.argsort(axis=1, kind="stable")
    ascending, members = np.take_along_axis(budgets, order, axis=1), sizes[order].astype(np.float64)
    allowed = (ascending > 0) & (members > 0.0)
    values = ascending / NANO
    users = float(sizes.sum())
    above = users - members.cumsum(axis=1)  # of the classes with larger budgets: they are capped
    mean = ((values * members).cumsum(axis=1) + values * above) / users
    square = ((values * values * members).cumsum(axis=1) + values * values * above) / users
    mean[~allowed] = 1.0 / NANO  # no θ: the mean may be 0
    noise, composition = 2.0 * (sensitivity / mean) ** 2, np.maximum(square / mean**2 - 1.0, 0.0)
    best = np.where(allowed, gain * noise + composition * scale, np.inf).argmin(axis=1)
    chosen = np.arange(len(budgets)), best
    some = allowed[chosen]
    return Capped(
        np.where(some[:, None], np.minimum(budgets, ascending[chosen][:, None]), budgets),
        np.where(some, noise[chosen], float(NANO) ** 2),
        np.where(some, composition[chosen], 0.0),
    )


def planned_windows(ledger: PolicyInput) -> IntArray:
    """Return the windows of the rows that plan; of all charged rows if nobody is registered."""
    members = ledger.typical_sizes > 0
    return ledger.windows[members if any_true(members) else ledger.charged]


def without_excess(budgets: IntArray, ledger: PolicyInput) -> IntArray:
    """Return the budgets, none above the largest of a row that plans: a few users would outweigh all others."""
    members = ledger.typical_sizes > 0
    return np.minimum(budgets, budgets[members].max()) if any_true(members) else budgets


def steady(ledger: PolicyInput, period: IntArray | int) -> IntArray:
    """Return ε over the releases a window can hold: ε_g // ceil(w_g / k); a row for each k of a column."""
    budgets: IntArray = ledger.epsilons // -(-ledger.windows // period)
    return budgets


def sustainable(ledger: PolicyInput, period: int, aside: Callable[[IntArray], IntArray] = np.zeros_like) -> IntArray:
    """Return the largest budget that could be charged now and every k slots from now on, with what really remains.

    By the slot m·k from now, m + 1 releases share what is left there, for every m that still falls into the window.

    Args:
        ledger: what remains.
        period: k.
        aside: what every row has to keep for something else by that many slots from now.
    """
    within = -(-ledger.windows // period)
    releases = _release_numbers(int(within.max()))
    delays = releases * period
    remaining = (ledger.forecast(delays) - aside(delays)) // (releases + 1)
    remaining[releases >= within[:, None]] = _MOST
    budgets: IntArray = remaining.min(axis=1)
    return np.maximum(budgets, 0)


def _release_numbers(most: int) -> IntArray:
    """Return 0 to `most` − 1; of very many the first ones and a growing series: one wide window must not slow a slot down."""
    if most <= EXACT_RELEASES:
        return np.arange(most)
    later = np.geomspace(EXACT_RELEASES, most - 1, EXACT_RELEASES // 16).astype(np.int64)
    return np.unique(np.concatenate((np.arange(EXACT_RELEASES), later)))


def some_of(windows: IntArray) -> IntArray:
    """Return the windows, each once; of too many some, evenly spread from the shortest to the longest."""
    found: IntArray = np.unique(windows)
    if len(found) > PLANNED_WINDOWS:
        found = found[np.linspace(0, len(found) - 1, PLANNED_WINDOWS).astype(np.int64)]
    return found


def periods(windows: IntArray, cycles: Sequence[float] = ()) -> IntArray:
    """Return candidates: 1, growing by a fourth, and the windows themselves; of a cycle they must meet all phases.

    A period that meets the same few phases again and again (a whole cycle, a half …) teaches nothing of the others: beyond
    an eighth of the cycle the next larger one is taken that no harmonic hides.
    """
    return _periods(windows.tobytes(), tuple(cycles))


@lru_cache(maxsize=64)
def _periods(windows: bytes, cycles: tuple[float, ...]) -> IntArray:
    found = {1, *np.frombuffer(windows, dtype=np.int64).tolist()}
    widest, candidate = max(found), 1.0
    while candidate < widest:
        found.add(round(candidate))
        candidate *= PERIOD_STEP
    if cycles:
        found = _meeting_all_phases(sorted(found), cycles) or found
    return frozen_ints(sorted(found))


def _meeting_all_phases(candidates: list[int], cycles: tuple[float, ...]) -> set[int]:
    """Return each candidate, or the next larger period that no harmonic hides; none if all are hidden."""
    tried = np.arange(1, candidates[-1] + math.ceil(max(cycles)) + 1)
    good = np.ones(len(tried), dtype=np.bool_)
    for cycle in cycles:
        turns = tried[:, None] * np.array(harmonics(cycle)) / cycle
        good &= (np.abs(turns - np.rint(turns)) >= PHASE).all(axis=1) | (8 * tried <= cycle)
    allowed = tried[good]
    places = np.searchsorted(allowed, candidates)
    return set(allowed[np.minimum(places, len(allowed) - 1)].tolist()) if len(allowed) else set()
