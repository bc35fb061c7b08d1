"""When to release, with anchors: the period, how often all classes count alike, and at what level (spec 11).

Main sums have the least noise but are off where requirement and cell go together; anchors are noisier and tell by how much.
For each period the cheapest anchors are found, from what the filter expects of counts and offsets; then the period is
chosen. Everything here looks only at past releases, charges, class sizes and settings, so it costs nothing; what is spent
goes through the gate as always.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from wevent.core.arrays import BoolArray, FloatArray, IntArray
from wevent.core.budget import NANO
from wevent.core.mechanism import Budgets, History, Idle, Split
from wevent.core.policies.tracking import FIRST, HYSTERESIS, READY, RECONSIDER, SETTLED, periods, sustainable
from wevent.core.smoothers.outlook import AnchorOutlook

_LEVELS = np.array([0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0])  # of what the strictest class could give to anchors
_MULTIPLES = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256])  # of the period
_ALARM = 0.25  # of an anchor's noise variance: a jump that may have moved offsets by more wants an anchor
_NEVER = 10**9


class Design(NamedTuple):
    """How to release: every so many slots, with an anchor every so many slots, of this level; what to expect of it.

    `every` is 0 where each release has an anchor as strong as can be.
    """

    period: int
    every: int
    level: int
    noise: float
    offset: float


class Anchoring:
    """Release every k slots, now and then with an anchor, all chosen from past releases.

    Args:
        outlook: what the smoother expects, from its state.
        sensitivity: Δ.
    """

    def __init__(self, outlook: Callable[[Any], AnchorOutlook], *, sensitivity: int = 1) -> None:
        self._outlook = outlook
        self._sensitivity = sensitivity

    def probe(self, ledger: Budgets) -> IntArray | None:
        """Never looks first: no dissimilarity budget."""
        return None

    def offer(self, ledger: Budgets, history: History) -> Split | Idle:
        """A sixth of ε at first, an anchor in it; then every k slots what can be repeated, with anchors as designed."""
        with np.errstate(all="ignore"):  # extreme draws make extreme expectations, and no offer may fail over them
            return self._offer(ledger, history)

    def _offer(self, ledger: Budgets, history: History) -> Split | Idle:
        members = _members(ledger)
        if not history.last_fresh or history.memory is None:
            total = np.maximum(ledger.epsilons // FIRST, ledger.epsilons // ledger.windows)
            if history.last_fresh:  # planning failed: every slot
                total = sustainable(ledger, 1)
            smallest = int(total[members].min())
            return Split(total, 0 if (total[members] == smallest).all() else smallest)
        period, every, level = history.memory
        if history.slot - history.last_fresh < period:
            return Idle.NOT_DUE
        outlook = self._outlook(history.smoothed)
        wanted = _steady(ledger, period, every, level)
        if not every:
            return self._strongest(ledger, period)
        left = ledger.forecast(np.zeros(1, dtype=np.int64))[:, 0]
        due = level > 0 and (outlook.since + 1 >= every or outlook.alarm > _ALARM * self._noise(level / NANO))
        now = min(level, int(left[members].min())) if due else 0
        due = due and now >= READY * level
        wait = 0 if due else max(every - outlook.since - 1, 1)
        budgets = np.minimum(_sustainable(ledger, period, every, level, wait), left - (now if due else 0))
        main = self._fitted(np.maximum(budgets, 0), wanted, ledger, outlook)
        users = ledger.sizes.astype(np.float64)  # budget · users may exceed 64 bits
        if float(main @ users) < READY * float(wanted @ users):
            return Idle.NOT_DUE
        if not due:
            return Split(main, 0)
        return Split(np.minimum(main + now, left), now)  # a class without members may have less left than the level

    def replan(self, ledger: Budgets, history: History) -> Any:
        """Period, slots between anchors and their level."""
        outlook = self._outlook(history.smoothed)
        releases, memory = outlook.counts.releases, history.memory
        if memory and releases >= SETTLED and releases % RECONSIDER:
            return memory
        candidates = periods(ledger.windows[ledger.charged], outlook.counts.cycles)
        designs = [one for k in candidates.tolist() for one in self._designs(ledger, outlook, k, memory)]
        k, noise, offset = (np.array([one[field] for one in designs]) for field in (0, 3, 4))
        errors = outlook.counts.expected_errors(k, noise, np.zeros(len(designs))) + offset
        best = int(errors.argmin())
        if memory and releases > 2:
            near = [
                abs(one.period - memory[0]) + (_NEVER if (not one.every) != (not memory[1]) else 0) for one in designs
            ]
            held = int(np.argmin(near))
            if errors[best] >= (1.0 - HYSTERESIS) * errors[held]:
                best = held
        return [int(number) for number in designs[best][:3]]

    def _strongest(self, ledger: Budgets, period: int) -> Split | Idle:
        """The largest level that can be charged every k slots, and a main sum from what remains beside it."""
        budgets, wanted = sustainable(ledger, period), _steady(ledger, period, 0, 0)
        level = int(budgets[_members(ledger)].min())
        if level < READY * _equal(ledger, period):
            level = 0
        users = ledger.sizes.astype(np.float64)
        if not level and float(budgets @ users) < READY * float(wanted @ users):
            return Idle.NOT_DUE
        return Split(budgets, level)

    def _designs(self, ledger: Budgets, outlook: AnchorOutlook, period: int, memory: Any) -> list[Design]:
        """For a period: the cheapest anchors beside main sums, and anchors at every release."""
        members = _members(ledger)
        epsilons, windows, share = ledger.epsilons[members], ledger.windows[members], _shares(ledger)[members]
        options = np.unique(np.concatenate([_MULTIPLES * period, windows]))
        options = options[(options >= period) & (options <= max(int(windows.max()), period))]
        every = np.concatenate([[_NEVER], np.repeat(options, len(_LEVELS))])
        part = np.concatenate([[0.0], np.tile(_LEVELS, len(options))])
        level = np.floor(part * (epsilons // -(-windows // every[:, None])).min(axis=1)).astype(np.int64)
        held = bool(memory) and memory[1] not in (0, _NEVER)
        if held:  # the one we have
            every = np.append(every, max(memory[1], period))
            level = np.append(level, min(memory[2], int((epsilons // -(-windows // every[-1])).min())))
        inside = _anchors_inside(windows, every[:, None])
        main = (epsilons - level[:, None] * inside) / NANO / -(-windows // period)
        mean = (main * share).sum(axis=1)
        spread = np.maximum((main**2 * share).sum(axis=1) / np.maximum(mean, 1e-12) ** 2 - 1.0, 0.0)
        noise = self._noise(np.maximum(mean, 1e-9))
        contrast = np.where(level > 0, self._noise(np.maximum(level, 1) / NANO) + noise, np.inf)
        offset = outlook.offset_errors(spread, every.astype(np.float64), contrast)
        cost = outlook.counts.gain * noise + offset
        best = int(cost.argmin())
        if held and cost[-1] < cost[best] * (1.0 + HYSTERESIS):
            best = len(cost) - 1
        found = [Design(period, int(every[best]), int(level[best]), float(noise[best]), float(offset[best]))]
        equal = int(_equal(ledger, period))
        if equal > 0 and spread[0] > 1e-12:
            found += self._always(ledger, outlook, period, equal)
        return found

    def _always(self, ledger: Budgets, outlook: AnchorOutlook, period: int, level: int) -> list[Design]:
        """An anchor at every release: alone, or with the main sum from what remains beside it, as far as offsets allow."""
        alike = float(self._noise(level / NANO))
        share, rest = _shares(ledger), np.maximum(_steady(ledger, period, 0, 0) - level, 0) / NANO
        mean = float((rest * share).sum())
        alone = Design(period, 0, level, alike, 0.0)
        if mean <= 0.0:
            return [alone]
        noise = float(self._noise(mean))
        spread = np.array([max(float((rest * rest * share).sum()) / mean**2 - 1.0, 0.0)])
        off = float(outlook.offset_errors(spread, np.array([float(period)]), np.array([alike + noise]))[0])
        part = alike / (alike + noise)
        return [alone, Design(period, 0, level, alike * part * noise / alike, part * part * off)]

    def _fitted(self, budgets: IntArray, wanted: IntArray, ledger: Budgets, outlook: AnchorOutlook) -> IntArray:
        """Budgets in the proportions wanted, as far as they reach: other weights have other offsets."""
        share = _shares(ledger)
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
        cost = outlook.counts.gain * self._noise(mean / NANO) + outlook.offset_errors(
            deviation, np.full(len(ratios), float(_NEVER)), np.full(len(ratios), np.inf)
        )
        fitted: IntArray = np.floor(tried[int(cost.argmin())]).astype(np.int64)
        return fitted

    def _noise(self, budget: Any) -> Any:
        """2(Δ/e)²."""
        return 2.0 * (self._sensitivity / budget) ** 2


def _members(ledger: Budgets) -> BoolArray:
    members = ledger.sizes > 0
    return members if members.any() else np.ones_like(members)


def _shares(ledger: Budgets) -> FloatArray:
    sizes = ledger.sizes if ledger.sizes.any() else np.ones_like(ledger.sizes)
    shares: FloatArray = sizes / sizes.sum()
    return shares


def _equal(ledger: Budgets, period: int) -> int:
    """The level that all classes can give every k slots."""
    return int((ledger.epsilons // -(-ledger.windows // period))[_members(ledger)].min())


def _anchors_inside(windows: IntArray, every: Any) -> Any:
    """How many anchors a window holds; of windows shorter than the distance between anchors, how many on average."""
    inside = -(-windows // every)
    return np.where(inside > 1, inside, windows / every)


def _steady(ledger: Budgets, period: int, every: int, level: int) -> IntArray:
    """What remains for main sums in the long run."""
    anchors = _anchors_inside(ledger.windows, every) * level if every else 0.0
    budgets = np.maximum(ledger.epsilons - anchors, 0) / -(-ledger.windows // period)
    floored: IntArray = np.floor(budgets).astype(np.int64)
    return floored


def _sustainable(ledger: Budgets, period: int, every: int, level: int, wait: int) -> IntArray:
    """The largest main budget that could be charged now and every k slots, with anchors from `wait` slots on."""
    releases = np.arange(-(-int(ledger.windows.max()) // period))
    delays = releases * period
    anchors = np.where(delays >= wait, (delays - wait) // every + 1, 0) * level
    remaining = (ledger.forecast(delays) - anchors) // (releases + 1)
    inside = releases < -(-ledger.windows // period)[:, None]
    budgets: IntArray = np.where(inside, remaining, np.iinfo(np.int64).max).min(axis=1)
    return budgets
