"""When to release, with anchors: the period, how often all classes count alike, and at what level (spec 11.8).

Main sums have the least noise but are off where requirement and cell go together; anchors are noisier and tell by how much.
For each period the cheapest anchors are found, from what the filter expects of counts and offsets; then the period is
chosen. Everything here looks only at past releases, charges, class sizes and settings, so it costs nothing; what is spent
goes through the gate as always.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from wevent.core.arrays import BoolArray, IntArray
from wevent.core.mechanism import Budgets, History, Idle, Split, is_mostly_new
from wevent.core.policies.designs import (
    ALWAYS,
    NEVER,
    Design,
    all_designs,
    anchors_inside,
    members_of,
    noise_of,
    shares_of,
)
from wevent.core.policies.tracking import (
    HYSTERESIS,
    READY,
    RECONSIDER,
    SETTLED,
    Tracking,
    periods,
    planned_windows,
    some_of,
    steady,
    sustainable,
    without_excess,
)
from wevent.core.smoothers.outlook import AnchorOutlook

_ALARM = 0.25  # of an anchor's noise variance: a jump that may have moved offsets by more wants an anchor
_ALIKE = 0.1  # errors that differ by less than this part, and …
_NOTHING = 0.02  # … by this many squared counts per cell, are alike
_PATIENCE = 3  # anchors alone may take this many times the period of main sums
_LONG = 8  # slots: who releases so rarely reconsiders every time


class Anchoring:
    """Release every k slots, now and then with an anchor, all chosen from past releases.

    Args:
        outlook: what the smoother expects, from its state.
        sensitivity: Δ.
    """

    def __init__(self, outlook: Callable[[Any], AnchorOutlook], *, sensitivity: int = 1) -> None:
        self._outlook = outlook
        self._sensitivity = sensitivity
        self._plain = Tracking(lambda smoothed: outlook(smoothed).counts, sensitivity=sensitivity)

    def probe(self, ledger: Budgets) -> IntArray | None:
        """Never looks first: no dissimilarity budget."""
        return None

    def offer(self, ledger: Budgets, history: History) -> Split | Idle:
        """Up to a sixth of ε at first, an anchor in it; then every k slots what can be repeated, with anchors as designed."""
        with np.errstate(all="ignore"):  # extreme draws make extreme expectations, and no offer may fail over them
            if _all_alike(ledger):
                offer = self._plain.offer(ledger, _as_plain(history))
                return offer if isinstance(offer, Idle) else Split(offer, 0)
            split = self._offer(ledger, history)
            return split if isinstance(split, Idle) else split._replace(budgets=without_excess(split.budgets, ledger))

    def _offer(self, ledger: Budgets, history: History) -> Split | Idle:
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
            return Idle.NOT_DUE
        if every == ALWAYS:
            return self._strongest(ledger, period)
        outlook = self._outlook(history.smoothed)
        wanted = _beside_anchors(ledger, period, every, level)
        left = ledger.forecast(np.zeros(1, dtype=np.int64))[:, 0]
        due = level > 0 and (outlook.since + 1 >= every or outlook.alarm > _ALARM * noise_of(level, self._sensitivity))
        now = min(level, int(left[members].min())) if due else 0
        due = due and now >= READY * level
        wait = 0 if due else max(every - outlook.since - 1, 1)
        budgets = sustainable(ledger, period, lambda delays: _anchors_until(delays, every, wait) * level)
        budgets = np.maximum(np.minimum(budgets, left - (now if due else 0)), 0)
        main = self._fitted(budgets, wanted, ledger, outlook)
        users = ledger.typical_sizes.astype(np.float64)  # budget · users may exceed 64 bits
        if float(main @ users) < READY * float(wanted @ users):
            return Idle.NOT_DUE
        if not due:
            return Split(main, 0)
        return Split(np.minimum(main + now, left), now)  # a class without members may have less left than the level

    def replan(self, ledger: Budgets, history: History) -> Any:
        """Period, slots between anchors and their level."""
        if _all_alike(ledger):
            return list(Design(self._plain.replan(ledger, _as_plain(history)), NEVER, 0))
        outlook = self._outlook(history.smoothed)
        releases, memory = outlook.counts.releases, history.memory
        if memory and releases >= SETTLED and releases % RECONSIDER and memory[0] < _LONG:
            return memory
        held = Design(*memory) if memory else None
        candidates = periods(some_of(planned_windows(ledger)), outlook.counts.cycles)
        options = all_designs(ledger, outlook, candidates, held, self._sensitivity)
        k, noise, offset = np.array([(one.design.period, one.noise, one.offset) for one in options]).T
        errors = outlook.counts.expected_errors(k.astype(np.int64), noise, np.zeros(len(options))) + offset
        always = np.array([one.design.every == ALWAYS for one in options])
        soonest = k[np.where(always, np.inf, errors).argmin()]
        errors[always & (k > _PATIENCE * soonest)] = np.inf  # what is still may jump, and who waits sees it late
        good = np.flatnonzero(errors <= (1.0 + _ALIKE) * errors.min() + _NOTHING)
        best = int(good[k[good].argmin()])  # the sooner, the earlier a jump is seen
        if held is not None and releases > 2:
            near = [_distance(one.design, held) for one in options]
            nearest = int(np.argmin(near))
            if errors[best] >= (1.0 - HYSTERESIS) * errors[nearest]:
                best = nearest
        return list(options[best].design)

    def _strongest(self, ledger: Budgets, period: int) -> Split | Idle:
        """The largest level that can be charged every k slots, and a main sum from what remains beside it."""
        budgets, wanted = sustainable(ledger, period), steady(ledger, period)
        members = members_of(ledger)
        level = int(budgets[members].min())
        if level < READY * int(wanted[members].min()):
            level = 0
        users = ledger.typical_sizes.astype(np.float64)
        if not level and float(budgets @ users) < READY * float(wanted @ users):
            return Idle.NOT_DUE
        return Split(budgets, level)

    def _fitted(self, budgets: IntArray, wanted: IntArray, ledger: Budgets, outlook: AnchorOutlook) -> IntArray:
        """Budgets in the proportions wanted, as far as they reach: other weights have other offsets."""
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
    """A look with all of this, the smallest budget of a class with members as its anchor, unless all have the same."""
    smallest = int(total[members].min())
    return Split(total, 0 if (total[members] == smallest).all() else smallest)


def _all_alike(ledger: Budgets) -> bool:
    """Whether all who are registered ask for the same: main sums measure counts themselves, and there is nothing to learn."""
    members = members_of(ledger)
    epsilons, windows = ledger.epsilons[members], ledger.windows[members]
    return bool((epsilons == epsilons[0]).all() and (windows == windows[0]).all())


def _as_plain(history: History) -> History:
    """What a policy without anchors remembers: the period."""
    return replace(history, memory=history.memory and history.memory[0])


def _distance(one: Design, other: Design) -> int:
    """How different two designs are: in their periods, unless one has anchors in every release and the other has not."""
    return abs(one.period - other.period) + (NEVER if (one.every == ALWAYS) != (other.every == ALWAYS) else 0)


def _beside_anchors(ledger: Budgets, period: int, every: int, level: int) -> IntArray:
    """What remains for main sums in the long run."""
    budgets = np.maximum(ledger.epsilons - anchors_inside(ledger.windows, every) * level, 0) / -(
        -ledger.windows // period
    )
    floored: IntArray = np.floor(budgets).astype(np.int64)
    return floored


def _anchors_until(delays: IntArray, every: int, wait: int) -> IntArray:
    """How many anchors come within that many slots, the first after `wait`."""
    anchors: IntArray = np.where(delays >= wait, (delays - wait) // every + 1, 0)
    return anchors
