"""Where the exact audit could take a wrong number for a fact: lost digits, states that look alike, noise that is not told."""

from __future__ import annotations

import time
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pytest

from wevent import Population, Publisher, Requirement
from wevent.auditing.audit_subject import AuditSubject, build_subject
from wevent.auditing.exact.enumeration import Enumeration
from wevent.auditing.exact.laws import EXACT, LaplaceCall
from wevent.auditing.exact.pairs import Case, PairMove, Playing
from wevent.auditing.exact.scripted_noise import Chooser, NotFollowed, ScriptedNoise
from wevent.auditing.exact.slot_law import SlotLaw
from wevent.auditing.exact.slot_run import run_slot
from wevent.auditing.exact.state_copy import fingerprint, fork
from wevent.core.budget import noise_scale
from wevent.core.estimators import Sampling, laplace_error, sample
from wevent.core.mechanism import Measurement

NINE = Population({Requirement(1, "0.5"): 9})


def published(estimator: Sampling, cells: int = 1, noise: Any = None) -> Publisher:
    publisher = Publisher(NINE, cells, "uniform", noise=noise or ScriptedNoise())
    pieces = publisher._pieces
    publisher._pieces = type(pieces)(pieces.policy, estimator, pieces.smoother, None, False)
    return publisher


def drawing(noise: list[int]) -> Chooser:
    """Everyone is kept, and this is drawn."""
    return lambda number, call: call.default() + (noise if isinstance(call, LaplaceCall) else 0)


def assert_same(one: Decimal, other: Decimal) -> None:
    """But for the last of sixty digits."""
    assert EXACT.subtract(one, other).copy_abs() < Decimal("1e-55")


class Shown(Sampling):
    """Publishes a function of the noisy sums."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self._function = function

    def measure(self, permit, plan, counts, noise):
        measured = super().measure(permit, plan, counts, noise)
        return measured._replace(values=self._function(measured.values))


def test_a_ratio_keeps_its_sixty_digits() -> None:
    case = Case(build_subject("uniform"), Population({Requirement(3, 1): 2}), 1, 0)
    tree = Enumeration(case, np.zeros((1, 1), dtype=np.int64))
    assert tree.deepen(time.monotonic() + 600)
    formula = EXACT.divide(1, Decimal(noise_scale(333_333_333, 1)))
    assert EXACT.subtract(tree.found.ratio, formula).copy_abs() < Decimal("1e-50")


class Note:
    def __init__(self, **held: Any) -> None:
        self.__dict__.update(held)

    def one(self) -> None: ...

    def other(self) -> None: ...


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([[1], 2], [[1, 2]]),
        ({1: {2: 3}, 4: 5}, {1: {2: 3, 4: 5}}),
        (b"1", 1),
        (Note(a=1), Note(b=1)),
        (np.zeros(2), np.zeros((2, 1))),
        (np.zeros(1), np.zeros(1, dtype=np.int64)),
    ],
)
def test_states_that_differ_have_different_marks(one: Any, other: Any) -> None:
    assert fingerprint(Note(held=one)) != fingerprint(Note(held=other))


def test_states_that_refer_differently_have_different_marks() -> None:
    note = Note()
    assert fingerprint([note, note]) != fingerprint([note, 1])
    assert fingerprint(note.one) != fingerprint(note.other)


def test_a_source_of_noise_is_exchanged_wherever_it_is_held() -> None:
    noise = ScriptedNoise()
    held = Note(laplace=partial(noise.laplace), binomial=noise.binomial, respond=noise.respond)
    run = run_slot(published(Sampling(), noise=held), np.array([[3]]), (), drawing([2]))
    assert any(isinstance(call, LaplaceCall) for call in run.calls)
    assert run.measured == (5.0,)


def test_a_closure_is_copied_with_its_defaults() -> None:
    held = [1]

    def add(*, more: int = 2) -> int:
        return held[0] + more

    assert fork(Note(add=add), ScriptedNoise()).add() == 3


def test_noise_that_is_told_in_some_slots_only() -> None:
    class InTurns(Sampling):
        slots = 0

        def measure(self, permit, plan, counts, noise):
            measured = super().measure(permit, plan, counts, noise)
            self.slots += 1
            return measured._replace(values=measured.values * [1, self.slots % 2 == 0])

    publisher, law, counts = published(InTurns(), cells=2), SlotLaw(), np.array([[3, 4]])
    for noise in ([1, 0], [1, 2]):
        wanted = run_slot(publisher, counts, (), drawing(noise))
        (branch,) = law.branches(publisher, counts, wanted)
        publisher = branch.state


def test_what_is_shown_unevenly_is_followed_not_called_impossible() -> None:
    publisher = published(Shown(lambda values: values.astype(float) ** 3))
    (branch,) = SlotLaw().branches(publisher, np.array([[1]]), run_slot(publisher, np.array([[5]])))
    assert_same(branch.probability, LaplaceCall(noise_scale(500_000_000, 1), 1).probability(np.array([4])))


def test_what_moves_little_with_the_noise_is_reached() -> None:
    publisher = published(Shown(lambda values: np.exp2(np.clip(values, -60, 60))))
    (branch,) = SlotLaw().branches(publisher, np.array([[3]]), run_slot(publisher, np.array([[2]])))
    assert_same(branch.probability, LaplaceCall(noise_scale(500_000_000, 1), 1).probability(np.array([-1])))


def test_what_lies_between_two_draws_is_impossible() -> None:
    publisher = published(Shown(lambda values: values + 0.25 * (values > 2)))
    assert SlotLaw().branches(publisher, np.array([[0]]), run_slot(publisher, np.array([[3]]))) != []
    halves = published(Shown(lambda values: values + 0.25))
    assert SlotLaw().branches(publisher, np.array([[0]]), run_slot(halves, np.array([[1]]))) == []


def test_noise_that_is_kept_for_later() -> None:
    class Later(Sampling):
        kept = 0

        def measure(self, permit, plan, counts, noise):
            spend = permit.for_sampling(plan.threshold)
            now, later = noise.laplace(spend.noise, 2)
            values = sample(counts, spend, noise) + now + self.kept
            self.kept = later
            return Measurement(values, laplace_error(spend.noise.scale))

    publisher = published(Later())
    with pytest.raises(NotFollowed, match="kept"):
        SlotLaw().branches(publisher, np.array([[1]]), run_slot(publisher, np.array([[1]])))


def test_a_ratio_counts_every_way_to_what_is_shown() -> None:
    def coarse(values: Any) -> Any:
        return np.where(values < 2, values / 2, values // 2)  # honest: 4 and 5 look alike

    subject = AuditSubject("coarse", lambda population, cells, noise: published(Shown(coarse), cells, noise))
    case = Case(subject, NINE, 1, 0)
    playing, nobody = Playing(case), frozenset[int]()
    start = playing.play(playing.start(), PairMove(np.array([[0]]), nobody, nobody))
    moment = playing.play(start, PairMove(np.array([[3]]), frozenset([0]), nobody))
    assert Decimal(0) < moment.ratio <= Decimal("0.5"), "two units of noise, where one would do, too"
