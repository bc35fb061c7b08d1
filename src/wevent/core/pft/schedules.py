"""Plan releases with anchors: the period, how often all classes count alike, and at what level (spec 11.8).

Main sums have the least noise but are off where requirement and cell go together; anchors are noisier and tell by how much.
A design is a period, the slots between anchors and their level. For each period there are main sums with the cheapest
anchors, and anchors at every release as strong as can be; then the period is chosen. Only public numbers go in (past
releases, charges, class sizes, settings), so planning costs nothing; what is spent goes through the ledger as always.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from wevent.core.arrays import BoolArray, FloatArray, IntArray
from wevent.core.budget import NANO
from wevent.core.mechanism import History, NoOffer, PolicyInput, Split, is_mostly_new
from wevent.core.pft.adaptive_period import (
    AdaptivePeriod,
    periods,
    planned_windows,
    some_of,
    steady,
    sustainable,
    without_excess,
)
from wevent.core.pft.constants import (
    ALARM,
    ALIKE_COUNTS,
    ALIKE_PART,
    CALIBRATION_LEVELS,
    CALIBRATION_MULTIPLES,
    CALIBRATION_PATIENCE,
    CALIBRATION_WINDOWS,
    ENTRIES_AT_ONCE,
    FREE_CALIBRATION,
    HYSTERESIS,
    LONG_PERIOD,
    READY,
    RECONSIDER,
    SETTLED,
)
from wevent.core.pft.expected_errors import CalibrationForecast

NEVER = 10**9  # slots between anchors where there are none
ALWAYS = 0  # … where every release has one, as strong as can be


class Schedule(NamedTuple):
    """How to release: every so many slots, with an anchor every so many slots, of this level in nano-epsilons."""

    period: int
    every: int
    level: int


class ExpectedCost(NamedTuple):
    """A design, the noise variance of a release, and the squared error that offsets are expected to leave per cell."""

    design: Schedule
    noise: float
    offset: float


class Rows(NamedTuple):
    """Classes that have members, those of one window together: what a design costs does not need more of them.

    Attributes:
        windows: w, each once.
        least: the smallest ε of those who have it.
        shares: their part of the users.
        budgets: the sum of ε over them, as a part of all users.
        squares: the same of ε².
    """

    windows: IntArray
    least: IntArray
    shares: FloatArray
    budgets: FloatArray
    squares: FloatArray


def members_of(ledger: PolicyInput) -> BoolArray:
    """Return the rows that have members and plan; all of them if nobody is registered."""
    members = ledger.typical_sizes > 0
    return members if members.any() else np.ones_like(members)


def shares_of(ledger: PolicyInput) -> FloatArray:
    """Return each row's part of the users whose requirements plan."""
    sizes = ledger.typical_sizes if ledger.typical_sizes.any() else np.ones_like(ledger.typical_sizes)
    shares: FloatArray = sizes / sizes.sum()
    return shares


def noise_of(budget: Any, sensitivity: int) -> Any:
    """Return 2(Δ/e)², of an average budget in nano-epsilons."""
    return 2.0 * (sensitivity * NANO / np.maximum(budget, 1.0)) ** 2


