"""Losses of users in exact fractions, from the draws of a slot alone: no ledger, no charge, no journal is read (spec 15.1).

A draw costs a user of class g, in nano-epsilons:

- sampling with budgets e, then noise of scale s: min(e_g, Δ·10⁹/s), or Δ·10⁹/s if nothing was sampled;
- a weighted sum with weights A, and noise of scale s: A_g·Δ·10⁹/s;
- randomized response with budgets e: e_g, if the probabilities of the answers have at most that ratio.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, NamedTuple
from unittest import mock

from wevent.core.arrays import IntArray
from wevent.core.permit import NoisePermit, ResponsePermit, SamplingPermit, WeightingPermit
from wevent.noise import SeededNoise

Key = tuple[int, int]
NANO = 10**9
_CLOSE = 1e-6  # float sums of a span that are this close to the limit are added up exactly

_forms: dict[int, tuple[object, Any]] = {}  # what the noise of a permit is for; the permit is kept, so its id is


@contextmanager
def watched_permits() -> Iterator[None]:
    """Remember what every permit is for, while it lasts: noise permits do not say it."""

    def watch(kind: Any, form_of: Any) -> Any:
        made = kind.__init__

        def init(self: Any, gate: object, *args: Any) -> None:
            made(self, gate, *args)
            noise = self if kind is ResponsePermit else self.noise
            _forms[id(noise)] = noise, form_of(self, *args)

        return mock.patch.object(kind, "__init__", init)

    with (
        watch(SamplingPermit, lambda form, permit, threshold: form),
        watch(WeightingPermit, lambda form, budgets, permit: form),
        watch(ResponsePermit, lambda form, permit, cells: permit.budgets.tolist()),
    ):
        yield
    _forms.clear()


class RecordingNoise(SeededNoise):
    """Seeded noise that adds up the loss of each class in a slot.

    Args:
        seed: seed of the draws.
        sensitivity: Δ of the stream.
    """

    def __init__(self, seed: int, sensitivity: int) -> None:
        super().__init__(seed)
        self._sensitivity = sensitivity
        self._sampled: list[object] = []
        self._losses: list[Fraction] = []

    def take_losses(self, classes: int) -> list[Fraction]:
        """Return the loss of each class since the last call."""
        losses, self._losses, self._sampled = self._losses or [Fraction(0)] * classes, [], []
        _forms.clear()
        assert len(losses) == classes
        return losses

    def laplace(self, permit: NoisePermit, size: int) -> IntArray:
        _, form = _forms[id(permit)]
        full = Fraction(self._sensitivity * NANO) / Fraction(permit.scale)
        if isinstance(form, WeightingPermit):
            self._add(weight * full for weight in form.weights.tolist())
        elif any(form is sampled for sampled in self._sampled):
            self._add(min(Fraction(budget), full) for budget in form.budgets.tolist())
        else:
            self._add(full for _ in form.budgets)
        return super().laplace(permit, size)

    def binomial(self, counts: IntArray, permit: SamplingPermit) -> IntArray:
        self._sampled.append(permit)
        return super().binomial(counts, permit)

    def respond(self, counts: IntArray, permit: ResponsePermit) -> IntArray:
        _, budgets = _forms[id(permit)]
        for budget, truth in zip(budgets, permit.truths.tolist(), strict=True):
            ratio = Fraction(truth * permit.cells, 2**64 - truth)
            with localcontext(prec=60):
                limit = Fraction((Decimal(budget) / NANO).exp()) + Fraction(1, 10**50)
            assert ratio <= limit, "randomized response loses more than its budget"
        self._add(map(Fraction, budgets))
        return super().respond(counts, permit)

    def _add(self, losses: Iterable[Fraction]) -> None:
        added = list(losses)
        before = self._losses or [Fraction(0)] * len(added)
        self._losses = [one + other for one, other in zip(before, added, strict=True)]


class Span(NamedTuple):
    """The slots from `first` on that cost a user the largest part of a promise, and that part."""

    ratio: Fraction
    user: str
    window: int
    limit: int
    first: int


NO_SPAN = Span(Fraction(0), "", 0, 0, 0)


class Accountant:
    """Losses and requirements of every user.

    Attributes:
        losses: of each user, by slot.
        held: of each user, by slot: the window and how many nano-epsilons every span that begins there may cost.
    """

    def __init__(self, users: Iterable[str]) -> None:
        self.losses: dict[str, dict[int, Fraction]] = {user: {} for user in users}
        self.held: dict[str, dict[int, Key]] = {user: {} for user in self.losses}

    def add(self, slot: int, losses: dict[str, Fraction], held: dict[str, Key]) -> None:
        """Add a released slot."""
        for user, loss in losses.items():
            assert slot not in self.losses[user], f"slot {slot} was released twice"
            if loss:
                self.losses[user][slot] = loss
        for user, key in held.items():
            self.held[user][slot] = key

    def find_worst(self) -> Span:
        """Return the worst span of all users."""
        return max(map(self._find_worst_of, self.losses), key=lambda span: span.ratio)

    def _find_worst_of(self, user: str) -> Span:
        """Return the worst span of a user; only spans that may be the worst are added up exactly."""
        losses = self.losses[user]
        floats = {slot: float(loss) for slot, loss in losses.items()}
        worst, highest = NO_SPAN, 0.0
        for first, (window, limit) in self.held[user].items():
            about = sum(floats.get(slot, 0.0) for slot in range(first, first + window)) / limit
            if about > highest - _CLOSE:
                highest = max(highest, about)
                spent = sum((losses.get(slot, Fraction(0)) for slot in range(first, first + window)), Fraction(0))
                worst = max(worst, Span(spent / limit, user, window, limit, first))
        return worst