def all_schedules(
    ledger: PolicyInput, outlook: CalibrationForecast, periods: IntArray, held: Schedule | None, sensitivity: int
) -> list[ExpectedCost]:
    """For every period, the best design with main sums and those with an anchor in every release."""
    rows = _rows(ledger)
    found = []
    at_once = max(1, ENTRIES_AT_ONCE // (len(CALIBRATION_MULTIPLES) * len(CALIBRATION_LEVELS) * len(rows.windows)))
    for first in range(0, len(periods), at_once):
        found += _cheapest(rows, outlook, periods[first : first + at_once], held, sensitivity)
    return found + _always(rows, outlook, periods, sensitivity)


def _rows(ledger: PolicyInput) -> Rows:
    members = members_of(ledger)
    epsilons, shares = ledger.epsilons[members], shares_of(ledger)[members]
    windows, place = np.unique(ledger.windows[members], return_inverse=True)
    least = np.full(len(windows), np.iinfo(np.int64).max)
    np.minimum.at(least, place, epsilons)
    moments = shares, shares * epsilons, shares * epsilons.astype(np.float64) ** 2
    return Rows(windows, least, *np.array([np.bincount(place, one, len(windows)) for one in moments], np.float64))


class Priced(NamedTuple):
    """Designs with main sums, an array per column; whatever a filter expects is not in it.

    Attributes:
        period, every, level: the designs.
        noise: the noise variance of a main sum.
        spread: CV² of its weights.
        contrast: the noise variance of an anchor minus a main sum, infinite without anchors.
    """

    period: IntArray
    every: IntArray
    level: IntArray
    noise: FloatArray
    spread: FloatArray
    contrast: FloatArray


def _cheapest(
    rows: Rows, outlook: CalibrationForecast, periods: IntArray, held: Schedule | None, sensitivity: int
) -> list[ExpectedCost]:
    """Return main sums every k slots: for each k, the distance and level of anchors that cost least."""
    priced = _grid(tuple(column.tobytes() for column in rows), periods.tobytes(), sensitivity)
    tried = len(priced.period)
    if held is not None and held.every not in (ALWAYS, NEVER):  # the one we have, at each of the periods
        every = np.maximum(held.every, periods)
        same = _price(rows, periods, every, np.minimum(held.level, _strictest(rows, every)), sensitivity)
        priced = Priced(*(np.append(one, other) for one, other in zip(priced, same, strict=True)))
    offset = outlook.offset_errors(priced.spread, priced.every.astype(np.float64), priced.contrast)
    cost = outlook.counts.gain * priced.noise + offset
    cost[tried:] /= 1.0 + HYSTERESIS
    taught = priced.level.astype(np.float64) ** 2 / priced.every
    found = []
    for k in periods.tolist():
        own = np.flatnonzero(priced.period == k)
        free = own[cost[own] <= (1.0 + FREE_CALIBRATION) * cost[own].min()]
        best = free[int(taught[free].argmax())]
        design = Schedule(k, int(priced.every[best]), int(priced.level[best]))
        found.append(ExpectedCost(design, float(priced.noise[best]), float(offset[best])))
    return found


@lru_cache(maxsize=64)
def _grid(columns: tuple[bytes, ...], periods: bytes, sensitivity: int) -> Priced:
    """Return every combination worth a look; the same from one release to the next, as long as nobody comes or goes."""
    windows, least = (np.frombuffer(one, np.int64) for one in columns[:2])
    rows = Rows(windows, least, *np.array([np.frombuffer(one) for one in columns[2:]]))
    period, every, part = _combinations(rows.windows, np.frombuffer(periods, np.int64))
    level = np.floor(part * _strictest(rows, every)).astype(np.int64)
    priced = _price(rows, period, every, level, sensitivity)
    for column in priced:
        column.setflags(write=False)
    return priced


def _price(rows: Rows, period: IntArray, every: IntArray, level: IntArray, sensitivity: int) -> Priced:
    anchors = level[:, None] * anchors_inside(rows.windows, every[:, None])
    noise, spread = _main_sum(rows, anchors, -(-rows.windows // period[:, None]), sensitivity)
    contrast = np.where(level > 0, noise_of(level, sensitivity) + noise, np.inf)
    return Priced(period, every, level, noise, spread, contrast)


def _always(rows: Rows, outlook: CalibrationForecast, periods: IntArray, sensitivity: int) -> list[ExpectedCost]:
    """Return an anchor at every release: alone, or with the main sum from what remains beside it, as far as offsets allow."""
    level = _strictest(rows, periods)
    releases = -(-rows.windows // periods[:, None])
    rest = (rows.budgets / releases).sum(axis=1) - level
    some = (rest > 1.0) & (level > 0)  # where all have the same budget, main sums are as good as anchors
    if not some.any():
        return []
    periods, level, releases = periods[some], level[some], releases[some]
    designs = [Schedule(k, ALWAYS, e) for k, e in zip(periods.tolist(), level.tolist(), strict=True)]
    alike = noise_of(level, sensitivity)
    noise, spread = _main_sum(rows, level[:, None] * releases, releases, sensitivity)
    off = outlook.offset_errors(spread, periods.astype(np.float64), alike + noise)
    part = alike / (alike + noise)
    learning = outlook.learning(periods.astype(np.float64), alike)
    alone = [ExpectedCost(*one) for one in zip(designs, alike.tolist(), learning.tolist(), strict=True)]
    with_main = zip(designs, (part * noise).tolist(), (part * part * off).tolist(), strict=True)
    return alone + [ExpectedCost(*one) for one in with_main]


def _combinations(windows: IntArray, periods: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Return period, distance of anchors and part of the strictest class's budget, for every combination worth a look."""
    widest = int(windows.max())
    some = np.unique(np.quantile(windows, np.linspace(0.0, 1.0, CALIBRATION_WINDOWS), method="nearest"))
    rows = []
    for k in periods.tolist():
        distances = np.unique(np.concatenate([CALIBRATION_MULTIPLES * k, some]))
        distances = distances[(distances >= k) & (distances <= max(widest, k))]
        rows.append((np.full(len(distances), k), distances))
    period, every = (np.concatenate(column) for column in zip(*rows, strict=True))
    parts = np.tile(CALIBRATION_LEVELS, len(every))
    return (
        np.concatenate([periods, np.repeat(period, len(CALIBRATION_LEVELS))]),
        np.concatenate([np.full(len(periods), NEVER), np.repeat(every, len(CALIBRATION_LEVELS))]),
        np.concatenate([np.zeros(len(periods)), parts]),
    )


def _strictest(rows: Rows, every: IntArray) -> IntArray:
    """Return the level that every class could give every so many slots, if it gave all to anchors."""
    level: IntArray = (rows.least // -(-rows.windows // every[:, None])).min(axis=1)
    return level


def _main_sum(rows: Rows, anchors: Any, releases: IntArray, sensitivity: int) -> tuple[FloatArray, FloatArray]:
    """Return noise variance and CV² of the weights, of main sums of (ε − anchors)/releases; designs × windows."""
    mean = ((rows.budgets - anchors * rows.shares) / releases).sum(axis=1)
    squares = rows.squares - 2.0 * anchors * rows.budgets + np.square(anchors, dtype=np.float64) * rows.shares
    spread = (squares / np.square(releases, dtype=np.float64)).sum(axis=1) / np.maximum(mean, 1e-3) ** 2 - 1.0
    return noise_of(mean, sensitivity), np.maximum(spread, 0.0)


def anchors_inside(windows: IntArray, every: Any) -> Any:
    """Return how many anchors a window holds; of windows shorter than the distance between anchors, how many on average."""
    inside = -(-windows // every)
    return np.where(inside > 1, inside, windows / every)


class CalibrationPolicy:
    """Release every k slots, now and then with an anchor, all chosen from past releases.

    Args:
        outlook: what the smoother expects, from its state.
        sensitivity: Δ.
    """

    def __init__(self, outlook: Callable[[Any], CalibrationForecast], *, sensitivity: int = 1) -> None:
        self._outlook = outlook
        self._sensitivity = sensitivity
        self._plain = AdaptivePeriod(lambda smoothed: outlook(smoothed).counts, sensitivity=sensitivity)

    def probe(self, ledger: PolicyInput) -> IntArray | None:
        return None

    def offer(self, ledger: PolicyInput, history: History) -> Split | NoOffer:
        """Up to a sixth of ε at first, an anchor in it; then every k slots what can be repeated, with anchors as designed."""
        with np.errstate(all="ignore"):  # extreme draws make extreme expectations, and no offer may fail over them
            if _all_alike(ledger):
                offer = self._plain.offer(ledger, _as_plain(history))
                return offer if isinstance(offer, NoOffer) else Split(offer, 0)
            split = self._offer(ledger, history)
            return (
                split if isinstance(split, NoOffer) else split._replace(budgets=without_excess(split.budgets, ledger))
            )

    def _offer(self, ledger: PolicyInput, history: History) -> Split | NoOffer:
        members = members_of(ledger)
        if not history.last_fresh or history.memory is None:
            total = self._plain.first(ledger, len(history.measurement))
            if history.last_fresh:  # planning failed: every slot
                total = sustainable(ledger, 1)
            return _with_anchor(total, members)
        period, every, level = history.memory
        if is_mostly_new(ledger.sizes, history):
            look = self._plain.again(ledger, len(history.measurement))
            if self._plain.tells(look, ledger):
                return _with_anchor(look, members)
        if history.slot - history.last_fresh < period:
            return NoOffer.NOT_DUE
        if every == ALWAYS:
            return self._strongest(ledger, period)
        outlook = self._outlook(history.smoothed)
        wanted = _beside_anchors(ledger, period, every, level)
        left = ledger.forecast(np.zeros(1, dtype=np.int64))[:, 0]
        due = level > 0 and (outlook.since + 1 >= every or outlook.alarm > ALARM * noise_of(level, self._sensitivity))
        now = min(level, int(left[members].min())) if due else 0
        due = due and now >= READY * level
        wait = 0 if due else max(every - outlook.since - 1, 1)
        budgets = sustainable(ledger, period, lambda delays: _anchors_until(delays, every, wait) * level)
        budgets = np.maximum(np.minimum(budgets, left - (now if due else 0)), 0)
        main = self._fitted(budgets, wanted, ledger, outlook)
        users = ledger.typical_sizes.astype(np.float64)  # budget · users may exceed 64 bits
        if float(main @ users) < READY * float(wanted @ users):
            return NoOffer.NOT_DUE
        if not due:
            return Split(main, 0)
        return Split(np.minimum(main + now, left), now)  # a class without members may have less left than the level

    def replan(self, ledger: PolicyInput, history: History) -> Any:
        """Return period, slots between anchors and their level."""
        if _all_alike(ledger):
            return list(Schedule(self._plain.replan(ledger, _as_plain(history)), NEVER, 0))
        outlook = self._outlook(history.smoothed)
        releases, memory = outlook.counts.releases, history.memory
        if memory and releases >= SETTLED and releases % RECONSIDER and memory[0] < LONG_PERIOD:
            return memory
        held = Schedule(*memory) if memory else None
        candidates = periods(some_of(planned_windows(ledger)), outlook.counts.cycles)
        options = all_schedules(ledger, outlook, candidates, held, self._sensitivity)
        k, noise, offset = np.array([(one.design.period, one.noise, one.offset) for one in options]).T
        errors = outlook.counts.expected_errors(k.astype(np.int64), noise, np.zeros(len(options))) + offset
        always = np.array([one.design.every == ALWAYS for one in options])
        soonest = k[np.where(always, np.inf, errors).argmin()]
        errors[always & (k > CALIBRATION_PATIENCE * soonest)] = (
            np.inf
        )  # what is still may jump, and who waits sees it late
        good = np.flatnonzero(errors <= (1.0 + ALIKE_PART) * errors.min() + ALIKE_COUNTS)
        best = int(good[k[good].argmin()])  # the sooner, the earlier a jump is seen
        if held is not None and releases > 2:
            near = [_distance(one.design, held) for one in options]
            nearest = int(np.argmin(near))
            if errors[best] >= (1.0 - HYSTERESIS) * errors[nearest]:
                best = nearest
        return list(options[best].design)

    def _strongest(self, ledger: PolicyInput, period: int) -> Split | NoOffer:
        """Return the largest level that can be charged every k slots, and a main sum from what remains beside it."""
        budgets, wanted = sustainable(ledger, period), steady(ledger, period)
        members = members_of(ledger)
        level = int(budgets[members].min())
        if level < READY * int(wanted[members].min()):
            level = 0
        users = ledger.typical_sizes.astype(np.float64)
        if not level and float(budgets @ users) < READY * float(wanted @ users):
            return NoOffer.NOT_DUE
        return Split(budgets, level)

    def _fitted(
        self, budgets: IntArray, wanted: IntArray, ledger: PolicyInput, outlook: CalibrationForecast
    ) -> IntArray:
        """Return budgets in the proportions wanted, as far as they reach: other weights have other offsets."""
        share = shares_of(ledger)
        use = (wanted > 0) & (share > 0)
        ratios = np.unique(budgets[use] / wanted[use])
        ratios = ratios[ratios > 0]
        if not len(ratios):
            return np.zeros_like(budgets)
        if len(ratios) > 12:
            ratios = np.quantile(ratios, np.linspace(0, 1, 12))
        tried = np.minimum(budgets[None, :], ratios[:, None] * wanted[None, :])
        mean = (tried * share).sum(axis=1)
        profile = wanted / (wanted * share).sum()
        deviation = ((tried / mean[:, None] - profile) ** 2 * share).sum(axis=1)
        cost = outlook.counts.gain * noise_of(mean, self._sensitivity) + outlook.offset_errors(
            deviation, np.full(len(ratios), float(NEVER)), np.full(len(ratios), np.inf)
        )
        fitted: IntArray = np.floor(tried[int(cost.argmin())]).astype(np.int64)
        return fitted


def _with_anchor(total: IntArray, members: BoolArray) -> Split:
    """Return a look with all of this, the smallest budget of a class with members as its anchor, unless all have the same."""
    smallest = int(total[members].min())
    return Split(total, 0 if (total[members] == smallest).all() else smallest)


def _all_alike(ledger: PolicyInput) -> bool:
    """Return whether all users ask for the same: main sums measure counts themselves, and there is nothing to learn."""
    members = members_of(ledger)
    epsilons, windows = ledger.epsilons[members], ledger.windows[members]
    return bool((epsilons == epsilons[0]).all() and (windows == windows[0]).all())


def _as_plain(history: History) -> History:
    """Return what a policy without anchors remembers: the period."""
    return replace(history, memory=history.memory and history.memory[0])


def _distance(one: Schedule, other: Schedule) -> int:
    """Return the distance of two schedules: of their periods, or large if one has anchors in every release alone."""
    return abs(one.period - other.period) + (NEVER if (one.every == ALWAYS) != (other.every == ALWAYS) else 0)


def _beside_anchors(ledger: PolicyInput, period: int, every: int, level: int) -> IntArray:
    """Return what remains for main sums in the long run."""
    budgets = np.maximum(ledger.epsilons - anchors_inside(ledger.windows, every) * level, 0) / -(
        -ledger.windows // period
    )
    floored: IntArray = np.floor(budgets).astype(np.int64)
    return floored


def _anchors_until(delays: IntArray, every: int, wait: int) -> IntArray:
    """Return how many anchors come within that many slots, the first after `wait`."""
    anchors: IntArray = np.where(delays >= wait, (delays - wait) // every + 1, 0)
    return anchors
